#include "tcp/wire.h"

#include "core/crc32c.h"
#include "core/error.h"
#include "core/hint.h"

static uint32_t frame_crc(const uint8_t *frame, const void *payload, uint32_t len) {
    uint32_t crc = omi_crc32c(frame + 4, 20);
    crc = omi_crc32c_extend(crc, frame + 28, 4);
    return omi_crc32c_extend(crc, payload, len);
}

uint64_t omi_wire_encode_ext(void *to, uint64_t wal_seq, uint8_t wal_type, uint64_t timestamp_ns, const void *payload,
                             uint32_t len) {
    uint8_t *bytes = to;
    uint64_t size = omi_wire_ext_size(len);
    uint16_t len16 = len < OMI_WIRE_PLAIN_PAYLOAD_MAX ? (uint16_t)len : OMI_WIRE_PLAIN_PAYLOAD_MAX;
    OmBusTcpFrameHeader header = {OM_BUS_TCP_FRAME_MAGIC, wal_type, OMI_WIRE_FLAG_EXT, len16, wal_seq};
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + 16, &timestamp_ns, 8);
    memcpy(bytes + 28, &len, 4);
    if (len)
        memcpy(bytes + OMI_WIRE_EXT_HEADER, payload, len);
    memset(bytes + OMI_WIRE_EXT_HEADER + len, 0, size - OMI_WIRE_EXT_HEADER - len);
    uint32_t crc = frame_crc(bytes, bytes + OMI_WIRE_EXT_HEADER, len);
    memcpy(bytes + 24, &crc, 4);
    return size;
}

void omi_wire_encode_slow_warning(void *to, uint32_t pending_bytes, uint32_t capacity_bytes) {
    uint32_t payload[2] = {pending_bytes, capacity_bytes};
    omi_wire_encode(to, 0, OMI_WIRE_TYPE_SLOW_WARNING, payload, sizeof payload);
}

static OMI_COLD int refuse(uint32_t magic, uint8_t flags, uint64_t size, uint64_t size_max) {
    if (magic != OM_BUS_TCP_FRAME_MAGIC)
        return omi_fail(OM_ERR_BUS_TCP_PROTOCOL, "frame starts with 0x%08X instead of 0x%08X", magic,
                        OM_BUS_TCP_FRAME_MAGIC);
    if (flags & ~OMI_WIRE_FLAG_EXT)
        return omi_fail(OM_ERR_BUS_TCP_PROTOCOL, "frame with unknown flags 0x%02X", flags);
    return omi_fail(OM_ERR_BUS_TCP_PROTOCOL, "frame of %llu bytes, limit %llu", (unsigned long long)size,
                    (unsigned long long)size_max);
}

int omi_wire_decode(const void *data, size_t available, uint64_t size_max, OmiWireFrame *frame) {
    const uint8_t *bytes = data;
    OmBusTcpFrameHeader header;
    frame->size = 0;
    if (OMI_UNLIKELY(available < OMI_WIRE_HEADER)) {
        /* Judge the magic by the bytes that are there: a peer of another protocol may never send sixteen. */
        uint32_t expected = OM_BUS_TCP_FRAME_MAGIC, found = 0;
        size_t known = available < 4 ? available : 4;
        memcpy(&found, bytes, known);
        return memcmp(&found, &expected, known) == 0 ? 0 : refuse(found, 0, 0, 0);
    }
    memcpy(&header, bytes, sizeof header);
    if (OMI_UNLIKELY(header.magic != OM_BUS_TCP_FRAME_MAGIC || (header.flags & ~OMI_WIRE_FLAG_EXT)))
        return refuse(header.magic, header.flags, 0, 0);
    uint32_t len = header.payload_len, start = OMI_WIRE_HEADER;
    uint64_t size = omi_wire_size(len), timestamp_ns = 0;
    if (header.flags & OMI_WIRE_FLAG_EXT) {
        if (available < OMI_WIRE_EXT_HEADER)
            return 0;
        memcpy(&timestamp_ns, bytes + 16, 8);
        memcpy(&len, bytes + 28, 4);
        uint16_t len16 = len < OMI_WIRE_PLAIN_PAYLOAD_MAX ? (uint16_t)len : OMI_WIRE_PLAIN_PAYLOAD_MAX;
        if (header.payload_len != len16)
            return omi_fail(OM_ERR_BUS_TCP_PROTOCOL, "frame with contradicting lengths %u and %u", header.payload_len,
                            len);
        start = OMI_WIRE_EXT_HEADER;
        size = omi_wire_ext_size(len);
    }
    if (OMI_UNLIKELY(size > size_max || size > UINT32_MAX))
        return refuse(header.magic, header.flags, size, size_max);
    *frame = (OmiWireFrame){
        .wal_seq = header.wal_seq,
        .timestamp_ns = timestamp_ns,
        .payload = bytes + start,
        .payload_len = len,
        .size = (uint32_t)size,
        .wal_type = header.wal_type,
        .flags = header.flags,
    };
    return available >= size;
}

bool omi_wire_crc_ok(const void *data, const OmiWireFrame *frame) {
    uint32_t stated;
    memcpy(&stated, (const uint8_t *)data + 24, 4);
    return frame_crc(data, frame->payload, frame->payload_len) == stated;
}
