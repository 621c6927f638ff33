#include <stdbool.h>

#include "log_testing.h"

#include <dirent.h>

enum { RECORDS = 90, MAX = 700, FEW = 75, SHORT = 300 };
static const OmLogWriterOptions SMALL = {.segment_bytes = 16 << 10, .index_bytes = 2048};

/** Read what can be read. Every record must be one of those appended, in order. Returns how many; *rc is how it ended.
 */
static uint64_t read_of(const char *dir, uint64_t records, uint32_t max, uint32_t flags, int *rc, uint64_t *reported) {
    OmLogReader *r;
    OmLogReaderOptions options = {.flags = flags};
    uint64_t count = 0, last = 0;
    *reported = 0;
    *rc = om_log_open_reader(&r, dir, &options);
    if (*rc != 0)
        return 0;
    for (int calls = 0; calls < 10000; calls++) {
        OmLogRecord rec;
        *rc = om_log_next(r, &rec);
        if (*rc == OM_ERR_LOG_SKIPPED) {
            OmLogDamage damage;
            om_log_damage(r, &damage);
            CHECK(damage.kind != 0);
            (*reported)++;
            continue;
        }
        if (*rc != 1)
            break;
        CHECK(rec.wal_seq > last);
        if (!(flags & OM_LOG_NO_CRC))
            CHECK(rec.wal_seq <= records && payload_is(&rec, rec.wal_seq, payload_len_of(rec.wal_seq, max)));
        last = rec.wal_seq;
        count++;
    }
    OmLogRange ranges[3];
    om_log_plan(r, 0, 0, 3, ranges);
    om_log_seek(r, records / 2);
    om_log_seek_time(r, 1);
    om_log_reader_close(r);
    return count;
}

static uint64_t read_some(const char *dir, uint32_t flags, int *rc, uint64_t *reported) {
    return read_of(dir, RECORDS, MAX, flags, rc, reported);
}

/** All regular files of a log, in memory. */
typedef struct Copy {
    char name[256];
    uint8_t *bytes;
    size_t size;
} Copy;

static int take_copy(const char *dir, Copy *copies, int max) {
    int count = 0;
    DIR *stream = opendir(dir);
    CHECK(stream != 0);
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (entry->d_type != DT_REG)
            continue;
        CHECK(count < max);
        Copy *copy = &copies[count++];
        snprintf(copy->name, sizeof copy->name, "%s", entry->d_name);
        copy->size = size_of_file(file_of(dir, entry->d_name));
        copy->bytes = malloc(copy->size + 1);
        int fd = open(file_of(dir, entry->d_name), O_RDONLY);
        CHECK(read(fd, copy->bytes, copy->size) == (ssize_t)copy->size);
        close(fd);
    }
    closedir(stream);
    return count;
}

static void put_copy(const char *dir, const Copy *copies, int count) {
    remove_tree(dir);
    CHECK_EQ(mkdir(dir, 0700), 0);
    for (int i = 0; i < count; i++) {
        int fd = open(file_of(dir, copies[i].name), O_WRONLY | O_CREAT, 0600);
        CHECK(write(fd, copies[i].bytes, copies[i].size) == (ssize_t)copies[i].size);
        close(fd);
    }
}

static void free_copy(Copy *copies, int count) {
    for (int i = 0; i < count; i++)
        free(copies[i].bytes);
}

