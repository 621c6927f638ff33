#include "core/sha256.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static uint32_t load_be32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store_be32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void compress(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = load_be32(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choice + round_constants[i] + w[i];
        uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void omi_sha256_init(OmiSha256 *sha) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *sha = (OmiSha256){0};
    memcpy(sha->state, start, sizeof start);
}

void omi_sha256_update(OmiSha256 *sha, const void *data, size_t size) {
    const uint8_t *bytes = data;
    while (size > 0) {
        size_t used = sha->size_bytes % OMI_SHA256_BLOCK, room = OMI_SHA256_BLOCK - used;
        size_t step = size < room ? size : room;
        memcpy(sha->block + used, bytes, step);
        sha->size_bytes += step;
        bytes += step;
        size -= step;
        if (step == room)
            compress(sha->state, sha->block);
    }
}

void omi_sha256_final(OmiSha256 *sha, uint8_t digest[OMI_SHA256_SIZE]) {
    static const uint8_t padding[OMI_SHA256_BLOCK] = {0x80};
    uint64_t bits = sha->size_bytes * 8;
    size_t used = sha->size_bytes % OMI_SHA256_BLOCK;
    uint8_t length[8];
    store_be32(length, (uint32_t)(bits >> 32));
    store_be32(length + 4, (uint32_t)bits);
    omi_sha256_update(sha, padding, used < 56 ? 56 - used : 120 - used);
    omi_sha256_update(sha, length, sizeof length);
    for (int i = 0; i < 8; i++)
        store_be32(digest + 4 * i, sha->state[i]);
    omi_secret_wipe(sha, sizeof *sha);
}

void omi_hmac_init(OmiHmac *hmac, const void *key, size_t key_size) {
    uint8_t block[OMI_SHA256_BLOCK] = {0};
    if (key_size > sizeof block) {
        omi_sha256_init(&hmac->inner);
        omi_sha256_update(&hmac->inner, key, key_size);
        omi_sha256_final(&hmac->inner, block);
    } else if (key_size > 0)
        memcpy(block, key, key_size);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    omi_sha256_init(&hmac->inner);
    omi_sha256_update(&hmac->inner, block, sizeof block);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    omi_sha256_init(&hmac->outer);
    omi_sha256_update(&hmac->outer, block, sizeof block);
    omi_secret_wipe(block, sizeof block);
}

void omi_hmac_update(OmiHmac *hmac, const void *data, size_t size) {
    omi_sha256_update(&hmac->inner, data, size);
}

void omi_hmac_final(OmiHmac *hmac, uint8_t digest[OMI_SHA256_SIZE]) {
    omi_sha256_final(&hmac->inner, digest);
    omi_sha256_update(&hmac->outer, digest, OMI_SHA256_SIZE);
    omi_sha256_final(&hmac->outer, digest);
}

bool omi_secret_equal(const void *a, const void *b, size_t size) {
    const volatile uint8_t *x = a, *y = b;
    uint8_t difference = 0;
    for (size_t i = 0; i < size; i++)
        difference |= x[i] ^ y[i];
    return difference == 0;
}

void omi_secret_wipe(void *data, size_t size) {
    memset(data, 0, size);
    __asm__ volatile("" : : "r"(data) : "memory");
}

bool omi_random_bytes(void *out, size_t size) {
    uint8_t *bytes = out;
    while (size > 0) {
        ssize_t got = getrandom(bytes, size < 256 ? size : 256, 0);
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0) {
            bytes += got;
            size -= (size_t)got;
        }
    }
    return true;
}
