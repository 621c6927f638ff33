#include "ring/ring.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"

static const uint64_t SIZE_LIMIT = 1ULL << 40;

uint64_t omi_ring_size(uint32_t capacity, uint32_t slot_size, uint32_t max_consumers) {
    uint64_t slots = (uint64_t)capacity * slot_size; /* 32 bits each: cannot overflow */
    uint64_t size = OM_BUS_HEADER_PAGE + (uint64_t)max_consumers * sizeof(OmBusConsumerTail) + slots;
    return slots <= SIZE_LIMIT ? size : 0;
}

int omi_ring_validate(const OmiShm *shm, const char *name) {
    const OmBusShmHeader *h = shm->base;
    if (h->magic != OM_BUS_SHM_MAGIC)
        return omi_fail(OM_ERR_BUS_MAGIC_MISMATCH, "'%s' starts with 0x%08X, not with 0x%08X", name, h->magic,
                        OM_BUS_SHM_MAGIC);
    if (h->version != OM_BUS_SHM_VERSION)
        return omi_fail(OM_ERR_BUS_VERSION_MISMATCH, "ring '%s' has format version %u, this library reads %u", name,
                        h->version, OM_BUS_SHM_VERSION);
    atomic_thread_fence(memory_order_acquire); /* the magic is stored last: with it, the rest is there */
    uint32_t capacity = h->capacity, slot_size = h->slot_size, consumers = h->max_consumers;
    if (capacity == 0 || (capacity & (capacity - 1)))
        return omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s': capacity %u is not a power of two", name, capacity);
    if (slot_size <= OM_BUS_SLOT_HEADER_SIZE || slot_size % 8)
        return omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s': slot_size %u is not a multiple of 8 above 24", name, slot_size);
    if (consumers > OM_BUS_MAX_CONSUMERS_LIMIT)
        return omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s': max_consumers %u is above %u", name, consumers,
                        OM_BUS_MAX_CONSUMERS_LIMIT);
    uint64_t need = omi_ring_size(capacity, slot_size, consumers);
    if (need == 0 || need > shm->size)
        return omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s': %u slots of %u bytes do not fit its %zu bytes", name, capacity,
                        slot_size, shm->size);
    return 0;
}

void omi_ring_bind(OmiRing *ring) {
    uint8_t *base = ring->shm.base;
    OmBusShmHeader *h = ring->shm.base;
    ring->header = h;
    ring->slot_size = h->slot_size;
    ring->capacity = h->capacity;
    ring->mask = h->capacity - 1;
    ring->max_consumers = h->max_consumers;
    ring->flags = h->flags;
    uint32_t room = h->slot_size - OM_BUS_SLOT_HEADER_SIZE;
    ring->max_payload = room < UINT16_MAX ? room : UINT16_MAX;
    ring->extension = (OmiRingExtension *)(base + OMI_RING_EXTENSION_OFFSET);
    if (ring->extension->magic != OMI_RING_EXTENSION_MAGIC)
        ring->extension = 0;
    ring->tails = (OmBusConsumerTail *)(base + OM_BUS_HEADER_PAGE);
    ring->slots = base + OM_BUS_HEADER_PAGE + (size_t)h->max_consumers * sizeof(OmBusConsumerTail);
}

int omi_ring_open(OmiRing *ring, const char *name, bool writable) {
    int rc = omi_shm_name(ring->name, name);
    if (rc == 0)
        rc = omi_shm_open(&ring->shm, ring->name, sizeof(OmBusShmHeader), writable);
    if (rc != 0)
        return rc;
    rc = omi_ring_validate(&ring->shm, ring->name);
    if (rc == 0) {
        omi_ring_bind(ring);
        /* The shape may change between check and copy only if somebody hostile writes there: look once more. */
        uint64_t need = omi_ring_size(ring->capacity, ring->slot_size, ring->max_consumers);
        if (need == 0 || need > ring->shm.size || (ring->capacity & ring->mask))
            rc = omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s' changed while it was opened", ring->name);
    }
    if (rc != 0)
        omi_ring_close(ring);
    return rc;
}

void omi_ring_close(OmiRing *ring) {
    omi_shm_close(&ring->shm);
}

OmiProcess omi_ring_producer(const OmiRing *ring) {
    OmiRingExtension *x = ring->extension;
    if (!x)
        return (OmiProcess){0};
    return (OmiProcess){.pid = atomic_load(&x->producer_pid),
                        .start = atomic_load(&x->producer_start),
                        .pidns = atomic_load(&x->producer_pidns)};
}
