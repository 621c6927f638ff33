#include <stdbool.h>

#include "log_testing.h"

#include <dirent.h>
#include <pthread.h>

#include "log/files.h"

/*
 * A power cut, simulated. The hook sees every sync and keeps a model of the disk: for each file the bytes as they were
 * when last synced, and which names were in the directory when that was synced. At the cut every page that changed
 * since may be the old or the new one, or torn between its sectors; a name that was not synced may be there or not.
 */

enum { PAGE = 4096, SECTOR = 512, FILES_MAX = 64 };

typedef struct File {
    char name[256];
    uint8_t *synced; /* NULL = never */
    size_t synced_size;
    bool name_synced;
    uint8_t *now; /* at the cut; NULL = gone */
    size_t now_size;
} File;

static File files[FILES_MAX];
static int files_count;
static char model_dir[200];
static pthread_mutex_t model_lock = PTHREAD_MUTEX_INITIALIZER;

static File *file_named(const char *name) {
    for (int i = 0; i < files_count; i++)
        if (strcmp(files[i].name, name) == 0)
            return &files[i];
    if (files_count == FILES_MAX)
        abort();
    File *file = &files[files_count++];
    *file = (File){0};
    snprintf(file->name, sizeof file->name, "%s", name);
    return file;
}

static void forget_model(void) {
    for (int i = 0; i < files_count; i++) {
        free(files[i].synced);
        free(files[i].now);
    }
    files_count = 0;
}

static int on_sync(int fd, uint64_t from, uint64_t to) {
    char link[64], path[400];
    struct stat info;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0 || fstat(fd, &info) != 0)
        return 0;
    path[size] = 0;
    pthread_mutex_lock(&model_lock);
    if (S_ISDIR(info.st_mode)) {
        for (int i = 0; i < files_count; i++)
            files[i].name_synced = false;
        DIR *stream = opendir(path);
        for (struct dirent *entry; stream && (entry = readdir(stream));)
            if (entry->d_type == DT_REG)
                file_named(entry->d_name)->name_synced = true;
        closedir(stream);
    } else if (strncmp(path, model_dir, strlen(model_dir)) == 0 && !strstr(path, "(deleted)")) {
        const char *name = strrchr(path, '/') + 1;
        File *file = file_named(strcmp(name, "log.ctl.new") == 0 ? "log.ctl" : name);
        if (file->synced_size < (size_t)info.st_size) {
            file->synced = realloc(file->synced, (size_t)info.st_size);
            memset(file->synced + file->synced_size, 0, (size_t)info.st_size - file->synced_size);
            file->synced_size = (size_t)info.st_size;
        }
        if (to == 0)
            to = (uint64_t)info.st_size;
        to = (to + PAGE - 1) / PAGE * PAGE;
        if (to > file->synced_size)
            to = file->synced_size;
        if (pread(fd, file->synced + from, to - from, (off_t)from) != (ssize_t)(to - from))
            abort();
    }
    pthread_mutex_unlock(&model_lock);
    return 0;
}

/** The contents of all files at this moment. */
static void take_now(void) {
    pthread_mutex_lock(&model_lock);
    for (int i = 0; i < files_count; i++) {
        free(files[i].now);
        files[i].now = 0;
    }
    DIR *stream = opendir(model_dir);
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (entry->d_type != DT_REG)
            continue;
        int fd = openat(dirfd(stream), entry->d_name, O_RDONLY);
        struct stat info;
        if (fd < 0)
            continue;
        CHECK_EQ(fstat(fd, &info), 0);
        File *file = file_named(entry->d_name);
        file->now_size = (size_t)info.st_size;
        file->now = malloc(file->now_size + 1);
        CHECK(pread(fd, file->now, file->now_size, 0) == (ssize_t)file->now_size);
        close(fd);
    }
    closedir(stream);
    pthread_mutex_unlock(&model_lock);
}

