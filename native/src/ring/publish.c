/* The producer's hot path. */

#include <stdlib.h>
#include <string.h>

#include "core/backoff.h"
#include "core/clock.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "ring/stream.h"

enum { LIVENESS_CHECK_NS = OMI_NS_PER_MS, SLEEP_SLICE_NS = 10 * OMI_NS_PER_MS };

/** Look at the consumers again; true when there is room at `head`. */
static bool has_room(OmBusStream *s, uint64_t head) {
    s->min_tail = omi_consumers_slowest(&s->ring, head, s->staleness_ns);
    atomic_store_explicit(&s->ring.header->min_tail, s->min_tail, memory_order_relaxed);
    return head - s->min_tail < s->ring.capacity;
}

/** Wait until the slowest live consumer has freed a slot. OM_ERR_BUS_TIMEOUT at deadline_ns; 0 = do not wait. */
static OMI_COLD int wait_for_room(OmBusStream *s, uint64_t head, uint64_t deadline_ns) {
    bool told = false;
    uint32_t turns = deadline_ns == 0 ? OMI_BACKOFF_SPINS : 0;
    while (!has_room(s, head)) {
        OmiBackoffPhase phase = omi_backoff(&turns);
        if (phase == OMI_BACKOFF_SPIN)
            continue;
        uint64_t now_ns = omi_monotonic_ns();
        if (now_ns >= s->next_liveness_check_ns) {
            s->next_liveness_check_ns = now_ns + LIVENESS_CHECK_NS;
            omi_consumers_unblock(&s->ring, head, s->staleness_ns, s->watch, now_ns);
            if (has_room(s, head))
                break;
        }
        if (now_ns >= deadline_ns)
            return omi_fail(OM_ERR_BUS_TIMEOUT, "ring '%s' is full: all %u slots wait for a consumer at position %llu",
                            s->ring.name, s->ring.capacity, (unsigned long long)s->min_tail);
        if (!told && s->backpressure_cb) {
            s->backpressure_cb(head, s->min_tail, s->backpressure_ctx);
            told = true;
        }
        if (phase == OMI_BACKOFF_SLEEP) {
            /* In slices: a consumer's death rings no bell. */
            uint64_t left_ns = deadline_ns - now_ns;
            uint32_t rings = omi_doorbell_arm(&s->ring.extension->room);
            if (!has_room(s, head))
                omi_doorbell_sleep(&s->ring.extension->room, rings, left_ns < SLEEP_SLICE_NS ? (int64_t)left_ns : SLEEP_SLICE_NS);
        }
    }
    return 0;
}

static OMI_COLD int refuse_handle(const OmBusStream *s) {
    if (!s)
        return omi_fail(OM_ERR_BUS_INIT, "publish: NULL stream");
    if (s->fork_count != omi_fork_count)
        return omi_fail(OM_ERR_BUS_FORKED, "ring '%s' was created before fork(): the parent publishes to it",
                        s->ring.name);
    return omi_fail(OM_ERR_BUS_EPOCH_CHANGED, "ring '%s' was taken over by a newer producer (pid %u)", s->ring.name,
                    omi_ring_producer(&s->ring).pid);
}

static OMI_COLD int refuse_payload(const OmBusStream *s, const void *payload, size_t len) {
    if (!payload)
        return omi_fail(OM_ERR_BUS_INIT, "publish: NULL payload of %zu bytes", len);
    return omi_fail(OM_ERR_BUS_RECORD_TOO_LARGE, "payload of %zu bytes, ring '%s' takes %u (slot_size %u - 24)", len,
                    s->ring.name, s->ring.max_payload, s->ring.slot_size);
}

static inline bool is_usable(const OmBusStream *s) {
    return OMI_LIKELY(s && s->fork_count == omi_fork_count &&
                      atomic_load_explicit(&s->ring.extension->epoch, memory_order_relaxed) == s->epoch);
}

static inline bool fits(const OmBusStream *s, const void *payload, size_t len) {
    return OMI_LIKELY(len <= s->ring.max_payload && (payload || len == 0));
}