TEST(a_flipped_bit_in_any_byte_is_detected_or_harmless) {
    const char *dir = log_dir("flip");
    make_log(dir, &SMALL, FEW, SHORT);
    Copy copies[16];
    int count = take_copy(dir, copies, 16), rc;
    uint64_t reported, detected = 0, flips = 0;
    for (int i = 0; i < count; i++) {
        const char *name = copies[i].name;
        bool segment = strstr(name, ".seg") != 0;
        if (!segment && !strstr(name, ".idx") && !strstr(name, ".ctl"))
            continue;
        for (size_t at = 0; at < copies[i].size; at++) {
            bool data = segment && at >= 4096 && copies[i].bytes[at] != 0;
            /* Every byte of frames and of what is set in headers; of the zeros around them a sample. */
            if (copies[i].bytes[at] == 0 && test_random() % 32 != 0)
                continue;
            uint8_t bit = (uint8_t)(1 << test_random() % 8);
            flip(file_of(dir, name), at, bit);
            flips++;
            uint64_t read = read_of(dir, FEW, SHORT, 0, &rc, &reported);
            int verified = om_log_verify(dir, 0, 0);
            CHECK(verified == 0 || verified == OM_ERR_LOG_CORRUPT || verified == OM_ERR_LOG_FOREIGN ||
                  verified == OM_ERR_LOG_VERSION);
            if (data && (rc != OM_ERR_LOG_CORRUPT || verified != OM_ERR_LOG_CORRUPT))
                FAIL("%s byte %zu bit 0x%02x: read %llu records, then %d; verify %d", name, at, bit,
                     (unsigned long long)read, rc, verified);
            if (rc == 0 && read != FEW)
                FAIL("%s byte %zu bit 0x%02x: %llu records without a word", name, at, bit, (unsigned long long)read);
            detected += rc < 0;
            if (test_random() % 8 == 0) {
                uint64_t kept = read_of(dir, FEW, SHORT, OM_LOG_SKIP_CORRUPT, &rc, &reported);
                if (segment && at >= 4096 && data) {
                    CHECK_EQ(rc, 0);
                    CHECK(kept >= FEW - 1 && reported == 1); /* one record at most is hurt by one bit */
                }
                read_of(dir, FEW, SHORT, OM_LOG_NO_CRC, &rc, &reported);
            }
            flip(file_of(dir, name), at, bit);
        }
    }
    read_of(dir, FEW, SHORT, 0, &rc, &reported);
    CHECK_EQ(rc, 0);
    printf("        %llu flips, %llu of them stopped a reader\n", (unsigned long long)flips,
           (unsigned long long)detected);
    free_copy(copies, count);
}

static void note_damage(const OmLogDamage *damage, const char *text, void *ctx) {
    OmLogDamage *last = ctx;
    *last = *damage;
    CHECK_CONTAINS(text, "segment 0000000");
}

TEST(damage_in_the_middle_is_named_refused_and_salvaged_only_when_asked) {
    const char *dir = log_dir("middle");
    make_log(dir, &SMALL, RECORDS, MAX);
    /* Wipe a block in the middle of the second segment. */
    int fd = open(file_of(dir, "0000000002.seg"), O_RDWR);
    static const uint8_t zeros[1024];
    CHECK(pwrite(fd, zeros, sizeof zeros, 8000) == (ssize_t)sizeof zeros);
    close(fd);
    OmLogDamage damage = {0};
    OmLogVisitor visitor = {.damage = note_damage, .ctx = &damage};
    OmLogReport report, after;
    CHECK_EQ(om_log_verify(dir, &visitor, &report), OM_ERR_LOG_CORRUPT);
    CHECK_EQ(report.damages, 1);
    CHECK_EQ(damage.kind, OM_LOG_DAMAGE_FRAME);
    CHECK_EQ(damage.segment, 2);
    CHECK(damage.lost_first_seq > 1 && damage.lost_last_seq >= damage.lost_first_seq);
    uint64_t lost = damage.lost_last_seq - damage.lost_first_seq + 1;
    CHECK_EQ(report.records, RECORDS - lost);

    OmLogReader *r = open_reader(dir, 0);
    OmLogRecord rec;
    int rc;
    while ((rc = om_log_next(r, &rec)) == 1) {
    }
    CHECK_EQ(rc, OM_ERR_LOG_CORRUPT);
    CHECK_EQ(rec.wal_seq, damage.lost_first_seq - 1);
    CHECK_CONTAINS(om_bus_last_error(), "segment 0000000002 offset");
    CHECK_EQ(om_log_next(r, &rec), OM_ERR_LOG_CORRUPT); /* it stays in front of it ... */
    OK(om_log_seek(r, damage.lost_last_seq + 1));       /* ... until told to go elsewhere */
    CHECK_EQ(om_log_next(r, &rec), 1);
    CHECK_EQ(rec.wal_seq, damage.lost_last_seq + 1);
    om_log_reader_close(r);

    uint64_t reported, kept = read_some(dir, OM_LOG_SKIP_CORRUPT, &rc, &reported);
    CHECK_EQ(kept, RECORDS - lost);
    CHECK_EQ(reported, 1);

    /* A segment before the durable mark's is not looked at by a resuming writer; repair looks at all. */
    CHECK_EQ(om_log_repair(dir, 0, 0, &after), OM_ERR_LOG_CORRUPT);
    CHECK_EQ(om_log_verify(dir, 0, &after), OM_ERR_LOG_CORRUPT);
    CHECK_EQ(after.damages, 1);
    OK(om_log_repair(dir, OM_LOG_SALVAGE, 0, &after));
    CHECK_CONTAINS(after.side_file, "0000000002.seg.cut-");
    CHECK_EQ(size_of_file(file_of(dir, after.side_file)), damage.size_bytes);
    OK(om_log_verify(dir, 0, &after));
    CHECK_EQ(after.records, RECORDS - lost);
    CHECK_EQ(after.damages, 0);
    kept = read_some(dir, 0, &rc, &reported);
    CHECK_EQ(rc, 0);
    CHECK_EQ(kept, RECORDS - lost);
}

