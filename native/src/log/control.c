#include "log/control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/process.h"

#define CONTROL_NAME "log.ctl"
#define CONTROL_NAME_NEW "log.ctl.new"
#define LOCK_NAME "log.lock"

static int map_control(OmiControlFile *control, const OmiLogDir *dir) {
    int protection = PROT_READ | (control->writable ? PROT_WRITE : 0);
    void *map = mmap(0, sizeof(OmiControl), protection, MAP_SHARED, control->fd, 0);
    if (map != MAP_FAILED) {
        control->map = map;
        return 0;
    }
    int rc = omi_fail_errno(OM_ERR_LOG_IO, "cannot map '%s/" CONTROL_NAME "'", dir->path);
    omi_control_close(control);
    return rc;
}

int omi_control_open(OmiControlFile *control, const OmiLogDir *dir, bool must_write) {
    struct stat info;
    control->map = 0;
    control->writable = true;
    control->fd = openat(dir->fd, CONTROL_NAME, O_RDWR | O_CLOEXEC);
    if (control->fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM) && !must_write) {
        control->writable = false;
        control->fd = openat(dir->fd, CONTROL_NAME, O_RDONLY | O_CLOEXEC);
    }
    if (control->fd < 0)
        return omi_fail_errno(errno == ENOENT ? OM_ERR_LOG_NOT_FOUND : OM_ERR_LOG_OPEN,
                              "cannot open '%s/" CONTROL_NAME "'", dir->path);
    if (fstat(control->fd, &info) != 0 || (uint64_t)info.st_size < sizeof(OmiControl)) {
        omi_control_close(control);
        return omi_fail(OM_ERR_LOG_FOREIGN, "'%s/" CONTROL_NAME "' is too short", dir->path);
    }
    int rc = map_control(control, dir);
    if (rc != 0)
        return rc;
    const OmiControl *map = control->map;
    if (map->magic != OMI_CONTROL_MAGIC || map->crc != omi_crc32c(map, offsetof(OmiControl, crc)))
        rc = omi_fail(OM_ERR_LOG_FOREIGN, "'%s/" CONTROL_NAME "' is damaged or not an ombus log's", dir->path);
    else if (map->version != OMI_LOG_VERSION)
        rc = omi_fail(OM_ERR_LOG_VERSION, "'%s' has log format %u, we read %u", dir->path, map->version,
                      OMI_LOG_VERSION);
    if (rc != 0)
        omi_control_close(control);
    return rc;
}

int omi_control_create(OmiControlFile *control, const OmiLogDir *dir, const uint8_t log_id[OM_LOG_ID_SIZE],
                       bool fresh) {
    control->map = 0;
    control->writable = true;
    /* A new name, then a rename: nobody ever maps half a control file. */
    unlinkat(dir->fd, CONTROL_NAME_NEW, 0);
    control->fd = openat(dir->fd, CONTROL_NAME_NEW, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (control->fd < 0)
        return omi_fail_errno(OM_ERR_LOG_OPEN, "cannot create '%s/" CONTROL_NAME_NEW "'", dir->path);
    int rc = omi_file_reserve(dir, CONTROL_NAME_NEW, control->fd, sizeof(OmiControl));
    if (rc == 0)
        rc = map_control(control, dir);
    if (rc != 0) {
        omi_control_close(control);
        return rc;
    }
    OmiControl *map = control->map;
    map->magic = OMI_CONTROL_MAGIC;
    map->version = OMI_LOG_VERSION;
    memcpy(map->log_id, log_id, OM_LOG_ID_SIZE);
    map->created_ns = omi_wall_ns();
    map->crc = omi_crc32c(map, offsetof(OmiControl, crc));
    if (fresh) {
        omi_control_set_mark(control, 0, 0, 0);
        omi_control_set_mark(control, 0, 0, 0);
    }
    rc = omi_sync_file(control->fd);
    if (rc == 0 && renameat(dir->fd, CONTROL_NAME_NEW, dir->fd, CONTROL_NAME) != 0)
        rc = omi_fail_errno(OM_ERR_LOG_OPEN, "cannot put '%s/" CONTROL_NAME "' in place", dir->path);
    if (rc == 0)
        rc = omi_sync_dir(dir);
    if (rc != 0)
        omi_control_close(control);
    return rc;
}

void omi_control_close(OmiControlFile *control) {
    if (control->map)
        munmap(control->map, sizeof(OmiControl));
    if (control->fd >= 0)
        close(control->fd);
    control->map = 0;
    control->fd = -1;
}

void omi_boot_id(uint8_t id[16]) {
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text) : 0;
    if (fd >= 0)
        close(fd);
    memset(id, 0, 16);
    unsigned digits = 0;
    for (ssize_t i = 0; i < size && digits < 32; i++) {
        char c = text[i];
        int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (value >= 0) {
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | value);
            digits++;
        }
    }
}

bool omi_control_same_boot(const OmiControl *control, const uint8_t id[16]) {
    static const uint8_t none[16];
    return memcmp(id, none, 16) != 0 && memcmp(id, control->boot_id, 16) == 0;
}

