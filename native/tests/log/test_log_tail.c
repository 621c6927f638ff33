#include <stdbool.h>

#include "log_testing.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

/** Tail a log until wal_seq `last`, checking every record; the process's exit code is 0 when all is right. */
static int tail_process(const char *dir, uint64_t last, uint32_t flags) {
    OmLogReader *r;
    OmLogReaderOptions options = {.flags = flags};
    if (om_log_open_reader(&r, dir, &options) != 0)
        return 10;
    uint64_t expected = 1;
    while (expected <= last) {
        OmLogRecord recs[32];
        int n = om_log_next_batch(r, recs, 32);
        if (n < 0) {
            fprintf(stderr, "reader at %llu: %s\n", (unsigned long long)expected, om_bus_last_error());
            return 11;
        }
        for (int i = 0; i < n; i++, expected++)
            if (!payload_is(&recs[i], expected, payload_len_of(expected, 900)))
                return 12;
        if (n == 0 && om_log_wait(r, 20000000000) != 1)
            return 13;
    }
    OmLogRecord rec;
    int more = om_log_next(r, &rec);
    om_log_reader_close(r);
    return more == 0 ? 0 : 14;
}

static void wait_child(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

TEST(two_processes_tail_while_the_writer_rotates_a_thousand_segments) {
    const char *dir = log_dir("rotate");
    enum { RECORDS = 34000 }; /* 16 KiB segments of about 24 records: over 1 000 rotations */
    make_log(dir, 0, 0, 0);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(tail_process(dir, RECORDS, i == 0 ? 0 : OM_LOG_DURABLE_ONLY));
    }
    OmLogWriterOptions options = {.segment_bytes = 16 << 10};
    OmLogWriter *w = open_writer(dir, &options);
    for (uint64_t to = 1000; to <= RECORDS; to += 1000) {
        append_to(w, to, 900);
        if (to % 5000 == 0)
            usleep(1000); /* let the readers reach the end now and then */
    }
    OmLogWriterStats stats;
    om_log_writer_stats(w, &stats);
    CHECK(stats.rotations >= 1000);
    CHECK_EQ(stats.records, RECORDS);
    OK(om_log_sync(w));
    wait_child(children[0]);
    wait_child(children[1]);
    OK(om_log_close(w));
    OK(om_log_verify(dir, 0, 0));
}

/** Verify the log over and over while another process writes it. */
static int verify_live(const char *dir) {
    for (int i = 0; i < 60; i++) {
        OmLogReport report;
        OmLogInfo info;
        int rc = om_log_verify(dir, 0, &report);
        if (rc != 0 || report.damages || report.tail_bytes || report.indexes_wrong || om_log_info(dir, &info) != 0 ||
            info.records < 100 || info.first_seq != 1) {
            fprintf(stderr, "verify of a live log: %d %s; damages %llu tail %llu indexes %llu\n", rc,
                    om_bus_last_error(), (unsigned long long)report.damages, (unsigned long long)report.tail_bytes,
                    (unsigned long long)report.indexes_wrong);
            return 1;
        }
    }
    return 0;
}

TEST(a_live_log_can_be_verified_and_described) {
    const char *dir = log_dir("live-verify");
    int ready[2];
    char go = 0;
    CHECK_EQ(pipe(ready), 0);
    /* Forked before the writer has threads: a sanitizer's allocator may be locked by one of them at that moment. */
    pid_t child = fork();
    if (child == 0)
        _exit(read(ready[0], &go, 1) == 1 ? verify_live(dir) : 2);
    OmLogWriterOptions options = {.segment_bytes = 16 << 10, .linger_ms = 1};
    OmLogWriter *w = open_writer(dir, &options);
    append_to(w, 100, 900);
    CHECK_EQ(write(ready[1], &go, 1), 1);
    int status;
    for (uint64_t to = 200; waitpid(child, &status, WNOHANG) == 0; to += 20) {
        append_to(w, to, 900);
        usleep(200);
    }
    CHECK_EQ(status, 0);
    close(ready[0]);
    close(ready[1]);
    OK(om_log_close(w));
}

