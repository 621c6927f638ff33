/* The consumer's handle: joining, leaving, waiting, and what happens beside the hot path (poll.c). */

#include "ring/endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "core/backoff.h"
#include "core/clock.h"
#include "core/copy.h"
#include "core/error.h"
#include "ring/ownership.h"

enum { HEARTBEAT_POLLS = 256, SLEEP_SLICE_NS = 100 * OMI_NS_PER_MS };

/** Take over the ring's flags: each producer sets its own. */
static void read_flags(OmBusEndpoint *ep) {
    ep->ring.flags = ep->ring.header->flags;
    ep->plain = ep->copy && ep->ring.extension && !(ep->ring.flags & OM_BUS_FLAG_CRC);
    ep->plain_max = ep->ring.max_payload < OMI_COPY_SMALL_MAX ? ep->ring.max_payload : OMI_COPY_SMALL_MAX;
}

int om_bus_endpoint_open(OmBusEndpoint **out, const OmBusEndpointConfig *config) {
    if (!out || !config)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_endpoint_open: NULL argument");
    *out = 0;
    OmBusEndpoint *ep;
    if (posix_memalign((void **)&ep, OMI_CACHE_LINE, sizeof *ep) != 0)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "no memory for an endpoint handle");
    memset(ep, 0, sizeof *ep);
    int rc = omi_ring_open(&ep->ring, config->stream_name, true);
    if (rc != 0) {
        free(ep);
        return rc;
    }
    ep->index = config->consumer_index;
    ep->fresh = true;
    if (ep->index != OM_BUS_CONSUMER_ANY && ep->index >= ep->ring.max_consumers)
        rc = omi_fail(OM_ERR_BUS_CONSUMER_ID, "ring '%s' has %u consumer slots, asked for index %u", ep->ring.name,
                      ep->ring.max_consumers, ep->index);
    else if (!config->zero_copy && !(ep->copy = malloc(ep->ring.max_payload + 1)))
        rc = omi_fail(OM_ERR_BUS_NO_MEMORY, "no memory for an endpoint handle");
    /* The epoch before the position: a restart in between is then reported, never overlooked. */
    ep->epoch_word = ep->ring.extension ? &ep->ring.extension->epoch : &ep->ring.header->producer_epoch;
    ep->epoch = atomic_load(ep->epoch_word);
    if (rc == 0)
        rc = omi_consumer_join(&ep->ring, &ep->index, &ep->claim, &ep->position);
    if (rc == 0 && ep->ring.extension && atomic_load(&ep->ring.extension->retired)) {
        omi_consumer_leave(&ep->ring, ep->index, ep->claim);
        rc = omi_fail(OM_ERR_BUS_RING_GONE, "ring '%s' was removed or replaced while it was opened", ep->ring.name);
    }
    if (rc != 0) {
        omi_ring_close(&ep->ring);
        free(ep->copy);
        free(ep);
        return rc;
    }
    ep->slot = &ep->ring.tails[ep->index];
    read_flags(ep);
    omi_doorbell_register_notifier(); /* we wake a producer that waits for room */
    omi_process_watch_forks();
    ep->fork_count = omi_fork_count;
    *out = ep;
    return 0;
}

void om_bus_endpoint_close(OmBusEndpoint *ep) {
    if (!ep)
        return;
    if (ep->fork_count == omi_fork_count) { /* in a forked child the place is the parent's */
        omi_consumer_leave(&ep->ring, ep->index, ep->claim);
        if (ep->ring.extension)
            omi_doorbell_notify(&ep->ring.extension->room);
    }
    omi_ring_close(&ep->ring);
    free(ep->copy);
    free(ep);
}

/** Whether the producer has gone past `position` (or is writing over it). */
static bool is_overrun(const OmBusEndpoint *ep) {
    uint64_t seq = atomic_load_explicit(&omi_ring_slot(&ep->ring, ep->position)->seq, memory_order_acquire);
    uint64_t in_writing = ~seq - 1; /* inverse of OMI_SLOT_WRITING */
    uint64_t ahead_published = seq - (ep->position + 1), ahead_in_writing = in_writing - ep->position;
    if (seq == 0 || ahead_published == 0 || ahead_in_writing == 0)
        return false; /* never written, just published, just being written */
    /* Either reading of the word counts when it is a later lap of this very slot. */
    return (ahead_published < UINT64_MAX / 4 && (ahead_published & ep->ring.mask) == 0) ||
           (ahead_in_writing < UINT64_MAX / 4 && (ahead_in_writing & ep->ring.mask) == 0);
}

static bool is_passed_over(const OmBusEndpoint *ep) {
    return atomic_load_explicit(&ep->slot->claim, memory_order_relaxed) != ep->claim;
}

/** Whether we have read all that was published before the producer restarted. */
static bool is_at_new_epoch(const OmBusEndpoint *ep) {
    if (atomic_load_explicit(ep->epoch_word, memory_order_acquire) == ep->epoch)
        return false;
    const OmiRingExtension *x = ep->ring.extension;
    if (!x)
        return true;
    return (int64_t)(ep->position - atomic_load_explicit(&x->epoch_head, memory_order_acquire)) >= 0;
}

