/** Rows of frames in a buffer, as a network client has them: cut anywhere, damaged, mixed with other frames. */

#include "log/log_testing.h"
#include "ombus/om_col.h"

enum { RECORDS = 200, PAYLOAD_MAX = 60, ROWS_MAX = 512 };

static uint64_t buffer[1 << 16];
static uint64_t rows[ROWS_MAX];

/** Frames of a log with RECORDS records, as they would be sent; returns their size in bytes. */
static size_t load_frames(void) {
    const char *dir = log_dir("index");
    make_log(dir, 0, RECORDS, PAYLOAD_MAX);
    OmLogReader *r = open_reader(dir, 0);
    OmLogSpan span;
    size_t size = 0;
    while (om_log_next_span(r, 1 << 20, &span) == 1) {
        CHECK(size + span.size_bytes <= sizeof buffer);
        memcpy((uint8_t *)buffer + size, span.data, span.size_bytes);
        size += span.size_bytes;
    }
    om_log_reader_close(r);
    return size;
}

static uint64_t seq_of(uint64_t row) {
    uint64_t seq;
    memcpy(&seq, (const void *)(uintptr_t)(row + OM_COL_AT_SEQ), sizeof seq);
    return seq;
}

TEST(a_whole_buffer_gives_all_rows) {
    size_t size = load_frames(), consumed;
    OmColCursor cursor = {0};
    OmColStats stats = {0};
    CHECK_EQ(om_col_index(buffer, size, 0, 0, &cursor, rows, ROWS_MAX, &consumed, &stats), RECORDS);
    CHECK_EQ(consumed, size);
    CHECK_EQ(cursor.last_seq, RECORDS);
    for (int i = 0; i < RECORDS; i++)
        CHECK_EQ(seq_of(rows[i]), i + 1);
}

TEST(a_buffer_cut_at_any_byte_gives_its_whole_frames) {
    size_t size = load_frames();
    for (size_t cut = 0; cut <= size; cut++) {
        OmColCursor cursor = {0};
        OmColStats stats = {0};
        size_t consumed;
        int n = om_col_index(buffer, cut, 0, 0, &cursor, rows, ROWS_MAX, &consumed, &stats);
        OK(n);
        CHECK(consumed <= cut && consumed % 8 == 0);
        CHECK_EQ(cursor.last_seq, n);
        /* and the rest follows from there */
        size_t more;
        int rest =
            om_col_index((uint8_t *)buffer + consumed, size - consumed, 0, 0, &cursor, rows, ROWS_MAX, &more, &stats);
        CHECK_EQ(n + rest, RECORDS);
    }
}

TEST(few_rows_at_a_time) {
    size_t size = load_frames(), at = 0, consumed;
    OmColCursor cursor = {.from_seq = 20, .to_seq = 101};
    OmColStats stats = {0};
    uint64_t expected = 20;
    while (!stats.done) {
        int n = om_col_index((uint8_t *)buffer + at, size - at, 0, 0, &cursor, rows, 7, &consumed, &stats);
        OK(n);
        for (int i = 0; i < n; i++)
            CHECK_EQ(seq_of(rows[i]), expected++);
        at += consumed;
    }
    CHECK_EQ(expected, 101);
    CHECK_EQ(stats.rows, 81);
}

TEST(a_changed_byte_is_found_or_stops_nothing_else) {
    size_t size = load_frames(), consumed;
    uint8_t *bytes = (uint8_t *)buffer;
    for (size_t i = 0; i < size; i++) {
        OmColCursor cursor = {0};
        OmColStats stats = {0};
        bytes[i] ^= 0x41;
        int n = om_col_index(buffer, size, 0, 0, &cursor, rows, ROWS_MAX, &consumed, &stats);
        bytes[i] ^= 0x41;
        /* Rows before the damage come; a byte of padding behind a payload is no one's. */
        if (n == RECORDS)
            continue;
        for (int k = 0; k < n; k++)
            CHECK((uint8_t *)(uintptr_t)rows[k] < bytes + i);
        if (n >= 0 && consumed + OM_LOG_FRAME_HEADER_SIZE <= size && bytes[consumed + 4] <= OM_LOG_TYPE_MAX) {
            int next =
                om_col_index(bytes + consumed, size - consumed, 0, 0, &cursor, rows, ROWS_MAX, &consumed, &stats);
            (void)next; /* of the mended bytes: only that it returns matters here */
        }
    }
}

TEST(damage_behind_rows_is_reported_by_the_next_call) {
    size_t size = load_frames(), consumed;
    OmColCursor cursor = {0};
    OmColStats stats = {0};
    int n = om_col_index(buffer, size, 0, 0, &cursor, rows, 50, &consumed, &stats);
    CHECK_EQ(n, 50);
    ((uint8_t *)buffer)[consumed + 24] ^= 1; /* the checksum of the next */
    CHECK_EQ(om_col_index((uint8_t *)buffer + consumed, size - consumed, 0, 0, &cursor, rows, 50, &consumed, &stats),
             OM_ERR_COL_FRAME);
    CHECK_CONTAINS(om_bus_last_error(), "after wal_seq 50");
}

TEST(frames_that_are_no_records_are_left_to_the_caller) {
    size_t size = load_frames(), consumed;
    /* A control frame of the seed's form: 16 bytes of header, no extension. */
    uint8_t *end = (uint8_t *)buffer + size;
    const uint8_t control[16] = {0x46, 0x54, 0x4D, 0x4F, 0xFD, 0, 8, 0};
    memcpy(end, control, sizeof control);
    OmColCursor cursor = {0};
    OmColStats stats = {0};
    CHECK_EQ(om_col_index(buffer, size + 24, 0, 0, &cursor, rows, ROWS_MAX, &consumed, &stats), RECORDS);
    CHECK_EQ(consumed, size);
    CHECK_EQ(om_col_index(end, 24, 0, 0, &cursor, rows, ROWS_MAX, &consumed, &stats), 0);
    CHECK_EQ(consumed, 0);
}

TEST(a_sequence_that_goes_back_is_refused) {
    size_t size = load_frames(), consumed;
    OmColCursor cursor = {.last_seq = 5};
    OmColStats stats = {0};
    CHECK_EQ(om_col_index(buffer, size, 0, 0, &cursor, rows, ROWS_MAX, &consumed, &stats), OM_ERR_COL_FRAME);
}

TEST(bad_arguments_are_refused) {
    OmColCursor cursor = {0};
    OmColStats stats = {0};
    size_t consumed;
    CHECK_EQ(om_col_index((uint8_t *)buffer + 1, 8, 0, 0, &cursor, rows, 1, &consumed, &stats), OM_ERR_BUS_INIT);
    CHECK_EQ(om_col_index(buffer, 8, 0, 0, &cursor, rows, 0, &consumed, &stats), OM_ERR_BUS_INIT);
    CHECK_EQ(om_col_index(buffer, 8, 0x80, 0, &cursor, rows, 1, &consumed, &stats), OM_ERR_BUS_INIT);
    CHECK_EQ(om_col_index(0, 8, 0, 0, &cursor, rows, 1, &consumed, &stats), OM_ERR_BUS_INIT);
}
