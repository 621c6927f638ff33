#include <unistd.h>

#include "core/error.h"
#include "core/hint.h"
#include "tcp/message.h"
#include "tcp/receiver.h"

/* A broadcasting server sends plain frames; an extended one is accepted as long as its payload fits an OmBusRecord. */
enum { FRAME_MAX = OMI_WIRE_PLAIN_MAX + OMI_WIRE_EXT_HEADER };

int omi_receiver_open(OmiReceiver *receiver, const OmBusTcpClientConfig *config) {
    *receiver = (OmiReceiver){.fd = -1};
    receiver->sequence.reject_reorder = (config->flags & OM_BUS_FLAG_REJECT_REORDER) != 0;
    return omi_recv_buffer_open(
        &receiver->buffer, config->recv_buf_size ? config->recv_buf_size : OM_BUS_TCP_DEFAULT_RECV_BUF_SIZE, FRAME_MAX);
}

void omi_receiver_disconnect(OmiReceiver *receiver) {
    if (receiver->fd >= 0)
        close(receiver->fd);
    receiver->fd = -1;
    receiver->buffer.start = receiver->buffer.end = 0;
}

void omi_receiver_close(OmiReceiver *receiver) {
    omi_receiver_disconnect(receiver);
    omi_recv_buffer_close(&receiver->buffer);
}

/** Next complete frame, receiving only when none is buffered: 1, 0 or an error. Buffered frames outlive the connection.
 */
static int next_frame(OmiReceiver *receiver, OmiWireFrame *frame) {
    for (;;) {
        int rc = omi_recv_buffer_peek(&receiver->buffer, frame);
        if (OMI_LIKELY(rc != 0))
            return rc;
        rc = omi_recv_buffer_fill(&receiver->buffer, receiver->fd);
        if (rc <= 0)
            return rc;
    }
}

static OMI_COLD int special_frame(OmiReceiver *receiver, const OmiWireFrame *frame) {
    omi_recv_buffer_skip(&receiver->buffer, frame);
    if (frame->wal_type == OMI_WIRE_TYPE_SLOW_WARNING)
        return omi_fail(OM_ERR_BUS_TCP_SLOW_WARNING, "the last record before the server's warning has wal_seq %llu",
                        (unsigned long long)receiver->sequence.last);
    if (frame->wal_type == OMI_WIRE_TYPE_CONTROL)
        return omi_message_error_code(frame->payload, frame->payload_len);
    return 0; /* padding */
}

static OMI_COLD int odd_record(int rc, const OmiSequence *sequence, uint64_t wal_seq) {
    return omi_fail(rc, "wal_seq %llu after %llu", (unsigned long long)wal_seq, (unsigned long long)sequence->last);
}

static inline void fill_record(OmBusRecord *rec, const OmiWireFrame *frame) {
    rec->wal_seq = frame->wal_seq;
    rec->wal_type = frame->wal_type;
    rec->payload_len = (uint16_t)frame->payload_len;
    rec->payload = frame->payload;
}

int omi_receiver_poll(OmiReceiver *receiver, OmBusRecord *rec) {
    OmiWireFrame frame;
    int rc = next_frame(receiver, &frame);
    if (OMI_UNLIKELY(rc <= 0))
        return rc;
    if (OMI_UNLIKELY(frame.payload_len > OMI_WIRE_PLAIN_PAYLOAD_MAX))
        return omi_fail(OM_ERR_BUS_TCP_PROTOCOL, "payload of %u bytes", frame.payload_len);
    fill_record(rec, &frame);
    if (OMI_UNLIKELY(frame.wal_type >= OMI_WIRE_TYPE_CONTROL))
        return special_frame(receiver, &frame);
    rc = omi_sequence_check(&receiver->sequence, frame.wal_seq);
    if (OMI_UNLIKELY(rc < 0))
        odd_record(rc, &receiver->sequence, frame.wal_seq);
    omi_recv_buffer_skip(&receiver->buffer, &frame);
    omi_sequence_advance(&receiver->sequence, frame.wal_seq);
    return rc;
}

/** Records that are already buffered; receiving would move the payloads handed out. */
static size_t poll_buffered(OmiReceiver *receiver, OmBusRecord *recs, size_t max) {
    OmiWireFrame frame;
    size_t count = 0;
    while (count < max && omi_recv_buffer_peek(&receiver->buffer, &frame) > 0) {
        if (frame.wal_type >= OMI_WIRE_TYPE_CONTROL || frame.payload_len > OMI_WIRE_PLAIN_PAYLOAD_MAX ||
            omi_sequence_check(&receiver->sequence, frame.wal_seq) < 0)
            break; /* the next call reports it */
        fill_record(&recs[count++], &frame);
        omi_recv_buffer_skip(&receiver->buffer, &frame);
        omi_sequence_advance(&receiver->sequence, frame.wal_seq);
    }
    return count;
}

int omi_receiver_poll_batch(OmiReceiver *receiver, OmBusRecord *recs, size_t max) {
    if (max > INT32_MAX)
        max = INT32_MAX;
    size_t count = poll_buffered(receiver, recs, max);
    if (count > 0 || max == 0)
        return (int)count;
    int rc = omi_receiver_poll(receiver, recs);
    return rc == 1 ? 1 + (int)poll_buffered(receiver, recs + 1, max - 1) : rc;
}
