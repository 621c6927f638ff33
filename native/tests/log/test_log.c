#include <stdbool.h>

#include "log_testing.h"

#include <dirent.h>
#include <sys/wait.h>

static const OmLogWriterOptions SMALL = {.segment_bytes = 16 << 10, .index_bytes = 1024};

TEST(what_is_appended_is_read_back_in_order) {
    const char *dir = log_dir("basic");
    OmLogWriter *w = open_writer(dir, 0);
    append_to(w, 5000, 300);
    OmLogReader *r = open_reader(dir, 0);
    CHECK_EQ(om_log_first_seq(r), 1);
    CHECK_EQ(om_log_last_seq(r), 5000);
    CHECK_EQ(read_all(r, 1, 300), 5000);
    append_to(w, 5100, 300);
    CHECK_EQ(read_all(r, 5001, 300), 5100);
    CHECK_EQ(om_log_position(r), 5101);
    om_log_reader_close(r);
    OK(om_log_close(w));
}

TEST(a_log_goes_on_where_the_last_writer_ended) {
    const char *dir = log_dir("resume");
    uint8_t id[2][OM_LOG_ID_SIZE];
    for (uint64_t round = 1; round <= 20; round++) {
        OmLogWriter *w = open_writer(dir, &SMALL);
        CHECK_EQ(om_log_writer_last_seq(w), (round - 1) * 70);
        append_to(w, round * 70, 400);
        OK(om_log_close(w));
        OmLogReader *r = open_reader(dir, 0);
        CHECK_EQ(om_log_epoch(r), round);
        CHECK_EQ(om_log_durable_seq(r), round * 70);
        om_log_id(r, id[round > 1]);
        CHECK_EQ(read_all(r, 1, 400), round * 70);
        om_log_reader_close(r);
    }
    CHECK(memcmp(id[0], id[1], OM_LOG_ID_SIZE) == 0);
    OmLogReport report;
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.records, 1400);
    CHECK_EQ(report.damages + report.tail_bytes + report.indexes_wrong, 0);
}

TEST(an_empty_log_has_no_records_and_a_missing_one_is_told) {
    const char *dir = log_dir("empty");
    OmLogReader *r;
    OmLogRecord rec;
    CHECK_EQ(om_log_open_reader(&r, dir, 0), OM_ERR_LOG_NOT_FOUND);
    OmLogWriterOptions no_create = {.flags = OM_LOG_NO_CREATE};
    OmLogWriter *w;
    CHECK_EQ(om_log_open_writer(&w, dir, &no_create), OM_ERR_LOG_NOT_FOUND);
    make_log(dir, 0, 0, 0);
    r = open_reader(dir, 0);
    CHECK_EQ(om_log_first_seq(r), 0);
    CHECK_EQ(om_log_last_seq(r), 0);
    CHECK_EQ(om_log_next(r, &rec), 0);
    OK(om_log_seek(r, 7));
    OK(om_log_seek_time(r, 7));
    OK(om_log_seek_end(r));
    w = open_writer(dir, 0);
    append_to(w, 3, 10);
    CHECK_EQ(read_all(r, 1, 10), 3);
    om_log_reader_close(r);
    OK(om_log_close(w));
    mkdir(log_dir("bare"), 0777);
    CHECK_EQ(om_log_open_reader(&r, made_dirs[made_dirs_count - 1], 0), OM_ERR_LOG_NOT_FOUND);
}

TEST(a_second_writer_is_told_who_has_the_log) {
    const char *dir = log_dir("lock");
    OmLogWriter *w = open_writer(dir, 0), *second;
    char pid[16];
    CHECK_EQ(om_log_open_writer(&second, dir, 0), OM_ERR_LOG_LOCKED);
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    CHECK_CONTAINS(om_bus_last_error(), pid);
    OmLogInfo info;
    OK(om_log_info(dir, &info));
    CHECK_EQ(info.writer_alive, 1);
    CHECK_EQ(info.writer_pid, getpid());
    OK(om_log_close(w));
    OK(om_log_info(dir, &info));
    CHECK_EQ(info.writer_alive, 0);
    w = open_writer(dir, 0);
    OK(om_log_close(w));
}

