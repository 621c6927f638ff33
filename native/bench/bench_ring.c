/* The ring: cost per call in one process, throughput and round trip between two. */

#include "bench.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/crc32c.h"
#include "core/hint.h"
#include "ombus/om_bus.h"

enum { PAYLOAD = 56, RUNS = 9, BATCH = 32, ROUND_TRIPS = 200000, STEP_BACK_RELAXES = 1000 };

/* Cost per call and latency in a ring of the default capacity; throughput in one that is larger than a core's second
 * level cache, so that lines have left the writer's cache by the time the reader asks for them.
 * Round trips in slots of whole cache lines: a slot that straddles one more line costs one more transfer. */
enum { SLOT = 80, SLOT_ALIGNED = 128, CAPACITY = 4096, CAPACITY_WIDE = 65536 };

static char ring_name[2][64];

static void die(const char *what, int rc) {
    fprintf(stderr, "bench_ring: %s: %d %s (%s)\n", what, rc, om_bus_error_string(rc), om_bus_last_error());
    exit(1);
}

static OmBusStream *make(int i, uint32_t capacity, uint32_t slot_size, uint32_t flags) {
    OmBusStream *s;
    OmBusStreamConfig config = {
        .stream_name = ring_name[i], .capacity = capacity, .slot_size = slot_size, .max_consumers = 2, .flags = flags};
    int rc = om_bus_stream_create(&s, &config);
    if (rc)
        die("create", rc);
    return s;
}

static OmBusEndpoint *join(int i, bool zero_copy) {
    OmBusEndpoint *ep;
    OmBusEndpointConfig config = {
        .stream_name = ring_name[i], .consumer_index = OM_BUS_CONSUMER_ANY, .zero_copy = zero_copy};
    int rc = om_bus_endpoint_open(&ep, &config);
    if (rc)
        die("open", rc);
    return ep;
}

/* ---- limits: what the machine does with the same bytes ---- */

static double memcpy_ns(void *ctx) {
    (void)ctx;
    enum { ROUNDS = 200 };
    static uint8_t area[CAPACITY][SLOT], payload[PAYLOAD];
    volatile size_t size = PAYLOAD; /* as the ring sees it: not a constant */
    uint64_t start = bench_now_ns();
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < CAPACITY; i++) {
            memcpy(area[i], payload, size);
            bench_use(area[i]);
        }
    return (double)(bench_now_ns() - start) / (ROUNDS * CAPACITY);
}

static double crc_ns(void *ctx) {
    (void)ctx;
    enum { ROUNDS = 1000000 };
    static uint8_t payloads[64][PAYLOAD];
    uint32_t sum = 0;
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++)
        sum += omi_crc32c(payloads[i % 64], PAYLOAD);
    bench_use(&sum);
    return (double)(bench_now_ns() - start) / ROUNDS;
}

/* ---- one process ---- */

typedef struct Single {
    OmBusStream *stream;
    OmBusEndpoint *ep;
    double poll_ns;
    bool batch;
} Single;

/** Fill and drain the ring many times; publish cost is returned, poll cost left in the struct. */
static double publish_poll_ns(void *ctx) {
    enum { ROUNDS = 100 };
    Single *single = ctx;
    static uint64_t seq;
    uint8_t payload[PAYLOAD] = {1};
    OmBusRecord recs[BATCH], in[BATCH];
    uint64_t publishing = 0, polling = 0;
    for (int i = 0; i < BATCH; i++)
        in[i] = (OmBusRecord){0, 1, PAYLOAD, payload};
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t t0 = bench_now_ns();
        if (single->batch) {
            for (int i = 0; i < CAPACITY / BATCH; i++) {
                for (int k = 0; k < BATCH; k++)
                    in[k].wal_seq = ++seq;
                om_bus_stream_publish_batch(single->stream, in, BATCH);
            }
        } else {
            for (int i = 0; i < CAPACITY; i++)
                om_bus_stream_publish(single->stream, ++seq, 1, payload, PAYLOAD);
        }
        uint64_t t1 = bench_now_ns();
        int n = 0;
        if (single->batch)
            while (n < CAPACITY)
                n += om_bus_endpoint_poll_batch(single->ep, recs, BATCH);
        else
            while (n < CAPACITY)
                n += om_bus_endpoint_poll(single->ep, recs);
        publishing += t1 - t0;
        polling += bench_now_ns() - t1;
    }
    single->poll_ns = (double)polling / (ROUNDS * CAPACITY);
    return (double)publishing / (ROUNDS * CAPACITY);
}

