/*
 * Arbitrary bytes as a stream of frames, received in arbitrary pieces. Whatever they are: no access outside of them,
 * and the frames found do not depend on how the bytes were cut.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp/message.h"
#include "tcp/receiver.h"
#include "tcp/wire.h"

/* Not assert(): it must hold in a release build too. */
#define MUST(condition)   \
    do {                  \
        if (!(condition)) \
            abort();      \
    } while (0)

enum { FRAME_MAX = OMI_WIRE_PLAIN_MAX + OMI_WIRE_EXT_HEADER, FRAMES_MAX = 4096 };

typedef struct Found {
    uint64_t wal_seq;
    uint64_t size; /* as wide as the other: no padding, so that memcmp() compares fields only */
} Found;

/** Frames in one exact-size copy, so that a read behind the end is an error that the sanitizer sees. */
static int find_whole(const uint8_t *data, size_t size, Found *found) {
    int count = 0;
    for (size_t at = 0; count < FRAMES_MAX;) {
        OmiWireFrame frame;
        uint8_t *copy = malloc(size - at + 1);
        memcpy(copy, data + at, size - at);
        int rc = omi_wire_decode(copy, size - at, FRAME_MAX, &frame);
        if (rc == 1) {
            MUST(frame.size <= size - at && frame.payload + frame.payload_len <= copy + frame.size);
            if (frame.flags & OMI_WIRE_FLAG_EXT)
                (void)omi_wire_crc_ok(copy, &frame);
            if (frame.wal_type == OMI_WIRE_TYPE_CONTROL)
                (void)omi_message_error_code(frame.payload, frame.payload_len);
            found[count++] = (Found){frame.wal_seq, frame.size};
            at += frame.size;
        }
        free(copy);
        if (rc != 1)
            break;
    }
    return count;
}

/** The same through a socket and a receive buffer, in pieces whose sizes the input itself decides. */
static int find_in_pieces(const uint8_t *data, size_t size, Found *found) {
    OmiRecvBuffer buffer;
    OmiWireFrame frame;
    int fds[2], count = 0, rc = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0 ||
        omi_recv_buffer_open(&buffer, 64, FRAME_MAX) != 0)
        abort();
    for (size_t sent = 0; rc >= 0 && count < FRAMES_MAX;) {
        rc = omi_recv_buffer_peek(&buffer, &frame);
        if (rc == 1) {
            found[count++] = (Found){frame.wal_seq, frame.size};
            omi_recv_buffer_skip(&buffer, &frame);
            continue;
        }
        if (rc == 0)
            rc = omi_recv_buffer_fill(&buffer, fds[1]); /* takes what fits: the socket may hold more */
        if (rc == 0) {
            if (sent == size)
                break;
            size_t piece = 1 + data[sent] % 100;
            piece = piece < size - sent ? piece : size - sent;
            ssize_t n = send(fds[0], data + sent, piece, 0);
            MUST(n == (ssize_t)piece);
            sent += piece;
        }
    }
    omi_recv_buffer_close(&buffer);
    close(fds[0]);
    close(fds[1]);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static Found whole[FRAMES_MAX], pieces[FRAMES_MAX];
    int count = find_whole(data, size, whole);
    MUST(find_in_pieces(data, size, pieces) == count);
    MUST(memcmp(whole, pieces, (size_t)count * sizeof *whole) == 0);
    return 0;
}

size_t fuzz_seed_input(uint8_t *data, size_t capacity) {
    uint8_t payload[200] = {1, 2, 3};
    size_t size = 0;
    for (uint64_t seq = 1; seq <= 6 && size + 1024 < capacity; seq++) {
        size += omi_wire_encode(data + size, seq, 1, payload, (uint16_t)(seq * 30));
        size += omi_wire_encode_ext(data + size, seq, 1, seq, payload, (uint32_t)(seq * 17));
    }
    size += omi_message_encode_error(data + size, 1, OM_ERR_NET_LIMIT, "too much");
    return size;
}
