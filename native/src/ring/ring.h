#ifndef OMI_RING_H
#define OMI_RING_H

#include <stdbool.h>

#include "core/shm.h"
#include "ring/layout.h"

/**
 * A mapped and validated ring. The shape is copied out of shared memory once, so that nothing written there later can
 * lead an index outside of the mapping.
 */
typedef struct OmiRing {
    OmBusShmHeader *header;
    OmiRingExtension *extension; /* NULL: the ring of another library, version 1 pure */
    OmBusConsumerTail *tails;
    uint8_t *slots;
    uint64_t mask;
    uint32_t slot_size;
    uint32_t capacity;
    uint32_t max_consumers;
    uint32_t flags;
    uint32_t max_payload;
    char name[OM_BUS_NAME_SIZE];
    OmiShm shm;
} OmiRing;

/** Bytes of a ring of this shape; 0 when that is beyond reason. */
uint64_t omi_ring_size(uint32_t capacity, uint32_t slot_size, uint32_t max_consumers);

/** Set all pointers and numbers of `ring` for a shape that is known to fit ring->shm. */
void omi_ring_lay_out(OmiRing *ring, uint32_t capacity, uint32_t slot_size, uint32_t max_consumers, uint32_t flags);

/**
 * Read the shape from a mapped object, once, and check it: magic, version, then every field against the real size.
 * On success `ring` is laid out. ring->shm and ring->name must be set.
 */
int omi_ring_bind(OmiRing *ring);

/** Map and bind the ring `name`. */
int omi_ring_open(OmiRing *ring, const char *name, bool writable);

void omi_ring_close(OmiRing *ring);

static inline OmBusSlotHeader *omi_ring_slot(const OmiRing *ring, uint64_t position) {
    return (OmBusSlotHeader *)(ring->slots + (position & ring->mask) * ring->slot_size);
}

#endif