static double poll_ns(void *ctx) {
    publish_poll_ns(ctx);
    return ((Single *)ctx)->poll_ns;
}

static void measure_single(const char *what, uint32_t flags, bool batch, double limit, const char *limit_name,
                           const char *publish_goal, const char *poll_goal) {
    char name[64];
    Single single = {.stream = make(0, CAPACITY, SLOT, flags), .ep = join(0, false), .batch = batch};
    snprintf(name, sizeof name, "publish %s", what);
    bench_figure(name, bench_median(publish_poll_ns, &single, RUNS), "ns", limit, limit_name, publish_goal);
    snprintf(name, sizeof name, "poll %s", what);
    bench_figure(name, bench_median(poll_ns, &single, RUNS), "ns", limit, limit_name, poll_goal);
    om_bus_endpoint_close(single.ep);
    om_bus_stream_destroy(single.stream);
}

/* ---- two processes ---- */

/** Fork a peer on the other core that runs fn(ctx) and ends. Parents that die take it along. */
static pid_t fork_peer(void (*fn)(void *), void *ctx) {
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bench_pin(1);
        fn(ctx);
        _exit(0);
    }
    return pid;
}

/**
 * What a reader or writer that wants throughput does at the edge: leave the other side alone for a moment, so that
 * the next lines come in a burst instead of one by one, each a cache miss for both.
 */
static void step_back(uint32_t *turns) {
    for (int i = 0; i < STEP_BACK_RELAXES; i++)
        omi_cpu_relax();
    if (++*turns > 1000)
        sched_yield();
}

/** The peer to beat in throughput: a bare single-producer single-consumer ring of the same slots, nothing else. */
typedef struct BareRing {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    _Alignas(64) uint8_t slots[CAPACITY_WIDE][SLOT];
} BareRing;

static BareRing *bare;
static _Atomic uint32_t *ready; /* shared flag: the other side is set up */
enum { BARE_RECORDS = 20000000 };

static void bare_consumer(void *ctx) {
    (void)ctx;
    uint64_t tail = 0, head = 0;
    uint8_t copy[PAYLOAD];
    atomic_store(ready, 1);
    while (tail < BARE_RECORDS) {
        uint32_t spins = 0;
        while (head == tail) {
            head = atomic_load_explicit(&bare->head, memory_order_acquire);
            if (head == tail)
                step_back(&spins);
        }
        memcpy(copy, bare->slots[tail % CAPACITY_WIDE], PAYLOAD);
        bench_use(copy);
        atomic_store_explicit(&bare->tail, ++tail, memory_order_release);
    }
}

static double bare_rate(void *ctx) {
    (void)ctx;
    uint8_t payload[PAYLOAD] = {1};
    atomic_store(&bare->head, 0);
    atomic_store(&bare->tail, 0);
    atomic_store(ready, 0);
    pid_t pid = fork_peer(bare_consumer, 0);
    while (!atomic_load(ready))
        sched_yield();
    uint64_t start = bench_now_ns(), head = 0, tail = 0;
    while (head < BARE_RECORDS) {
        uint32_t spins = 0;
        while (head - tail >= CAPACITY_WIDE) {
            tail = atomic_load_explicit(&bare->tail, memory_order_acquire);
            if (head - tail >= CAPACITY_WIDE)
                step_back(&spins);
        }
        memcpy(bare->slots[head % CAPACITY_WIDE], payload, PAYLOAD);
        atomic_store_explicit(&bare->head, ++head, memory_order_release);
    }
    waitpid(pid, 0, 0);
    return BARE_RECORDS / ((double)(bench_now_ns() - start) / 1e9) / 1e6;
}

