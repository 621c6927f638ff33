#include "check.h"
#include "core/crc32c.h"

TEST(the_crc_of_the_standard_check_string_is_e3069283) {
    for (const OmiCrc32cImpl *impl = omi_crc32c_implementations(); impl->name; impl++)
        CHECK_EQ(impl->extend(0, "123456789", 9), 0xE3069283U);
}

/* Vectors of RFC 3720, appendix B.4. */
TEST(crcs_match_the_iscsi_vectors) {
    uint8_t zeros[32] = {0}, ones[32], up[32];
    memset(ones, 0xFF, sizeof ones);
    for (int i = 0; i < 32; i++)
        up[i] = (uint8_t)i;
    CHECK_EQ(omi_crc32c(zeros, 32), 0x8A9136AAU);
    CHECK_EQ(omi_crc32c(ones, 32), 0x62A8AB43U);
    CHECK_EQ(omi_crc32c(up, 32), 0x46DD794EU);
}

TEST(all_implementations_agree_on_every_length_and_alignment) {
    static uint8_t data[20000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)test_random();
    const OmiCrc32cImpl *first = omi_crc32c_implementations(), *last = first;
    while (last[1].name)
        last++;
    CHECK(strcmp(last->name, "table") == 0);
    for (size_t size = 0; size < 700; size++)
        for (size_t offset = 0; offset < 9; offset++)
            CHECK_EQ(first->extend(7, data + offset, size), last->extend(7, data + offset, size));
    for (int i = 0; i < 2000; i++) {
        size_t size = test_random() % (sizeof data - 8), offset = test_random() % 8;
        uint32_t start = (uint32_t)test_random();
        CHECK_EQ(first->extend(start, data + offset, size), last->extend(start, data + offset, size));
    }
}

TEST(a_crc_can_be_extended_piece_by_piece) {
    uint8_t data[512];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)test_random();
    for (size_t cut = 0; cut <= sizeof data; cut++)
        CHECK_EQ(omi_crc32c_extend(omi_crc32c(data, cut), data + cut, sizeof data - cut),
                 omi_crc32c(data, sizeof data));
}

TEST(the_crc_of_words_and_payload_is_that_of_their_bytes) {
    static uint8_t data[24 + 3000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)test_random();
    uint64_t w[3];
    memcpy(w, data, sizeof w);
    for (const OmiCrc32cImpl *impl = omi_crc32c_implementations(); impl->name; impl++)
        for (size_t size = 0; size <= 3000; size++)
            CHECK_EQ(impl->words(w[0], w[1], w[2], data + 24, size), omi_crc32c(data, 24 + size));
}
