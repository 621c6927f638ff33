#ifndef OMI_NET_TRANSFER_H
#define OMI_NET_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "ombus/om_log.h"
#include "tcp/message.h"
#include "tcp/net_stream.h"

/**
 * Records of a log on their way to one client, straight from the segments. The reader stays open between transfers,
 * since a client usually asks for the same stream again.
 */
typedef struct OmiTransfer {
    OmiNetStream *stream; /* NULL = no transfer */
    OmLogReader *reader;
    OmiNetStream *reader_stream;
    uint32_t reader_flags;
    uint32_t flags;   /* of the request */
    uint64_t request; /* its number */
    bool follow;      /* SUBSCRIBE: the live end is not the end */
    bool waiting;     /* stands at the live end */
    OmLogSpan span;   /* being sent */
    size_t span_sent;
} OmiTransfer;

/** Stand at the range's start and fill the answer. Errors: OM_ERR_NET_*, with the text as this thread's last error. */
int omi_transfer_begin(OmiTransfer *transfer, OmiNetStream *stream, const OmiRangeRequest *request, bool follow,
                       OmiRangeAnswer *answer);

/** Load the next span: 1, 0 = the end (for now, when following), or OM_ERR_NET_*. */
int omi_transfer_next(OmiTransfer *transfer);

/** Bytes of the span still to be sent. */
static inline size_t omi_transfer_pending(const OmiTransfer *transfer) {
    return transfer->span.size_bytes - transfer->span_sent;
}

/** Send of the span what the socket takes: bytes, 0 when it is full, -1 when it is lost. */
int64_t omi_transfer_send(OmiTransfer *transfer, int fd);

/** The transfer is over; the reader stays. */
void omi_transfer_end(OmiTransfer *transfer);

/** Free everything. */
void omi_transfer_close(OmiTransfer *transfer);

/** Position behind what was loaded. */
static inline uint64_t omi_transfer_position(const OmiTransfer *transfer) {
    return om_log_position(transfer->reader);
}

#endif
