/* Producer and consumers as threads of one process: what ThreadSanitizer watches. */

#include <pthread.h>
#include <sched.h>

#include "core/clock.h"
#include "ring_fixture.h"

enum { RECORDS = 300000 };

typedef struct Reader {
    const char *name;
    int mode; /* 0 poll, 1 poll_batch, 2 columns, 3 poll zero copy */
    _Atomic int *ready;
    int result;
} Reader;

static int read_some(Reader *reader, OmBusEndpoint *ep, uint64_t *next) {
    OmBusRecord recs[16];
    uint64_t seqs[16], values[16];
    uint8_t types[16];
    uint32_t offsets[17];
    int n = 0;
    if (reader->mode == 2) {
        n = om_bus_endpoint_poll_columns(ep, 16, seqs, types, offsets, values, sizeof values);
        for (int i = 0; i < n; i++)
            if (seqs[i] != *next + (uint64_t)i || values[i] != seqs[i] * 3 || offsets[i + 1] != (uint32_t)(i + 1) * 8)
                return -1;
    } else {
        /* peek, not poll_batch: only held slots may be read while the producer runs on */
        n = reader->mode == 1 ? om_bus_endpoint_peek_batch(ep, recs, 16) : om_bus_endpoint_poll(ep, recs);
        for (int i = 0; i < n; i++) {
            uint64_t value;
            if (reader->mode != 3) { /* zero copy: the slot may be reused already; only the header was copied */
                memcpy(&value, recs[i].payload, 8);
                if (value != recs[i].wal_seq * 3)
                    return -1;
            }
            if (recs[i].wal_seq != *next + (uint64_t)i)
                return -1;
        }
        if (reader->mode == 1 && om_bus_endpoint_release(ep, (size_t)n) != 0)
            return -1;
    }
    if (n > 0)
        *next += (uint64_t)n;
    return n;
}

static void *read_thread(void *ctx) {
    Reader *reader = ctx;
    OmBusEndpoint *ep = open_endpoint(reader->name, OM_BUS_CONSUMER_ANY, reader->mode == 3);
    atomic_fetch_add(reader->ready, 1);
    for (uint64_t next = 1; next <= RECORDS;) {
        int n = read_some(reader, ep, &next);
        if (n < 0) {
            reader->result = n;
            break;
        }
        if (n == 0)
            om_bus_endpoint_wait(ep, OMI_NS_PER_S);
    }
    om_bus_endpoint_close(ep);
    return 0;
}

TEST(test_bus_concurrent_consumers) {
    const char *name = test_unique("threads");
    _Atomic int ready = 0;
    Reader readers[4];
    pthread_t threads[4];
    OmBusStream *stream = make_stream(name, 64, 64, 4, 0);
    for (int i = 0; i < 4; i++) {
        readers[i] = (Reader){.name = name, .mode = i, .ready = &ready};
        CHECK_EQ(pthread_create(&threads[i], 0, read_thread, &readers[i]), 0);
    }
    while (atomic_load(&ready) < 4)
        sched_yield();
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        publish_u64(stream, seq, seq * 3);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], 0);
        CHECK_EQ(readers[i].result, 0);
    }
    om_bus_stream_destroy(stream);
}

static void *churn_thread(void *ctx) {
    Reader *reader = ctx;
    while (!atomic_load(reader->ready)) {
        OmBusEndpoint *ep = open_endpoint(reader->name, OM_BUS_CONSUMER_ANY, false);
        OmBusRecord rec;
        uint64_t last = 0;
        for (int i = 0; i < 50; i++) {
            int rc = om_bus_endpoint_poll(ep, &rec);
            if (rc < 0 || (rc == 1 && last && rec.wal_seq != last + 1)) {
                reader->result = -1;
                break;
            }
            if (rc == 1)
                last = rec.wal_seq;
        }
        om_bus_endpoint_close(ep);
    }
    return 0;
}

/* A joiner must never be overrun: no gap, no stale, whatever the moment. */
TEST(consumers_that_come_and_go_see_an_unbroken_stream) {
    const char *name = test_unique("churn");
    _Atomic int stop = 0;
    Reader churners[3];
    pthread_t threads[3];
    OmBusStream *stream = make_stream(name, 8, 64, 3, 0);
    for (int i = 0; i < 3; i++) {
        churners[i] = (Reader){.name = name, .ready = &stop};
        CHECK_EQ(pthread_create(&threads[i], 0, churn_thread, &churners[i]), 0);
    }
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        publish_u64(stream, seq, seq * 3);
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], 0);
        CHECK_EQ(churners[i].result, 0);
    }
    om_bus_stream_destroy(stream);
}