TEST(a_forked_child_cannot_use_the_parents_handles) {
    const char *dir = log_dir("fork");
    OmLogWriter *w = open_writer(dir, 0);
    append_to(w, 3, 10);
    OmLogReader *r = open_reader(dir, 0);
    pid_t child = fork();
    if (child == 0) {
        OmLogRecord rec;
        _exit(om_log_append(w, 0, 1, "x", 1) == OM_ERR_BUS_FORKED && om_log_next(r, &rec) == OM_ERR_BUS_FORKED &&
                      om_log_close(w) == OM_ERR_BUS_FORKED
                  ? 0
                  : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    append_to(w, 4, 10);
    CHECK_EQ(read_all(r, 1, 10), 4);
    om_log_reader_close(r);
    OK(om_log_close(w));
}

TEST(a_forked_child_does_not_keep_the_log_locked) {
    const char *dir = log_dir("fork-lock");
    OmLogWriter *w = open_writer(dir, 0);
    int gate[2];
    CHECK_EQ(pipe(gate), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(gate[1]);
        _exit(read(gate[0], &byte, 1) != 0); /* lives until the parent has finished */
    }
    OmLogWriter *second;
    usleep(20000);
    CHECK_EQ(om_log_open_writer(&second, dir, 0), OM_ERR_LOG_LOCKED); /* the parent's lock is still there */
    OK(om_log_close(w));
    w = open_writer(dir, 0);
    OK(om_log_close(w));
    close(gate[0]);
    close(gate[1]);
    waitpid(child, 0, 0);
}

TEST(given_sequences_must_rise_and_gaps_are_kept) {
    const char *dir = log_dir("gaps");
    OmLogWriter *w = open_writer(dir, &SMALL);
    CHECK_EQ(om_log_append(w, 10, 1, "a", 1), 10);
    CHECK_EQ(om_log_append(w, 10, 1, "a", 1), OM_ERR_LOG_SEQ_ORDER);
    CHECK_EQ(om_log_append(w, 9, 1, "a", 1), OM_ERR_LOG_SEQ_ORDER);
    CHECK_CONTAINS(om_bus_last_error(), "wal_seq 9, but the last one is 10");
    CHECK_EQ(om_log_append(w, 0, 1, "b", 1), 11);
    CHECK_EQ(om_log_append(w, 1000, 1, "c", 1), 1000);
    CHECK_EQ(om_log_append(w, 0, 0xFD, "c", 1), OM_ERR_LOG_TYPE);
    CHECK_EQ(om_log_append(w, 0, 1, 0, 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_log_append(w, 0, 1, "c", OM_LOG_PAYLOAD_MAX + 1), OM_ERR_LOG_TOO_LARGE);
    OmLogReader *r = open_reader(dir, 0);
    OmLogRecord recs[8];
    CHECK_EQ(om_log_next_batch(r, recs, 8), 3);
    CHECK_EQ(recs[0].wal_seq, 10);
    CHECK_EQ(recs[2].wal_seq, 1000);
    OK(om_log_seek(r, 500));
    CHECK_EQ(om_log_next(r, recs), 1);
    CHECK_EQ(recs[0].wal_seq, 1000);
    OK(om_log_seek(r, 1)); /* before the first record, but nothing was pruned */
    CHECK_EQ(om_log_next(r, recs), 1);
    CHECK_EQ(recs[0].wal_seq, 10);
    OK(om_log_seek(r, 2000));
    CHECK_EQ(om_log_next(r, recs), 0);
    CHECK_EQ(om_log_append(w, 1500, 1, "d", 1), 1500);
    CHECK_EQ(om_log_next(r, recs), 0); /* below what was asked for */
    CHECK_EQ(om_log_append(w, 2001, 1, "e", 1), 2001);
    CHECK_EQ(om_log_next(r, recs), 1);
    CHECK_EQ(recs[0].wal_seq, 2001);
    om_log_reader_close(r);
    OK(om_log_close(w));
}

TEST(sequences_end_where_a_spark_long_ends) {
    const char *dir = log_dir("limit");
    OmLogWriter *w = open_writer(dir, 0);
    OmLogRecord rec;
    CHECK_EQ(om_log_append(w, OM_LOG_SEQ_MAX - 1, 1, "a", 1), (int64_t)OM_LOG_SEQ_MAX - 1);
    CHECK_EQ(om_log_append(w, (uint64_t)INT64_MAX, 1, "a", 1), OM_ERR_LOG_SEQ_LIMIT);
    CHECK_EQ(om_log_append(w, (uint64_t)INT64_MAX + 1, 1, "a", 1), OM_ERR_LOG_SEQ_LIMIT);
    CHECK_EQ(om_log_append(w, UINT64_MAX, 1, "a", 1), OM_ERR_LOG_SEQ_LIMIT);
    CHECK_EQ(om_log_append_array(w, 0, 1, "ab", 1, 1, 2), OM_ERR_LOG_SEQ_LIMIT);
    CHECK_EQ(om_log_append(w, 0, 1, "b", 1), (int64_t)OM_LOG_SEQ_MAX);
    CHECK_EQ(om_log_append(w, 0, 1, "c", 1), OM_ERR_LOG_SEQ_LIMIT);
    void *payload;
    CHECK_EQ(om_log_reserve(w, 8, &payload), OM_ERR_LOG_SEQ_LIMIT);
    OK(om_log_close(w));
    w = open_writer(dir, 0);
    CHECK_EQ(om_log_append(w, 0, 1, "c", 1), OM_ERR_LOG_SEQ_LIMIT);
    OmLogReader *r = open_reader(dir, 0);
    CHECK_EQ(om_log_last_seq(r), INT64_MAX - 1);
    OK(om_log_seek(r, OM_LOG_SEQ_MAX));
    CHECK_EQ(om_log_next(r, &rec), 1);
    CHECK_EQ(om_log_position(r), INT64_MAX);
    CHECK_EQ(om_log_next(r, &rec), 0);
    om_log_reader_close(r);
    OK(om_log_close(w));
}

TEST(batches_arrays_and_reservations_are_records_like_any_other) {
    const char *dir = log_dir("batch");
    OmLogWriter *w = open_writer(dir, &SMALL);
    OmLogRecord recs[100];
    static uint8_t payloads[100][500];
    for (int i = 0; i < 100; i++) {
        uint32_t len = payload_len_of((uint64_t)i + 1, 500);
        fill_payload(payloads[i], (uint64_t)i + 1, len);
        recs[i] = (OmLogRecord){.payload = payloads[i], .payload_len = len, .wal_type = (uint8_t)(1 + (i + 1) % 5)};
    }
    CHECK_EQ(om_log_append_batch(w, recs, 100), 100);
    for (uint64_t seq = 101; seq <= 200; seq++) {
        void *payload;
        uint32_t len = payload_len_of(seq, 500);
        OK(om_log_reserve(w, len + seq % 40, &payload));
        CHECK_EQ((uintptr_t)payload % 8, 0);
        CHECK_EQ(om_log_append(w, 0, 1, "x", 1), OM_ERR_LOG_STATE);
        memset(payload, 0xEE, len + seq % 40);
        if (seq % 7 == 0) {
            OK(om_log_abort(w));
            OK(om_log_reserve(w, len, &payload));
        }
        fill_payload(payload, seq, len);
        CHECK_EQ(om_log_commit(w, 0, (uint8_t)(1 + seq % 5), len), (int64_t)seq);
    }
    CHECK_EQ(om_log_commit(w, 0, 1, 0), OM_ERR_LOG_STATE);
    OmLogReader *r = open_reader(dir, 0);
    CHECK_EQ(read_all(r, 1, 500), 200);
    uint64_t items[300];
    for (int i = 0; i < 300; i++)
        items[i] = (uint64_t)i;
    CHECK_EQ(om_log_append_array(w, 0, 9, items, 8, 8, 300), 300);
    OmLogRecord rec;
    for (uint64_t i = 0; i < 300; i++) {
        CHECK_EQ(om_log_next(r, &rec), 1);
        CHECK_EQ(rec.wal_seq, 201 + i);
        CHECK(memcmp(rec.payload, &i, 8) == 0);
    }
    /* A batch with one bad record appends none. */
    recs[50].wal_type = 0xFF;
    CHECK_EQ(om_log_append_batch(w, recs, 100), OM_ERR_LOG_TYPE);
    CHECK_EQ(om_log_writer_last_seq(w), 500);
    recs[50].wal_type = 1;
    recs[50].wal_seq = 500;
    CHECK_EQ(om_log_append_batch(w, recs, 100), OM_ERR_LOG_SEQ_ORDER);
    CHECK_EQ(om_log_next(r, &rec), 0);
    om_log_reader_close(r);
    OK(om_log_close(w));
    OK(om_log_verify(dir, 0, 0));
}

TEST(payloads_of_64_mib_get_segments_of_their_own) {
    const char *dir = log_dir("large");
    OmLogWriter *w = open_writer(dir, &SMALL);
    uint8_t *large = malloc(OM_LOG_PAYLOAD_MAX);
    CHECK(large != 0);
    memset(large, 0xA5, OM_LOG_PAYLOAD_MAX);
    append_to(w, 10, 100);
    CHECK_EQ(om_log_append(w, 0, 7, large, OM_LOG_PAYLOAD_MAX), 11);
    append_to(w, 20, 100);
    CHECK_EQ(om_log_append(w, 0, 7, large, 70000), 21);
    OmLogReader *r = open_reader(dir, 0);
    OmLogRecord rec;
    for (int i = 1; i <= 21; i++) {
        CHECK_EQ(om_log_next(r, &rec), 1);
        CHECK_EQ(rec.wal_seq, i);
        if (i == 11 || i == 21) {
            CHECK_EQ(rec.payload_len, i == 11 ? OM_LOG_PAYLOAD_MAX : 70000);
            CHECK(memcmp(rec.payload, large, rec.payload_len) == 0);
        }
    }
    OK(om_log_seek(r, 11));
    CHECK_EQ(om_log_next(r, &rec), 1);
    CHECK_EQ(rec.wal_seq, 11);
    om_log_reader_close(r);
    OK(om_log_close(w));
    OK(om_log_verify(dir, 0, 0));
    free(large);
}

TEST(spans_are_whole_frames_of_one_segment) {
    const char *dir = log_dir("spans");
    make_log(dir, &SMALL, 1000, 200);
    OmLogReader *r = open_reader(dir, 0);
    OmLogSpan span;
    uint64_t expected = 1;
    int rc;
    while ((rc = om_log_next_span(r, 3000, &span)) == 1) {
        CHECK_EQ(span.first_seq, expected);
        CHECK_EQ(span.last_seq, expected + span.records - 1);
        CHECK(span.size_bytes <= 3000);
        uint8_t *copy = malloc(span.size_bytes);
        CHECK(pread(span.fd, copy, span.size_bytes, (off_t)span.offset) == (ssize_t)span.size_bytes);
        CHECK(memcmp(copy, span.data, span.size_bytes) == 0);
        CHECK(memcmp(copy, "FTMO", 4) == 0);
        free(copy);
        expected = span.last_seq + 1;
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(expected, 1001);
    om_log_reader_close(r);
}

TEST(a_hold_keeps_pointers_valid_behind_the_reader) {
    const char *dir = log_dir("hold");
    make_log(dir, &SMALL, 2000, 200);
    OmLogReader *r = open_reader(dir, 0);
    OmLogRecord first, rec;
    CHECK_EQ(om_log_next(r, &first), 1);
    OmLogHold *hold = om_log_hold(r);
    while (om_log_next(r, &rec) == 1) {
    }
    om_log_reader_close(r);
    remove_tree(dir);
    CHECK(payload_is(&first, 1, payload_len_of(1, 200)));
    om_log_hold_release(hold);
    om_log_hold_release(0);
}

TEST(a_range_ends_before_its_end) {
    const char *dir = log_dir("range");
    make_log(dir, &SMALL, 1000, 200);
    OmLogReader *r = open_reader(dir, 0);
    OmLogRecord recs[2000];
    OK(om_log_seek_range(r, 300, 700));
    uint64_t expected = 300;
    int n;
    while ((n = om_log_next_batch(r, recs, 2000)) > 0)
        for (int i = 0; i < n; i++)
            CHECK_EQ(recs[i].wal_seq, expected++);
    CHECK_EQ(n, 0);
    CHECK_EQ(expected, 700);
    CHECK_EQ(om_log_position(r), 700);
    CHECK_EQ(om_log_wait(r, 0), 0);
    OK(om_log_seek(r, 700));
    CHECK_EQ(read_all(r, 700, 200), 1000);
    om_log_reader_close(r);
}

TEST(bad_options_are_refused_by_name) {
    OmLogWriter *w;
    const char *dir = log_dir("options");
    CHECK_EQ(om_log_open_writer(&w, dir, &(OmLogWriterOptions){.segment_bytes = 100}), OM_ERR_BUS_INIT);
    CHECK_CONTAINS(om_bus_last_error(), "segment_bytes");
    CHECK_EQ(om_log_open_writer(&w, dir, &(OmLogWriterOptions){.sync = 9}), OM_ERR_BUS_INIT);
    CHECK_EQ(om_log_open_writer(&w, dir, &(OmLogWriterOptions){.flags = 64}), OM_ERR_BUS_INIT);
    CHECK_EQ(om_log_open_writer(&w, 0, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_log_open_writer(0, dir, 0), OM_ERR_BUS_INIT);
    OmLogReader *r;
    CHECK_EQ(om_log_open_reader(&r, dir, &(OmLogReaderOptions){.flags = 64}), OM_ERR_BUS_INIT);
    CHECK_EQ(om_log_append(0, 0, 1, "", 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_log_next(0, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_log_close(0), 0);
    om_log_reader_close(0);
    CHECK_EQ(om_log_open_writer(&w, "/proc/nowhere/log", 0), OM_ERR_LOG_OPEN);
}
