#ifndef OMI_AUTH_H
#define OMI_AUTH_H

#include <stddef.h>
#include <stdint.h>

#include "core/sha256.h"

/**
 * Proof that a side knows the secret, over everything both said before:
 *
 *      proof = HMAC-SHA-256(secret, label || size u32 || client's HELLO payload || size u32 || server's HELLO payload)
 *
 * Both HELLOs hold fresh nonces, so that no proof is good twice; the label differs by side, so that none can be sent
 * back; the whole payloads are covered, so that nothing in them can be altered on the way. The client goes first: a
 * server gives nothing away to somebody who has not proved himself. What follows is neither encrypted nor signed: that
 * takes TLS.
 */
typedef enum OmiAuthSide { OMI_AUTH_CLIENT, OMI_AUTH_SERVER } OmiAuthSide;

/** The HELLO payloads as they crossed the wire. */
typedef struct OmiTranscript {
    const uint8_t *client_hello, *server_hello;
    size_t client_size, server_size;
} OmiTranscript;

void omi_auth_proof(OmiAuthSide side, const void *secret, size_t secret_size, const OmiTranscript *transcript,
                    uint8_t proof[OMI_SHA256_SIZE]);

#endif