TEST(a_durable_end_that_became_zeros_is_not_taken_for_the_end) {
    const char *dir = log_dir("wiped-end");
    make_log(dir, &SMALL, 20, MAX);
    int rc, fd = open(file_of(dir, "0000000001.seg"), O_RDWR);
    static const uint8_t zeros[4096];
    CHECK(pwrite(fd, zeros, 4096, 8192) == 4096);
    close(fd);
    uint64_t reported;
    uint64_t read = read_some(dir, 0, &rc, &reported);
    CHECK(read > 0 && read < 20);
    CHECK_EQ(rc, OM_ERR_LOG_CORRUPT);
}

TEST(a_seek_into_a_segment_with_a_damaged_header_is_told) {
    const char *dir = log_dir("seek-header");
    make_log(dir, &SMALL, RECORDS, MAX);
    for (int which = 1; which <= 3; which++) {
        char name[32];
        snprintf(name, sizeof name, "%010d.seg", which);
        flip(file_of(dir, name), 70, 1); /* base_seq */
        OmLogReader *r = open_reader(dir, 0);
        OmLogRecord rec;
        OK(om_log_seek(r, which == 1 ? 5 : which == 2 ? 45 : RECORDS));
        int rc;
        while ((rc = om_log_next(r, &rec)) == 1) {
        }
        CHECK_EQ(rc, OM_ERR_LOG_CORRUPT);
        CHECK_CONTAINS(om_bus_last_error(), name[9] == '1'   ? "segment 0000000001"
                                            : name[9] == '2' ? "segment 0000000002"
                                                             : "segment 0000000003");
        om_log_reader_close(r);
        flip(file_of(dir, name), 70, 1);
    }
}

TEST(a_resuming_writer_refuses_damage_in_the_last_segment) {
    const char *dir = log_dir("last");
    make_log(dir, &SMALL, 20, MAX);
    OmLogWriter *w;
    CHECK(size_of_file(file_of(dir, "0000000002.seg")) == 0);
    flip(file_of(dir, "0000000001.seg"), 6000, 4);
    CHECK_EQ(om_log_open_writer(&w, dir, &SMALL), OM_ERR_LOG_CORRUPT);
    CHECK_CONTAINS(om_bus_last_error(), "lost wal_seq");
    flip(file_of(dir, "0000000001.seg"), 6000, 4);
    w = open_writer(dir, &SMALL);
    CHECK_EQ(om_log_writer_last_seq(w), 20);
    OK(om_log_close(w));
    flip(file_of(dir, "0000000001.seg"), 6000, 4);
    OmLogWriterOptions salvage = SMALL;
    salvage.flags = OM_LOG_SALVAGE;
    w = open_writer(dir, &salvage);
    CHECK_EQ(om_log_writer_last_seq(w), 20);
    OmLogReport report;
    om_log_writer_repair_report(w, &report);
    CHECK_EQ(report.damages, 1);
    append_to(w, 30, MAX);
    OK(om_log_close(w));
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.records, 29);
}

