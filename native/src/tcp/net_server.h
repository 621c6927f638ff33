#ifndef OMI_NET_SERVER_H
#define OMI_NET_SERVER_H

#include <stdatomic.h>

#include "ombus/om_net.h"
#include "tcp/net_conn.h"
#include "tcp/net_stream.h"

/** Counters as om_net_server_stats() reads them from any thread; only the serving thread writes. */
typedef struct OmiNetCounters {
    _Atomic uint64_t connections, transfers, accepted, refused, closed, auth_failures, protocol_errors, timeouts,
        requests, request_errors, records_sent, bytes_sent, slow_client_drops;
} OmiNetCounters;

static inline void omi_count(_Atomic uint64_t *counter, int64_t by) {
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + (uint64_t)by, memory_order_relaxed);
}

struct OmNetServer {
    OmiLoop *loop;
    OmiWatch listener;
    uint16_t port;
    uint8_t *secret;
    OmNetServerConfig config; /* defaults filled in; its pointers are not ours */
    uint64_t id;
    OmiNetStream *streams[OM_NET_STREAMS_MAX];
    uint32_t stream_count;
    OmiNetConn **conns; /* by slot; NULL = free */
    uint32_t slots_used;
    uint32_t handshakes; /* connections that still owe HELLO or AUTH */
    bool accept_paused;
    double accept_tokens; /* how many connections may be accepted now */
    uint64_t accept_ns;   /* when the tokens were last counted */
    uint64_t sweep_ns;    /* next look at deadlines */
    uint64_t sweep_interval_ns;
    bool hot; /* something is left to do without waiting */
    _Atomic bool stop;
    OmiNetCounters counters;
};

/** The stream called `name` (0 bytes: the default one); NULL = none. */
OmiNetStream *omi_net_server_stream(OmNetServer *srv, const char *name, size_t length);

/** Whether silent clients get the default stream. */
static inline bool omi_net_server_serves_silent(const OmNetServer *srv) {
    return srv->stream_count > 0 && (!srv->secret || (srv->config.flags & OM_NET_ALLOW_ANONYMOUS));
}

/** Accept what waits (net_accept.c). */
void omi_net_accept(OmiWatch *watch, uint32_t events);

/** Accept again, once the rate allows it. */
void omi_net_accept_resume(OmNetServer *srv, uint64_t now_ns);

/** New records to listeners and waiting subscribers of every stream; arms the bells of those that have no more
 * (net_live.c). */
void omi_net_live_serve(OmNetServer *srv);

/** Act on one frame of a client (net_request.c). */
void omi_net_request(OmiNetConn *conn, const OmiWireFrame *frame);

#endif
