/*
 * The log beside what it is made of: one clock read, the checksum and the copy; raw write + fdatasync; a plain read of
 * the same bytes. Files go to $OMBUS_BENCH_DIR (/tmp): put it on the disk that the log will live on.
 */

#include "bench.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/copy.h"
#include "core/crc32c.h"
#include "log/frame.h"
#include "ombus/om_log.h"

enum { RUNS = 7, RUNS_SHORT = 15, SMALL = 56, LARGE = 1024 };

static char root[256], dir[300];
static uint8_t payload[1 << 16];

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *ftw) {
    (void)info, (void)flag, (void)ftw;
    return remove(path);
}

static void remove_log(void) {
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, om_bus_last_error());
    remove_log();
    exit(1);
}

static OmLogWriter *new_writer(const OmLogWriterOptions *options) {
    OmLogWriter *w;
    remove_log();
    if (om_log_open_writer(&w, dir, options) != 0)
        die("open");
    return w;
}

/* ---- What an append is made of ---- */

static double clock_ns(void *ctx) {
    (void)ctx;
    enum { N = 2000000 };
    uint64_t sum = 0, start = bench_now_ns();
    for (int i = 0; i < N; i++)
        sum += omi_wall_ns();
    bench_use(&sum);
    return (double)(bench_now_ns() - start) / N;
}

/* Each result feeds the next input: an append must have its checksum before it can publish, too. */
static double crc_ns(void *ctx) {
    uint32_t len = *(uint32_t *)ctx, crc = 0;
    const int n = len > 256 ? 500000 : 3000000;
    uint64_t start = bench_now_ns();
    for (int i = 0; i < n; i++)
        crc = omi_frame_crc(omi_frame_word(1, len), (uint64_t)i ^ crc, (uint64_t)i, payload, len);
    bench_use(&crc);
    return (double)(bench_now_ns() - start) / n;
}

static double copy_ns(void *ctx) {
    uint32_t len = *(uint32_t *)ctx;
    enum { N = 2000000, AREA = 16 << 20 };
    static uint8_t *area;
    if (!area) {
        area = mmap(0, AREA + (64 << 10), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    }
    uint64_t offset = 0, step = omi_frame_size(len), start = bench_now_ns();
    for (int i = 0; i < N; i++) {
        memcpy(area + offset, payload, len);
        bench_use(area);
        offset += step;
        if (offset > AREA)
            offset = 0;
    }
    return (double)(bench_now_ns() - start) / N;
}

/* ---- Appends ---- */

typedef struct Append {
    uint32_t len;
    uint32_t batch; /* 0 = one by one */
    int count;
    OmLogWriterOptions options;
} Append;

/** Wait until the preparer has caught up: the steady state of a producer that does not run at full speed for ever. */
static void settle(void) {
    usleep(100000);
}

static double append_ns(void *ctx) {
    const Append *a = ctx;
    OmLogWriter *w = new_writer(&a->options);
    static OmLogRecord recs[1024];
    for (uint32_t i = 0; i < a->batch; i++)
        recs[i] = (OmLogRecord){.payload = payload, .payload_len = a->len, .wal_type = 1};
    if (om_log_append(w, 0, 1, payload, a->len) < 0)
        die("append");
    settle();
    uint64_t start = bench_now_ns();
    if (a->batch)
        for (int i = 0; i < a->count; i += (int)a->batch) {
            if (om_log_append_batch(w, recs, a->batch) != a->batch)
                die("batch");
        }
    else
        for (int i = 0; i < a->count; i++)
            if (om_log_append(w, 0, 1, payload, a->len) < 0)
                die("append");
    double ns = (double)(bench_now_ns() - start) / a->count;
    om_log_close(w);
    return ns;
}

static double write_fdatasync_ns(void *ctx) {
    const Append *a = ctx;
    char path[320];
    snprintf(path, sizeof path, "%s.raw", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, 64 << 20) != 0)
        die("raw file");
    uint64_t start = bench_now_ns();
    for (int i = 0; i < a->count; i++)
        if (write(fd, payload, a->len + 32) < 0 || fdatasync(fd) != 0)
            die("write");
    double ns = (double)(bench_now_ns() - start) / a->count;
    close(fd);
    unlink(path);
    return ns;
}

static double write_only_ns(void *ctx) {
    const Append *a = ctx;
    char path[320];
    snprintf(path, sizeof path, "%s.raw", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < a->count; i++)
        if (write(fd, payload, a->len + 32) < 0)
            die("write");
    double ns = (double)(bench_now_ns() - start) / a->count;
    close(fd);
    unlink(path);
    return ns;
}

