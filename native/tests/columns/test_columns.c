/** Rows of a log's range: all of them, in order, filtered, across segments, and in front of damage and retention. */

#include "log/log_testing.h"
#include "ombus/om_col.h"

static const OmLogWriterOptions small = {.segment_bytes = OM_LOG_SEGMENT_BYTES_MIN, .sync = OM_LOG_SYNC_NONE};

enum { PAYLOAD_MAX = 200, ROWS_MAX = 8192 };

static uint64_t rows[ROWS_MAX];

static uint64_t at64(uint64_t row, unsigned offset) {
    uint64_t value;
    memcpy(&value, (const void *)(uintptr_t)(row + offset), sizeof value);
    return value;
}

static OmLogRecord record_of(uint64_t row) {
    const uint8_t *frame = (const uint8_t *)(uintptr_t)row;
    uint32_t len;
    memcpy(&len, frame + OM_COL_AT_PAYLOAD_LEN, sizeof len);
    return (OmLogRecord){.wal_seq = at64(row, OM_COL_AT_SEQ),
                         .timestamp_ns = at64(row, OM_COL_AT_TIME),
                         .payload = frame + OM_COL_AT_PAYLOAD,
                         .payload_len = len,
                         .wal_type = frame[OM_COL_AT_TYPE]};
}

static OmColReader *open_columns(const char *dir, const OmColOptions *options) {
    OmColReader *c;
    OK(om_col_open(&c, dir, options));
    return c;
}

/** Read all rows, which must be the records of append_to() that `wanted` names; returns how many. */
static uint64_t read_rows(OmColReader *c, uint64_t from, uint64_t to, int (*wanted)(uint64_t seq), OmColStats *stats) {
    uint64_t expected = from, count = 0;
    for (;;) {
        int n = om_col_next(c, rows, stats);
        OK(n);
        if (n == 0 && stats->done)
            break;
        for (int i = 0; i < n; i++, expected++, count++) {
            while (wanted && !wanted(expected))
                expected++;
            OmLogRecord rec = record_of(rows[i]);
            if (!payload_is(&rec, expected, payload_len_of(expected, PAYLOAD_MAX)) || rec.wal_type != 1 + expected % 5)
                FAIL("row %llu is not record %llu", (unsigned long long)rec.wal_seq, (unsigned long long)expected);
        }
    }
    CHECK(expected <= to);
    CHECK_EQ(stats->next_seq, to);
    CHECK_EQ(stats->rows, count);
    return count;
}

TEST(all_rows_come_in_order_across_segments) {
    const char *dir = log_dir("col");
    make_log(dir, &small, 5000, PAYLOAD_MAX);
    OmColStats stats;
    OmColReader *c = open_columns(dir, 0);
    CHECK_EQ(read_rows(c, 1, 5001, 0, &stats), 5000);
    CHECK_EQ(stats.records, 5000);
    CHECK_EQ(stats.gaps, 0);
    CHECK_EQ(om_col_next(c, rows, &stats), 0); /* and stays done */
    CHECK_EQ(stats.done, 1);
    om_col_close(c);
}

TEST(every_range_is_exact) {
    const char *dir = log_dir("col");
    make_log(dir, &small, 700, PAYLOAD_MAX);
    for (int round = 0; round < 300; round++) {
        uint64_t from = 1 + test_random() % 700, to = from + test_random() % (702 - from);
        OmColOptions options = {.from_seq = from, .to_seq = to, .rows_max = 1 + (uint32_t)(test_random() % 100)};
        OmColStats stats = {0};
        OmColReader *c = open_columns(dir, &options);
        CHECK_EQ(read_rows(c, from, to, 0, &stats), to - from);
        om_col_close(c);
    }
}

TEST(small_batches_hold_what_they_hand_out) {
    const char *dir = log_dir("col");
    make_log(dir, &small, 3000, PAYLOAD_MAX);
    OmColOptions options = {.rows_max = 7, .batch_bytes_max = 300};
    OmColStats stats;
    OmColReader *c = open_columns(dir, &options);
    CHECK_EQ(read_rows(c, 1, 3001, 0, &stats), 3000);
    om_col_close(c);
}

static int type_is_2_or_4(uint64_t seq) {
    return 1 + seq % 5 == 2 || 1 + seq % 5 == 4;
}

TEST(types_are_filtered) {
    const char *dir = log_dir("col");
    make_log(dir, &small, 4000, PAYLOAD_MAX);
    OmColOptions options = {.filter.types = {1U << 2 | 1U << 4}};
    OmColStats stats;
    OmColReader *c = open_columns(dir, &options);
    CHECK_EQ(read_rows(c, 1, 4001, type_is_2_or_4, &stats), 1600);
    CHECK_EQ(stats.records, 4000);
    om_col_close(c);
}