void omi_control_set_writer(OmiControl *control) {
    OmiProcess self = omi_process_self();
    atomic_store(&control->writer_pid, self.pid);
    atomic_store(&control->writer_start, self.start);
    atomic_store(&control->writer_pidns, self.pidns);
    atomic_store(&control->writer_registered, omi_doorbell_register_notifier());
    omi_boot_id(control->boot_id);
    atomic_fetch_add(&control->writer_epoch, 1);
}

static uint32_t mark_crc(const OmiControl *control, const OmiDurableMark *mark) {
    return omi_crc32c_extend(control->crc, mark, offsetof(OmiDurableMark, crc));
}

bool omi_control_mark(const OmiControl *control, OmiDurableMark *out) {
    bool found = false;
    const OmiDurableMark *marks[2] = {&control->mark0, &control->mark1};
    for (int i = 0; i < 2; i++) {
        OmiDurableMark mark = *marks[i];
        if (mark.crc == mark_crc(control, &mark) && (!found || mark.generation > out->generation)) {
            *out = mark;
            found = true;
        }
    }
    return found;
}

void omi_control_set_mark(OmiControlFile *control, uint64_t seq, uint64_t segment, uint64_t offset) {
    OmiDurableMark last = {.generation = 0};
    omi_control_mark(control->map, &last);
    OmiDurableMark mark = {.seq = seq, .segment = segment, .offset = offset, .generation = last.generation + 1};
    mark.crc = mark_crc(control->map, &mark);
    atomic_thread_fence(memory_order_release);
    *(mark.generation & 1 ? &control->map->mark1 : &control->map->mark0) = mark;
    /* Only start the write: the flush that ends the next segment sync takes it along, and an older mark is safe. */
    sync_file_range(control->fd, OMI_PAGE, OMI_PAGE, SYNC_FILE_RANGE_WRITE);
}

static uint64_t pruned_word(const OmiControl *control, uint64_t number) {
    return number << 16 | (omi_crc32c_extend(control->crc, &number, sizeof number) & 0xFFFF);
}

uint64_t omi_control_pruned(const OmiControl *control) {
    uint64_t word = atomic_load_explicit(&control->pruned, memory_order_acquire);
    return word == pruned_word(control, word >> 16) ? word >> 16 : 0;
}

int omi_control_set_pruned(OmiControlFile *control, uint64_t number) {
    uint64_t seen = atomic_load(&control->map->pruned);
    while (omi_control_pruned(control->map) < number &&
           !atomic_compare_exchange_weak(&control->map->pruned, &seen, pruned_word(control->map, number))) {
    }
    return omi_sync_range(control->fd, (uint8_t *)control->map, OMI_PAGE, 2 * OMI_PAGE);
}

/* A forked child shares the lock's open file and would hold the lock as long as it lives: it closes its copies at once.
 * That does not release the parent's. */
enum { LOCKS_MAX = 256 };
static _Atomic int lock_fds[LOCKS_MAX]; /* fd + 1; 0 = free */

static void drop_locks_in_child(void) {
    for (int i = 0; i < LOCKS_MAX; i++) {
        int fd = atomic_exchange(&lock_fds[i], 0);
        if (fd > 0)
            close(fd - 1);
    }
}

static void watch_forks_once(void) {
    pthread_atfork(0, 0, drop_locks_in_child);
}

static void remember_lock(int fd) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks_once);
    for (int i = 0; i < LOCKS_MAX; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&lock_fds[i], &none, fd + 1))
            return;
    }
}

void omi_log_unlock(int lock_fd) {
    for (int i = 0; i < LOCKS_MAX; i++) {
        int remembered = lock_fd + 1;
        if (atomic_compare_exchange_strong(&lock_fds[i], &remembered, 0))
            break;
    }
    /* Not only close(): a child that was just forked may not have dropped its copy yet, and would keep the lock. */
    struct flock unlock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    (void)fcntl(lock_fd, F_OFD_SETLK, &unlock);
    close(lock_fd);
}

/* Open-file-description locks: released by the kernel when the holder dies, and, unlike flock(), others can ask. The
 * file's content is the holder's pid, for the error text of the next one. */
int omi_log_lock(const OmiLogDir *dir, int *lock_fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char pid[16] = "";
    int fd = openat(dir->fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return omi_fail_errno(OM_ERR_LOG_OPEN, "cannot open '%s/" LOCK_NAME "'", dir->path);
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
        int size = snprintf(pid, sizeof pid, "%-10d\n", (int)getpid());
        *lock_fd = fd;
        remember_lock(fd);
        if (pwrite(fd, pid, (size_t)size, 0) != size)
            (void)ftruncate(fd, 0); /* no room for a name: others learn 0 */
        return 0;
    }
    int rc;
    if (errno == EAGAIN || errno == EACCES) {
        ssize_t size = pread(fd, pid, sizeof pid - 1, 0);
        pid[size > 0 ? size : 0] = 0;
        rc = omi_fail(OM_ERR_LOG_LOCKED, "'%s' is open for writing in process %d", dir->path, atoi(pid));
    } else {
        rc = omi_fail_errno(OM_ERR_LOG_IO, "cannot lock '%s/" LOCK_NAME "'", dir->path);
    }
    close(fd);
    return rc;
}

bool omi_log_locked(const OmiLogDir *dir) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = openat(dir->fd, LOCK_NAME, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool locked = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return locked;
}
