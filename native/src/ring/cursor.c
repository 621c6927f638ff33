/* The cursor file, 16 bytes: magic u32, wal_seq u64, CRC-32C of the 8 bytes of wal_seq u32. */

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/crc32c.h"
#include "core/error.h"
#include "ring/endpoint.h"

enum { CURSOR_SIZE = 16 };

static int write_file(const char *path, const uint8_t *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    bool whole = write(fd, bytes, size) == (ssize_t)size && fsync(fd) == 0;
    int error = errno;
    close(fd);
    errno = error;
    return whole ? 0 : -1;
}

/** Make a rename in the file's directory durable. Best effort: some file systems cannot. */
static void sync_directory(const char *path) {
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

int om_bus_cursor_save(const char *path, uint64_t wal_seq) {
    uint8_t bytes[CURSOR_SIZE];
    char temporary[PATH_MAX];
    uint32_t magic = OM_BUS_CURSOR_MAGIC, crc = omi_crc32c(&wal_seq, sizeof wal_seq);
    if (!path)
        return omi_fail(OM_ERR_BUS_INIT, "cursor: NULL path");
    static _Atomic uint32_t count; /* threads of one process must not share the file either */
    if (snprintf(temporary, sizeof temporary, "%s.%d-%u.tmp", path, (int)getpid(), atomic_fetch_add(&count, 1)) >=
        (int)sizeof temporary)
        return omi_fail(OM_ERR_BUS_SHM_OPEN, "cursor path is too long");
    memcpy(bytes, &magic, 4);
    memcpy(bytes + 4, &wal_seq, 8);
    memcpy(bytes + 12, &crc, 4);
    /* Beside, then rename: whoever reads finds the old cursor or the new one, whole. */
    if (write_file(temporary, bytes, sizeof bytes) != 0 || rename(temporary, path) != 0) {
        int rc = omi_fail_errno(OM_ERR_BUS_SHM_OPEN, "cannot write cursor file '%s'", path);
        unlink(temporary);
        return rc;
    }
    sync_directory(path);
    return 0;
}

int om_bus_endpoint_save_cursor(const OmBusEndpoint *ep, const char *path) {
    if (!ep)
        return omi_fail(OM_ERR_BUS_INIT, "cursor: NULL endpoint");
    return om_bus_cursor_save(path, ep->last_seq);
}

int om_bus_endpoint_load_cursor(const char *path, uint64_t *wal_seq_out) {
    uint8_t bytes[CURSOR_SIZE];
    uint32_t magic, crc;
    uint64_t wal_seq;
    if (!path || !wal_seq_out)
        return omi_fail(OM_ERR_BUS_INIT, "cursor: NULL argument");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return omi_fail_errno(OM_ERR_BUS_SHM_OPEN, "cannot open cursor file '%s'", path);
    ssize_t size = read(fd, bytes, sizeof bytes);
    close(fd);
    if (size != CURSOR_SIZE)
        return omi_fail(OM_ERR_BUS_SHM_OPEN, "cursor file '%s' has %zd bytes, expected %d", path, size, CURSOR_SIZE);
    memcpy(&magic, bytes, 4);
    memcpy(&wal_seq, bytes + 4, 8);
    memcpy(&crc, bytes + 12, 4);
    if (magic != OM_BUS_CURSOR_MAGIC)
        return omi_fail(OM_ERR_BUS_CRC_MISMATCH, "'%s' is not a cursor file", path);
    if (crc != omi_crc32c(&wal_seq, sizeof wal_seq))
        return omi_fail(OM_ERR_BUS_CRC_MISMATCH, "cursor file '%s' is damaged", path);
    *wal_seq_out = wal_seq;
    return 0;
}