TEST(times_are_filtered_to_the_nanosecond) {
    const char *dir = log_dir("col");
    OmLogWriter *w = open_writer(dir, &small);
    for (uint64_t i = 1; i <= 100; i++) {
        OmLogRecord rec = {.timestamp_ns = 1000 * i, .payload = &i, .payload_len = 8, .wal_type = 1};
        OK(om_log_append_batch(w, &rec, 1));
    }
    OK(om_log_close(w));
    OmColOptions options = {.filter = {.from_time_ns = 20000, .to_time_ns = 30001}};
    OmColStats stats;
    OmColReader *c = open_columns(dir, &options);
    CHECK_EQ(om_col_next(c, rows, &stats), 11);
    CHECK_EQ(at64(rows[0], OM_COL_AT_SEQ), 20);
    CHECK_EQ(at64(rows[10], OM_COL_AT_TIME), 30000);
    om_col_close(c);
}

TEST(gaps_of_the_writer_are_counted_and_no_error) {
    const char *dir = log_dir("col");
    OmLogWriter *w = open_writer(dir, &small);
    const uint64_t seqs[] = {10, 11, 20, 21, 1000};
    for (size_t i = 0; i < 5; i++)
        OK(om_log_append(w, seqs[i], 1, "x", 1));
    OK(om_log_close(w));
    OmColStats stats;
    OmColOptions options = {.from_seq = 5, .to_seq = 500};
    OmColReader *c = open_columns(dir, &options);
    CHECK_EQ(om_col_next(c, rows, &stats), 4);
    CHECK_EQ(om_col_next(c, rows, &stats), 0);
    CHECK_EQ(stats.done, 1);
    CHECK_EQ(stats.next_seq, 500);
    CHECK_EQ(stats.gaps, 1);
    CHECK_EQ(stats.gap_seqs, 8);
    om_col_close(c);
}

TEST(short_payloads_are_counted_or_dropped) {
    const char *dir = log_dir("col");
    OmLogWriter *w = open_writer(dir, &small);
    for (uint32_t len = 0; len < 20; len++)
        OK(om_log_append(w, 0, (uint8_t)(len % 2), "01234567890123456789", len));
    OK(om_log_close(w));
    uint32_t min[256] = {[0] = 10, [1] = 5};
    OmColOptions options = {.filter.payload_min = min};
    OmColStats stats;
    OmColReader *c = open_columns(dir, &options);
    CHECK_EQ(om_col_next(c, rows, &stats), 20);
    CHECK_EQ(stats.short_payloads, 5 + 2); /* 0 2 4 6 8 and 1 3 */
    CHECK_EQ(stats.short_seq, 9);
    CHECK_EQ(stats.short_len, 8);
    om_col_close(c);
    options.filter.flags = OM_COL_DROP_SHORT;
    c = open_columns(dir, &options);
    CHECK_EQ(om_col_next(c, rows, &stats), 13);
    om_col_close(c);
}

TEST(an_empty_log_and_an_empty_range_are_done_at_once) {
    const char *dir = log_dir("col");
    make_log(dir, &small, 0, 0);
    OmColStats stats;
    OmColReader *c = open_columns(dir, 0);
    CHECK_EQ(om_col_next(c, rows, &stats), 0);
    CHECK_EQ(stats.done, 1);
    om_col_close(c);
}

TEST(a_range_that_the_log_does_not_have_is_an_error) {
    const char *dir = log_dir("col");
    make_log(dir, &small, 100, PAYLOAD_MAX);
    OmColOptions options = {.from_seq = 90, .to_seq = 200};
    OmColStats stats;
    OmColReader *c = open_columns(dir, &options);
    CHECK_EQ(om_col_next(c, rows, &stats), 11); /* rows first */
    CHECK_EQ(om_col_next(c, rows, &stats), OM_ERR_COL_INCOMPLETE);
    CHECK_EQ(om_col_next(c, rows, &stats), OM_ERR_COL_INCOMPLETE);
    CHECK_CONTAINS(om_bus_last_error(), "101 to 199");
    om_col_close(c);
}

TEST(another_logs_identity_is_refused) {
    const char *dir = log_dir("col"), *other = log_dir("col");
    make_log(dir, &small, 10, PAYLOAD_MAX);
    make_log(other, &small, 10, PAYLOAD_MAX);
    OmLogReader *r = open_reader(dir, 0);
    OmColOptions options = {0};
    om_log_id(r, options.log_id);
    om_log_reader_close(r);
    OmColReader *c = open_columns(dir, &options);
    om_col_close(c);
    CHECK_EQ(om_col_open(&c, other, &options), OM_ERR_LOG_FOREIGN);
    CHECK(!c);
}

/** Change a payload byte of the record `seq` in the file of the first segment. */
static void damage(const char *dir, uint64_t seq) {
    OmLogReader *r = open_reader(dir, 0);
    OmLogSpan span;
    OK(om_log_seek(r, seq));
    CHECK_EQ(om_log_next_span(r, 1, &span), 1);
    char name[32];
    snprintf(name, sizeof name, "%010llu.seg", (unsigned long long)span.segment);
    flip(file_of(dir, name), span.offset + OM_COL_AT_PAYLOAD, 0xFF);
    om_log_reader_close(r);
}

