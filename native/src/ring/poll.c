/* The consumer's hot path. */

#include <string.h>

#include "core/clock.h"
#include "core/copy.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "ring/endpoint.h"

static OMI_COLD int refuse(const OmBusEndpoint *ep, const void *out) {
    if (!ep || !out)
        return omi_fail(OM_ERR_BUS_INIT, "poll: NULL argument");
    if (ep->fork_count != omi_fork_count)
        return omi_fail(OM_ERR_BUS_FORKED, "ring '%s' was opened before fork(): the parent reads it", ep->ring.name);
    return omi_fail(OM_ERR_BUS_INIT, "ring '%s': %u peeked records are not released yet", ep->ring.name, ep->held);
}

static inline bool is_usable(const OmBusEndpoint *ep, const void *out) {
    return OMI_LIKELY(ep && out && ep->fork_count == omi_fork_count && ep->held == 0);
}

static inline bool is_published(const OmBusSlotHeader *slot, uint64_t position) {
    /* Acquire: what the producer wrote before its release store of seq is visible after this. */
    return atomic_load_explicit(&slot->seq, memory_order_acquire) == position + 1;
}

/** The usual case: the record is there, the producer waits for us and it is the producer we know. */
static inline bool is_next_ready(const OmBusEndpoint *ep, const OmBusSlotHeader *slot, uint64_t position) {
    return OMI_LIKELY(is_published(slot, position)) &&
           OMI_LIKELY(atomic_load_explicit(&ep->slot->claim, memory_order_relaxed) == ep->claim) &&
           OMI_LIKELY(atomic_load_explicit(ep->epoch_word, memory_order_relaxed) == ep->epoch);
}

/** Whether there is a record at our position; 1, 0 or an error to report instead. */
static inline int look(OmBusEndpoint *ep, const OmBusSlotHeader *slot) {
    if (is_next_ready(ep, slot, ep->position))
        return 1;
    int rc = omi_endpoint_attend(ep);
    return rc != 0 ? rc : is_published(slot, ep->position);
}

/** What poll() would report about wal_seq after last_seq. */
static inline int judge(const OmBusEndpoint *ep, bool fresh, uint64_t last_seq, uint64_t wal_seq) {
    if (OMI_LIKELY(wal_seq == last_seq + 1) || fresh)
        return 1;
    if (wal_seq > last_seq)
        return OM_ERR_BUS_GAP_DETECTED;
    return ep->ring.flags & OM_BUS_FLAG_REJECT_REORDER ? OM_ERR_BUS_REORDER_DETECTED : 1;
}

static OMI_COLD int report(const OmBusEndpoint *ep, int rc, uint64_t wal_seq) {
    return omi_fail(rc, "ring '%s': expected wal_seq %llu, got %llu", ep->ring.name,
                    (unsigned long long)ep->last_seq + 1, (unsigned long long)wal_seq);
}

static OMI_COLD int report_damage(const OmBusEndpoint *ep, int rc, uint64_t wal_seq, uint32_t len) {
    return omi_fail(rc, "ring '%s': damaged record at position %llu (wal_seq %llu, %u bytes), skipped", ep->ring.name,
                    (unsigned long long)ep->position, (unsigned long long)wal_seq, len);
}

/** Let the producer have the slots before our position. */
static inline void publish_position(OmBusEndpoint *ep) {
    atomic_store_explicit(&ep->slot->wal_seq, ep->last_seq, memory_order_relaxed);
    /* Release: our reads of the slots are over before the producer may write there. */
    atomic_store_explicit(&ep->slot->tail, ep->position, memory_order_release);
}