typedef struct Flow {
    bool batch;
    uint64_t records;
} Flow;

static void ring_consumer(void *ctx) {
    const Flow *flow = ctx;
    OmBusRecord recs[BATCH];
    OmBusEndpoint *ep = join(0, false);
    atomic_store(ready, 1);
    uint32_t idle = 0;
    for (uint64_t got = 0; got < flow->records;) {
        int n = flow->batch ? om_bus_endpoint_poll_batch(ep, recs, BATCH) : om_bus_endpoint_poll(ep, recs);
        if (n < 0)
            die("poll", n);
        got += (uint64_t)n;
        if (n > 0)
            idle = 0;
        else
            step_back(&idle);
    }
    om_bus_endpoint_close(ep);
}

static double ring_rate(void *ctx) {
    Flow *flow = ctx;
    uint8_t payload[PAYLOAD] = {1};
    OmBusRecord recs[BATCH];
    OmBusStream *stream = make(0, CAPACITY_WIDE, SLOT, 0);
    for (int i = 0; i < BATCH; i++)
        recs[i] = (OmBusRecord){0, 1, PAYLOAD, payload};
    atomic_store(ready, 0);
    pid_t pid = fork_peer(ring_consumer, flow);
    while (!atomic_load(ready))
        sched_yield();
    uint64_t start = bench_now_ns();
    if (flow->batch) {
        for (uint64_t seq = 1; seq <= flow->records; seq += BATCH) {
            for (uint64_t k = 0; k < BATCH; k++)
                recs[k].wal_seq = seq + k;
            om_bus_stream_publish_batch(stream, recs, BATCH);
        }
    } else {
        for (uint64_t seq = 1; seq <= flow->records; seq++)
            om_bus_stream_publish(stream, seq, 1, payload, PAYLOAD);
    }
    waitpid(pid, 0, 0);
    double rate = (double)flow->records / ((double)(bench_now_ns() - start) / 1e9) / 1e6;
    om_bus_stream_destroy(stream);
    return rate;
}

/* ---- round trips ---- */

/** The limit for a round trip: one cache line thrown back and forth. */
typedef struct PingPong {
    _Alignas(64) _Atomic uint64_t ping;
    _Alignas(64) _Atomic uint64_t pong;
} PingPong;

static PingPong *line;
static uint64_t samples[ROUND_TRIPS];
enum { SAMPLE_TRIPS = 10, WARM_UP = 10000 }; /* a sample is the mean of a few, the clock being dearer than a trip */

static void line_echo(void *ctx) {
    (void)ctx;
    for (uint64_t i = 1; i <= (uint64_t)ROUND_TRIPS; i++) {
        uint32_t spins = 0;
        while (atomic_load_explicit(&line->ping, memory_order_acquire) != i)
            if (++spins > 100000)
                sched_yield();
        atomic_store_explicit(&line->pong, i, memory_order_release);
    }
}

static size_t line_samples(void) {
    size_t n = 0;
    atomic_store(&line->ping, 0);
    atomic_store(&line->pong, 0);
    pid_t pid = fork_peer(line_echo, 0);
    uint64_t start = bench_now_ns();
    for (uint64_t i = 1; i <= (uint64_t)ROUND_TRIPS; i++) {
        uint32_t spins = 0;
        atomic_store_explicit(&line->ping, i, memory_order_release);
        while (atomic_load_explicit(&line->pong, memory_order_acquire) != i)
            if (++spins > 100000)
                sched_yield();
        if (i % SAMPLE_TRIPS == 0) {
            uint64_t now = bench_now_ns();
            if (i > WARM_UP)
                samples[n++] = (now - start) / SAMPLE_TRIPS;
            start = now;
        }
    }
    waitpid(pid, 0, 0);
    return n;
}

static void wait_record(OmBusEndpoint *ep, OmBusRecord *rec) {
    int rc;
    uint32_t spins = 0;
    while ((rc = om_bus_endpoint_poll(ep, rec)) == 0)
        if (++spins > 100000)
            sched_yield();
    if (rc < 0)
        die("poll", rc);
}

