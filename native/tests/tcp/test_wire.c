#include "tcp/wire.h"

#include "check.h"
#include "core/crc32c.h"

TEST(a_plain_frame_has_the_bytes_of_the_seed) {
    static const uint8_t expected[] = {0x46, 0x54, 0x4D, 0x4F, 0x03, 0x00, 0x02, 0x00, 0x08,
                                       0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 'h',  'i'};
    uint8_t bytes[32];
    CHECK_EQ(omi_wire_encode(bytes, 0x0102030405060708U, 3, "hi", 2), sizeof expected);
    CHECK(memcmp(bytes, expected, sizeof expected) == 0);
    OmiWireFrame frame;
    CHECK_EQ(omi_wire_decode(bytes, sizeof expected, 1024, &frame), 1);
    CHECK_EQ(frame.size, sizeof expected);
    CHECK_EQ(frame.wal_seq, 0x0102030405060708U);
    CHECK_EQ(frame.wal_type, 3);
    CHECK_EQ(frame.payload_len, 2);
    CHECK(frame.payload == bytes + 16);
}

TEST(the_slow_client_warning_has_the_bytes_of_the_seed) {
    static const uint8_t expected[] = {0x46, 0x54, 0x4D, 0x4F, 0xFE, 0, 8, 0, 0, 0, 0, 0,
                                       0,    0,    0,    0,    0xE4, 0, 0, 0, 0, 1, 0, 0};
    uint8_t bytes[OMI_WIRE_SLOW_WARNING];
    omi_wire_encode_slow_warning(bytes, 228, 256);
    CHECK_EQ(sizeof expected, sizeof bytes);
    CHECK(memcmp(bytes, expected, sizeof expected) == 0);
}

TEST(an_extended_frame_of_every_length_comes_back_whole) {
    static uint8_t payload[70000], bytes[70100];
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)test_random();
    for (uint32_t len = 0; len <= sizeof payload; len += len < 200 || len > 65500 ? 1 : 977) {
        if (len > 65600 && len < 69990)
            len = 69990;
        memset(bytes, 0xAA, sizeof bytes);
        uint64_t size = omi_wire_encode_ext(bytes, len, 9, 1234567890123456789U, payload, len);
        CHECK_EQ(size, omi_wire_ext_size(len));
        CHECK_EQ(size % 8, 0);
        CHECK_EQ(bytes[size], 0xAA);
        for (uint64_t i = OMI_WIRE_EXT_HEADER + len; i < size; i++)
            CHECK_EQ(bytes[i], 0);
        OmiWireFrame frame;
        CHECK_EQ(omi_wire_decode(bytes, size, sizeof bytes, &frame), 1);
        CHECK_EQ(frame.payload_len, len);
        CHECK_EQ(frame.size, size);
        CHECK_EQ(frame.timestamp_ns, 1234567890123456789U);
        CHECK(memcmp(frame.payload, payload, len) == 0);
        CHECK(omi_wire_crc_ok(bytes, &frame));
        uint16_t len16;
        memcpy(&len16, bytes + 6, 2);
        CHECK_EQ(len16, len < 0xFFFF ? len : 0xFFFF);
    }
}

TEST(every_flipped_bit_of_an_extended_frame_is_noticed) {
    uint8_t bytes[64];
    uint64_t size = omi_wire_encode_ext(bytes, 7, 1, 99, "0123456789", 10);
    for (size_t bit = 0; bit < 8 * (OMI_WIRE_EXT_HEADER + 10); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        OmiWireFrame frame;
        int rc = omi_wire_decode(bytes, size, sizeof bytes, &frame);
        CHECK(rc <= 0 || !(frame.flags & OMI_WIRE_FLAG_EXT) || !omi_wire_crc_ok(bytes, &frame));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(a_prefix_of_a_frame_asks_for_more_and_says_how_much_once_it_can) {
    uint8_t bytes[128];
    OmiWireFrame frame;
    for (int ext = 0; ext < 2; ext++) {
        uint64_t size =
            ext ? omi_wire_encode_ext(bytes, 1, 1, 1, "abcdefgh", 8) : omi_wire_encode(bytes, 1, 1, "abc", 3);
        for (uint64_t have = 0; have < size; have++) {
            CHECK_EQ(omi_wire_decode(bytes, have, 128, &frame), 0);
            CHECK_EQ(frame.size, have < (ext ? 32U : 16U) ? 0 : size);
        }
    }
}

TEST(what_is_not_a_frame_is_refused_at_its_first_wrong_byte) {
    uint8_t bytes[64];
    OmiWireFrame frame;
    CHECK_EQ(omi_wire_decode("G", 1, 1024, &frame), OM_ERR_BUS_TCP_PROTOCOL);
    omi_wire_encode(bytes, 1, 1, "x", 1);
    bytes[5] = 2;
    CHECK_EQ(omi_wire_decode(bytes, 17, 1024, &frame), OM_ERR_BUS_TCP_PROTOCOL);
    CHECK_CONTAINS(om_bus_last_error(), "flags 0x02");
    omi_wire_encode_ext(bytes, 1, 1, 1, "x", 1);
    bytes[28] = 2; /* the two lengths disagree */
    CHECK_EQ(omi_wire_decode(bytes, 40, 1024, &frame), OM_ERR_BUS_TCP_PROTOCOL);
    CHECK_CONTAINS(om_bus_last_error(), "contradicting lengths");
    omi_wire_encode(bytes, 1, 1, "0123456789", 10);
    CHECK_EQ(omi_wire_decode(bytes, 26, 25, &frame), OM_ERR_BUS_TCP_PROTOCOL);
    CHECK_CONTAINS(om_bus_last_error(), "limit 25");
    memset(bytes + 6, 0xFF, 2); /* a length of nearly 4 GB does not overflow */
    bytes[5] = 1;
    memset(bytes + 28, 0xFF, 4);
    CHECK_EQ(omi_wire_decode(bytes, 64, UINT64_MAX, &frame), OM_ERR_BUS_TCP_PROTOCOL);
}