/** Step over `count` records up to wal_seq. */
static inline void consume(OmBusEndpoint *ep, uint64_t count, uint64_t wal_seq) {
    ep->position += count;
    __atomic_store_n(&ep->last_seq, wal_seq, __ATOMIC_RELAXED); /* for om_bus_endpoint_wal_seq() from any thread */
    if (OMI_UNLIKELY(ep->fresh))
        ep->fresh = false;
    publish_position(ep);
    if (OMI_LIKELY(ep->ring.extension != 0))
        omi_doorbell_notify(&ep->ring.extension->room);
    else /* a version-1 producer judges us by this */
        atomic_store_explicit(&ep->slot->last_poll_ns, omi_monotonic_ns(), memory_order_relaxed);
}

/** Read a slot's header into rec; 1, or an error when the payload cannot be what was published. */
static inline int read_slot(const OmBusEndpoint *ep, const OmBusSlotHeader *slot, OmBusRecord *rec) {
    rec->wal_seq = slot->wal_seq;
    rec->wal_type = slot->wal_type;
    rec->payload_len = slot->payload_len;
    rec->payload = slot + 1;
    return OMI_LIKELY(rec->payload_len <= ep->ring.max_payload) ? 1 : OM_ERR_BUS_CORRUPT;
}

static inline bool is_intact(const OmBusEndpoint *ep, const OmBusSlotHeader *slot, const void *payload, uint32_t len) {
    return !(ep->ring.flags & OM_BUS_FLAG_CRC) || OMI_LIKELY(omi_crc32c(payload, len) == slot->crc32);
}

/** After copying out: a slot that the producer took back meanwhile gave us nonsense. */
static inline bool still_published(const OmBusSlotHeader *slot, uint64_t position) {
    atomic_thread_fence(memory_order_acquire);
    return OMI_LIKELY(atomic_load_explicit(&slot->seq, memory_order_relaxed) == position + 1);
}

/** poll() in full: CRC, zero copy, large payloads, and everything odd. */
static __attribute__((noinline)) int poll_general(OmBusEndpoint *ep, OmBusRecord *rec) {
    const OmBusSlotHeader *slot = omi_ring_slot(&ep->ring, ep->position);
    int rc = look(ep, slot);
    if (rc != 1)
        return rc;
    rc = read_slot(ep, slot, rec);
    if (OMI_LIKELY(rc == 1)) {
        if (ep->copy) {
            omi_copy(ep->copy, slot + 1, rec->payload_len);
            rec->payload = ep->copy;
        }
        if (!is_intact(ep, slot, rec->payload, rec->payload_len))
            rc = OM_ERR_BUS_CRC_MISMATCH;
    }
    if (!still_published(slot, ep->position))
        return omi_endpoint_attend(ep);
    if (OMI_UNLIKELY(rc != 1)) {
        report_damage(ep, rc, rec->wal_seq, rec->payload_len);
    } else {
        rc = judge(ep, ep->fresh, ep->last_seq, rec->wal_seq);
        if (OMI_UNLIKELY(rc != 1))
            report(ep, rc, rec->wal_seq);
    }
    consume(ep, 1, rec->wal_seq);
    return rc;
}

static OMI_COLD int ring_for_room(OmBusEndpoint *ep) {
    omi_doorbell_ring(&ep->ring.extension->room);
    return 1;
}

/*
 * The usual record only: the next one in sequence, small, copied, no CRC. All else goes to poll_general(), which looks
 * again from the start. Every call in here is a tail call, so that the compiler saves no registers: that and the
 * inline copy are a third of the cost.
 */
