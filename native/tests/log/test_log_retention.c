#include <stdbool.h>

#include "log_testing.h"

#include <time.h>

static const OmLogWriterOptions SMALL = {.segment_bytes = 16 << 10, .index_bytes = 1024};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

TEST(retention_by_bytes_removes_whole_old_segments_only) {
    const char *dir = log_dir("bytes");
    make_log(dir, &SMALL, 1000, 300); /* about 12 segments */
    OmLogInfo before, after;
    OK(om_log_info(dir, &before));
    CHECK_EQ(om_log_retain(dir, &(OmLogRetention){0}), 0);
    CHECK_EQ(om_log_retain(dir, &(OmLogRetention){.max_bytes = before.disk_bytes}), 0);
    CHECK_EQ(om_log_retain(dir, &(OmLogRetention){.max_bytes = before.disk_bytes - 1}), 1);
    CHECK_EQ(om_log_retain(dir, &(OmLogRetention){.max_bytes = 5 * (16 << 10)}), before.segments - 6);
    OK(om_log_info(dir, &after));
    CHECK_EQ(after.segments, 5);
    CHECK(after.first_seq > 1);
    CHECK_EQ(after.last_seq, 1000);
    CHECK_EQ(om_log_retain(dir, &(OmLogRetention){.max_bytes = 1}), 4); /* never the newest */
    OmLogReport report;
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.last_seq, 1000);
    OmLogWriter *w = open_writer(dir, &SMALL);
    append_to(w, 1100, 300);
    OK(om_log_close(w));
    OK(om_log_verify(dir, 0, &report));
}

TEST(retention_by_age_goes_by_the_newest_record_of_a_segment) {
    const char *dir = log_dir("age");
    OmLogWriter *w = open_writer(dir, &SMALL);
    static uint8_t payload[1000];
    uint64_t now = now_ns();
    for (int i = 0; i < 100; i++) { /* one per second, up to now */
        OmLogRecord rec = {.timestamp_ns = now - (uint64_t)(100 - i) * 1000000000U,
                           .payload = payload,
                           .payload_len = 1000,
                           .wal_type = 1};
        CHECK_EQ(om_log_append_batch(w, &rec, 1), 1);
    }
    CHECK_EQ(om_log_retain(dir, &(OmLogRetention){.max_age_ns = 200000000000}), 0);
    CHECK(om_log_retain(dir, &(OmLogRetention){.max_age_ns = 50000000000}) > 2);
    OmLogReader *r = open_reader(dir, 0);
    int64_t first = om_log_first_seq(r);
    CHECK(first > 30 && first <= 51);
    om_log_reader_close(r);
    OK(om_log_close(w));
}

TEST(retention_waits_for_named_consumers_and_bounds) {
    const char *dir = log_dir("consumers");
    make_log(dir, &SMALL, 1000, 300);
    OmLogRetention policy = {.max_bytes = 1, .flags = OM_LOG_RETAIN_FOR_CONSUMERS};
    OK(om_log_consumer_save(dir, "spark-1", 500));
    OK(om_log_consumer_save(dir, "spark-2", 200));
    CHECK(om_log_retain(dir, &policy) > 0);
    OmLogReader *r = open_reader(dir, 0);
    CHECK(om_log_first_seq(r) <= 201);
    OK(om_log_seek(r, 201));
    CHECK_EQ(read_all(r, 201, 300), 1000);
    OK(om_log_consumer_remove(dir, "spark-2"));
    CHECK(om_log_retain(dir, &policy) > 0);
    CHECK(om_log_first_seq(r) <= 501 && om_log_first_seq(r) > 400);
    /* A damaged position holds everything: better too much than too little. */
    flip(file_of(dir, "consumers/spark-1.cursor"), 6, 1);
    policy.min_seq = 0;
    CHECK_EQ(om_log_retain(dir, &policy), 0);
    policy.flags = 0;
    policy.min_seq = 800;
    CHECK(om_log_retain(dir, &policy) > 0);
    CHECK(om_log_first_seq(r) <= 800 && om_log_first_seq(r) > 650);
    om_log_reader_close(r);
}

