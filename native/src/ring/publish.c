/* The producer's hot path. */

#include <stdlib.h>
#include <string.h>

#include "core/backoff.h"
#include "core/clock.h"
#include "core/copy.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "ring/ownership.h"
#include "ring/stream.h"

enum { BURST_PART = 8, LIVENESS_CHECK_NS = OMI_NS_PER_MS, SLEEP_SLICE_NS = 10 * OMI_NS_PER_MS };

static OMI_COLD int refuse_handle(const OmBusStream *s) {
    if (!s)
        return omi_fail(OM_ERR_BUS_INIT, "publish: NULL stream");
    if (s->fork_count != omi_fork_count)
        return omi_fail(OM_ERR_BUS_FORKED, "ring '%s' was created before fork(): the parent publishes to it",
                        s->ring.name);
    if (atomic_load(&s->ring.extension->retired))
        return omi_fail(OM_ERR_BUS_RING_GONE, "ring '%s' was removed: nobody can open it any more", s->ring.name);
    return omi_fail(OM_ERR_BUS_EPOCH_CHANGED, "ring '%s' was taken over by a newer producer (pid %u)", s->ring.name,
                    omi_ring_owner(&s->ring).pid);
}

static inline bool is_usable(const OmBusStream *s) {
    return OMI_LIKELY(s && s->fork_count == omi_fork_count &&
                      atomic_load_explicit(&s->ring.extension->epoch, memory_order_relaxed) == s->epoch);
}

/** As omi_deadline_ns(), with 0 for "do not wait", which needs no clock. */
static uint64_t deadline(int64_t timeout_ns) {
    return timeout_ns == 0 ? 0 : omi_deadline_ns(timeout_ns);
}

/** Look at the consumers again; true when at least `wanted` slots are free at `head`. */
static bool has_room(OmBusStream *s, uint64_t head, uint64_t wanted) {
    s->min_tail = omi_consumers_slowest(&s->ring, head, s->staleness_ns);
    atomic_store_explicit(&s->ring.header->min_tail, s->min_tail, memory_order_relaxed);
    return head - s->min_tail + wanted <= s->ring.capacity;
}

/** Wait until the slowest live consumer has freed a slot. OM_ERR_BUS_TIMEOUT at deadline_ns; 0 = do not wait. */
static OMI_COLD int wait_for_room(OmBusStream *s, uint64_t head, uint64_t deadline_ns) {
    bool told = false;
    uint32_t turns = deadline_ns == 0 ? OMI_BACKOFF_SPINS : 0;
    /* While spinning is cheap, wait for a good part of the ring: going on at the first free slot would have both sides
     * fight for the consumer's cache line on every record. Consumers have the rest of the ring to read meanwhile. */
    uint64_t wanted = s->ring.capacity / BURST_PART + 1;
    while (!has_room(s, head, turns < OMI_BACKOFF_SPINS ? wanted : 1)) {
        OmiBackoffPhase phase = omi_backoff(&turns);
        if (phase == OMI_BACKOFF_SPIN)
            continue;
        uint64_t now_ns = omi_monotonic_ns();
        if (now_ns >= s->next_liveness_check_ns) {
            s->next_liveness_check_ns = now_ns + LIVENESS_CHECK_NS;
            omi_consumers_unblock(&s->ring, head, s->staleness_ns, s->watch, now_ns);
            if (has_room(s, head, 1))
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
            if (!has_room(s, head, 1))
                omi_doorbell_sleep(&s->ring.extension->room, rings,
                                   left_ns < SLEEP_SLICE_NS ? (int64_t)left_ns : SLEEP_SLICE_NS);
        }
        if (!is_usable(s)) /* superseded while we waited: `head` is no longer ours to write */
            return refuse_handle(s);
    }
    return is_usable(s) ? 0 : refuse_handle(s);
}

static OMI_COLD int refuse_payload(const OmBusStream *s, const void *payload, size_t len) {
    if (!payload)
        return omi_fail(OM_ERR_BUS_INIT, "publish: NULL payload of %zu bytes", len);
    return omi_fail(OM_ERR_BUS_RECORD_TOO_LARGE, "payload of %zu bytes, ring '%s' takes %u (slot_size %u - 24)", len,
                    s->ring.name, s->ring.max_payload, s->ring.slot_size);
}

static inline bool fits(const OmBusStream *s, const void *payload, size_t len) {
    return OMI_LIKELY(len <= s->ring.max_payload && (payload || len == 0));
}

