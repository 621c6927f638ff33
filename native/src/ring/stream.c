/* The producer's handle: becoming the producer of a ring, and leaving it. The hot path is in publish.c. */

#include "ring/stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "core/copy.h"
#include "core/error.h"
#include "ring/create.h"
#include "ring/ownership.h"

/** Announce this producer: from here on consumers see the new epoch. */
static void begin_epoch(OmBusStream *s) {
    OmiRing *ring = &s->ring;
    OmiRingExtension *x = ring->extension;
    uint64_t last = atomic_load(&ring->header->producer_epoch);
    do { /* the clock restarts with the machine, the ring does not outlive it; still never repeat an epoch */
        s->epoch = omi_monotonic_ns();
        if (s->epoch <= last)
            s->epoch = last + 1;
    } while (!atomic_compare_exchange_strong(&ring->header->producer_epoch, &last, s->epoch));
    atomic_store(&x->features, omi_doorbell_register_notifier() ? OMI_RING_FEATURE_BARRIER : 0);
    uint64_t head = atomic_load(&ring->header->head);
    atomic_store(&x->epoch_head, head);
    atomic_store(&x->epoch, s->epoch);
    s->min_tail = omi_consumers_slowest(ring, head, 0);
    /* Last: a reader that sees the magic sees all of the above. */
    __atomic_store_n(&ring->header->magic, OM_BUS_SHM_MAGIC, __ATOMIC_RELEASE);
    omi_doorbell_ring(&x->data);
}

static void free_stream(OmBusStream *s) {
    free(s->watch);
    free(s);
}

int om_bus_stream_create(OmBusStream **out, const OmBusStreamConfig *config) {
    OmiRingShape shape;
    if (!out || !config)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_stream_create: NULL argument");
    *out = 0;
    int rc = omi_ring_shape(&shape, config);
    if (rc != 0)
        return rc;
    OmBusStream *s;
    if (posix_memalign((void **)&s, OMI_CACHE_LINE, sizeof *s) != 0)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "no memory for a stream handle");
    memset(s, 0, sizeof *s);
    s->watch = calloc(shape.max_consumers, sizeof *s->watch);
    OmiProcess self = omi_process_self();
    rc = s->watch ? omi_shm_name(s->ring.name, config->stream_name)
                  : omi_fail(OM_ERR_BUS_NO_MEMORY, "no memory for a stream handle");
    if (rc == 0)
        rc = omi_ring_create(&s->ring, &shape, &self);
    if (rc != 0) {
        free_stream(s);
        return rc;
    }
    omi_process_watch_forks();
    s->fork_count = omi_fork_count;
    s->plain_max = s->ring.max_payload < OMI_COPY_SMALL_MAX ? s->ring.max_payload : OMI_COPY_SMALL_MAX;
    if (shape.flags & OM_BUS_FLAG_CRC)
        s->plain_max = 0;
    s->staleness_ns = config->staleness_ns;
    s->backpressure_cb = config->backpressure_cb;
    s->backpressure_ctx = config->backpressure_ctx;
    begin_epoch(s);
    *out = s;
    return 0;
}

/** Whether this handle still is the ring's producer: not a forked copy, not superseded by a newer one. */
static bool is_producer(const OmBusStream *s) {
    return s->fork_count == omi_fork_count && atomic_load(&s->ring.extension->epoch) == s->epoch;
}

void om_bus_stream_detach(OmBusStream *s) {
    if (!s)
        return;
    if (is_producer(s))
        omi_ring_disown(&s->ring);
    omi_ring_close(&s->ring);
    free_stream(s);
}

void om_bus_stream_destroy(OmBusStream *s) {
    if (!s)
        return;
    if (is_producer(s)) {
        if (omi_shm_is_named(&s->ring.shm, s->ring.name))
            shm_unlink(s->ring.name);
        omi_ring_retire(&s->ring); /* name first: who reopens must not find it again */
        omi_ring_disown(&s->ring);
    }
    omi_ring_close(&s->ring);
    free_stream(s);
}

void om_bus_stream_stats(const OmBusStream *s, OmBusStreamStats *out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!s)
        return;
    out->records_published = __atomic_load_n(&s->records_published, __ATOMIC_RELAXED);
    out->head = atomic_load_explicit(&s->ring.header->head, memory_order_acquire);
    out->min_tail = omi_consumers_slowest(&s->ring, out->head, s->staleness_ns);
}