TEST(damage_is_an_error_behind_the_rows_before_it) {
    const char *dir = log_dir("col");
    OmLogWriterOptions options = small;
    options.sync = OM_LOG_SYNC_EACH; /* what is durable and broken is damage, not a torn tail */
    OmLogWriter *w = open_writer(dir, &options);
    append_to(w, 50, PAYLOAD_MAX);
    OK(om_log_close(w));
    damage(dir, 31);
    OmColStats stats;
    OmColReader *c = open_columns(dir, 0);
    CHECK_EQ(om_col_next(c, rows, &stats), 30);
    CHECK_EQ(om_col_next(c, rows, &stats), OM_ERR_LOG_CORRUPT);
    om_col_close(c);

    OmColOptions skip = {.flags = OM_LOG_SKIP_CORRUPT};
    c = open_columns(dir, &skip);
    uint64_t count = 0;
    for (int n; (n = om_col_next(c, rows, &stats)) > 0 || !stats.done;)
        count += (uint64_t)n;
    CHECK_EQ(count, 49);
    CHECK_EQ(stats.damages, 1);
    CHECK_EQ(stats.lost_first_seq, 31);
    CHECK_EQ(stats.lost_last_seq, 31);
    CHECK_EQ(stats.gaps, 0);
    om_col_close(c);

    OmColOptions unchecked = {.flags = OM_LOG_NO_CRC};
    c = open_columns(dir, &unchecked);
    CHECK_EQ(om_col_next(c, rows, &stats), 50);
    om_col_close(c);
}

TEST(pruned_ranges_are_an_error_or_passed_over) {
    const char *dir = log_dir("col");
    make_log(dir, &small, 2000, PAYLOAD_MAX);
    OmLogRetention policy = {.max_bytes = 2 * OM_LOG_SEGMENT_BYTES_MIN};
    CHECK(om_log_retain(dir, &policy) > 0);
    OmColReader *c;
    CHECK_EQ(om_col_open(&c, dir, 0), OM_ERR_LOG_PRUNED);
    OmColOptions options = {.flags = OM_COL_SKIP_PRUNED};
    c = open_columns(dir, &options);
    OmLogReader *r = open_reader(dir, 0);
    uint64_t first = (uint64_t)om_log_first_seq(r);
    om_log_reader_close(r);
    OmColStats stats;
    CHECK_EQ(read_rows(c, first, 2001, 0, &stats), 2001 - first);
    CHECK_EQ(stats.pruned_ranges, 1);
    CHECK_EQ(stats.lost_first_seq, 1);
    CHECK_EQ(stats.lost_last_seq, first - 1);
    om_col_close(c);
}

TEST(retention_behind_a_reader_leaves_its_rows_alone) {
    const char *dir = log_dir("col");
    make_log(dir, &small, 2000, PAYLOAD_MAX);
    OmColOptions options = {.rows_max = 10};
    OmColStats stats;
    OmColReader *c = open_columns(dir, &options);
    CHECK_EQ(om_col_next(c, rows, &stats), 10);
    OmLogRetention policy = {.max_bytes = 1};
    CHECK(om_log_retain(dir, &policy) > 0);
    for (uint64_t i = 0; i < 10; i++) {
        OmLogRecord rec = record_of(rows[i]);
        CHECK(payload_is(&rec, i + 1, payload_len_of(i + 1, PAYLOAD_MAX)));
    }
    int n;
    while ((n = om_col_next(c, rows, &stats)) > 0)
        ;
    CHECK_EQ(n, OM_ERR_LOG_PRUNED); /* once the mapped segments end */
    om_col_close(c);
}

TEST(bad_arguments_are_refused) {
    const char *dir = log_dir("col");
    OmColReader *c;
    CHECK_EQ(om_col_open(0, dir, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_col_open(&c, dir, 0), OM_ERR_LOG_NOT_FOUND);
    make_log(dir, &small, 1, 8);
    OmColOptions flags = {.flags = 0x8000}, many = {.rows_max = UINT32_MAX};
    OmColOptions times = {.filter = {.from_time_ns = 5, .to_time_ns = 5}}, filter = {.filter.flags = 2};
    CHECK_EQ(om_col_open(&c, dir, &flags), OM_ERR_BUS_INIT);
    CHECK_EQ(om_col_open(&c, dir, &many), OM_ERR_BUS_INIT);
    CHECK_EQ(om_col_open(&c, dir, &times), OM_ERR_BUS_INIT);
    CHECK_EQ(om_col_open(&c, dir, &filter), OM_ERR_BUS_INIT);
    CHECK_EQ(om_col_next(0, rows, 0), OM_ERR_BUS_INIT);
    om_col_close(0);
}