static int lose_place(OmBusEndpoint *ep) {
    uint64_t left = ep->position;
    int rc = omi_consumer_rejoin(&ep->ring, ep->index, ep->claim, &ep->position);
    if (rc != 0)
        return rc;
    __atomic_store_n(&ep->missed, ep->missed + ep->position - left, __ATOMIC_RELAXED);
    ep->fresh = true; /* the loss is reported here; not once more as a gap */
    return omi_fail(OM_ERR_BUS_CONSUMER_STALE, "ring '%s': consumer %u missed %llu records after wal_seq %llu",
                    ep->ring.name, ep->index, (unsigned long long)(ep->position - left),
                    (unsigned long long)ep->last_seq);
}

static int enter_epoch(OmBusEndpoint *ep) {
    if (ep->ring.extension && atomic_load(&ep->ring.extension->retired))
        return omi_fail(OM_ERR_BUS_RING_GONE, "ring '%s' was removed, or replaced by one of another shape",
                        ep->ring.name);
    ep->epoch = atomic_load_explicit(ep->epoch_word, memory_order_acquire);
    ep->fresh = true;
    read_flags(ep);
    if (!ep->ring.extension) { /* a version-1 producer starts over at position 0 */
        ep->position = atomic_load(&ep->ring.header->head);
        atomic_store(&ep->slot->tail, ep->position);
    }
    return omi_fail(OM_ERR_BUS_EPOCH_CHANGED, "ring '%s': a new producer (pid %u) starts after wal_seq %llu",
                    ep->ring.name, omi_ring_owner(&ep->ring).pid, (unsigned long long)ep->last_seq);
}

int omi_endpoint_attend(OmBusEndpoint *ep) {
    if (is_passed_over(ep) || is_overrun(ep))
        return lose_place(ep);
    if (is_at_new_epoch(ep))
        return enter_epoch(ep);
    /* A heartbeat for version-1 producers, which judge by it; ours does not need it. */
    if (!ep->ring.extension || ++ep->idle_polls % HEARTBEAT_POLLS == 0)
        atomic_store_explicit(&ep->slot->last_poll_ns, omi_monotonic_ns(), memory_order_relaxed);
    return 0;
}

bool omi_endpoint_has_news(const OmBusEndpoint *ep) {
    uint64_t seq = atomic_load_explicit(&omi_ring_slot(&ep->ring, ep->position)->seq, memory_order_acquire);
    return seq == ep->position + 1 || is_passed_over(ep) || is_at_new_epoch(ep) || is_overrun(ep);
}

int om_bus_endpoint_wait(OmBusEndpoint *ep, int64_t timeout_ns) {
    if (!ep)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_endpoint_wait: NULL endpoint");
    if (ep->fork_count != omi_fork_count)
        return omi_fail(OM_ERR_BUS_FORKED, "ring '%s' was opened before fork()", ep->ring.name);
    OmiRingExtension *x = ep->ring.extension;
    bool blind = !x || !(atomic_load_explicit(&x->features, memory_order_relaxed) & OMI_RING_FEATURE_BARRIER);
    const uint64_t slice_ns = blind ? OMI_DOORBELL_BLIND_NS : SLEEP_SLICE_NS;
    OmiDoorbell nobodys_bell = {0}; /* a version-1 producer rings none: sleep the slice out */
    OmiDoorbell *bell = x ? &x->data : &nobodys_bell;
    uint64_t deadline_ns = 0;
    uint32_t turns = 0;
    while (!omi_endpoint_has_news(ep)) {
        if (timeout_ns == 0)
            return 0;
        if (deadline_ns == 0)
            deadline_ns = omi_deadline_ns(timeout_ns);
        OmiBackoffPhase phase = omi_backoff(&turns);
        if (phase == OMI_BACKOFF_SPIN)
            continue;
        uint64_t now_ns = omi_monotonic_ns();
        if (now_ns >= deadline_ns)
            return 0;
        if (phase != OMI_BACKOFF_SLEEP)
            continue;
        atomic_store_explicit(&ep->slot->last_poll_ns, now_ns, memory_order_relaxed);
        uint64_t left_ns = deadline_ns - now_ns;
        uint32_t rings = omi_doorbell_arm(bell);
        if (!omi_endpoint_has_news(ep))
            omi_doorbell_sleep(bell, rings, (int64_t)(left_ns < slice_ns ? left_ns : slice_ns));
    }
    return 1;
}

uint64_t om_bus_endpoint_wal_seq(const OmBusEndpoint *ep) {
    return ep ? __atomic_load_n(&ep->last_seq, __ATOMIC_RELAXED) : 0;
}

uint32_t om_bus_endpoint_index(const OmBusEndpoint *ep) {
    return ep ? ep->index : OM_BUS_CONSUMER_ANY;
}

uint32_t om_bus_endpoint_max_payload(const OmBusEndpoint *ep) {
    return ep ? ep->ring.max_payload : 0;
}

uint64_t om_bus_endpoint_missed(const OmBusEndpoint *ep) {
    return ep ? __atomic_load_n(&ep->missed, __ATOMIC_RELAXED) : 0;
}