typedef struct Tailer {
    const char *dir;
    uint64_t last;
    int result;
} Tailer;

static void *tail_thread(void *arg) {
    Tailer *tailer = arg;
    tailer->result = tail_process(tailer->dir, tailer->last, 0);
    return 0;
}

TEST(threads_of_the_writers_process_tail_it) {
    const char *dir = log_dir("threads");
    OmLogWriterOptions options = {.segment_bytes = 16 << 10, .linger_ms = 1};
    OmLogWriter *w = open_writer(dir, &options);
    Tailer tailers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        tailers[i] = (Tailer){dir, 3000, -1};
        CHECK_EQ(pthread_create(&threads[i], 0, tail_thread, &tailers[i]), 0);
    }
    for (uint64_t to = 100; to <= 3000; to += 100) {
        append_to(w, to, 900);
        usleep(500);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
        CHECK_EQ(tailers[i].result, 0);
    }
    OK(om_log_close(w));
}

TEST(a_waiting_reader_sleeps_until_a_record_comes) {
    const char *dir = log_dir("wait");
    OmLogWriter *w = open_writer(dir, 0);
    OmLogReader *r = open_reader(dir, 0);
    CHECK_EQ(om_log_wait(r, 0), 0);
    CHECK_EQ(om_log_wait(r, 2000000), 0);
    append_to(w, 1, 10);
    CHECK_EQ(om_log_wait(r, -1), 1);
    CHECK_EQ(read_all(r, 1, 10), 1);
    CHECK_EQ(om_log_wait(r, 2000000), 0);
    OK(om_log_seek(r, 5));
    append_to(w, 3, 10);
    CHECK_EQ(om_log_wait(r, 1000000), 0); /* records below the position do not count */
    append_to(w, 5, 10);
    CHECK_EQ(om_log_wait(r, -1), 1);
    om_log_reader_close(r);
    OK(om_log_close(w));
}

TEST(a_durable_only_reader_sees_what_is_on_disk) {
    const char *dir = log_dir("durable");
    OmLogWriterOptions options = {.sync = OM_LOG_SYNC_NONE, .segment_bytes = 16 << 10};
    OmLogWriter *w = open_writer(dir, &options);
    OmLogReader *r = open_reader(dir, OM_LOG_DURABLE_ONLY), *any = open_reader(dir, 0);
    OmLogRecord rec;
    append_to(w, 200, 300);
    CHECK_EQ(om_log_next(r, &rec), 0);
    CHECK_EQ(om_log_last_seq(r), 0);
    CHECK_EQ(om_log_first_seq(r), 0);
    CHECK_EQ(om_log_last_seq(any), 200);
    CHECK_EQ(om_log_durable_seq(any), 0);
    CHECK_EQ(om_log_wait(r, 1000000), 0);
    OK(om_log_sync(w));
    append_to(w, 300, 300);
    CHECK_EQ(om_log_durable_seq(any), 200);
    CHECK_EQ(om_log_wait(r, -1), 1);
    CHECK_EQ(read_all(r, 1, 300), 200);
    CHECK_EQ(om_log_wait_durable(w, 301, 0), OM_ERR_LOG_SEQ_ORDER);
    OK(om_log_wait_durable(w, 250, -1));
    CHECK_EQ(read_all(r, 201, 300), 300);
    om_log_reader_close(r);
    om_log_reader_close(any);
    OK(om_log_close(w));
}

