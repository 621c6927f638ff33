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

void omi_ring_lay_out(OmiRing *ring, uint32_t capacity, uint32_t slot_size, uint32_t max_consumers, uint32_t flags) {
    uint8_t *base = ring->shm.base;
    uint32_t room = slot_size - OM_BUS_SLOT_HEADER_SIZE;
    ring->header = ring->shm.base;
    ring->extension = (OmiRingExtension *)(base + OMI_RING_EXTENSION_OFFSET);
    ring->tails = (OmBusConsumerTail *)(base + OM_BUS_HEADER_PAGE);
    ring->slots = base + OM_BUS_HEADER_PAGE + (size_t)max_consumers * sizeof(OmBusConsumerTail);
    ring->mask = capacity - 1;
    ring->capacity = capacity;
    ring->slot_size = slot_size;
    ring->max_consumers = max_consumers;
    ring->flags = flags;
    ring->max_payload = room < UINT16_MAX ? room : UINT16_MAX;
}

int omi_ring_bind(OmiRing *ring) {
    OmBusShmHeader *h = ring->shm.base;
    const char *name = ring->name;
    /* Acquire: the magic is stored last, with it the rest is there. Each field is read once: what another process
     * writes there later can no longer contradict what was checked. */
    uint32_t magic = __atomic_load_n(&h->magic, __ATOMIC_ACQUIRE);
    uint32_t version = __atomic_load_n(&h->version, __ATOMIC_RELAXED);
    uint32_t capacity = __atomic_load_n(&h->capacity, __ATOMIC_RELAXED);
    uint32_t slot_size = __atomic_load_n(&h->slot_size, __ATOMIC_RELAXED);
    uint32_t consumers = __atomic_load_n(&h->max_consumers, __ATOMIC_RELAXED);
    if (magic != OM_BUS_SHM_MAGIC)
        return omi_fail(OM_ERR_BUS_MAGIC_MISMATCH, "'%s' starts with 0x%08X, not with 0x%08X", name, magic,
                        OM_BUS_SHM_MAGIC);
    if (version != OM_BUS_SHM_VERSION)
        return omi_fail(OM_ERR_BUS_VERSION_MISMATCH, "ring '%s' has format version %u, this library reads %u", name,
                        version, OM_BUS_SHM_VERSION);
    if (capacity == 0 || (capacity & (capacity - 1)))
        return omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s': capacity %u is not a power of two", name, capacity);
    if (slot_size <= OM_BUS_SLOT_HEADER_SIZE || slot_size % 8)
        return omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s': slot_size %u is not a multiple of 8 above 24", name, slot_size);
    if (consumers > OM_BUS_MAX_CONSUMERS_LIMIT)
        return omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s': max_consumers %u is above %u", name, consumers,
                        OM_BUS_MAX_CONSUMERS_LIMIT);
    uint64_t need = omi_ring_size(capacity, slot_size, consumers);
    if (need == 0 || need > ring->shm.size)
        return omi_fail(OM_ERR_BUS_CORRUPT, "ring '%s': %u slots of %u bytes do not fit its %zu bytes", name, capacity,
                        slot_size, ring->shm.size);
    omi_ring_lay_out(ring, capacity, slot_size, consumers, __atomic_load_n(&h->flags, __ATOMIC_RELAXED));
    if (ring->extension->magic != OMI_RING_EXTENSION_MAGIC)
        ring->extension = 0;
    return 0;
}

int omi_ring_open(OmiRing *ring, const char *name, bool writable) {
    int rc = omi_shm_name(ring->name, name);
    if (rc == 0)
        rc = omi_shm_open(&ring->shm, ring->name, sizeof(OmBusShmHeader), writable);
    if (rc != 0)
        return rc;
    rc = omi_ring_bind(ring);
    if (rc != 0)
        omi_ring_close(ring);
    return rc;
}

void omi_ring_close(OmiRing *ring) {
    omi_shm_close(&ring->shm);
}
