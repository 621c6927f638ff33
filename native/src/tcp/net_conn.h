#ifndef OMI_NET_CONN_H
#define OMI_NET_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "ombus/om_net.h"
#include "tcp/loop.h"
#include "tcp/message.h"
#include "tcp/net_stream.h"
#include "tcp/net_transfer.h"
#include "tcp/recv_buffer.h"

/**
 * A connection of a server.
 *
 *      NEW --HELLO--> (GREETED --AUTH-->) READY          GREETED only where the server has a secret
 *
 * NEW it is silent: it may be listening to the default stream, as the seed's clients do, until it says HELLO.
 *
 * Output has three sources, each sent in whole frames before the next may speak: the span of a log under way, the
 * fanout of the stream it listens to, up to `stop`, and the queue of control frames. Input is taken one request at a
 * time, and only when the queue is empty and no REPLAY is under way: a client that does not read its answers stops
 * being heard, and no memory is spent on it.
 */
typedef enum OmiConnPhase { OMI_CONN_NEW, OMI_CONN_GREETED, OMI_CONN_READY } OmiConnPhase;

/** The HELLOs, kept until the proofs over them are made. */
typedef struct OmiHandshake {
    uint8_t client_hello[OMI_MESSAGE_REQUEST_MAX], server_hello[256];
    uint16_t client_size, server_size;
} OmiHandshake;

typedef struct OmiNetConn {
    OmiWatch watch; /* first: a watch is its connection */
    OmNetServer *server;
    uint32_t slot;
    OmiConnPhase phase;
    bool in_handshake; /* counted in the server's handshakes */
    bool blocked;      /* the socket is full */
    bool closing;      /* close when the queue is sent */
    bool lost;         /* close now */
    char peer[80];
    char agent[64];
    uint64_t deadline_ns; /* of the handshake, of idling, of closing; 0 = none */
    uint64_t bytes_sent;
    OmiHandshake *handshake;
    OmiRecvBuffer input; /* without memory until the client says something */

    uint8_t *queue;
    uint32_t queue_size, queue_sent, queue_capacity;

    OmiNetStream *listening; /* NULL = not at a fanout */
    uint64_t position;       /* in the fanout's bytes */
    uint64_t stop;           /* let the queue speak at this position; UINT64_MAX = it has nothing to say */
    bool leave;              /* and leave the fanout there */

    OmiTransfer transfer;
} OmiNetConn;

/** Take over a socket. NULL when memory is short; the socket then is closed. */
OmiNetConn *omi_conn_open(OmNetServer *srv, int fd, uint32_t slot, const char *peer);

/** Close the socket, leave stream and server, free. */
void omi_conn_close(OmiNetConn *conn);

/** Make progress in both directions; closes the connection when it is over. */
void omi_conn_run(OmiNetConn *conn);

/** Queue bytes (whole frames). Marks the connection lost when memory is short. */
void omi_conn_queue(OmiNetConn *conn, const void *frames, uint32_t size);

/** Answer with an ERROR; `fatal` closes the connection behind it. The text says more than the code where it can. */
void omi_conn_error(OmiNetConn *conn, uint64_t request, int code, const char *text, bool fatal);

/** Close once the queue is sent, or after a short time when the client does not take it. */
void omi_conn_close_after_queue(OmiNetConn *conn);

/** Listen to a stream's live end. */
int omi_conn_listen(OmiNetConn *conn, OmiNetStream *stream);

/** Leave the fanout at once, taking what is owed along into the queue (for a last frame behind it). */
void omi_conn_detach(OmiNetConn *conn);

/** Set the deadline that the present phase calls for. */
void omi_conn_set_deadline(OmiNetConn *conn, uint64_t now_ns);

#endif
