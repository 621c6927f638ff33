#include "core/crc32c.h"

#include <stdatomic.h>
#include <string.h>

#include "core/hint.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

/* Polynomials are kept bit-reflected, as the CRC instructions take them: bit 31 is x^0. */
static const uint32_t POLYNOMIAL = 0x82F63B78U;
static const uint32_t ONE = 0x80000000U;

static inline uint32_t times_x(uint32_t v) {
    return (v >> 1) ^ (v & 1 ? POLYNOMIAL : 0);
}

/* ---- Table: eight bytes a step ("slicing by 8") ---- */

static uint32_t table[8][256];

static void table_init(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int bit = 0; bit < 8; bit++)
            v = times_x(v);
        table[0][i] = v;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++)
            table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xFF];
}

static uint32_t extend_table(uint32_t crc, const void *data, size_t size) {
    const uint8_t *p = data;
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w ^= crc;
        crc = table[7][w & 0xFF] ^ table[6][w >> 8 & 0xFF] ^ table[5][w >> 16 & 0xFF] ^ table[4][w >> 24 & 0xFF] ^
              table[3][w >> 32 & 0xFF] ^ table[2][w >> 40 & 0xFF] ^ table[1][w >> 48 & 0xFF] ^ table[0][w >> 56];
    }
    for (; size; size--)
        crc = (crc >> 8) ^ table[0][(crc ^ *p++) & 0xFF];
    return ~crc;
}

static uint32_t words_table(uint64_t w0, uint64_t w1, uint64_t w2, const void *data, size_t size) {
    uint64_t words[3] = {w0, w1, w2};
    return extend_table(extend_table(0, words, sizeof words), data, size);
}

#if defined(__x86_64__)

/*
 * The crc32 instruction takes 3 cycles but one can start every cycle, so a single chain leaves two thirds of the unit
 * idle. We run three lanes over adjacent thirds and join them: a lane's CRC is moved over the bytes that follow it by a
 * carry-less multiplication with x^(8n - 33), folded into the last word of the last lane (whose crc32 step supplies the
 * missing x^33). shift_by_words[n] is that constant for n words. Lane lengths vary, so
 * that records of 100 bytes gain too; below that the processor overlaps whole CRCs of one chain just as well.
 */
enum { LANE_WORDS_MAX = 128, LANES = 3, INTERLEAVE_WORDS_MIN = 12 };
static uint32_t shift_by_words[2 * LANE_WORDS_MAX + 1];

static void shift_init(void) {
    uint32_t v = ONE;
    for (int power = 0; power < 64 - 33; power++)
        v = times_x(v);
    for (int n = 1; n <= 2 * LANE_WORDS_MAX; n++) {
        shift_by_words[n] = v;
        for (int power = 0; power < 64; power++)
            v = times_x(v);
    }
}