int om_bus_endpoint_poll(OmBusEndpoint *ep, OmBusRecord *rec) {
    if (!is_usable(ep, rec))
        return refuse(ep, rec);
    uint64_t position = ep->position;
    const OmBusSlotHeader *slot = omi_ring_slot(&ep->ring, position);
    if (OMI_UNLIKELY(!is_next_ready(ep, slot, position) || !ep->plain))
        return poll_general(ep, rec);
    uint64_t wal_seq = slot->wal_seq;
    uint32_t len = slot->payload_len;
    if (OMI_UNLIKELY(wal_seq != ep->last_seq + 1 || ep->fresh || len > ep->plain_max))
        return poll_general(ep, rec);
    omi_copy_small(ep->copy, slot + 1, len);
    rec->wal_seq = wal_seq;
    rec->wal_type = slot->wal_type;
    rec->payload_len = (uint16_t)len;
    rec->payload = ep->copy;
    if (OMI_UNLIKELY(!still_published(slot, position)))
        return poll_general(ep, rec);
    ep->position = position + 1;
    __atomic_store_n(&ep->last_seq, wal_seq, __ATOMIC_RELAXED); /* for om_bus_endpoint_wal_seq() from any thread */
    publish_position(ep);
    if (OMI_UNLIKELY(atomic_load_explicit(&ep->ring.extension->room.sleepers, memory_order_relaxed)))
        return ring_for_room(ep);
    return 1;
}

/**
 * Collect up to max records from our position on without consuming them, and stop before one that needs reporting.
 * Returns how many; or, when already the first is odd, its code (with rec[0] filled).
 */
static inline int collect(OmBusEndpoint *ep, OmBusRecord *recs, size_t max) {
    uint64_t position = ep->position, last_seq = ep->last_seq;
    size_t n = 0;
    if (max > INT32_MAX)
        max = INT32_MAX;
    for (; n < max; n++, position++) {
        const OmBusSlotHeader *slot = omi_ring_slot(&ep->ring, position);
        if (n == 0) {
            int rc = look(ep, slot);
            if (rc != 1)
                return rc;
        } else if (!is_next_ready(ep, slot, position)) {
            break;
        }
        OmBusRecord *rec = &recs[n];
        int rc = read_slot(ep, slot, rec);
        if (OMI_LIKELY(rc == 1) && !is_intact(ep, slot, rec->payload, rec->payload_len))
            rc = OM_ERR_BUS_CRC_MISMATCH;
        if (OMI_LIKELY(rc == 1))
            rc = judge(ep, ep->fresh && n == 0, last_seq, rec->wal_seq);
        if (OMI_UNLIKELY(rc != 1)) {
            if (n > 0)
                break;
            return still_published(slot, position) ? rc : omi_endpoint_attend(ep);
        }
        last_seq = rec->wal_seq;
    }
    return (int)n;
}

/** Consume the odd record that collect() stopped at, and set the text of its error. */
static OMI_COLD int consume_odd(OmBusEndpoint *ep, int rc, const OmBusRecord *rec) {
    if (rc == OM_ERR_BUS_GAP_DETECTED || rc == OM_ERR_BUS_REORDER_DETECTED)
        report(ep, rc, rec->wal_seq);
    else if (rc == OM_ERR_BUS_CRC_MISMATCH || rc == OM_ERR_BUS_CORRUPT)
        report_damage(ep, rc, rec->wal_seq, rec->payload_len);
    else
        return rc; /* not about a record: nothing to consume */
    consume(ep, 1, rec->wal_seq);
    return rc;
}

int om_bus_endpoint_poll_batch(OmBusEndpoint *ep, OmBusRecord *recs, size_t max) {
    if (!is_usable(ep, recs))
        return refuse(ep, recs);
    int n = max ? collect(ep, recs, max) : 0;
    if (OMI_LIKELY(n > 0))
        consume(ep, (uint64_t)n, recs[n - 1].wal_seq);
    else if (n < 0)
        return consume_odd(ep, n, &recs[0]);
    return n;
}