static inline void write_slot(const OmiRing *ring, uint64_t position, uint64_t wal_seq, uint8_t wal_type,
                              const void *payload, uint16_t len) {
    OmBusSlotHeader *slot = omi_ring_slot(ring, position);
    /* First un-publish: a consumer that was passed over may be reading here. The fence keeps what follows after it. */
    atomic_store_explicit(&slot->seq, OMI_SLOT_WRITING(position), memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    slot->wal_seq = wal_seq;
    slot->wal_type = wal_type;
    slot->reserved = 0;
    slot->payload_len = len;
    if (len)
        memcpy(slot + 1, payload, len);
    slot->crc32 = ring->flags & OM_BUS_FLAG_CRC ? omi_crc32c(payload, len) : 0;
    /* Release: whoever sees this seq sees the record. */
    atomic_store_explicit(&slot->seq, position + 1, memory_order_release);
}

/** Make `count` written records known: to inspection and joining consumers by head, to sleepers by the bell. */
static inline void advance(OmBusStream *s, uint64_t head, uint64_t count) {
    atomic_store_explicit(&s->ring.header->head, head + count, memory_order_release);
    s->records_published += count;
    omi_doorbell_notify(&s->ring.extension->data);
}

static inline uint64_t load_head(const OmBusStream *s) {
    return atomic_load_explicit(&s->ring.header->head, memory_order_relaxed);
}

static inline int publish_one(OmBusStream *s, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint16_t len,
                              int64_t timeout_ns) {
    if (!is_usable(s))
        return refuse_handle(s);
    if (!fits(s, payload, len))
        return refuse_payload(s, payload, len);
    uint64_t head = load_head(s);
    if (OMI_UNLIKELY(head - s->min_tail >= s->ring.capacity)) {
        int rc = wait_for_room(s, head, timeout_ns ? omi_deadline_ns(timeout_ns) : 0);
        if (rc != 0)
            return rc;
    }
    write_slot(&s->ring, head, wal_seq, wal_type, payload, len);
    advance(s, head, 1);
    return 0;
}

int om_bus_stream_publish(OmBusStream *s, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint16_t len) {
    return publish_one(s, wal_seq, wal_type, payload, len, OM_BUS_FOREVER);
}

int om_bus_stream_publish_timed(OmBusStream *s, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint16_t len,
                                int64_t timeout_ns) {
    return publish_one(s, wal_seq, wal_type, payload, len, timeout_ns);
}

/** How many of `wanted` records fit at `head` now; waits for at least one. Negative: an error. */
static inline int64_t reserve(OmBusStream *s, uint64_t head, uint64_t wanted, uint64_t deadline_ns) {
    /* Ask the consumers again as soon as the batch does not fit whole: less often than once per ring, and the batch
     * stays together. */
    if (OMI_UNLIKELY(head - s->min_tail + wanted > s->ring.capacity) && !has_room(s, head)) {
        int rc = wait_for_room(s, head, deadline_ns);
        if (rc != 0)
            return rc;
    }
    uint64_t room = s->ring.capacity - (head - s->min_tail);
    return (int64_t)(room < wanted ? room : wanted);
}

int64_t om_bus_stream_publish_batch_timed(OmBusStream *s, const OmBusRecord *recs, uint32_t count, int64_t timeout_ns) {
    if (!is_usable(s))
        return refuse_handle(s);
    if (!recs && count)
        return omi_fail(OM_ERR_BUS_INIT, "publish_batch: NULL records");
    for (uint32_t i = 0; i < count; i++)
        if (!fits(s, recs[i].payload, recs[i].payload_len))
            return refuse_payload(s, recs[i].payload, recs[i].payload_len);
    uint64_t deadline_ns = timeout_ns > 0 ? omi_deadline_ns(timeout_ns) : timeout_ns < 0 ? UINT64_MAX : 0;
    uint32_t done = 0;
    while (done < count) {
        uint64_t head = load_head(s);
        int64_t n = reserve(s, head, count - done, deadline_ns);
        if (n < 0)
            return n == OM_ERR_BUS_TIMEOUT ? done : n;
        for (int64_t i = 0; i < n; i++, done++)
            write_slot(&s->ring, head + (uint64_t)i, recs[done].wal_seq, recs[done].wal_type, recs[done].payload,
                       recs[done].payload_len);
        advance(s, head, (uint64_t)n);
    }
    return done;
}

int om_bus_stream_publish_batch(OmBusStream *s, const OmBusRecord *recs, uint32_t count) {
    int64_t n = om_bus_stream_publish_batch_timed(s, recs, count, OM_BUS_FOREVER);
    return n < 0 ? (int)n : 0;
}

int64_t om_bus_stream_publish_array(OmBusStream *s, uint64_t first_seq, uint8_t wal_type, const void *items,
                                    uint16_t item_size, size_t stride, size_t count, int64_t timeout_ns) {
    if (!is_usable(s))
        return refuse_handle(s);
    if (count && !fits(s, items, item_size))
        return refuse_payload(s, items, item_size);
    uint64_t deadline_ns = timeout_ns > 0 ? omi_deadline_ns(timeout_ns) : timeout_ns < 0 ? UINT64_MAX : 0;
    const uint8_t *item = items;
    size_t done = 0;
    while (done < count) {
        uint64_t head = load_head(s);
        int64_t n = reserve(s, head, count - done, deadline_ns);
        if (n < 0)
            return n == OM_ERR_BUS_TIMEOUT ? (int64_t)done : n;
        for (int64_t i = 0; i < n; i++, done++, item += stride)
            write_slot(&s->ring, head + (uint64_t)i, first_seq + done, wal_type, item, item_size);
        advance(s, head, (uint64_t)n);
    }
    return (int64_t)done;
}
