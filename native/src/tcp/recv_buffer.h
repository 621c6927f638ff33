#ifndef OMI_RECV_BUFFER_H
#define OMI_RECV_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "tcp/wire.h"

/**
 * Bytes received and not yet parsed. Frames are handed out in place, so bytes move only when a frame is incomplete and
 * the room behind it is short; a pointer handed out lives until the next fill.
 */
typedef struct OmiRecvBuffer {
    uint8_t *bytes;
    uint32_t capacity;
    uint32_t start, end; /* bytes[start..end) is unparsed */
    uint32_t frame_max;  /* longest frame accepted; the buffer grows up to it */
} OmiRecvBuffer;

int omi_recv_buffer_open(OmiRecvBuffer *buffer, uint32_t capacity, uint32_t frame_max);
void omi_recv_buffer_close(OmiRecvBuffer *buffer);

/** Next complete frame: 1, 0 = receive more first, or OM_ERR_BUS_TCP_PROTOCOL. The frame stays until skipped. */
static inline int omi_recv_buffer_peek(OmiRecvBuffer *buffer, OmiWireFrame *frame) {
    if (buffer->start == buffer->end)
        return 0;
    return omi_wire_decode(buffer->bytes + buffer->start, buffer->end - buffer->start, buffer->frame_max, frame);
}

static inline void omi_recv_buffer_skip(OmiRecvBuffer *buffer, const OmiWireFrame *frame) {
    buffer->start += frame->size;
}

/** Receive once what fits. Bytes received, 0 when none wait, OM_ERR_BUS_TCP_DISCONNECTED, or OM_ERR_BUS_NO_MEMORY. */
int omi_recv_buffer_fill(OmiRecvBuffer *buffer, int fd);

#endif
