#include "tcp/auth.h"

#include <string.h>

/** With its size in front: where one payload ends and the next begins must not be open to doubt. */
static void update_sized(OmiHmac *hmac, const uint8_t *payload, size_t size) {
    uint32_t size32 = (uint32_t)size;
    omi_hmac_update(hmac, &size32, sizeof size32);
    omi_hmac_update(hmac, payload, size);
}

void omi_auth_proof(OmiAuthSide side, const void *secret, size_t secret_size, const OmiTranscript *transcript,
                    uint8_t proof[OMI_SHA256_SIZE]) {
    const char *label = side == OMI_AUTH_CLIENT ? "ombus client v1" : "ombus server v1";
    OmiHmac hmac;
    omi_hmac_init(&hmac, secret, secret_size);
    omi_hmac_update(&hmac, label, strlen(label));
    update_sized(&hmac, transcript->client_hello, transcript->client_size);
    update_sized(&hmac, transcript->server_hello, transcript->server_size);
    omi_hmac_final(&hmac, proof);
}
