#ifndef OMI_NET_SESSION_H
#define OMI_NET_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "ombus/om_net.h"
#include "tcp/message.h"
#include "tcp/recv_buffer.h"

/**
 * A client's connection on which HELLO (and AUTH) have succeeded, and the questions asked over it. Everything here
 * blocks, up to a deadline on the monotonic clock.
 */
typedef struct OmiSession {
    char *host;
    char *agent;
    uint8_t *secret;
    uint32_t secret_size;
    uint16_t port;
    int fd; /* < 0 = not connected */
    OmiRecvBuffer input;
    uint64_t request; /* number of the last request */
} OmiSession;

/** Copy what the config says; no connection yet. */
int omi_session_init(OmiSession *session, const OmNetClientConfig *config);
void omi_session_free(OmiSession *session);

/** Connect and shake hands. Errors as om_net_client_open(). */
int omi_session_connect(OmiSession *session, uint64_t deadline_ns);

void omi_session_disconnect(OmiSession *session);

/**
 * The next whole frame, at the front of the input: 1; 0 = none before the deadline; OM_ERR_BUS_TCP_DISCONNECTED;
 * OM_ERR_BUS_TCP_PROTOCOL. The caller skips it.
 */
int omi_session_frame(OmiSession *session, OmiWireFrame *frame, uint64_t deadline_ns);

/** Send a request; its number is session->request. */
int omi_session_send(OmiSession *session, const void *fixed, size_t fixed_size, const char *text, size_t text_len,
                     uint64_t deadline_ns);

/**
 * Wait for the answer to the last request and copy its fixed part; data frames in front of it are dropped. The whole
 * payload is in *frame, valid until the next call. OM_ERR_NET_TIMEOUT, or what an ERROR says.
 */
int omi_session_answer(OmiSession *session, OmiMessageOp op, void *fixed, size_t fixed_size, OmiWireFrame *frame,
                       uint64_t deadline_ns);

#endif
