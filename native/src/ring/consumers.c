#include "ring/consumers.h"

#include "core/clock.h"
#include "core/error.h"

static uint32_t claim_state(uint64_t claim) {
    return (uint32_t)(claim >> 32);
}

static uint32_t claim_pid(uint64_t claim) {
    return (uint32_t)claim;
}

static OmiLiveness holder_liveness(const OmBusConsumerTail *slot, uint64_t claim) {
    OmiProcess holder = {.pid = claim_pid(claim),
                         .start = atomic_load_explicit(&slot->claim_start, memory_order_relaxed),
                         .pidns = atomic_load_explicit(&slot->claim_pidns, memory_order_relaxed)};
    if (claim_state(claim) == OMI_CONSUMER_JOINING) { /* these two may still be a former holder's */
        OmiProcess self = omi_process_self();
        holder.start = 0;
        holder.pidns = self.pidns;
    }
    return omi_process_liveness(holder);
}

static void store(_Atomic uint64_t *word, uint64_t value) {
    atomic_store_explicit(word, value, memory_order_relaxed);
}

/** Stand at the live end; the claim must be visible as CLAIMED (see the header comment). */
static uint64_t stand_at_head(const OmiRing *ring, OmBusConsumerTail *slot) {
    uint64_t head, tail;
    do {
        atomic_thread_fence(memory_order_seq_cst);
        tail = atomic_load_explicit(&ring->header->head, memory_order_acquire);
        atomic_store_explicit(&slot->tail, tail, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        head = atomic_load_explicit(&ring->header->head, memory_order_acquire);
    } while (head - tail > ring->capacity / 2);
    return tail;
}

/** A version-1 consumer: no claim, but it has polled. */
static bool looks_foreign(const OmBusConsumerTail *slot) {
    return atomic_load_explicit(&slot->claim, memory_order_acquire) == 0 &&
           atomic_load_explicit(&slot->last_poll_ns, memory_order_relaxed) != 0;
}

/** 1 = taken, 0 = held by a live process. */
static int try_take(const OmiRing *ring, OmBusConsumerTail *slot, const OmiProcess *self) {
    uint64_t claim = atomic_load_explicit(&slot->claim, memory_order_acquire);
    if (claim != 0 && holder_liveness(slot, claim) != OMI_DEAD)
        return 0;
    if (!atomic_compare_exchange_strong(&slot->claim, &claim, omi_claim(OMI_CONSUMER_JOINING, self->pid)))
        return 0;
    store(&slot->claim_start, self->start);
    store(&slot->claim_pidns, self->pidns);
    store(&slot->wal_seq, 0);
    store(&slot->last_poll_ns, omi_monotonic_ns());
    store(&slot->tail, atomic_load_explicit(&ring->header->head, memory_order_relaxed));
    uint64_t joining = omi_claim(OMI_CONSUMER_JOINING, self->pid);
    return atomic_compare_exchange_strong(&slot->claim, &joining, omi_claim(OMI_CONSUMER_CLAIMED, self->pid));
}

int omi_consumer_join(const OmiRing *ring, uint32_t *index, uint64_t *claim, uint64_t *position) {
    OmiProcess self = omi_process_self();
    uint32_t first = *index == OM_BUS_CONSUMER_ANY ? 0 : *index;
    uint32_t end = *index == OM_BUS_CONSUMER_ANY ? ring->max_consumers : *index + 1;
    for (uint32_t i = first; i < end; i++) {
        if (*index == OM_BUS_CONSUMER_ANY && looks_foreign(&ring->tails[i]))
            continue; /* taken as long as nobody asks for this very slot */
        if (!try_take(ring, &ring->tails[i], &self))
            continue;
        *index = i;
        *claim = omi_claim(OMI_CONSUMER_CLAIMED, self.pid);
        *position = stand_at_head(ring, &ring->tails[i]);
        return 0;
    }
    if (*index == OM_BUS_CONSUMER_ANY)
        return omi_fail(OM_ERR_BUS_IN_USE, "ring '%s': all %u consumer slots are taken", ring->name,
                        ring->max_consumers);
    return omi_fail(OM_ERR_BUS_IN_USE, "ring '%s': consumer %u is held by pid %u", ring->name, *index,
                    claim_pid(atomic_load(&ring->tails[*index].claim)));
}

int omi_consumer_rejoin(const OmiRing *ring, uint32_t index, uint64_t claim, uint64_t *position) {
    OmBusConsumerTail *slot = &ring->tails[index];
    uint64_t found = atomic_load_explicit(&slot->claim, memory_order_acquire);
    if (found != 0 && claim_pid(found) != claim_pid(claim))
        return omi_fail(OM_ERR_BUS_IN_USE, "ring '%s': consumer %u was taken by pid %u", ring->name, index,
                        claim_pid(found));
    /* Not behind what we leave: between the claim and stand_at_head() the producer must not wait for an old place. */
    store(&slot->tail, atomic_load_explicit(&ring->header->head, memory_order_relaxed));
    if (!atomic_compare_exchange_strong(&slot->claim, &found, claim))
        return omi_fail(OM_ERR_BUS_IN_USE, "ring '%s': consumer %u was taken", ring->name, index);
    *position = stand_at_head(ring, slot);
    return 0;
}

void omi_consumer_leave(const OmiRing *ring, uint32_t index, uint64_t claim) {
    OmBusConsumerTail *slot = &ring->tails[index];
    uint64_t passed_over = omi_claim(OMI_CONSUMER_PASSED_OVER, claim_pid(claim));
    store(&slot->last_poll_ns, 0);
    if (!atomic_compare_exchange_strong(&slot->claim, &claim, 0))
        atomic_compare_exchange_strong(&slot->claim, &passed_over, 0);
}

/** Whether the producer has to wait for this slot's tail. */
static bool is_waited_for(const OmBusConsumerTail *slot, uint64_t staleness_ns) {
    uint64_t claim = atomic_load_explicit(&slot->claim, memory_order_acquire);
    if (claim != 0)
        return claim_state(claim) == OMI_CONSUMER_CLAIMED;
    uint64_t last_poll_ns = atomic_load_explicit(&slot->last_poll_ns, memory_order_relaxed);
    if (last_poll_ns == 0)
        return false;
    return staleness_ns == 0 || (int64_t)(omi_monotonic_ns() - last_poll_ns) < (int64_t)staleness_ns;
}

uint64_t omi_consumers_slowest(const OmiRing *ring, uint64_t head, uint64_t staleness_ns) {
    uint64_t lag_max = 0;
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < ring->max_consumers; i++) {
        if (!is_waited_for(&ring->tails[i], staleness_ns))
            continue;
        uint64_t lag = head - atomic_load_explicit(&ring->tails[i].tail, memory_order_acquire);
        /* A tail that is not within the ring is nobody's honest position: it must not block the producer. */
        if (lag <= ring->capacity && lag > lag_max)
            lag_max = lag;
    }
    return head - lag_max;
}