TEST(bytes_behind_the_end_are_a_torn_tail_and_are_kept_aside) {
    const char *dir = log_dir("tail");
    make_log(dir, &SMALL, 10, 100);
    OmLogInfo info;
    OK(om_log_info(dir, &info));
    uint64_t end = 4096 + info.bytes;
    int fd = open(file_of(dir, "0000000001.seg"), O_RDWR);
    CHECK(pwrite(fd, "unfinished", 10, (off_t)(end + 40)) == 10);
    close(fd);
    OmLogReport report;
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.tail_bytes, 50);
    CHECK_EQ(report.records, 10);
    OmLogWriter *w = open_writer(dir, &SMALL);
    om_log_writer_repair_report(w, &report);
    CHECK_EQ(report.tail_bytes, 50);
    CHECK_EQ(size_of_file(file_of(dir, report.side_file)), 50);
    append_to(w, 20, 100);
    OK(om_log_close(w));
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.records, 20);
    CHECK_EQ(report.tail_bytes, 0);
}

TEST(cut_at_every_length_a_segment_is_detected_and_never_a_crash) {
    const char *dir = log_dir("truncate");
    make_log(dir, &SMALL, RECORDS, MAX);
    Copy copies[16];
    int count = take_copy(dir, copies, 16), rc;
    uint64_t reported;
    for (int i = 0; i < 300; i++) {
        int which = 1 + (int)(test_random() % 3);
        char name[32];
        snprintf(name, sizeof name, "%010d.seg", which);
        uint64_t size = i < 20 ? (uint64_t)i * 512 : test_random() % (16 << 10);
        CHECK_EQ(truncate(file_of(dir, name), (off_t)size), 0);
        read_some(dir, 0, &rc, &reported);
        CHECK(rc <= 0);
        read_some(dir, OM_LOG_SKIP_CORRUPT, &rc, &reported);
        rc = om_log_verify(dir, 0, 0);
        CHECK(rc == OM_ERR_LOG_CORRUPT || (rc == 0 && size > 4096)); /* only the zeros at the end may go */
        if (i % 3 == 0) {
            OmLogReport report;
            int repaired = om_log_repair(dir, OM_LOG_SALVAGE, 0, &report);
            if (repaired != 0)
                FAIL("%s cut to %llu: %s", name, (unsigned long long)size, om_bus_last_error());
            OK(om_log_verify(dir, 0, &report));
            OmLogWriter *w = open_writer(dir, &SMALL);
            CHECK(om_log_append(w, 0, 1, "x", 1) > 0);
            OK(om_log_close(w));
            OK(om_log_verify(dir, 0, &report));
        }
        put_copy(dir, copies, count);
    }
    free_copy(copies, count);
}

/** Put `size` bytes of `what` (0 = zeros, 1 = random) in a file's place. */
static void replace(const char *path, size_t size, int what) {
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = what ? test_random() : 0;
        CHECK(write(fd, &word, 8) == 8);
    }
    close(fd);
}

TEST(empty_zero_and_foreign_files_are_told_apart_from_the_log) {
    const char *dir = log_dir("foreign"), *other = log_dir("other");
    make_log(dir, &SMALL, RECORDS, MAX);
    make_log(other, &SMALL, RECORDS + 20, MAX);
    Copy copies[16];
    int count = take_copy(dir, copies, 16);
    for (int which = 1; which <= 3; which++)
        for (int kind = 0; kind < 6; kind++) {
            char name[32], command[900];
            snprintf(name, sizeof name, "%010d.seg", which);
            const char *path = file_of(dir, name);
            if (kind == 0)
                replace(path, 0, 0);
            else if (kind == 1)
                replace(path, 16 << 10, 0);
            else if (kind == 2)
                replace(path, 16 << 10, 1);
            else if (kind == 3)
                unlink(path);
            else if (kind == 4) {
                snprintf(command, sizeof command, "cp '%s/%s' '%s/%s'", other, name, dir, name);
                CHECK_EQ(system(command), 0);
            } else {
                unlink(path);
                CHECK_EQ(mkdir(path, 0700), 0);
            }
            int rc;
            uint64_t reported;
            read_some(dir, 0, &rc, &reported);
            if (rc != OM_ERR_LOG_CORRUPT && !(which == 1 && kind == 3))
                FAIL("file kind %d as segment %d: read ended with %d", kind, which, rc);
            uint64_t kept = read_some(dir, OM_LOG_SKIP_CORRUPT, &rc, &reported);
            CHECK(kept > 0 && kept < RECORDS);
            if (kind != 5) {
                rc = om_log_verify(dir, 0, 0);
                CHECK(rc == OM_ERR_LOG_CORRUPT || (which == 1 && kind == 3 && rc == 0));
                OmLogReport report;
                OK(om_log_repair(dir, OM_LOG_SALVAGE, 0, &report));
                OK(om_log_verify(dir, 0, &report));
                CHECK_EQ(report.records, kept);
                OmLogWriter *w = open_writer(dir, &SMALL);
                CHECK(om_log_append(w, 0, 1, "x", 1) == RECORDS + 1);
                OK(om_log_close(w));
            }
            put_copy(dir, copies, count);
        }
    free_copy(copies, count);
}

