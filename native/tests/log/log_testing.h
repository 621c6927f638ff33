#ifndef OMBUS_LOG_TESTING_H
#define OMBUS_LOG_TESTING_H

/** What the log's tests share: directories, records whose bytes follow from their wal_seq, and reading them back. */

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "ombus/om_log.h"

#define OK(call)                                                                            \
    do {                                                                                    \
        long long rc_ = (long long)(call);                                                  \
        if (rc_ < 0)                                                                        \
            FAIL("%s: %s (%s)", #call, om_bus_error_string((int)rc_), om_bus_last_error()); \
    } while (0)

static inline int remove_one(const char *path, const struct stat *info, int flag, struct FTW *ftw) {
    (void)info, (void)flag, (void)ftw;
    return remove(path);
}

static inline void remove_tree(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/** Directories of a run; removed when the program ends, whatever happened. */
static char made_dirs[256][160];
static unsigned made_dirs_count;

static inline void remove_made_dirs(void) {
    while (made_dirs_count)
        remove_tree(made_dirs[--made_dirs_count]);
}

/** A new directory's path in memory (tmpfs, so that thousands of logs cost nothing). It does not exist yet. */
static inline const char *log_dir(const char *stem) {
    if (made_dirs_count == 0)
        atexit(remove_made_dirs);
    if (made_dirs_count == 256)
        remove_made_dirs();
    char *path = made_dirs[made_dirs_count++];
    snprintf(path, sizeof made_dirs[0], "/dev/shm/%s", test_unique(stem));
    return path;
}

/** Payload length and bytes of a record, from its wal_seq alone. */
static inline uint32_t payload_len_of(uint64_t seq, uint32_t max) {
    uint64_t z = seq * 0x9E3779B97F4A7C15U;
    return (uint32_t)((z ^ z >> 29) % (max + 1));
}

static inline void fill_payload(uint8_t *to, uint64_t seq, uint32_t len) {
    for (uint32_t i = 0; i < len; i++)
        to[i] = (uint8_t)(seq * 131 + i * 7 + 1);
}

static inline bool payload_is(const OmLogRecord *rec, uint64_t seq, uint32_t len) {
    const uint8_t *p = rec->payload;
    if (rec->wal_seq != seq || rec->payload_len != len)
        return false;
    for (uint32_t i = 0; i < len; i++)
        if (p[i] != (uint8_t)(seq * 131 + i * 7 + 1))
            return false;
    return true;
}

/** Append records up to and with wal_seq `to`, of up to max bytes each. */
static inline void append_to(OmLogWriter *w, uint64_t to, uint32_t max) {
    static uint8_t payload[1 << 20];
    for (uint64_t seq = om_log_writer_last_seq(w) + 1; seq <= to; seq++) {
        uint32_t len = payload_len_of(seq, max);
        fill_payload(payload, seq, len);
        int64_t rc = om_log_append(w, 0, (uint8_t)(1 + seq % 5), payload, len);
        if (rc != (int64_t)seq)
            FAIL("append of %llu gave %lld: %s", (unsigned long long)seq, (long long)rc, om_bus_last_error());
    }
}

/** Read every record from `from` on, check that they follow each other and hold what they must; returns the last. */
static inline uint64_t read_all(OmLogReader *r, uint64_t from, uint32_t max) {
    OmLogRecord recs[64];
    uint64_t expected = from;
    int n;
    while ((n = om_log_next_batch(r, recs, 64)) > 0)
        for (int i = 0; i < n; i++, expected++)
            if (!payload_is(&recs[i], expected, payload_len_of(expected, max)) ||
                recs[i].wal_type != 1 + expected % 5 || recs[i].timestamp_ns == 0)
                FAIL("record %llu is not what was appended as %llu", (unsigned long long)recs[i].wal_seq,
                     (unsigned long long)expected);
    if (n < 0)
        FAIL("after %llu: %s", (unsigned long long)(expected - 1), om_bus_last_error());
    return expected - 1;
}

static inline OmLogWriter *open_writer(const char *dir, const OmLogWriterOptions *options) {
    OmLogWriter *w;
    OK(om_log_open_writer(&w, dir, options));
    return w;
}

static inline OmLogReader *open_reader(const char *dir, uint32_t flags) {
    OmLogReader *r;
    OmLogReaderOptions options = {.flags = flags};
    OK(om_log_open_reader(&r, dir, &options));
    return r;
}

/** A closed log with records 1 to `records`. */
static inline void make_log(const char *dir, const OmLogWriterOptions *options, uint64_t records, uint32_t max) {
    OmLogWriter *w = open_writer(dir, options);
    append_to(w, records, max);
    OK(om_log_close(w));
}

/** Path of a file of the log. */
static inline const char *file_of(const char *dir, const char *name) {
    static char path[512];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        FAIL("path too long");
    return path;
}

static inline uint64_t size_of_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/** Change one byte of a file by xor. */
static inline void flip(const char *path, uint64_t offset, uint8_t bits) {
    uint8_t byte;
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    CHECK(pread(fd, &byte, 1, (off_t)offset) == 1);
    byte ^= bits;
    CHECK(pwrite(fd, &byte, 1, (off_t)offset) == 1);
    close(fd);
}

#endif