TEST(lingering_records_become_durable_by_themselves) {
    const char *dir = log_dir("linger");
    OmLogWriterOptions options = {.linger_ms = 5, .linger_records = 50};
    OmLogWriter *w = open_writer(dir, &options);
    for (uint64_t last = 1; last <= 5; last++) { /* by time: nobody asks */
        append_to(w, last, 10);
        for (int i = 0; i < 20000 && om_log_writer_durable_seq(w) < last; i++)
            usleep(500);
        CHECK_EQ(om_log_writer_durable_seq(w), last);
    }
    options.linger_ms = 1000000;
    OK(om_log_close(w));
    w = open_writer(dir, &options);
    append_to(w, 54, 10);
    CHECK_EQ(om_log_writer_durable_seq(w), 5);
    append_to(w, 56, 10); /* by count */
    for (int i = 0; i < 20000 && om_log_writer_durable_seq(w) < 55; i++)
        usleep(500);
    CHECK(om_log_writer_durable_seq(w) >= 55);
    append_to(w, 60, 10);
    OK(om_log_wait_durable(w, 60, 10000000000)); /* a waiter does not linger */
    CHECK_EQ(om_log_writer_durable_seq(w), 60);
    OmLogWriterStats stats;
    om_log_writer_stats(w, &stats);
    CHECK(stats.syncs >= 2);
    append_to(w, 61, 10);
    OK(om_log_close(w));
    OmLogInfo info;
    OK(om_log_info(dir, &info));
    CHECK_EQ(info.durable_seq, 61);
}

TEST(with_sync_each_an_append_returns_durable) {
    const char *dir = log_dir("each");
    OmLogWriterOptions options = {.sync = OM_LOG_SYNC_EACH, .segment_bytes = 16 << 10};
    OmLogWriter *w = open_writer(dir, &options);
    for (uint64_t seq = 1; seq <= 300; seq++) {
        append_to(w, seq, 400);
        CHECK_EQ(om_log_writer_durable_seq(w), seq);
    }
    OK(om_log_close(w));
}

typedef struct Waiter {
    OmLogWriter *w;
    _Atomic uint64_t *appended;
    uint64_t last;
    int result;
} Waiter;

static void *wait_durable_thread(void *arg) {
    Waiter *waiter = arg;
    for (uint64_t seq = 1; seq <= waiter->last && waiter->result == 0; seq += 3) {
        while (atomic_load(waiter->appended) < seq)
            usleep(10);
        waiter->result = om_log_wait_durable(waiter->w, seq, -1);
        if (waiter->result == 0 && om_log_writer_durable_seq(waiter->w) < seq)
            waiter->result = -1;
    }
    return 0;
}

TEST(many_threads_share_syncs_while_one_appends) {
    const char *dir = log_dir("group");
    OmLogWriterOptions options = {.segment_bytes = 16 << 10};
    OmLogWriter *w = open_writer(dir, &options);
    _Atomic uint64_t appended = 0;
    Waiter waiters[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        waiters[i] = (Waiter){w, &appended, 2000, 0};
        CHECK_EQ(pthread_create(&threads[i], 0, wait_durable_thread, &waiters[i]), 0);
    }
    for (uint64_t seq = 1; seq <= 2000; seq++) {
        append_to(w, seq, 100);
        atomic_store(&appended, seq);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], 0);
        CHECK_EQ(waiters[i].result, 0);
    }
    OK(om_log_close(w));
}

TEST(a_reader_without_write_rights_waits_by_polling) {
    const char *dir = log_dir("readonly");
    int ready[2];
    char go = 0;
    CHECK_EQ(pipe(ready), 0);
    pid_t child = fork(); /* before the writer has threads, as above */
    if (child == 0) {     /* root may write anything: give that up */
        if (read(ready[0], &go, 1) != 1 || (geteuid() == 0 && setuid(65534) != 0))
            _exit(1);
        _exit(access(file_of(dir, "log.ctl"), W_OK) == 0 ? 2 : tail_process(dir, 12, 0));
    }
    OmLogWriter *w = open_writer(dir, 0);
    append_to(w, 10, 900);
    const char *const files[] = {"log.ctl", "log.lock", "0000000001.seg", "0000000001.idx"};
    CHECK_EQ(chmod(dir, 0755), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(chmod(file_of(dir, files[i]), 0444), 0);
    CHECK_EQ(write(ready[1], &go, 1), 1);
    usleep(20000);
    append_to(w, 12, 900);
    wait_child(child);
    close(ready[0]);
    close(ready[1]);
    OK(om_log_close(w));
}
