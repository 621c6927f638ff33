#ifndef OMI_WIRE_H
#define OMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ombus/om_bus_tcp.h"

/**
 * The frame codec: the only code that knows a frame's bytes.
 *
 *   plain      magic 0:4  wal_type 4:1  flags 5:1 = 0  payload_len 6:2  wal_seq 8:8  payload
 *   extended   the same with flags 1, then timestamp_ns 16:8  crc32c 24:4  payload_len32 28:4  payload, zeros to 8
 * bytes
 *
 * The CRC covers bytes 4..24, 28..32 and the payload. payload_len is 0xFFFF where payload_len32 does not fit.
 */

enum {
    OMI_WIRE_HEADER = 16,
    OMI_WIRE_EXT_HEADER = 32,
    OMI_WIRE_FLAG_EXT = 1,
    OMI_WIRE_TYPE_CONTROL = 0xFD,
    OMI_WIRE_TYPE_SLOW_WARNING = 0xFE,
    OMI_WIRE_TYPE_PADDING = 0xFF,
    OMI_WIRE_PLAIN_PAYLOAD_MAX = 0xFFFF,
    OMI_WIRE_PLAIN_MAX = OMI_WIRE_HEADER + OMI_WIRE_PLAIN_PAYLOAD_MAX,
    OMI_WIRE_SLOW_WARNING = OMI_WIRE_HEADER + 8,
};

_Static_assert(sizeof(OmBusTcpFrameHeader) == OMI_WIRE_HEADER, "frame header");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian and written as structs");

typedef struct OmiWireFrame {
    uint64_t wal_seq;
    uint64_t timestamp_ns; /* 0 in a plain frame */
    const uint8_t *payload;
    uint32_t payload_len;
    uint32_t size; /* of the whole frame, padding included */
    uint8_t wal_type;
    uint8_t flags;
} OmiWireFrame;

/** Size of a plain frame. */
static inline uint32_t omi_wire_size(uint32_t payload_len) {
    return OMI_WIRE_HEADER + payload_len;
}

/** Size of an extended frame. 64 bits, since a payload may be nearly 4 GB. */
static inline uint64_t omi_wire_ext_size(uint32_t payload_len) {
    return ((uint64_t)OMI_WIRE_EXT_HEADER + payload_len + 7) & ~7ULL;
}

/** Write a plain frame; `to` has room for omi_wire_size(len) bytes. Returns its size. */
static inline uint32_t omi_wire_encode(void *to, uint64_t wal_seq, uint8_t wal_type, const void *payload,
                                       uint16_t len) {
    OmBusTcpFrameHeader header = {OM_BUS_TCP_FRAME_MAGIC, wal_type, 0, len, wal_seq};
    memcpy(to, &header, sizeof header);
    if (len)
        memcpy((uint8_t *)to + OMI_WIRE_HEADER, payload, len);
    return omi_wire_size(len);
}

/** Write an extended frame; `to` has room for omi_wire_ext_size(len) bytes. Returns its size. */
uint64_t omi_wire_encode_ext(void *to, uint64_t wal_seq, uint8_t wal_type, uint64_t timestamp_ns, const void *payload,
                             uint32_t len);

/** Write the warning that a slow client gets; OMI_WIRE_SLOW_WARNING bytes. */
void omi_wire_encode_slow_warning(void *to, uint32_t pending_bytes, uint32_t capacity_bytes);

/**
 * Look at the frame at `data`. Returns 1 and fills *frame when it is complete; 0 when more bytes are needed:
 * frame->size then is how many the frame takes in all, or 0 while even that is unknown; OM_ERR_BUS_TCP_PROTOCOL when
 * the bytes are not a frame or it is longer than size_max. The payload points into `data`. No CRC is checked.
 */
int omi_wire_decode(const void *data, size_t available, uint64_t size_max, OmiWireFrame *frame);

/** Whether an extended frame that omi_wire_decode() accepted has the CRC it states. `data` is its first byte. */
bool omi_wire_crc_ok(const void *data, const OmiWireFrame *frame);

#endif