/** Latencies of single appends at a steady pace, sorted; segments small enough that the log rotates often, or not. */
static void append_quantiles(uint64_t segment_bytes, double *p50, double *p999, double *p9999, uint64_t *rotations) {
    enum { N = 1200000 };
    static uint64_t times[N];
    OmLogWriterOptions options = {.sync = OM_LOG_SYNC_NONE, .segment_bytes = segment_bytes, .prefault_bytes = 32 << 20};
    OmLogWriter *w = new_writer(&options);
    om_log_append(w, 0, 1, payload, SMALL);
    settle();
    for (int i = 0; i < N; i++) {
        uint64_t start = omi_monotonic_ns();
        om_log_append(w, 0, 1, payload, SMALL);
        uint64_t end = omi_monotonic_ns();
        times[i] = end - start;
        while (omi_monotonic_ns() - start < 500) { /* two million a second */
        }
    }
    OmLogWriterStats stats;
    om_log_writer_stats(w, &stats);
    *rotations = stats.rotations;
    om_log_close(w);
    *p50 = (double)bench_quantile(times, N, 0.5);
    *p999 = (double)bench_quantile(times, N, 0.999);
    *p9999 = (double)bench_quantile(times, N, 0.9999);
}

/* ---- Reading ---- */

enum { SCAN_RECORDS = 4000000 };
static uint64_t scan_bytes;

static void make_scan_log(void) {
    OmLogWriterOptions options = {.sync = OM_LOG_SYNC_NONE};
    OmLogWriter *w = new_writer(&options);
    static OmLogRecord recs[500];
    for (int i = 0; i < 500; i++)
        recs[i] = (OmLogRecord){.payload = payload, .payload_len = SMALL, .wal_type = 1};
    for (int i = 0; i < SCAN_RECORDS; i += 500)
        if (om_log_append_batch(w, recs, 500) != 500)
            die("batch");
    OmLogWriterStats stats;
    om_log_writer_stats(w, &stats);
    scan_bytes = stats.bytes;
    om_log_close(w);
}

static double scan_seconds(void *ctx) {
    OmLogReaderOptions options = {.flags = *(uint32_t *)ctx};
    OmLogReader *r;
    static OmLogRecord recs[1024];
    if (om_log_open_reader(&r, dir, &options) != 0)
        die("open");
    uint64_t start = bench_now_ns(), count = 0;
    int n;
    while ((n = om_log_next_batch(r, recs, 1024)) > 0) {
        count += (uint64_t)n;
        bench_use(recs);
    }
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    if (n < 0 || count != SCAN_RECORDS)
        die("scan");
    om_log_reader_close(r);
    return seconds;
}

static double span_seconds(void *ctx) {
    OmLogReaderOptions options = {.flags = *(uint32_t *)ctx};
    OmLogReader *r;
    OmLogSpan span;
    if (om_log_open_reader(&r, dir, &options) != 0)
        die("open");
    uint64_t start = bench_now_ns(), count = 0;
    while (om_log_next_span(r, 256 << 10, &span) == 1)
        count += span.records;
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    if (count != SCAN_RECORDS)
        die("scan");
    om_log_reader_close(r);
    return seconds;
}

/** dd: the segment files through a 256 KiB buffer. */
static double read_seconds(void *ctx) {
    (void)ctx;
    static uint8_t buffer[256 << 10];
    uint64_t start = bench_now_ns(), total = 0;
    for (int i = 1; total < scan_bytes; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%010d.seg", dir, i);
        int fd = open(path, O_RDONLY);
        if (fd < 0)
            break;
        for (ssize_t got; total < scan_bytes && (got = read(fd, buffer, sizeof buffer)) > 0;)
            total += (uint64_t)got;
        close(fd);
    }
    return (double)(bench_now_ns() - start) / 1e9;
}

/* ---- Seeks and round trips ---- */

static double seek_us(void *ctx) {
    OmLogReader *r = *(OmLogReader **)ctx;
    enum { N = 2000 };
    uint64_t last = (uint64_t)om_log_last_seq(r), state = 12345;
    uint64_t start = bench_now_ns();
    for (int i = 0; i < N; i++) {
        OmLogRecord rec;
        state = state * 6364136223846793005U + 1442695040888963407U;
        if (om_log_seek(r, 1 + (state >> 33) % last) != 0 || om_log_next(r, &rec) != 1)
            die("seek");
    }
    return (double)(bench_now_ns() - start) / N / 1e3;
}

static double open_seek_us(void *ctx) {
    (void)ctx;
    enum { N = 50 };
    uint64_t start = bench_now_ns();
    for (int i = 0; i < N; i++) {
        OmLogReader *r;
        OmLogRecord rec;
        if (om_log_open_reader(&r, dir, 0) != 0 || om_log_seek(r, 1000000 + (uint64_t)i * 10000) != 0 ||
            om_log_next(r, &rec) != 1)
            die("open and seek");
        om_log_reader_close(r);
    }
    return (double)(bench_now_ns() - start) / N / 1e3;
}

