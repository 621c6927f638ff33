#include "ring/ownership.h"

#include <sys/file.h>

#include "core/error.h"

static uint64_t owner_word(const OmiProcess *process) {
    return (uint64_t)process->pid << 32 | (uint32_t)process->start;
}

static OmiProcess read_owner(const OmiRingExtension *x, uint64_t word) {
    return (OmiProcess){.pid = (uint32_t)(word >> 32),
                        .start = (uint32_t)word, /* as far as it goes: 32 bits of ticks are a year and more */
                        .pidns = atomic_load(&x->owner_pidns)};
}

int omi_ring_own(const OmiRing *ring, const OmiProcess *self) {
    OmiRingExtension *x = ring->extension;
    bool locked = flock(ring->shm.fd, LOCK_EX | LOCK_NB) == 0;
    uint64_t word = atomic_load(&x->owner);
    do {
        OmiProcess owner = read_owner(x, word);
        bool is_self = word == owner_word(self) && owner.pidns == self->pidns;
        OmiLiveness liveness = word == 0 ? OMI_DEAD : omi_process_liveness(owner);
        if (!is_self && (liveness == OMI_ALIVE || (liveness == OMI_UNKNOWN && !locked)))
            return omi_fail(OM_ERR_BUS_IN_USE, "ring '%s' is being published to by pid %u: stop it first", ring->name,
                            owner.pid);
    } while (!atomic_compare_exchange_strong(&x->owner, &word, owner_word(self)));
    atomic_store(&x->owner_pidns, self->pidns);
    return 0;
}

void omi_ring_disown(const OmiRing *ring) {
    atomic_store(&ring->extension->owner, 0);
    flock(ring->shm.fd, LOCK_UN); /* explicitly: a forked child may have the descriptor, too */
}

OmiProcess omi_ring_owner(const OmiRing *ring) {
    OmiRingExtension *x = ring->extension;
    return x ? read_owner(x, atomic_load(&x->owner)) : (OmiProcess){0};
}

void omi_ring_retire(const OmiRing *ring) {
    OmiRingExtension *x = ring->extension;
    if (!x) { /* a version-1 ring: its consumers know nothing but the epoch */
        atomic_fetch_add(&ring->header->producer_epoch, 1);
        return;
    }
    /* What was published is still read to its end. */
    atomic_store(&x->epoch_head, atomic_load(&ring->header->head));
    atomic_store(&x->retired, 1);
    atomic_fetch_add(&x->epoch, 1);
    atomic_fetch_add(&ring->header->producer_epoch, 1);
    omi_doorbell_ring(&x->data);
}