TEST(a_reader_is_not_hurt_by_retention_and_is_told_when_it_is_too_late) {
    const char *dir = log_dir("hurt");
    OmLogWriter *w = open_writer(dir, &SMALL);
    append_to(w, 1000, 300);
    OmLogReader *slow = open_reader(dir, 0), *late = open_reader(dir, 0);
    OmLogRecord rec;
    CHECK_EQ(om_log_next(slow, &rec), 1);
    CHECK(om_log_retain(dir, &(OmLogRetention){.max_bytes = 6 * (16 << 10)}) > 0);
    OmLogReader *fresh = open_reader(dir, 0);
    int64_t first = om_log_first_seq(fresh);
    CHECK(first > 1);
    /* What it has mapped goes on to be read; then it is told. */
    CHECK(payload_is(&rec, 1, payload_len_of(1, 300)));
    int rc;
    uint64_t last = 1;
    while ((rc = om_log_next(slow, &rec)) == 1) {
        CHECK_EQ(rec.wal_seq, last + 1);
        last = rec.wal_seq;
    }
    CHECK_EQ(rc, OM_ERR_LOG_PRUNED);
    CHECK_CONTAINS(om_bus_last_error(), "were pruned");
    CHECK_EQ(om_log_next(slow, &rec), 1);
    CHECK_EQ(rec.wal_seq, first);
    CHECK_EQ(read_all(slow, (uint64_t)first + 1, 300), 1000);
    /* By seek, too. */
    CHECK_EQ(om_log_seek(late, 5), OM_ERR_LOG_PRUNED);
    CHECK_EQ(om_log_next(late, &rec), 1);
    CHECK_EQ(rec.wal_seq, first);
    OK(om_log_seek(late, (uint64_t)first));
    CHECK_EQ(om_log_seek_range(fresh, (uint64_t)first - 1, 900), OM_ERR_LOG_PRUNED);
    OmLogRange range;
    OK(om_log_range_stats(late, 1, 0, &range));
    CHECK_EQ(range.records, 1000 - (uint64_t)first + 1);
    om_log_reader_close(slow);
    om_log_reader_close(late);
    om_log_reader_close(fresh);
    OK(om_log_close(w));
}

TEST(a_writer_applies_its_own_retention_when_it_rotates) {
    const char *dir = log_dir("auto");
    OmLogWriterOptions options = SMALL;
    options.retention.max_bytes = 8 * (16 << 10);
    OmLogWriter *w = open_writer(dir, &options);
    OmLogWriterStats stats = {0};
    append_to(w, 5000, 300);
    for (int i = 0; i < 10000 && stats.segments_pruned < stats.rotations - 10; i++) {
        usleep(500);
        om_log_writer_stats(w, &stats);
    }
    CHECK(stats.segments_pruned > 20);
    OK(om_log_close(w));
    OmLogInfo info;
    OK(om_log_info(dir, &info));
    CHECK(info.segments <= 12);
    CHECK_EQ(info.last_seq, 5000);
}

static int count_consumer(const OmLogConsumer *consumer, void *ctx) {
    int *count = ctx;
    CHECK(consumer->result == 0 && consumer->saved_ns > 0);
    CHECK_EQ(consumer->wal_seq, strcmp(consumer->name, "a.b-c_1") == 0 ? 7 : 9);
    return ++*count == 5;
}

TEST(consumer_positions_are_cursor_files) {
    const char *dir = log_dir("cursors");
    uint64_t seq;
    int count = 0;
    CHECK_EQ(om_log_consumer_save(dir, "x", 1), OM_ERR_LOG_NOT_FOUND);
    make_log(dir, 0, 0, 0);
    CHECK_EQ(om_log_consumers(dir, count_consumer, &count), 0);
    OK(om_log_consumer_save(dir, "a.b-c_1", 3));
    OK(om_log_consumer_save(dir, "a.b-c_1", 7));
    OK(om_log_consumer_save(dir, "q", 9));
    OK(om_log_consumer_load(dir, "a.b-c_1", &seq));
    CHECK_EQ(seq, 7);
    CHECK_EQ(size_of_file(file_of(dir, "consumers/a.b-c_1.cursor")), 16);
    CHECK_EQ(om_log_consumers(dir, count_consumer, &count), 2);
    CHECK_EQ(om_log_consumer_load(dir, "nobody", &seq), OM_ERR_LOG_NOT_FOUND);
    CHECK_EQ(om_log_consumer_save(dir, "../x", 1), OM_ERR_LOG_NAME);
    CHECK_EQ(om_log_consumer_save(dir, "", 1), OM_ERR_LOG_NAME);
    CHECK_EQ(om_log_consumer_save(dir, ".hidden", 1), OM_ERR_LOG_NAME);
    CHECK_EQ(om_log_consumer_save(dir, "a b", 1), OM_ERR_LOG_NAME);
    flip(file_of(dir, "consumers/q.cursor"), 5, 1);
    CHECK_EQ(om_log_consumer_load(dir, "q", &seq), OM_ERR_BUS_CRC_MISMATCH);
    OK(om_log_consumer_remove(dir, "q"));
    CHECK_EQ(om_log_consumer_remove(dir, "q"), OM_ERR_LOG_NOT_FOUND);
}