/** A log like one of 10 GB: 160 segments. */
static void bench_seek(void) {
    OmLogWriterOptions options = {.sync = OM_LOG_SYNC_NONE, .segment_bytes = 1 << 20, .index_bytes = 64 << 10};
    OmLogWriter *w = new_writer(&options);
    static OmLogRecord recs[500];
    for (int i = 0; i < 500; i++)
        recs[i] = (OmLogRecord){.payload = payload, .payload_len = SMALL, .wal_type = 1};
    for (int i = 0; i < 1900000; i += 500)
        om_log_append_batch(w, recs, 500);
    om_log_close(w);
    OmLogReader *r;
    if (om_log_open_reader(&r, dir, 0) != 0)
        die("open");
    bench_figure("log seek + next, 160 segments", bench_median(seek_us, &r, RUNS), "us", 0, 0, 0);
    om_log_reader_close(r);
    bench_figure("log open + seek + next + close", bench_median(open_seek_us, 0, RUNS), "us", 0, 0, 0);
}

typedef struct Lines { /* for the peer: two cache lines in shared memory */
    _Alignas(64) _Atomic uint64_t ping;
    _Alignas(64) _Atomic uint64_t pong;
} Lines;

enum { TRIPS = 100000 };
static uint64_t trips[TRIPS];

static void bench_line_round_trip(double *p50) {
    Lines *lines = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (uint64_t i = 1; i <= TRIPS; i++) {
            while (atomic_load_explicit(&lines->ping, memory_order_acquire) != i)
                omi_cpu_relax();
            atomic_store_explicit(&lines->pong, i, memory_order_release);
        }
        _exit(0);
    }
    bench_pin(0);
    for (uint64_t i = 1; i <= TRIPS; i++) {
        uint64_t start = bench_now_ns();
        atomic_store_explicit(&lines->ping, i, memory_order_release);
        while (atomic_load_explicit(&lines->pong, memory_order_acquire) != i)
            omi_cpu_relax();
        trips[i - 1] = bench_now_ns() - start;
    }
    waitpid(child, 0, 0);
    *p50 = (double)bench_quantile(trips, TRIPS, 0.5);
}