TEST(a_directory_of_other_things_is_not_taken_for_a_log) {
    const char *dir = log_dir("things");
    CHECK_EQ(mkdir(dir, 0700), 0);
    replace(file_of(dir, "0000000001.seg"), 16 << 10, 1);
    OmLogWriter *w;
    OmLogReader *r;
    CHECK_EQ(om_log_open_writer(&w, dir, 0), OM_ERR_LOG_FOREIGN);
    CHECK_EQ(om_log_open_reader(&r, dir, 0), OM_ERR_LOG_NOT_FOUND);
    replace(file_of(dir, "log.ctl"), 8192, 1);
    CHECK_EQ(om_log_open_writer(&w, dir, 0), OM_ERR_LOG_FOREIGN);
    CHECK_EQ(om_log_open_reader(&r, dir, 0), OM_ERR_LOG_FOREIGN);
    unlink(file_of(dir, "0000000001.seg"));
    CHECK_EQ(om_log_open_writer(&w, dir, 0), OM_ERR_LOG_FOREIGN);
    CHECK_EQ(om_log_open_reader(&r, dir, 0), OM_ERR_LOG_FOREIGN);
}

TEST(a_lost_control_file_is_made_again_from_the_segments) {
    const char *dir = log_dir("control");
    for (int kind = 0; kind < 3; kind++) {
        remove_tree(dir);
        make_log(dir, &SMALL, RECORDS, MAX);
        uint8_t id[2][OM_LOG_ID_SIZE];
        OmLogReader *r = open_reader(dir, 0);
        om_log_id(r, id[0]);
        om_log_reader_close(r);
        if (kind == 0)
            unlink(file_of(dir, "log.ctl"));
        else
            replace(file_of(dir, "log.ctl"), kind == 1 ? 8192 : 100, kind == 1);
        r = open_reader(dir, 0);
        om_log_id(r, id[1]);
        CHECK(memcmp(id[0], id[1], OM_LOG_ID_SIZE) == 0);
        CHECK_EQ(om_log_last_seq(r), RECORDS);
        CHECK_EQ(read_all(r, 1, MAX), RECORDS);
        CHECK_EQ(om_log_wait(r, 3000000), 0);
        om_log_reader_close(r);
        OmLogWriter *w = open_writer(dir, &SMALL);
        append_to(w, RECORDS + 10, MAX);
        OK(om_log_close(w));
        r = open_reader(dir, 0);
        om_log_id(r, id[1]);
        CHECK(memcmp(id[0], id[1], OM_LOG_ID_SIZE) == 0);
        CHECK_EQ(read_all(r, 1, MAX), RECORDS + 10);
        om_log_reader_close(r);
    }
}

TEST(a_log_whose_end_is_gone_does_not_reuse_its_numbers) {
    const char *dir = log_dir("gone");
    make_log(dir, &SMALL, RECORDS, MAX);
    OmLogWriter *w;
    for (int i = 2; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "%010d.seg", i);
        unlink(file_of(dir, name));
    }
    CHECK_EQ(om_log_open_writer(&w, dir, &SMALL), OM_ERR_LOG_CORRUPT);
    OmLogWriterOptions salvage = SMALL;
    salvage.flags = OM_LOG_SALVAGE;
    w = open_writer(dir, &salvage);
    CHECK_EQ(om_log_append(w, 0, 1, "x", 1), RECORDS + 1);
    OK(om_log_close(w));
}

static int stop_at_once(uint64_t done, uint64_t total, void *ctx) {
    (void)ctx;
    CHECK(done <= total);
    return 1;
}

TEST(verify_can_be_stopped) {
    const char *dir = log_dir("stop");
    make_log(dir, &SMALL, RECORDS, MAX);
    OmLogVisitor visitor = {.progress = stop_at_once};
    CHECK_EQ(om_log_verify(dir, &visitor, 0), OM_ERR_LOG_CANCELLED);
}
