#include <stdbool.h>

#include "log_testing.h"

#include "core/crc32c.h"

static const OmLogWriterOptions SMALL = {.segment_bytes = 32 << 10, .index_bytes = 2048};

/** A seek to each of some sequences finds just that record. */
static void check_seeks(OmLogReader *r, uint64_t last, uint32_t max) {
    OmLogRecord rec;
    for (int i = 0; i < 300; i++) {
        uint64_t seq = i == 0 ? 1 : i == 1 ? last : 1 + test_random() % last;
        OK(om_log_seek(r, seq));
        CHECK_EQ(om_log_next(r, &rec), 1);
        CHECK(payload_is(&rec, seq, payload_len_of(seq, max)));
    }
    OK(om_log_seek(r, last + 1));
    CHECK_EQ(om_log_next(r, &rec), 0);
    OK(om_log_seek(r, 0));
    CHECK_EQ(read_all(r, 1, max), last);
}

TEST(seeks_find_every_record_in_sealed_and_live_segments) {
    const char *dir = log_dir("seek");
    OmLogWriter *w = open_writer(dir, &SMALL);
    OmLogReader *r = open_reader(dir, 0);
    for (uint64_t last = 100; last <= 3000; last += 290) {
        append_to(w, last, 300);
        check_seeks(r, last, 300);
    }
    OmLogReaderStats stats;
    om_log_reader_stats(r, &stats);
    CHECK_EQ(stats.indexes_rebuilt, 0);
    OK(om_log_close(w));
    check_seeks(r, 3000, 300);
    om_log_reader_close(r);
}

/** Do something to each index file. */
static void each_index(const char *dir, void (*fn)(const char *path, int i)) {
    for (int i = 1; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "%010d.idx", i);
        if (access(file_of(dir, name), F_OK) == 0)
            fn(file_of(dir, name), i);
    }
}

static void delete_index(const char *path, int i) {
    (void)i;
    CHECK_EQ(unlink(path), 0);
}

static void empty_index(const char *path, int i) {
    (void)i;
    CHECK_EQ(truncate(path, 0), 0);
}

static void damage_index(const char *path, int i) {
    (void)i;
    uint64_t size = size_of_file(path);
    for (int k = 0; k < 40; k++)
        flip(path, test_random() % size, (uint8_t)(1 << test_random() % 8));
}

static void scribble_index(const char *path, int i) {
    (void)i;
    int fd = open(path, O_WRONLY);
    for (uint64_t at = 64, size = size_of_file(path); at < size; at += 8) {
        uint64_t word = test_random();
        CHECK(pwrite(fd, &word, 8, (off_t)at) == 8);
    }
    close(fd);
}

/** The index of another segment, whole and valid, under this one's name. */
static void swap_index(const char *path, int i) {
    char other[400], *name;
    snprintf(other, sizeof other, "%s", path);
    name = strrchr(other, '/') + 1;
    snprintf(name, 32, "%010d.idx", i == 1 ? 2 : 1);
    char command[900];
    snprintf(command, sizeof command, "cp '%s' '%s.tmp' && mv '%s.tmp' '%s'", other, path, path, path);
    CHECK_EQ(system(command), 0);
}

static void check_index_loss(const char *stem, void (*fn)(const char *path, int i)) {
    const char *dir = log_dir(stem);
    make_log(dir, &SMALL, 1500, 300);
    each_index(dir, fn);
    OmLogReader *r = open_reader(dir, 0);
    check_seeks(r, 1500, 300);
    OmLogRange range;
    OK(om_log_range_stats(r, 100, 1300, &range));
    CHECK_EQ(range.records, 1200);
    om_log_reader_close(r);
    OmLogReport report;
    OK(om_log_verify(dir, 0, &report));
    CHECK(report.indexes_wrong > 0);
    OK(om_log_repair(dir, 0, 0, &report));
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.indexes_wrong, 0);
    r = open_reader(dir, 0);
    check_seeks(r, 1500, 300);
    OmLogReaderStats stats;
    om_log_reader_stats(r, &stats);
    CHECK_EQ(stats.indexes_rebuilt, 0);
    om_log_reader_close(r);
}

TEST(a_deleted_index_is_rebuilt) {
    check_index_loss("deleted", delete_index);
}

TEST(an_empty_index_is_rebuilt) {
    check_index_loss("emptied", empty_index);
}

