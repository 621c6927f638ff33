#ifndef OMI_RING_CREATE_H
#define OMI_RING_CREATE_H

#include "core/process.h"
#include "ring/ring.h"

/** What a producer asks for. */
typedef struct OmiRingShape {
    uint32_t capacity, slot_size, max_consumers, flags;
} OmiRingShape;

/** The shape a config asks for: defaults filled in, everything checked. */
int omi_ring_shape(OmiRingShape *shape, const OmBusStreamConfig *config);

/**
 * Create the ring ring->name, or continue the one that has the name, or replace it when its shape is another; owned by
 * `self`. A new one has no magic yet: nobody can attach before the producer has begun its epoch.
 */
int omi_ring_create(OmiRing *ring, const OmiRingShape *shape, const OmiProcess *self);

#endif
