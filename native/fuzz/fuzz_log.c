/*
 * Arbitrary bytes as a log: the input is cut into the first segment, its index and the control file of a directory.
 * Then everything that reads it is called, and everything that repairs it; what was repaired must verify.
 */

#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ombus/om_log.h"

enum { SEGMENT = 16 << 10, CONTROL = 8192, INDEX = 64 + 36 * 32 };

static char dir[64];

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *ftw) {
    (void)info, (void)flag, (void)ftw;
    return remove(path);
}

static void clean(void) {
    if (dir[0])
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void start(void) {
    if (dir[0])
        return;
    snprintf(dir, sizeof dir, "/dev/shm/ombus-fuzz-log-%d", (int)getpid());
    atexit(clean);
}

/** A good log of one segment: what mutations start from. */
size_t fuzz_seed_input(uint8_t *data, size_t capacity) {
    start();
    clean();
    OmLogWriterOptions options = {.segment_bytes = SEGMENT, .index_bytes = 1024};
    OmLogWriter *w;
    if (capacity < SEGMENT + CONTROL + INDEX || om_log_open_writer(&w, dir, &options) != 0)
        abort();
    for (int i = 0; i < 60; i++)
        om_log_append(w, 0, (uint8_t)i, data, (uint32_t)(i * 5));
    om_log_close(w);
    static const char *const names[] = {"0000000001.seg", "log.ctl", "0000000001.idx"};
    size_t size = 0;
    for (int i = 0; i < 3; i++) {
        int fd = open(path_of(names[i]), O_RDONLY);
        ssize_t got = read(fd, data + size, capacity - size);
        close(fd);
        if (got < 0)
            abort();
        size += (size_t)got;
    }
    return size;
}

static size_t put(const char *name, const uint8_t *data, size_t size, size_t max) {
    size_t part = size < max ? size : max;
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, part) != (ssize_t)part)
        abort();
    close(fd);
    return part;
}

static void read_everything(uint32_t flags) {
    OmLogReader *r;
    OmLogReaderOptions options = {.flags = flags};
    if (om_log_open_reader(&r, dir, &options) != 0)
        return;
    OmLogRecord recs[16];
    uint64_t sum = 0;
    for (int calls = 0, n = 1; calls < 5000 && (n > 0 || n == OM_ERR_LOG_SKIPPED || n == OM_ERR_LOG_PRUNED); calls++) {
        n = om_log_next_batch(r, recs, 16);
        for (int i = 0; i < n; i++)
            for (uint32_t k = 0; k < recs[i].payload_len; k++)
                sum += ((const uint8_t *)recs[i].payload)[k];
    }
    OmLogRange ranges[4];
    uint64_t end;
    om_log_first_seq(r);
    om_log_last_seq(r);
    om_log_seek(r, 30 + sum % 2);
    om_log_next(r, recs);
    om_log_seek_time(r, 1000);
    om_log_next(r, recs);
    om_log_plan(r, 0, 0, 4, ranges);
    om_log_limit(r, 1, 0, 10, 1000, &end);
    om_log_wait(r, 0);
    om_log_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    start();
    clean();
    mkdir(dir, 0700);
    size_t at = put("0000000001.seg", data, size, SEGMENT);
    at += put("log.ctl", data + at, size - at, CONTROL);
    put("0000000001.idx", data + at, size - at, INDEX);
    read_everything(0);
    read_everything(OM_LOG_NO_CRC);
    read_everything(OM_LOG_SKIP_CORRUPT | OM_LOG_DURABLE_ONLY);
    OmLogInfo info;
    om_log_info(dir, &info);
    om_log_verify(dir, 0, 0);
    if (om_log_repair(dir, OM_LOG_SALVAGE, 0, 0) == 0 && om_log_verify(dir, 0, 0) != 0) {
        fprintf(stderr, "repaired, but: %s\n", om_bus_last_error());
        abort();
    }
    OmLogWriter *w;
    OmLogWriterOptions options = {.segment_bytes = SEGMENT, .flags = OM_LOG_SALVAGE};
    if (om_log_open_writer(&w, dir, &options) == 0) {
        om_log_append(w, 0, 1, "x", 1);
        om_log_close(w);
    }
    return 0;
}