TEST(a_damaged_index_is_rebuilt) {
    check_index_loss("damaged", damage_index);
}

TEST(an_index_of_random_entries_is_rebuilt) {
    check_index_loss("scribbled", scribble_index);
}

TEST(a_stale_index_of_another_segment_is_rebuilt) {
    check_index_loss("swapped", swap_index);
}

TEST(an_index_that_misses_its_later_entries_still_leads_there) {
    const char *dir = log_dir("short-index");
    make_log(dir, &SMALL, 1500, 300);
    static uint8_t zeros[32];
    int fd = open(file_of(dir, "0000000002.idx"), O_WRONLY);
    for (uint64_t at = 64 + 5 * 32, size = size_of_file(file_of(dir, "0000000002.idx")); at + 32 <= size; at += 32)
        CHECK(pwrite(fd, zeros, 32, (off_t)at) == 32);
    close(fd);
    OmLogReader *r = open_reader(dir, 0);
    check_seeks(r, 1500, 300);
    om_log_reader_close(r);
}

/** The reference: the first record whose timestamp or an earlier one's is >= t. */
static uint64_t first_at_time(const uint64_t *times, uint64_t count, uint64_t t) {
    uint64_t max = 0;
    for (uint64_t i = 0; i < count; i++) {
        max = times[i] > max ? times[i] : max;
        if (max >= t)
            return i + 1;
    }
    return count + 1;
}

TEST(seek_time_is_right_when_the_clock_steps_backward) {
    const char *dir = log_dir("time");
    enum { COUNT = 4000 };
    static uint64_t times[COUNT];
    OmLogWriter *w = open_writer(dir, &SMALL);
    uint64_t now = 1000000;
    for (int i = 0; i < COUNT; i++) {
        now += test_random() % 100;
        if (test_random() % 200 == 0)
            now -= test_random() % 20000; /* ntpd */
        times[i] = now;
        OmLogRecord rec = {.timestamp_ns = now, .payload = "payload", .payload_len = 7, .wal_type = 1};
        CHECK_EQ(om_log_append_batch(w, &rec, 1), 1);
    }
    OmLogReader *r = open_reader(dir, 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            uint64_t t = i == 0 ? 0 : i == 1 ? now + 100000 : 990000 + test_random() % (now - 980000);
            OmLogRecord rec;
            uint64_t expected = first_at_time(times, COUNT, t);
            OK(om_log_seek_time(r, t));
            CHECK_EQ(om_log_next(r, &rec), expected <= COUNT);
            if (expected <= COUNT)
                CHECK_EQ(rec.wal_seq, expected);
        }
        if (round == 0) {
            OK(om_log_close(w));
            each_index(dir, delete_index);
            om_log_reader_close(r);
            r = open_reader(dir, 0);
        }
    }
    om_log_reader_close(r);
}

/** The reference for the planner: sizes of all frames. */
static uint64_t frame_bytes(uint64_t seq, uint32_t max) {
    return (payload_len_of(seq, max) + 32 + 7) / 8 * 8;
}

TEST(range_statistics_are_exact) {
    const char *dir = log_dir("stats");
    OmLogWriter *w = open_writer(dir, &SMALL);
    append_to(w, 3000, 300);
    OmLogReader *r = open_reader(dir, 0);
    for (int i = 0; i < 300; i++) {
        uint64_t from = 1 + test_random() % 3200, to = 1 + test_random() % 3200, bytes = 0, records = 0;
        for (uint64_t seq = from; seq < to && seq <= 3000; seq++, records++)
            bytes += frame_bytes(seq, 300);
        OmLogRange range;
        OK(om_log_range_stats(r, from, to, &range));
        CHECK_EQ(range.records, records);
        CHECK_EQ(range.bytes, bytes);
    }
    OmLogRange range;
    OK(om_log_range_stats(r, 0, 0, &range));
    CHECK_EQ(range.records, 3000);
    om_log_reader_close(r);
    OK(om_log_close(w));
}