int om_bus_endpoint_peek_batch(OmBusEndpoint *ep, OmBusRecord *recs, size_t max) {
    if (!is_usable(ep, recs))
        return refuse(ep, recs);
    /* Not around the ring's end: what is held together lies together, evenly spaced. */
    size_t until_end = ep->ring.capacity - (size_t)(ep->position & ep->ring.mask);
    if (max > until_end)
        max = until_end;
    int n = max ? collect(ep, recs, max) : 0;
    if (n == OM_ERR_BUS_GAP_DETECTED || n == OM_ERR_BUS_REORDER_DETECTED) {
        ep->fresh = true; /* said once; the record itself comes with the next call, held like the others */
        return report(ep, n, recs[0].wal_seq);
    }
    if (n < 0)
        return consume_odd(ep, n, &recs[0]);
    ep->held = (uint32_t)n;
    return n;
}

int om_bus_endpoint_release(OmBusEndpoint *ep, size_t count) {
    if (!ep || ep->fork_count != omi_fork_count || count > ep->held)
        return ep && ep->fork_count == omi_fork_count
                   ? omi_fail(OM_ERR_BUS_INIT, "release: %zu records, only %u are held", count, ep->held)
                   : refuse(ep, ep);
    if (count == 0)
        return 0;
    ep->held -= (uint32_t)count;
    if (OMI_UNLIKELY(atomic_load_explicit(&ep->slot->claim, memory_order_acquire) != ep->claim)) {
        ep->held = 0;
        return omi_endpoint_attend(ep);
    }
    consume(ep, count, omi_ring_slot(&ep->ring, ep->position + count - 1)->wal_seq);
    return 0;
}

int om_bus_endpoint_poll_columns(OmBusEndpoint *ep, size_t max, uint64_t *wal_seqs, uint8_t *wal_types,
                                 uint32_t *offsets, void *payloads, size_t payloads_size) {
    if (!is_usable(ep, offsets) || !wal_seqs || !wal_types || (!payloads && payloads_size))
        return refuse(ep, wal_seqs && wal_types && payloads ? offsets : 0);
    uint64_t position = ep->position, last_seq = ep->last_seq;
    size_t n = 0, used = 0;
    int rc = 1;
    offsets[0] = 0;
    if (payloads_size > UINT32_MAX)
        payloads_size = UINT32_MAX;
    for (; n < max && n < INT32_MAX; position++) {
        const OmBusSlotHeader *slot = omi_ring_slot(&ep->ring, position);
        OmBusRecord rec;
        rc = n == 0 ? look(ep, slot) : is_next_ready(ep, slot, position);
        if (rc != 1)
            break;
        rc = read_slot(ep, slot, &rec);
        uint32_t len = rc == 1 ? rec.payload_len : 0;
        if (len > payloads_size - used) {
            rc = n == 0 ? omi_fail(OM_ERR_BUS_INIT, "poll_columns: a payload of %u bytes does not fit into %zu", len,
                                   payloads_size)
                        : 0;
            break;
        }
        uint8_t *payload = (uint8_t *)payloads + used;
        omi_copy(payload, rec.payload, len);
        if (rc == 1 && !is_intact(ep, slot, payload, len))
            rc = OM_ERR_BUS_CRC_MISMATCH;
        if (!still_published(slot, position)) {
            rc = n == 0 ? omi_endpoint_attend(ep) : 0;
            break;
        }
        if (OMI_LIKELY(rc == 1))
            rc = judge(ep, ep->fresh && n == 0, last_seq, rec.wal_seq);
        if (OMI_UNLIKELY(rc != 1)) {
            if (n > 0) /* the next call reports it */
                break;
            bool delivered = rc == OM_ERR_BUS_GAP_DETECTED || rc == OM_ERR_BUS_REORDER_DETECTED;
            wal_seqs[0] = rec.wal_seq;
            wal_types[0] = rec.wal_type;
            offsets[1] = delivered ? len : 0;
            return consume_odd(ep, rc, &rec);
        }
        wal_seqs[n] = last_seq = rec.wal_seq;
        wal_types[n] = rec.wal_type;
        used += len;
        offsets[++n] = (uint32_t)used;
    }
    if (n == 0)
        return rc == 1 ? 0 : rc;
    consume(ep, n, last_seq);
    return (int)n;
}
