#include "log/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "log/layout.h"

int (*omi_sync_hook)(int fd, uint64_t from, uint64_t to);

void omi_file_name(char out[OMI_FILE_NAME_SIZE], uint64_t number, const char *suffix) {
    snprintf(out, OMI_FILE_NAME_SIZE, "%010" PRIu64 "%s", number, suffix);
}

/** mkdir -p. */
static int make_dirs(const char *path) {
    char partial[4096];
    size_t size = strlen(path);
    if (size >= sizeof partial) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(partial, path, size + 1);
    for (char *p = partial + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            if (mkdir(partial, 0777) != 0 && errno != EEXIST)
                return -1;
            *p = '/';
        }
    return mkdir(partial, 0777) != 0 && errno != EEXIST ? -1 : 0;
}

int omi_dir_open(OmiLogDir *dir, const char *path, bool create) {
    dir->fd = -1;
    dir->path = 0;
    if (!path || !*path)
        return omi_fail(OM_ERR_BUS_INIT, "no log directory given");
    dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0 && errno == ENOENT && create && make_dirs(path) == 0)
        dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0)
        return omi_fail_errno(errno == ENOENT && !create ? OM_ERR_LOG_NOT_FOUND : OM_ERR_LOG_OPEN,
                              "cannot open log directory '%s'", path);
    dir->path = strdup(path);
    if (!dir->path) {
        omi_dir_close(dir);
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    }
    return 0;
}

void omi_dir_close(OmiLogDir *dir) {
    if (dir->fd >= 0)
        close(dir->fd);
    free(dir->path);
    dir->fd = -1;
    dir->path = 0;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/** 0 when the name is not exactly a number with our suffix. */
static uint64_t segment_number(const char *name) {
    char canonical[OMI_FILE_NAME_SIZE];
    char *end;
    if (name[0] < '0' || name[0] > '9')
        return 0;
    uint64_t number = strtoull(name, &end, 10);
    omi_file_name(canonical, number, OMI_SEGMENT_SUFFIX);
    return strcmp(name, canonical) == 0 ? number : 0;
}

int omi_dir_segments(const OmiLogDir *dir, uint64_t **numbers, size_t *count) {
    size_t used = 0, room = 64;
    uint64_t *list = malloc(room * sizeof *list);
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : 0;
    int rc = 0;
    if (!stream) {
        if (fd >= 0)
            close(fd);
        rc = omi_fail_errno(OM_ERR_LOG_OPEN, "cannot list log directory '%s'", dir->path);
    }
    for (struct dirent *entry; rc == 0 && list && (entry = readdir(stream));) {
        uint64_t number = segment_number(entry->d_name);
        if (number == 0)
            continue;
        if (used == room) {
            uint64_t *more = realloc(list, (room *= 2) * sizeof *list);
            if (!more) {
                free(list);
                list = 0;
                break;
            }
            list = more;
        }
        list[used++] = number;
    }
    if (stream)
        closedir(stream);
    if (!list)
        rc = omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    if (rc != 0) {
        free(list);
        return rc;
    }
    qsort(list, used, sizeof *list, ascending);
    *numbers = list;
    *count = used;
    return 0;
}

int omi_file_reserve(const OmiLogDir *dir, const char *name, int fd, uint64_t size) {
    int error = posix_fallocate(fd, 0, (off_t)size);
    if (error == 0)
        return 0;
    errno = error;
    int rc = error == ENOSPC || error == EDQUOT || error == EFBIG ? OM_ERR_LOG_DISK_FULL : OM_ERR_LOG_IO;
    return omi_fail_errno(rc, "cannot reserve %" PRIu64 " bytes for '%s/%s'", size, dir->path, name);
}

static bool refused(int fd, uint64_t from, uint64_t to) {
    if (!omi_sync_hook || omi_sync_hook(fd, from, to) == 0)
        return false;
    errno = EIO;
    return true;
}

int omi_sync_range(int fd, uint8_t *base, uint64_t from, uint64_t to) {
    from &= ~(uint64_t)(OMI_PAGE - 1);
    if (refused(fd, from, to) || msync(base + from, to - from, MS_SYNC) != 0)
        return omi_fail_errno(OM_ERR_LOG_IO, "syncing bytes %" PRIu64 " to %" PRIu64 " failed", from, to);
    return 0;
}

int omi_sync_file(int fd) {
    return !refused(fd, 0, 0) && fdatasync(fd) == 0 ? 0 : omi_fail_errno(OM_ERR_LOG_IO, "syncing a file failed");
}

int omi_sync_dir(const OmiLogDir *dir) {
    return !refused(dir->fd, 0, 0) && fsync(dir->fd) == 0
               ? 0
               : omi_fail_errno(OM_ERR_LOG_IO, "syncing directory '%s' failed", dir->path);
}