/** Two logs, two processes: append to one, wait for the answer in the other. */
static void bench_round_trip(void) {
    char other[320];
    double line_p50;
    OmLogWriterOptions options = {.sync = OM_LOG_SYNC_NONE};
    OmLogWriter *w = new_writer(&options), *answers;
    OmLogReader *r;
    snprintf(other, sizeof other, "%s.pong", dir);
    if (om_log_open_writer(&answers, other, &options) != 0)
        die("open");
    om_log_close(answers);
    bench_line_round_trip(&line_p50);
    pid_t child = fork();
    if (child == 0) {
        OmLogRecord rec;
        bench_pin(1);
        if (om_log_open_reader(&r, dir, 0) != 0 || om_log_open_writer(&answers, other, &options) != 0)
            _exit(1);
        for (int i = 0; i < TRIPS + 1000;) {
            if (om_log_next(r, &rec) != 1)
                continue;
            om_log_append(answers, 0, 1, rec.payload, rec.payload_len);
            i++;
        }
        om_log_close(answers);
        _exit(0);
    }
    if (om_log_open_reader(&r, other, 0) != 0)
        die("open");
    for (int i = 0; i < TRIPS + 1000; i++) {
        OmLogRecord rec;
        uint64_t start = bench_now_ns();
        om_log_append(w, 0, 1, payload, SMALL);
        while (om_log_next(r, &rec) != 1) {
        }
        if (i >= 1000)
            trips[i - 1000] = bench_now_ns() - start;
    }
    waitpid(child, 0, 0);
    bench_figure("log tail round trip p50, 2 processes", (double)bench_quantile(trips, TRIPS, 0.5), "ns", line_p50,
                 "two cache lines", "<= 1000 ns");
    bench_figure("log tail round trip p99", (double)bench_quantile(trips, TRIPS, 0.99), "ns", 0, 0, 0);
    om_log_reader_close(r);
    om_log_close(w);
    nftw(other, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv) {
    const char *given = getenv("OMBUS_BENCH_DIR");
    snprintf(root, sizeof root, "%s", given ? given : "/tmp");
    snprintf(dir, sizeof dir, "%s/ombus-bench-log-%d", root, (int)getpid());
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 31);
    bench_begin(argc, argv, "log");
    uint32_t small = SMALL, large = LARGE;
    double clock = bench_median(clock_ns, 0, RUNS);
    double small_sum = clock + bench_median(crc_ns, &small, RUNS) + bench_median(copy_ns, &small, RUNS);
    double large_sum = clock + bench_median(crc_ns, &large, RUNS) + bench_median(copy_ns, &large, RUNS);
    bench_figure("clock read", clock, "ns", 0, 0, 0);
    bench_figure("crc of header + 56 B", bench_median(crc_ns, &small, RUNS), "ns", 0, 0, 0);
    bench_figure("copy of 56 B", bench_median(copy_ns, &small, RUNS), "ns", 0, 0, 0);

    Append a = {.len = SMALL, .count = 150000, .options = {.sync = OM_LOG_SYNC_NONE}};
    bench_figure("log append 56 B, no sync", bench_median(append_ns, &a, RUNS_SHORT), "ns", small_sum,
                 "clock + crc + memcpy", "<= 1.3 x");
    a.count = 2000000;
    bench_figure("log append 56 B, no sync, sustained", bench_median(append_ns, &a, 3), "ns",
                 bench_median(write_only_ns, &a, 3), "write(2) per record", 0);
    a = (Append){.len = LARGE, .count = 12000, .options = {.sync = OM_LOG_SYNC_NONE}};
    bench_figure("log append 1 KiB, no sync", bench_median(append_ns, &a, RUNS_SHORT), "ns", large_sum,
                 "clock + crc + memcpy", "<= 1.3 x");
    a = (Append){.len = SMALL, .batch = 500, .count = 150000, .options = {.sync = OM_LOG_SYNC_NONE}};
    bench_figure("log append 56 B in batches of 500", bench_median(append_ns, &a, RUNS_SHORT), "ns", small_sum - clock,
                 "crc + memcpy", "<= 20 ns");
    a.count = 2000000;
    bench_figure("log append in batches, sustained", bench_median(append_ns, &a, 3), "ns", 0, 0, 0);
    a = (Append){.len = SMALL, .count = 1000000};
    bench_figure("log append 56 B, linger 500 / 100 ms", bench_median(append_ns, &a, 3), "ns", 0, 0, 0);
    a = (Append){.len = LARGE, .count = 100000};
    bench_figure("log append 1 KiB, linger 500 / 100 ms", bench_median(append_ns, &a, 3), "ns", 0, 0, 0);
    a = (Append){.len = SMALL, .count = 300, .options = {.sync = OM_LOG_SYNC_EACH}};
    bench_figure("log append 56 B, sync each", bench_median(append_ns, &a, 3) / 1e3, "us",
                 bench_median(write_fdatasync_ns, &a, 3) / 1e3, "write + fdatasync", 0);
    a.len = LARGE;
    bench_figure("log append 1 KiB, sync each", bench_median(append_ns, &a, 3) / 1e3, "us",
                 bench_median(write_fdatasync_ns, &a, 3) / 1e3, "write + fdatasync", 0);

    double p50[2], p999[2], p9999[2];
    uint64_t rotations[2];
    append_quantiles(256 << 20, &p50[0], &p999[0], &p9999[0], &rotations[0]);
    append_quantiles(2 << 20, &p50[1], &p999[1], &p9999[1], &rotations[1]);
    bench_figure("append p50, 2 MiB segments", p50[1], "ns", p50[0], "without rotation", 0);
    bench_figure("append p99.9, 2 MiB segments", p999[1], "ns", p999[0], "without rotation", 0);
    bench_figure("append p99.99, 2 MiB segments", p9999[1], "ns", p9999[0], "without rotation", "<= 50 us more");
    bench_figure("  rotations in that run", (double)rotations[1], "", 0, 0, 0);

    make_scan_log();
    uint32_t no_crc = OM_LOG_NO_CRC, crc = 0;
    double read_s = bench_median(read_seconds, 0, RUNS), gb = (double)scan_bytes / 1e9;
    double plain_s = bench_median(scan_seconds, &no_crc, RUNS), crc_s = bench_median(scan_seconds, &crc, RUNS);
    bench_figure("scan 56 B, no CRC", SCAN_RECORDS / plain_s / 1e6, "M/s", 0, 0, ">= 40 M/s");
    bench_figure("scan 56 B, CRC", SCAN_RECORDS / crc_s / 1e6, "M/s", 0, 0, ">= 25 M/s");
    bench_figure("scan 56 B, no CRC, bytes", gb / plain_s, "GB/s", gb / read_s, "read(2) of the files", 0);
    bench_figure("scan 56 B, CRC, bytes", gb / crc_s, "GB/s", gb / read_s, "read(2) of the files", 0);
    bench_figure("scan in spans, CRC", SCAN_RECORDS / bench_median(span_seconds, &crc, RUNS) / 1e6, "M/s", 0, 0, 0);
    bench_seek();
    bench_round_trip();
    remove_log();
    bench_end();
    return 0;
}
