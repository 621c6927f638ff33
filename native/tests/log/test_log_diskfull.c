#include <stdbool.h>

#include "log_testing.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

/** A file system of 1 MiB that is full soon. False, and it says so, where we may not mount. */
static bool mount_small(const char *dir) {
    CHECK_EQ(mkdir(dir, 0700), 0);
    if (mount("ombus-test", dir, "tmpfs", 0, "size=1m") == 0)
        return true;
    printf("        NOT RUN: cannot mount a small tmpfs (%s); run as root\n", strerror(errno));
    return false;
}

/** Append until the disk is full. Returns the last record. */
static uint64_t append_until_full(OmLogWriter *w) {
    static uint8_t payload[1000];
    for (;;) {
        uint64_t seq = om_log_writer_last_seq(w) + 1;
        uint32_t len = payload_len_of(seq, 900);
        fill_payload(payload, seq, len);
        int64_t rc = om_log_append(w, 0, (uint8_t)(1 + seq % 5), payload, len);
        if (rc == OM_ERR_LOG_DISK_FULL) {
            CHECK_CONTAINS(om_bus_last_error(), "cannot reserve");
            return seq - 1;
        }
        CHECK_EQ(rc, seq);
    }
}

static void use_full_disk(const char *mounted) {
    char dir[200], ballast[200];
    snprintf(dir, sizeof dir, "%s/log", mounted);
    snprintf(ballast, sizeof ballast, "%s/ballast", mounted);
    int fd = open(ballast, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && posix_fallocate(fd, 0, 512 << 10) == 0);
    close(fd);
    OmLogWriterOptions options = {.segment_bytes = 64 << 10};
    OmLogWriter *w = open_writer(dir, &options);
    uint64_t full = append_until_full(w);
    CHECK(full > 500);
    /* It stays full, and everything stays readable, live and durable. */
    CHECK_EQ(append_until_full(w), om_log_writer_last_seq(w));
    full = om_log_writer_last_seq(w);
    OmLogReader *r = open_reader(dir, 0);
    CHECK_EQ(read_all(r, 1, 900), full);
    OK(om_log_sync(w));
    CHECK_EQ(om_log_writer_durable_seq(w), full);
    /* A batch tells how far it came. */
    OmLogRecord recs[300];
    static uint8_t payload[1024];
    for (int i = 0; i < 300; i++)
        recs[i] = (OmLogRecord){.payload = payload, .payload_len = 1000, .wal_type = 1};
    int64_t rc = om_log_append_batch(w, recs, 300);
    CHECK_EQ(rc, OM_ERR_LOG_DISK_FULL);
    /* With space it goes on. */
    CHECK_EQ(unlink(ballast), 0);
    append_to(w, full + 300, 900);
    CHECK_EQ(read_all(r, full + 1, 900), full + 300);
    full = append_until_full(w);
    OK(om_log_close(w));
    /* A full disk does not keep a writer from resuming, either; retention makes space. */
    w = open_writer(dir, &options);
    CHECK_EQ(append_until_full(w), om_log_writer_last_seq(w));
    OmLogRetention keep = {.max_bytes = 200 << 10};
    CHECK(om_log_retain(dir, &keep) > 3);
    append_to(w, om_log_writer_last_seq(w) + 100, 900);
    full = om_log_writer_last_seq(w);
    OK(om_log_close(w));
    OmLogReport report;
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.last_seq, full);
    om_log_reader_close(r);
}

TEST(a_full_disk_is_an_error_and_not_the_end) {
    const char *dir = log_dir("full");
    if (!mount_small(dir))
        return;
    jmp_buf outer;
    memcpy(&outer, &test_failed, sizeof outer);
    bool failed = setjmp(test_failed) != 0;
    if (!failed)
        use_full_disk(dir);
    memcpy(&test_failed, &outer, sizeof outer);
    CHECK_EQ(umount2(dir, MNT_DETACH), 0);
    CHECK(!failed);
}

TEST(a_file_size_limit_is_told_like_a_full_disk) {
    /* Without any rights: no file may grow beyond the first segment's size, so that a larger one cannot be made. */
    const char *dir = log_dir("fsize");
    OmLogWriterOptions options = {.segment_bytes = 16 << 10};
    OmLogWriter *w = open_writer(dir, &options);
    append_to(w, 5, 100);
    struct rlimit before, limit;
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 64 << 10;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    static uint8_t large[100000];
    int64_t rc = om_log_append(w, 0, 1, large, sizeof large);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_EQ(rc, OM_ERR_LOG_DISK_FULL);
    append_to(w, 50, 300);
    CHECK_EQ(om_log_append(w, 0, 1, large, sizeof large), 51);
    OK(om_log_close(w));
    OmLogReport report;
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.records, 51);
}
