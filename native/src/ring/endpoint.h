#ifndef OMI_RING_ENDPOINT_H
#define OMI_RING_ENDPOINT_H

#include "ring/consumers.h"

/** The consumer's handle. */
struct OmBusEndpoint {
    OmiRing ring;
    OmBusConsumerTail *slot; /* our place in shared memory */
    uint64_t position;       /* next to read; slot->tail is its published copy */
    uint64_t claim;          /* what slot->claim says as long as the producer waits for us */
    const _Atomic uint64_t *epoch_word;
    uint64_t epoch;
    uint64_t last_seq;
    bool fresh;         /* no record before this one to compare with: whatever comes is right */
    uint8_t *copy;      /* poll()'s private copy; NULL with zero_copy */
    bool plain;         /* copying, no CRC, our own ring format: poll()'s short path will do */
    uint32_t plain_max; /* largest payload for it */
    uint64_t missed;
    uint32_t held; /* peeked, not yet released */
    uint32_t fork_count;
    uint32_t index;
    uint32_t idle_polls;
};

/** Something that is not simply the next record. 0 = nothing, look at the slot again. */
int omi_endpoint_attend(OmBusEndpoint *ep);

/** Whether poll() would return something other than 0. */
bool omi_endpoint_has_news(const OmBusEndpoint *ep);

#endif