__attribute__((target("sse4.2,pclmul"))) static inline uint64_t shifted(uint64_t crc, size_t words) {
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi32_si128((int)shift_by_words[words]), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

static inline uint64_t word_at(const uint8_t *p) {
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t extend_sse42(uint32_t crc, const void *data, size_t size) {
    const uint8_t *p = data;
    uint64_t c = (uint32_t)~crc;
    size_t words = size / 8;
    while (words >= INTERLEAVE_WORDS_MIN) {
        size_t n = words / LANES;
        if (n > LANE_WORDS_MAX)
            n = LANE_WORDS_MAX;
        const uint8_t *a = p, *b = p + 8 * n, *end = p + 8 * (n - 1);
        const size_t lane = 8 * n;
        uint64_t c1 = 0, c2 = 0;
        for (; a < end; a += 8, b += 8) {
            c = _mm_crc32_u64(c, word_at(a));
            c1 = _mm_crc32_u64(c1, word_at(b));
            c2 = _mm_crc32_u64(c2, word_at(b + lane));
        }
        c = _mm_crc32_u64(c, word_at(a));
        c1 = _mm_crc32_u64(c1, word_at(b));
        c = _mm_crc32_u64(c2, word_at(b + lane) ^ shifted(c, 2 * n) ^ shifted(c1, n));
        p += 8 * LANES * n;
        words -= LANES * n;
    }
    for (; words; words--, p += 8)
        c = _mm_crc32_u64(c, word_at(p));
    uint32_t c32 = (uint32_t)c;
    if (size & 4) {
        uint32_t w;
        memcpy(&w, p, 4);
        c32 = _mm_crc32_u32(c32, w);
        p += 4;
    }
    for (size &= 3; size; size--)
        c32 = _mm_crc32_u8(c32, *p++);
    return ~c32;
}

/* Up to this many payload words the header's three words are a lane beside two of the payload. */
enum { RECORD_WORDS_MIN = 4, RECORD_WORDS_MAX = 64 };

__attribute__((target("sse4.2,pclmul"))) static uint32_t words_sse42(uint64_t w0, uint64_t w1, uint64_t w2,
                                                                     const void *data, size_t size) {
    const uint8_t *p = data;
    size_t words = size / 8;
    uint64_t c = _mm_crc32_u64(_mm_crc32_u64(_mm_crc32_u64(0xFFFFFFFFU, w0), w1), w2);
    if (words < RECORD_WORDS_MIN || words > RECORD_WORDS_MAX)
        return extend_sse42((uint32_t)~c, data, size);
    /* Lanes: header | first half | second half. The second is not the shorter: it takes the joining word. */
    size_t n1 = words / 2, n2 = words - n1;
    const uint8_t *b = p + 8 * n1;
    uint64_t c1 = 0, c2 = 0;
    for (size_t i = 0; i < n1; i++) {
        c1 = _mm_crc32_u64(c1, word_at(p + 8 * i));
        if (i + 1 < n2)
            c2 = _mm_crc32_u64(c2, word_at(b + 8 * i));
    }
    if (n2 > n1 + 1)
        __builtin_unreachable();
    c = _mm_crc32_u64(c2, word_at(b + 8 * (n2 - 1)) ^ shifted(c, words) ^ shifted(c1, n2));
    return size & 7 ? extend_sse42((uint32_t)~c, p + 8 * words, size & 7) : (uint32_t)~c;
}

#elif defined(__aarch64__)

__attribute__((target("+crc"))) static uint32_t extend_armv8(uint32_t crc, const void *data, size_t size) {
    const uint8_t *p = data;
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        crc = __crc32cd(crc, w);
    }
    for (; size; size--)
        crc = __crc32cb(crc, *p++);
    return ~crc;
}

__attribute__((target("+crc"))) static uint32_t words_armv8(uint64_t w0, uint64_t w1, uint64_t w2, const void *data,
                                                            size_t size) {
    return extend_armv8(~__crc32cd(__crc32cd(__crc32cd(0xFFFFFFFFU, w0), w1), w2), data, size);
}

#endif

static OmiCrc32cImpl implementations[3] = {{"table", extend_table, words_table}};

/* Runs when the library is loaded, before any caller can be in it: no check is needed on the hot path. */
__attribute__((constructor)) static void choose_implementation(void) {
    OmiCrc32cImpl *next = implementations;
    table_init();
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
        shift_init();
        *next++ = (OmiCrc32cImpl){"sse4.2", extend_sse42, words_sse42};
    }
#elif defined(__aarch64__)
    if (getauxval(AT_HWCAP) & HWCAP_CRC32)
        *next++ = (OmiCrc32cImpl){"armv8", extend_armv8, words_armv8};
#endif
    *next = (OmiCrc32cImpl){"table", extend_table, words_table};
}

const OmiCrc32cImpl *omi_crc32c_implementations(void) {
    return implementations;
}

uint32_t omi_crc32c_extend(uint32_t crc, const void *data, size_t size) {
    return implementations[0].extend(crc, data, size);
}

uint32_t omi_crc32c(const void *data, size_t size) {
    return implementations[0].extend(0, data, size);
}

uint32_t omi_crc32c_words(uint64_t w0, uint64_t w1, uint64_t w2, const void *data, size_t size) {
    return implementations[0].words(w0, w1, w2, data, size);
}
