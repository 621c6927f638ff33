#ifndef OMI_LOG_FILES_H
#define OMI_LOG_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The log's directory: all files are opened relative to fd, the path is for error texts. */
typedef struct OmiLogDir {
    int fd;
    char *path;
} OmiLogDir;

enum { OMI_FILE_NAME_SIZE = 32 };

#define OMI_SEGMENT_SUFFIX ".seg"
#define OMI_INDEX_SUFFIX ".idx"

/** Fixed width, so that names sort as numbers. */
void omi_file_name(char out[OMI_FILE_NAME_SIZE], uint64_t number, const char *suffix);

/** OM_ERR_LOG_NOT_FOUND when it does not exist and `create` is false. */
int omi_dir_open(OmiLogDir *dir, const char *path, bool create);
void omi_dir_close(OmiLogDir *dir);

/** Numbers of all segment files, ascending, into a malloc'ed array. */
int omi_dir_segments(const OmiLogDir *dir, uint64_t **numbers, size_t *count);

/** Make the file `size` bytes long with all its blocks reserved. OM_ERR_LOG_DISK_FULL, OM_ERR_LOG_IO. */
int omi_file_reserve(const OmiLogDir *dir, const char *name, int fd, uint64_t size);

/* Syncing goes through these three, so that a power cut and a failing disk can be simulated: the hook (tests only) sees
 * what reaches the disk, and may refuse it. to = 0: the whole file; for a directory its entries. */
extern int (*omi_sync_hook)(int fd, uint64_t from, uint64_t to);

int omi_sync_range(int fd, uint8_t *base, uint64_t from, uint64_t to);
int omi_sync_file(int fd);
int omi_sync_dir(const OmiLogDir *dir);

#endif