void omi_consumers_unblock(const OmiRing *ring, uint64_t head, uint64_t staleness_ns, OmiConsumerWatch *watch,
                           uint64_t now_ns) {
    for (uint32_t i = 0; i < ring->max_consumers; i++, watch++) {
        OmBusConsumerTail *slot = &ring->tails[i];
        uint64_t claim = atomic_load_explicit(&slot->claim, memory_order_acquire);
        uint64_t tail = atomic_load_explicit(&slot->tail, memory_order_acquire);
        if (claim_state(claim) != OMI_CONSUMER_CLAIMED || head - tail != ring->capacity) {
            watch->since_ns = 0;
            continue;
        }
        if (holder_liveness(slot, claim) == OMI_DEAD) {
            store(&slot->last_poll_ns, 0);
            atomic_compare_exchange_strong(&slot->claim, &claim, 0);
        } else if (watch->since_ns == 0 || watch->tail != tail) {
            *watch = (OmiConsumerWatch){.tail = tail, .since_ns = now_ns};
        } else if (staleness_ns != 0 && now_ns - watch->since_ns >= staleness_ns) {
            atomic_compare_exchange_strong(&slot->claim, &claim, omi_claim(OMI_CONSUMER_PASSED_OVER, claim_pid(claim)));
        }
    }
}

void omi_consumer_describe(const OmiRing *ring, uint32_t index, OmBusConsumerInfo *info) {
    const OmBusConsumerTail *slot = &ring->tails[index];
    uint64_t claim = atomic_load_explicit(&slot->claim, memory_order_acquire);
    *info = (OmBusConsumerInfo){.index = index, .pid = claim_pid(claim)};
    info->tail = atomic_load_explicit(&slot->tail, memory_order_acquire);
    uint64_t head = atomic_load_explicit(&ring->header->head, memory_order_acquire);
    info->wal_seq = atomic_load_explicit(&slot->wal_seq, memory_order_relaxed);
    if (claim == 0)
        info->state = looks_foreign(slot) ? OM_BUS_CONSUMER_FOREIGN : OM_BUS_CONSUMER_FREE;
    else if (holder_liveness(slot, claim) == OMI_DEAD)
        info->state = OM_BUS_CONSUMER_DEAD;
    else
        info->state =
            claim_state(claim) == OMI_CONSUMER_PASSED_OVER ? OM_BUS_CONSUMER_PASSED_OVER : OM_BUS_CONSUMER_CLAIMED;
    /* Within a batch a consumer may be ahead of `head`, which moves last. */
    info->lag = info->state == OM_BUS_CONSUMER_FREE || (int64_t)(head - info->tail) < 0 ? 0 : head - info->tail;
}
