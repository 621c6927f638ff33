#ifndef OMI_SHM_H
#define OMI_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OMI_SHM_NAME_SIZE 64
#define OMI_SHM_DIR "/dev/shm"

/** A mapped POSIX shared-memory object. */
typedef struct OmiShm {
    void *base;
    size_t size;
    int fd;
} OmiShm;

/** Put `name` with one leading slash into out. OM_ERR_BUS_INIT when it is empty, too long or holds another slash. */
int omi_shm_name(char out[OMI_SHM_NAME_SIZE], const char *name);

/**
 * Create an object of `size` bytes, mode 0600, locked with flock(), its pages reserved (a full /dev/shm is an error
 * here, not a SIGBUS later) and mapped. OM_ERR_BUS_IN_USE when the name exists; OM_ERR_BUS_SHM_CREATE otherwise.
 */
int omi_shm_create(OmiShm *shm, const char *name, size_t size);

/** Map an existing object as large as it is; at least min_size bytes, or OM_ERR_BUS_SHM_MAP. */
int omi_shm_open(OmiShm *shm, const char *name, size_t min_size, int writable);

/** Whether `name` (still) leads to this object. */
bool omi_shm_is_named(const OmiShm *shm, const char *name);

/** Give an object another name, replacing what has it, at once. */
int omi_shm_rename(const char *from, const char *to);

void omi_shm_close(OmiShm *shm);

#endif
