#include <stdbool.h>

#include "log_testing.h"

/* The bytes on disk, made by an independent program from FORMATS alone (a bit-wise CRC in Python). */
TEST(a_frame_on_disk_is_what_the_format_says) {
    static const uint8_t expected[] = {0x46, 0x54, 0x4D, 0x4F, 0x01, 0x01, 0x05, 0x00, 0x01, 0x00,
                                       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x15, 0xCD, 0x85, 0x3D,
                                       0xFE, 0x9C, 0x97, 0x17, 0xED, 0xA6, 0xCA, 0xFC, 0x05, 0x00,
                                       0x00, 0x00, 0x68, 0x65, 0x6C, 0x6C, 0x6F, 0x00, 0x00, 0x00};
    const char *dir = log_dir("frame");
    OmLogWriter *w = open_writer(dir, 0);
    OmLogRecord rec = {.timestamp_ns = 1700000000123456789, .payload = "hello", .payload_len = 5, .wal_type = 1};
    CHECK_EQ(om_log_append_batch(w, &rec, 1), 1);
    OK(om_log_close(w));
    uint8_t found[sizeof expected + 8];
    int fd = open(file_of(dir, "0000000001.seg"), O_RDONLY);
    CHECK(pread(fd, found, sizeof found, 4096) == (ssize_t)sizeof found);
    close(fd);
    CHECK(memcmp(found, expected, sizeof expected) == 0);
    static const uint8_t zeros[8];
    CHECK(memcmp(found + sizeof expected, zeros, 8) == 0); /* nothing behind it */
}

TEST(frames_inside_a_payload_are_not_taken_for_records) {
    /* A log of captured traffic: payloads that hold whole, valid frames of higher numbers. */
    const char *dir = log_dir("nested"), *inner = log_dir("inner");
    make_log(inner, 0, 400, 100);
    OmLogReader *r = open_reader(inner, 0);
    OmLogSpan span;
    OK(om_log_seek(r, 200));
    CHECK_EQ(om_log_next_span(r, 3000, &span), 1);
    OmLogWriterOptions options = {.segment_bytes = 64 << 10};
    OmLogWriter *w = open_writer(dir, &options);
    for (int i = 0; i < 15; i++)
        CHECK(om_log_append(w, 0, 1, span.data, (uint32_t)span.size_bytes) > 0);
    OK(om_log_close(w));
    om_log_reader_close(r);
    /* Damage the payload of the 5th record: only that one is lost, and nothing is found in it. */
    flip(file_of(dir, "0000000001.seg"), 4096 + 4 * (32 + span.size_bytes) + 40, 1);
    r = open_reader(dir, OM_LOG_SKIP_CORRUPT);
    OmLogRecord rec;
    for (uint64_t seq = 1; seq <= 15; seq++) {
        if (seq == 5) {
            CHECK_EQ(om_log_next(r, &rec), OM_ERR_LOG_SKIPPED);
            OmLogDamage damage;
            om_log_damage(r, &damage);
            CHECK_EQ(damage.lost_first_seq, 5);
            CHECK_EQ(damage.lost_last_seq, 5);
            continue;
        }
        CHECK_EQ(om_log_next(r, &rec), 1);
        CHECK_EQ(rec.wal_seq, seq);
    }
    om_log_reader_close(r);
}
