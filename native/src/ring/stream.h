#ifndef OMI_RING_STREAM_H
#define OMI_RING_STREAM_H

#include "ring/consumers.h"

/** The producer's handle. What publish() touches comes first. */
struct OmBusStream {
    OmiRing ring;
    uint64_t min_tail; /* slowest consumer as last computed; shared memory is only asked when the ring looks full */
    uint64_t epoch;
    uint64_t records_published;
    uint32_t fork_count;
    uint32_t plain_max; /* largest payload for publish()'s short path; 0 with CRC */
    /* back-pressure only */
    uint64_t staleness_ns;
    uint64_t next_liveness_check_ns;
    OmiConsumerWatch *watch; /* one per consumer slot */
    OmBusBackpressureCb backpressure_cb;
    void *backpressure_ctx;
};

#endif