/** Start (over)writing the slot of `position`; all but the payload. */
static inline OmBusSlotHeader *begin_slot(const OmiRing *ring, uint64_t position, uint64_t wal_seq, uint8_t wal_type,
                                          uint16_t len) {
    OmBusSlotHeader *slot = omi_ring_slot(ring, position);
    /* First un-publish: a consumer that was passed over may be reading here. The fence keeps what follows after it. */
    atomic_store_explicit(&slot->seq, OMI_SLOT_WRITING(position), memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    slot->wal_seq = wal_seq;
    slot->wal_type = wal_type;
    slot->reserved = 0;
    slot->payload_len = len;
    return slot;
}

static inline void commit_slot(OmBusSlotHeader *slot, uint64_t position, uint32_t crc) {
    slot->crc32 = crc;
    /* Release: whoever sees this seq sees the record. */
    atomic_store_explicit(&slot->seq, position + 1, memory_order_release);
}

static inline void write_slot(const OmiRing *ring, uint64_t position, uint64_t wal_seq, uint8_t wal_type,
                              const void *payload, uint16_t len) {
    OmBusSlotHeader *slot = begin_slot(ring, position, wal_seq, wal_type, len);
    if (len)
        omi_copy(slot + 1, payload, len);
    commit_slot(slot, position, ring->flags & OM_BUS_FLAG_CRC ? omi_crc32c(payload, len) : 0);
}

/** Make `count` written records known: to inspection and joining consumers by head, to sleepers by the bell. */
static inline void advance(OmBusStream *s, uint64_t head, uint64_t count) {
    atomic_store_explicit(&s->ring.header->head, head + count, memory_order_release);
    __atomic_store_n(&s->records_published, s->records_published + count, __ATOMIC_RELAXED);
    omi_doorbell_notify(&s->ring.extension->data);
}

static inline uint64_t load_head(const OmBusStream *s) {
    return atomic_load_explicit(&s->ring.header->head, memory_order_relaxed);
}

/** publish() in full: CRC, large payloads, waiting for room, and everything odd. */
static __attribute__((noinline)) int publish_general(OmBusStream *s, uint64_t wal_seq, uint8_t wal_type,
                                                     const void *payload, uint16_t len, int64_t timeout_ns) {
    if (!is_usable(s))
        return refuse_handle(s);
    if (!fits(s, payload, len))
        return refuse_payload(s, payload, len);
    uint64_t head = load_head(s);
    if (OMI_UNLIKELY(head - s->min_tail >= s->ring.capacity)) {
        int rc = wait_for_room(s, head, deadline(timeout_ns));
        if (rc != 0)
            return rc;
    }
    write_slot(&s->ring, head, wal_seq, wal_type, payload, len);
    advance(s, head, 1);
    return 0;
}

static OMI_COLD int ring_for_data(OmBusStream *s) {
    omi_doorbell_ring(&s->ring.extension->data);
    return 0;
}

/*
 * The usual record only: small, no CRC, and there is room. All else goes to publish_general(). Every call in here is a
 * tail call, so that the compiler saves no registers.
 */
int om_bus_stream_publish(OmBusStream *s, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint16_t len) {
    if (OMI_UNLIKELY(!is_usable(s) || !payload || len > s->plain_max))
        return publish_general(s, wal_seq, wal_type, payload, len, OM_BUS_FOREVER);
    uint64_t head = load_head(s);
    if (OMI_UNLIKELY(head - s->min_tail >= s->ring.capacity))
        return publish_general(s, wal_seq, wal_type, payload, len, OM_BUS_FOREVER);
    OmBusSlotHeader *slot = begin_slot(&s->ring, head, wal_seq, wal_type, len);
    omi_copy_small(slot + 1, payload, len);
    commit_slot(slot, head, 0);
    atomic_store_explicit(&s->ring.header->head, head + 1, memory_order_release);
    __atomic_store_n(&s->records_published, s->records_published + 1, __ATOMIC_RELAXED);
    if (OMI_UNLIKELY(atomic_load_explicit(&s->ring.extension->data.sleepers, memory_order_relaxed)))
        return ring_for_data(s);
    return 0;
}

int om_bus_stream_publish_timed(OmBusStream *s, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint16_t len,
                                int64_t timeout_ns) {
    return publish_general(s, wal_seq, wal_type, payload, len, timeout_ns);
}

/** How many of `wanted` records fit at `head` now; waits for at least one. Negative: an error. */
static inline int64_t reserve(OmBusStream *s, uint64_t head, uint64_t wanted, uint64_t deadline_ns) {
    if (OMI_UNLIKELY(head - s->min_tail + wanted > s->ring.capacity)) {
        int rc = wait_for_room(s, head, deadline_ns);
        if (rc != 0)
            return rc;
    }
    uint64_t room = s->ring.capacity - (head - s->min_tail);
    return (int64_t)(room < wanted ? room : wanted);
}

int64_t om_bus_stream_wait_room(OmBusStream *s, uint64_t wanted, int64_t timeout_ns) {
    if (!is_usable(s))
        return refuse_handle(s);
    wanted = wanted < s->ring.capacity ? wanted : s->ring.capacity;
    return wanted == 0 ? 0 : reserve(s, load_head(s), wanted, deadline(timeout_ns));
}

int64_t om_bus_stream_publish_batch_timed(OmBusStream *s, const OmBusRecord *recs, uint32_t count, int64_t timeout_ns) {
    if (!is_usable(s))
        return refuse_handle(s);
    if (!recs && count)
        return omi_fail(OM_ERR_BUS_INIT, "publish_batch: NULL records");
    for (uint32_t i = 0; i < count; i++)
        if (!fits(s, recs[i].payload, recs[i].payload_len))
            return refuse_payload(s, recs[i].payload, recs[i].payload_len);
    uint64_t deadline_ns = deadline(timeout_ns);
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
    uint64_t deadline_ns = deadline(timeout_ns);
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