static void put_file(const char *dir, const char *name, const uint8_t *bytes, size_t size) {
    int fd = open(file_of(dir, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

/** What the disk may hold after the cut. keep_new: how likely a changed page is the new one, of 256. */
static void put_after_cut(const char *dir, unsigned keep_new, bool tear) {
    static uint8_t bytes[1 << 20];
    CHECK_EQ(mkdir(dir, 0700), 0);
    for (int i = 0; i < files_count; i++) {
        const File *file = &files[i];
        bool was = file->name_synced && file->synced, is = file->now != 0;
        if (strcmp(file->name, "log.ctl") == 0)
            was = file->synced != 0; /* its rename is followed by a sync of the directory at once */
        if ((!was || !is) && test_random() % 2)
            continue;
        if (!is && !file->synced)
            continue;
        size_t size = is ? file->now_size : file->synced_size;
        if (is && !file->synced) { /* never synced: its size may be an old one, too */
            if (test_random() % 4 == 0)
                size = size ? test_random() % size / PAGE * PAGE : 0;
        }
        CHECK(size <= sizeof bytes);
        for (size_t at = 0; at < size; at += SECTOR) {
            static bool fresh;
            if (at % PAGE == 0 || (tear && test_random() % 4 == 0))
                fresh = is && test_random() % 256 < keep_new;
            size_t end = at + SECTOR < size ? at + SECTOR : size;
            for (size_t k = at; k < end; k++)
                bytes[k] = fresh && k < file->now_size             ? file->now[k]
                           : file->synced && k < file->synced_size ? file->synced[k]
                                                                   : 0;
        }
        if (strcmp(file->name, "log.ctl") == 0) /* another boot: the id stands at 96 */
            memset(bytes + 96, 0x5A, 16);
        put_file(dir, file->name, bytes, size);
    }
}

/** Open what is left and check all that was promised. */
static void check_after_cut(const char *dir, uint64_t durable, uint64_t last) {
    OmLogReport report;
    if (test_random() % 2)
        OK(om_log_verify(dir, 0, &report));
    /* A reader that comes before the writer. */
    OmLogReader *r = open_reader(dir, test_random() % 2 ? OM_LOG_DURABLE_ONLY : 0);
    uint64_t seen = (uint64_t)om_log_last_seq(r);
    if (seen < durable || seen > last)
        FAIL("a reader sees %llu records; %llu of %llu were durable", (unsigned long long)seen,
             (unsigned long long)durable, (unsigned long long)last);
    CHECK_EQ(read_all(r, 1, 700), seen);
    if (seen > 0) {
        OmLogRecord rec;
        uint64_t seq = 1 + test_random() % seen;
        OK(om_log_seek(r, seq));
        CHECK_EQ(om_log_next(r, &rec), 1);
        CHECK_EQ(rec.wal_seq, seq);
        OmLogRange range;
        OK(om_log_range_stats(r, 0, 0, &range));
        CHECK_EQ(range.records, seen);
    }
    om_log_reader_close(r);
    if (test_random() % 4 == 0)
        OK(om_log_repair(dir, 0, 0, &report));
    OmLogWriterOptions options = {.segment_bytes = 16 << 10, .index_bytes = 1024, .sync = OM_LOG_SYNC_NONE};
    OmLogWriter *w = open_writer(dir, &options);
    CHECK_EQ(om_log_writer_last_seq(w), seen);
    append_to(w, seen + 40, 700);
    r = open_reader(dir, 0);
    CHECK_EQ(read_all(r, 1, 700), seen + 40);
    om_log_reader_close(r);
    OK(om_log_close(w));
    OK(om_log_verify(dir, 0, &report));
    CHECK_EQ(report.records, seen + 40);
    CHECK_EQ(report.tail_bytes, 0);
}

/** A writer's life up to the cut: appends and syncs. Leaves the model; returns what was durable. */
static uint64_t live_until_cut(uint64_t *last, uint32_t sync) {
    forget_model();
    snprintf(model_dir, sizeof model_dir, "%s", log_dir("disk"));
    omi_sync_hook = on_sync;
    OmLogWriterOptions options = {.segment_bytes = 16 << 10, .index_bytes = 1024, .sync = sync};
    OmLogWriter *w = open_writer(model_dir, &options);
    int steps = 1 + (int)(test_random() % 12);
    for (int step = 0; step < steps; step++) {
        append_to(w, om_log_writer_last_seq(w) + test_random() % 30, 700);
        if (test_random() % 5 == 0)
            OK(om_log_sync(w));
        if (test_random() % 12 == 0) { /* a restart on the way */
            OK(om_log_close(w));
            w = open_writer(model_dir, &options);
        }
    }
    *last = om_log_writer_last_seq(w);
    uint64_t durable = om_log_writer_durable_seq(w);
    take_now();
    omi_sync_hook = 0;
    OK(om_log_close(w));
    remove_tree(model_dir);
    return durable;
}

TEST(durable_records_survive_10000_power_cuts_and_the_rest_is_a_clean_prefix) {
    enum { LIVES = 500, CUTS_PER_LIFE = 20 };
    static const unsigned chances[] = {0, 26, 128, 230, 256};
    const char *dir = log_dir("cut");
    uint64_t appended = 0, promised = 0;
    for (int life = 0; life < LIVES; life++) {
        uint64_t last, durable = live_until_cut(&last, life % 4 == 0 ? OM_LOG_SYNC_EACH : OM_LOG_SYNC_NONE);
        for (int cut = 0; cut < CUTS_PER_LIFE; cut++) {
            put_after_cut(dir, chances[test_random() % 5], test_random() % 2);
            check_after_cut(dir, durable, last);
            remove_tree(dir);
        }
        promised += durable;
        appended += last;
    }
    printf("        %d cuts; of %llu records %llu were durable\n", LIVES * CUTS_PER_LIFE, (unsigned long long)appended,
           (unsigned long long)promised);
    forget_model();
}

static int disk_fails;

static int fail_sync(int fd, uint64_t from, uint64_t to) {
    (void)fd, (void)from, (void)to;
    return disk_fails;
}

TEST(a_failed_sync_is_never_taken_back) {
    const char *dir = log_dir("eio");
    OmLogWriterOptions options = {.segment_bytes = 16 << 10, .linger_ms = 100000};
    OmLogWriter *w = open_writer(dir, &options);
    append_to(w, 10, 100);
    OK(om_log_sync(w));
    omi_sync_hook = fail_sync;
    disk_fails = 1;
    append_to(w, 20, 100);
    CHECK_EQ(om_log_sync(w), OM_ERR_LOG_IO);
    disk_fails = 0; /* the kernel says it once, and may have dropped the pages: a success now would be a lie */
    CHECK_EQ(om_log_wait_durable(w, 15, -1), OM_ERR_LOG_IO);
    CHECK_CONTAINS(om_bus_last_error(), "earlier sync");
    CHECK_EQ(om_log_writer_durable_seq(w), 10);
    append_to(w, 30, 100); /* appending and reading go on */
    OmLogReader *r = open_reader(dir, 0);
    CHECK_EQ(read_all(r, 1, 100), 30);
    om_log_reader_close(r);
    CHECK_EQ(om_log_close(w), OM_ERR_LOG_IO);
    omi_sync_hook = 0;
    w = open_writer(dir, &options);
    CHECK_EQ(om_log_writer_durable_seq(w), 30);
    OK(om_log_close(w));
}

TEST(the_power_cut_harness_notices_a_lost_durable_page) { /* the canary */
    const char *dir = log_dir("canary");
    int noticed = 0, tried = 0;
    for (int i = 0; i < 40; i++) {
        uint64_t last, durable = live_until_cut(&last, OM_LOG_SYNC_EACH);
        CHECK_EQ(durable, last);
        if (last == 0)
            continue;
        File *file = file_named("0000000001.seg");
        CHECK(file->synced != 0 && file->now != 0);
        memset(file->synced + PAGE, 0, PAGE);
        memset(file->now + PAGE, 0, PAGE);
        put_after_cut(dir, 256, false);
        OmLogWriter *w;
        int rc = om_log_open_writer(&w, dir, 0);
        noticed += rc == OM_ERR_LOG_CORRUPT || om_log_verify(dir, 0, 0) == OM_ERR_LOG_CORRUPT;
        tried++;
        if (rc == 0)
            OK(om_log_close(w));
        remove_tree(dir);
    }
    CHECK(tried > 0);
    CHECK_EQ(noticed, tried);
    forget_model();
}