static void ring_echo(void *ctx) {
    (void)ctx;
    OmBusStream *back = make(1, CAPACITY, SLOT_ALIGNED, 0);
    OmBusEndpoint *ep = join(0, false);
    OmBusRecord rec;
    atomic_store(ready, 1);
    for (uint64_t i = 1; i <= (uint64_t)ROUND_TRIPS; i++) {
        wait_record(ep, &rec);
        om_bus_stream_publish(back, rec.wal_seq, rec.wal_type, rec.payload, rec.payload_len);
    }
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(back);
}

static size_t ring_samples(uint16_t size) {
    size_t n = 0;
    uint8_t payload[PAYLOAD] = {1};
    OmBusRecord rec;
    atomic_store(ready, 0);
    OmBusStream *out = make(0, CAPACITY, SLOT_ALIGNED, 0);
    pid_t pid = fork_peer(ring_echo, 0);
    while (!atomic_load(ready))
        sched_yield();
    OmBusEndpoint *ep = join(1, false);
    uint64_t start = bench_now_ns();
    for (uint64_t i = 1; i <= (uint64_t)ROUND_TRIPS; i++) {
        om_bus_stream_publish(out, i, 1, payload, size);
        wait_record(ep, &rec);
        if (i % SAMPLE_TRIPS == 0) {
            uint64_t now = bench_now_ns();
            if (i > WARM_UP)
                samples[n++] = (now - start) / SAMPLE_TRIPS;
            start = now;
        }
    }
    om_bus_endpoint_close(ep);
    waitpid(pid, 0, 0);
    om_bus_stream_destroy(out);
    return n;
}

static void *share(size_t size) {
    void *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        die("mmap", 0);
    return p;
}

int main(int argc, char **argv) {
    bench_pin(0);
    for (int i = 0; i < 2; i++)
        snprintf(ring_name[i], sizeof ring_name[i], "ombus-bench-%d-%d", (int)getpid(), i);
    ready = share(sizeof *ready);
    bare = share(sizeof *bare);
    line = share(sizeof *line);
    bench_begin(argc, argv,
                "ring: 56-byte payloads, slots of 80 bytes (128 for round trips), 4096 of them (65536 for throughput)");

    double copy = bench_median(memcpy_ns, 0, RUNS), crc = bench_median(crc_ns, 0, RUNS);
    measure_single("one record", 0, false, copy, "memcpy 56 B", "<= 8 ns", "<= 6 ns");
    measure_single("with crc", OM_BUS_FLAG_CRC, false, copy + crc, "memcpy + crc", "<= 15 ns", 0);
    measure_single("in batches of 32", 0, true, copy, "memcpy 56 B", 0, 0);

    double bare_mrec = bench_median(bare_rate, 0, 5);
    Flow single = {.batch = false, .records = 20000000}, batch = {.batch = true, .records = 40000000};
    bench_figure("two processes, single calls", bench_median(ring_rate, &single, 5), "Mrec/s", bare_mrec,
                 "bare SPSC ring", ">= 60 Mrec/s");
    bench_figure("two processes, batches of 32", bench_median(ring_rate, &batch, 5), "Mrec/s", bare_mrec,
                 "bare SPSC ring", ">= 150 Mrec/s");

    size_t n = line_samples();
    double p50 = (double)bench_quantile(samples, n, 0.5), p99 = (double)bench_quantile(samples, n, 0.99);
    static const uint16_t sizes[] = {8, PAYLOAD};
    for (int i = 0; i < 2; i++) {
        char name[64];
        n = ring_samples(sizes[i]);
        snprintf(name, sizeof name, "round trip p50, %u B", sizes[i]);
        bench_figure(name, (double)bench_quantile(samples, n, 0.5), "ns", p50, "cache-line ping-pong", "<= 1.5 x");
        snprintf(name, sizeof name, "round trip p99, %u B", sizes[i]);
        bench_figure(name, (double)bench_quantile(samples, n, 0.99), "ns", p99, "cache-line ping-pong", 0);
    }
    bench_end();
    return 0;
}
