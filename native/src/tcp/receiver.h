#ifndef OMI_RECEIVER_H
#define OMI_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "ombus/om_bus_tcp.h"
#include "tcp/recv_buffer.h"

/** Where a reader stands in the sequence; outlives a connection. */
typedef struct OmiSequence {
    uint64_t last;     /* wal_seq of the last record; 0 before the first */
    uint64_t expected; /* the next one, once `started` */
    bool started;
    bool reject_reorder;
} OmiSequence;

/** What the record `wal_seq` means at this place: 1, OM_ERR_BUS_GAP_DETECTED or OM_ERR_BUS_REORDER_DETECTED. */
static inline int omi_sequence_check(const OmiSequence *sequence, uint64_t wal_seq) {
    if (!sequence->started || wal_seq == sequence->expected)
        return 1;
    if (wal_seq > sequence->expected)
        return OM_ERR_BUS_GAP_DETECTED;
    return sequence->reject_reorder ? OM_ERR_BUS_REORDER_DETECTED : 1;
}

static inline void omi_sequence_advance(OmiSequence *sequence, uint64_t wal_seq) {
    sequence->last = wal_seq;
    sequence->expected = wal_seq + 1;
    sequence->started = true;
}

/** A connection that receives broadcast records. fd < 0: none. */
typedef struct OmiReceiver {
    int fd;
    OmiRecvBuffer buffer;
    OmiSequence sequence;
} OmiReceiver;

int omi_receiver_open(OmiReceiver *receiver, const OmBusTcpClientConfig *config);
void omi_receiver_close(OmiReceiver *receiver);

/** Drop the connection and what was received of it; the place in the sequence stays. */
void omi_receiver_disconnect(OmiReceiver *receiver);

/** As om_bus_tcp_client_poll() and om_bus_tcp_client_poll_batch(). */
int omi_receiver_poll(OmiReceiver *receiver, OmBusRecord *rec);
int omi_receiver_poll_batch(OmiReceiver *receiver, OmBusRecord *recs, size_t max);

#endif
