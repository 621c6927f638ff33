#include "core/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

int omi_shm_name(char out[OMI_SHM_NAME_SIZE], const char *name) {
    const char *bare = name && name[0] == '/' ? name + 1 : name;
    if (!bare || !*bare || strchr(bare, '/') || strlen(bare) > OMI_SHM_NAME_SIZE - 2 || !strcmp(bare, ".") ||
        !strcmp(bare, ".."))
        return omi_fail(OM_ERR_BUS_INIT, "bad stream name '%s': use 1 to %d characters without '/'", name ? name : "",
                        OMI_SHM_NAME_SIZE - 2);
    snprintf(out, OMI_SHM_NAME_SIZE, "/%.62s", bare);
    return 0;
}

static int map(OmiShm *shm, const char *name, int protection, int flags) {
    shm->base = mmap(0, shm->size, protection, MAP_SHARED | flags, shm->fd, 0);
    if (shm->base != MAP_FAILED)
        return 0;
    return omi_fail_errno(OM_ERR_BUS_SHM_MAP, "cannot map %zu bytes of shared memory '%s'", shm->size, name);
}

static void shm_path(char path[sizeof OMI_SHM_DIR + OMI_SHM_NAME_SIZE], const char *name) {
    snprintf(path, sizeof OMI_SHM_DIR + OMI_SHM_NAME_SIZE, "%s%.63s", OMI_SHM_DIR, name);
}

int omi_shm_create(OmiShm *shm, const char *name, size_t size) {
    shm->size = size;
    shm->fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (shm->fd < 0) {
        int rc = errno == EEXIST ? OM_ERR_BUS_IN_USE : OM_ERR_BUS_SHM_CREATE;
        return omi_fail_errno(rc, "cannot create shared memory '%s'", name);
    }
    if (flock(shm->fd, LOCK_EX | LOCK_NB) != 0) { /* somebody took it for a dead creator's leavings: theirs now */
        close(shm->fd);
        return omi_fail(OM_ERR_BUS_IN_USE, "shared memory '%s' is being created by another process", name);
    }
    int rc = posix_fallocate(shm->fd, 0, (off_t)size);
    if (rc != 0) {
        errno = rc;
        rc = omi_fail_errno(OM_ERR_BUS_SHM_CREATE, "cannot reserve %zu bytes for shared memory '%s'", size, name);
    } else {
        rc = map(shm, name, PROT_READ | PROT_WRITE, MAP_POPULATE);
    }
    if (rc != 0) {
        shm_unlink(name);
        close(shm->fd);
    }
    return rc;
}

int omi_shm_open(OmiShm *shm, const char *name, size_t min_size, int writable) {
    struct stat info;
    /* O_NONBLOCK: what lies under that name may be a pipe. */
    shm->fd = shm_open(name, (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK, 0);
    if (shm->fd < 0)
        return omi_fail_errno(OM_ERR_BUS_SHM_OPEN, "cannot open shared memory '%s'", name);
    int rc;
    if (fstat(shm->fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        rc = omi_fail(OM_ERR_BUS_MAGIC_MISMATCH, "'%s' is not a shared-memory object", name);
    } else if ((uint64_t)info.st_size < min_size) {
        rc = omi_fail(OM_ERR_BUS_SHM_MAP, "shared memory '%s' is too small: %lld bytes, need %zu", name,
                      (long long)info.st_size, min_size);
    } else {
        shm->size = (size_t)info.st_size;
        rc = map(shm, name, writable ? PROT_READ | PROT_WRITE : PROT_READ, 0);
    }
    if (rc != 0)
        close(shm->fd);
    return rc;
}

bool omi_shm_is_named(const OmiShm *shm, const char *name) {
    struct stat ours, named;
    char path[sizeof OMI_SHM_DIR + OMI_SHM_NAME_SIZE];
    shm_path(path, name);
    return fstat(shm->fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

int omi_shm_rename(const char *from, const char *to) {
    char old_path[sizeof OMI_SHM_DIR + OMI_SHM_NAME_SIZE], new_path[sizeof old_path];
    shm_path(old_path, from);
    shm_path(new_path, to);
    if (rename(old_path, new_path) != 0)
        return omi_fail_errno(OM_ERR_BUS_SHM_CREATE, "cannot give shared memory the name '%s'", to);
    return 0;
}

void omi_shm_close(OmiShm *shm) {
    munmap(shm->base, shm->size);
    close(shm->fd);
}
