#include "tcp/recv_buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "tcp/socket.h"

int omi_recv_buffer_open(OmiRecvBuffer *buffer, uint32_t capacity, uint32_t frame_max) {
    if (capacity < OMI_WIRE_EXT_HEADER)
        capacity = OMI_WIRE_EXT_HEADER;
    *buffer = (OmiRecvBuffer){.capacity = capacity, .frame_max = frame_max, .bytes = malloc(capacity)};
    return buffer->bytes ? 0 : omi_fail(OM_ERR_BUS_NO_MEMORY, "receive buffer of %u bytes", capacity);
}

void omi_recv_buffer_close(OmiRecvBuffer *buffer) {
    free(buffer->bytes);
    buffer->bytes = NULL;
}

/** Make room for the whole of the frame that has begun. */
static int make_room(OmiRecvBuffer *buffer) {
    OmiWireFrame frame;
    uint32_t used = buffer->end - buffer->start;
    if (used == 0) {
        buffer->start = buffer->end = 0;
        return 0;
    }
    int rc = omi_recv_buffer_peek(buffer, &frame);
    if (rc < 0)
        return rc;
    uint32_t needed = frame.size ? frame.size : OMI_WIRE_EXT_HEADER;
    if (needed > buffer->capacity) {
        uint8_t *bytes = realloc(buffer->bytes, needed);
        if (!bytes)
            return omi_fail(OM_ERR_BUS_NO_MEMORY, "receive buffer of %u bytes", needed);
        buffer->bytes = bytes;
        buffer->capacity = needed;
    }
    /* Deferred compaction: small moves are worth making only when little room is left to receive into. */
    if (needed > buffer->capacity - buffer->start || buffer->start > buffer->capacity / 2) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, used);
        buffer->start = 0;
        buffer->end = used;
    }
    return 0;
}

int omi_recv_buffer_fill(OmiRecvBuffer *buffer, int fd) {
    int rc = make_room(buffer);
    if (rc < 0)
        return rc;
    ssize_t got = omi_socket_recv(fd, buffer->bytes + buffer->end, buffer->capacity - buffer->end);
    if (got < 0)
        return omi_fail(OM_ERR_BUS_TCP_DISCONNECTED, "the peer closed the connection%s",
                        buffer->end != buffer->start ? " in the middle of a frame" : "");
    buffer->end += (uint32_t)got;
    return (int)got;
}
