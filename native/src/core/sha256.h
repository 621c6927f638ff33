#ifndef OMI_SHA256_H
#define OMI_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). For handshakes: small rather than fast. */
enum { OMI_SHA256_SIZE = 32, OMI_SHA256_BLOCK = 64 };

typedef struct OmiSha256 {
    uint32_t state[8];
    uint64_t size_bytes;
    uint8_t block[OMI_SHA256_BLOCK];
} OmiSha256;

void omi_sha256_init(OmiSha256 *sha);
void omi_sha256_update(OmiSha256 *sha, const void *data, size_t size);
void omi_sha256_final(OmiSha256 *sha, uint8_t digest[OMI_SHA256_SIZE]);

typedef struct OmiHmac {
    OmiSha256 inner, outer;
} OmiHmac;

void omi_hmac_init(OmiHmac *hmac, const void *key, size_t key_size);
void omi_hmac_update(OmiHmac *hmac, const void *data, size_t size);
void omi_hmac_final(OmiHmac *hmac, uint8_t digest[OMI_SHA256_SIZE]);

/** Whether two secrets are equal, in a time that does not tell where they differ. */
bool omi_secret_equal(const void *a, const void *b, size_t size);

/** Overwrite a secret such that the compiler cannot drop it. */
void omi_secret_wipe(void *data, size_t size);

/** Fill with unpredictable bytes. False when the system has none to give. */
bool omi_random_bytes(void *out, size_t size);

#endif
