#ifndef OMI_SERVER_CLIENT_H
#define OMI_SERVER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp/fanout.h"
#include "tcp/loop.h"

/**
 * One client of a broadcasting server. It sends from the shared fanout at `position`. A client that must go gets a
 * `farewell`: its own copy of what it was still owed plus a last frame that says why, since the fanout moves on.
 */
typedef struct OmiServerClient {
    OmiWatch watch; /* first: a watch is its client; fd < 0 = free slot */
    void *owner;
    uint64_t position;
    uint8_t *farewell;
    uint32_t farewell_size, farewell_sent;
    bool blocked; /* the socket was full; wait until it can be written */
    bool doomed;  /* close at the end of this I/O round */
} OmiServerClient;

/** Send what the socket takes. False when the connection is lost. */
bool omi_server_client_flush(OmiServerClient *client, OmiLoop *loop, const OmiFanout *fanout);

/** Detach from the fanout with a last frame (may be NULL), and doom it. Without memory the farewell is dropped. */
void omi_server_client_dismiss(OmiServerClient *client, const OmiFanout *fanout, const void *frame, uint32_t size);

/** Close the socket and free the slot. */
void omi_server_client_close(OmiServerClient *client, OmiLoop *loop);

#endif