TEST(a_plan_covers_its_range_in_parts_of_about_equal_size) {
    const char *dir = log_dir("plan");
    OmLogWriterOptions options = {.segment_bytes = 1 << 20};
    OmLogWriter *w = open_writer(dir, &options);
    append_to(w, 60000, 200); /* 8 MB */
    OmLogReader *r = open_reader(dir, 0);
    for (int i = 0; i < 60; i++) {
        uint64_t from = 1 + test_random() % 60000, to = from + 1 + test_random() % (60001 - from);
        uint32_t n = 1 + (uint32_t)(test_random() % 16);
        OmLogRange parts[16], whole;
        int count = om_log_plan(r, from, to, n, parts);
        CHECK(count >= 1 && (uint32_t)count <= n);
        OK(om_log_range_stats(r, from, to, &whole));
        CHECK_EQ(parts[0].from_seq, from);
        CHECK_EQ(parts[count - 1].to_seq, to);
        uint64_t records = 0, bytes = 0;
        for (int k = 0; k < count; k++) {
            OmLogRange part;
            CHECK(k == 0 || parts[k].from_seq == parts[k - 1].to_seq);
            OK(om_log_range_stats(r, parts[k].from_seq, parts[k].to_seq, &part));
            CHECK_EQ(part.records, parts[k].records);
            CHECK_EQ(part.bytes, parts[k].bytes);
            CHECK(parts[k].bytes <= whole.bytes / n + (80 << 10));
            records += parts[k].records;
            bytes += parts[k].bytes;
        }
        CHECK_EQ(records, whole.records);
        CHECK_EQ(bytes, whole.bytes);
        if (whole.bytes / n > 4000)
            CHECK_EQ(count, n);
    }
    OmLogRange none[4];
    CHECK_EQ(om_log_plan(r, 10, 10, 4, none), 0);
    CHECK_EQ(om_log_plan(r, 70000, 80000, 4, none), 1);
    CHECK_EQ(none[0].records, 0);
    om_log_reader_close(r);
    OK(om_log_close(w));
}

TEST(a_limit_by_records_or_bytes_ends_just_there) {
    const char *dir = log_dir("limits");
    OmLogWriter *w = open_writer(dir, &SMALL);
    static uint64_t seqs[2000];
    static uint8_t payload[300];
    uint64_t seq = 0;
    for (int i = 0; i < 2000; i++) { /* with gaps */
        seq += 1 + test_random() % 3;
        seqs[i] = seq;
        CHECK_EQ(om_log_append(w, seq, 1, payload, payload_len_of(seq, 300)), (int64_t)seq);
    }
    OmLogReader *r = open_reader(dir, 0);
    for (int i = 0; i < 300; i++) {
        int first = (int)(test_random() % 1900);
        uint64_t from = seqs[first], to = seqs[first + 1 + (int)(test_random() % (unsigned)(1999 - first))] + 1;
        uint64_t max_records = test_random() % 300, max_bytes = test_random() % 40000, end;
        OK(om_log_limit(r, from, to, max_records, max_bytes, &end));
        uint64_t records = 0, bytes = 0;
        int k = first;
        while (k < 2000 && seqs[k] < to && !(max_records && records >= max_records) &&
               !(max_bytes && bytes >= max_bytes)) {
            records++;
            bytes += frame_bytes(seqs[k++], 300);
        }
        CHECK(end > seqs[k - 1] && end <= to && (k == 2000 || end <= seqs[k]));
    }
    om_log_reader_close(r);
    OK(om_log_close(w));
}

static int sum_segments(const OmLogSegmentInfo *info, void *ctx) {
    uint64_t *sums = ctx;
    CHECK_EQ(info->damaged, 0);
    CHECK_EQ(info->first_seq, sums[0] + 1);
    CHECK_EQ(info->last_seq, sums[0] + info->records);
    sums[0] += info->records;
    sums[1] += info->bytes;
    return 0;
}

TEST(info_and_segments_describe_the_log) {
    const char *dir = log_dir("info");
    OmLogWriter *w = open_writer(dir, &SMALL);
    append_to(w, 2000, 300);
    OmLogInfo info;
    uint64_t sums[2] = {0};
    OK(om_log_info(dir, &info));
    CHECK_EQ(info.records, 2000);
    CHECK_EQ(info.first_seq, 1);
    CHECK_EQ(info.last_seq, 2000);
    CHECK(info.first_time_ns > 0 && info.last_time_ns >= info.first_time_ns);
    CHECK_EQ(om_log_segments(dir, sum_segments, sums), info.segments);
    CHECK_EQ(sums[0], 2000);
    CHECK_EQ(sums[1], info.bytes);
    OK(om_log_close(w));
    OK(om_log_info(dir, &info));
    CHECK_EQ(info.durable_seq, 2000);
    CHECK_EQ(info.epoch, 1);
}
