#include "core/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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
    omi_fail_errno(OM_ERR_BUS_SHM_MAP, "cannot map %zu bytes of shared memory '%s'", shm->size, name);
    close(shm->fd);
    return OM_ERR_BUS_SHM_MAP;
}

int omi_shm_create(OmiShm *shm, const char *name, size_t size) {
    shm->size = size;
    shm->fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (shm->fd < 0) {
        int rc = errno == EEXIST ? OM_ERR_BUS_IN_USE : OM_ERR_BUS_SHM_CREATE;
        return omi_fail_errno(rc, "cannot create shared memory '%s'", name);
    }
    int rc = posix_fallocate(shm->fd, 0, (off_t)size);
    if (rc != 0) {
        errno = rc;
        omi_fail_errno(OM_ERR_BUS_SHM_CREATE, "cannot reserve %zu bytes for shared memory '%s'", size, name);
        rc = OM_ERR_BUS_SHM_CREATE;
        close(shm->fd);
    } else {
        rc = map(shm, name, PROT_READ | PROT_WRITE, MAP_POPULATE);
    }
    if (rc != 0)
        shm_unlink(name);
    return rc;
}

int omi_shm_open(OmiShm *shm, const char *name, size_t min_size, int writable) {
    struct stat info;
    shm->fd = shm_open(name, writable ? O_RDWR : O_RDONLY, 0);
    if (shm->fd < 0)
        return omi_fail_errno(OM_ERR_BUS_SHM_OPEN, "cannot open shared memory '%s'", name);
    if (fstat(shm->fd, &info) != 0 || (uint64_t)info.st_size < min_size) {
        omi_fail(OM_ERR_BUS_SHM_MAP, "shared memory '%s' is too small: %lld bytes, need %zu", name,
                 (long long)info.st_size, min_size);
        close(shm->fd);
        return OM_ERR_BUS_SHM_MAP;
    }
    shm->size = (size_t)info.st_size;
    return map(shm, name, writable ? PROT_READ | PROT_WRITE : PROT_READ, 0);
}

void omi_shm_close(OmiShm *shm) {
    munmap(shm->base, shm->size);
    close(shm->fd);
}
