#ifndef OM_NET_H
#define OM_NET_H

/**
 * @file om_net.h
 * @brief Streams over TCP with history: a server of logs and rings, and a client that resumes where it stopped.
 *
 * To a client that says nothing the server speaks the seed's protocol (om_bus_tcp.h): live frames of its default
 * stream, and a warning and a cut for who is too slow. A client that sends HELLO can ask for STATUS, REPLAY a range and
 * SUBSCRIBE from any wal_seq: history first, then live, without gap or double. Such a client is never cut for being
 * slow: it is served from the log at its own pace. docs/protocol.md has every byte.
 *
 * Threads: one thread at a time per handle, but for the functions marked "any thread".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "om_bus_error.h"
#include "om_log.h"

OM_BEGIN_DECLS

#define OM_NET_NAME_MAX 127U        /* bytes in a stream's name: letters, digits, '.', '_', '-' */
#define OM_NET_STREAMS_MAX 256U     /* per server */
#define OM_NET_SECRET_MAX 1024U     /* bytes */
#define OM_NET_FROM_FIRST 0U        /* from: the first record there is */
#define OM_NET_FROM_LIVE UINT64_MAX /* from: the live end */

/* Flags of a stream. */
#define OM_NET_HAS_LOG 0x1U     /* has history: REPLAY and SUBSCRIBE from any wal_seq */
#define OM_NET_DEFAULT 0x2U     /* what silent clients and requests without a name get */
#define OM_NET_UNAVAILABLE 0x4U /* the server cannot read it at present */

/* Flags of a request. */
#define OM_NET_DURABLE_ONLY 0x1U /* send a record only when a power cut at the server can no longer take it back */
#define OM_NET_ALLOW_LOSS 0x2U   /* where records were removed by retention, go on at the first one left */

/* ---- Server ---- */

#define OM_NET_ALLOW_ANONYMOUS 0x1U /* server with a secret: silent clients still get the default stream */

/** Zero in a field means its default. */
typedef struct OmNetServerConfig {
    const char *bind_addr; /* NULL = "127.0.0.1" */
    const void *secret;    /* clients must prove that they know it; NULL = no authentication */
    uint32_t secret_size;  /* bytes, at most OM_NET_SECRET_MAX */
    uint32_t flags;        /* OM_NET_ALLOW_ANONYMOUS */
    uint16_t port;         /* 0 = any free one: see om_net_server_port() */
    uint16_t reserved;
    uint32_t max_connections;      /* (1024) */
    uint32_t max_handshakes;       /* connections that still owe HELLO or AUTH, where those are required (128) */
    uint32_t handshake_timeout_ms; /* (10 000) */
    uint32_t idle_timeout_ms;      /* a connection without a transfer is closed after this (300 000) */
    uint32_t accepts_per_s;        /* connections accepted per second; more wait (1000) */
    uint32_t send_buf_size;        /* bytes that a client of a stream without log may lag behind (1 MB) */
    uint32_t reserved2;
} OmNetServerConfig;

typedef struct OmNetServer OmNetServer;

/** Bind and listen. OM_ERR_BUS_TCP_BIND when that fails. */
int om_net_server_create(OmNetServer **out, const OmNetServerConfig *config);

/**
 * Serve the log in `dir` as `name`. The first stream added is the default one. Before om_net_server_run(). Starts a
 * thread, which a child made by fork() would not have: fork first.
 */
int om_net_server_add_log(OmNetServer *srv, const char *name, const char *dir);

/** Serve a ring without history as `name`; the server becomes one of its consumers (om_bus.h: consumer_index). */
int om_net_server_add_ring(OmNetServer *srv, const char *name, const char *ring_name, uint32_t consumer_index);

/** Serve until om_net_server_stop(). Returns 0, or an error that makes serving impossible. */
int om_net_server_run(OmNetServer *srv);

/** One round: sleep up to timeout_ns (< 0: no limit) for something to do, and do it. Returns 0, or an error. */
int om_net_server_step(OmNetServer *srv, int64_t timeout_ns);

/** End om_net_server_run(). Any thread, also a signal handler. */
void om_net_server_stop(OmNetServer *srv);

/** The port bound. */
uint16_t om_net_server_port(const OmNetServer *srv);

/** Counters since the start; `connections` and `transfers` are now. */
typedef struct OmNetServerStats {
    uint64_t connections;
    uint64_t transfers; /* REPLAYs and SUBSCRIBEs under way */
    uint64_t connections_accepted;
    uint64_t connections_refused; /* max_connections or max_handshakes reached */
    uint64_t connections_closed;
    uint64_t auth_failures;
    uint64_t protocol_errors; /* malformed or unexpected frames */
    uint64_t timeouts;        /* handshake and idle */
    uint64_t requests;
    uint64_t request_errors; /* answered with ERROR */
    uint64_t records_sent;
    uint64_t bytes_sent;
    uint64_t slow_client_drops; /* silent clients, and clients of streams without log */
} OmNetServerStats;

/** Any thread. */
void om_net_server_stats(const OmNetServer *srv, OmNetServerStats *out);

typedef struct OmNetConnectionInfo {
    const char *peer;   /* "address:port" */
    const char *stream; /* what it receives; "" = nothing now */
    const char *agent;  /* what it says it is; "" = silent */
    uint64_t next_seq;  /* its position; 0 for a silent client */
    uint64_t lag;       /* stream's last wal_seq - (next_seq - 1) */
    uint64_t bytes_sent;
} OmNetConnectionInfo;

/** Call fn for every connection until it returns non-zero; from the serving thread, between steps. Returns how many. */
int om_net_server_connections(OmNetServer *srv, int (*fn)(const OmNetConnectionInfo *info, void *ctx), void *ctx);

/** Close everything. NULL-safe. Not while om_net_server_run() runs. */
void om_net_server_destroy(OmNetServer *srv);

/* ---- Client ---- */

/** Zero in a field means its default. */
typedef struct OmNetClientConfig {
    const char *host;
    const void *secret; /* NULL = none; the server then must not ask for one */
    uint32_t secret_size;
    uint16_t port;
    uint16_t reserved;
    uint32_t timeout_ms;    /* longest wait for a connection or an answer (10 000) */
    uint32_t reconnect_ms;  /* how long to try to reconnect and resume a transfer; 0 = not at all */
    uint32_t retry_base_ms; /* first pause between attempts, doubled each time (100) */
    uint32_t retry_max_ms;  /* (5000) */
    uint32_t recv_buf_size; /* (1 MB); grows to hold the largest frame */
    uint32_t flags;         /* OM_LOG_NO_CRC: do not check checksums */
    const char *agent;      /* shown by the server; NULL = "ombus" and the version */
} OmNetClientConfig;

typedef struct OmNetClient OmNetClient;

typedef struct OmNetStreamInfo {
    char name[OM_NET_NAME_MAX + 1];
    uint8_t id[OM_LOG_ID_SIZE]; /* identity of the log: a recreated one has another; zeros without log */
    uint64_t first_seq;         /* 0 = none */
    uint64_t last_seq;
    uint64_t durable_seq;
    uint64_t epoch;    /* changes when the producer restarts */
    uint64_t time_seq; /* answer to time_ns */
    uint32_t flags;    /* OM_NET_HAS_LOG, OM_NET_DEFAULT */
    uint32_t reserved;
} OmNetStreamInfo;

/**
 * Connect, say HELLO and prove the secret. Blocks up to timeout_ms. OM_ERR_BUS_TCP_CONNECT, OM_ERR_NET_TIMEOUT,
 * OM_ERR_NET_AUTH_REQUIRED, OM_ERR_NET_AUTH_FAILED (also when the SERVER cannot prove that it knows the secret),
 * OM_ERR_NET_NO_HISTORY: a server that only broadcasts; use om_bus_tcp_client_connect().
 */
int om_net_client_open(OmNetClient **out, const OmNetClientConfig *config);

/**
 * Describe the stream called `stream` (NULL = all). time_ns: also find the first wal_seq whose record is not older; 0 =
 * do not. Fills up to `max` entries; returns how many streams there are. Not during a transfer (OM_ERR_NET_BUSY).
 */
int om_net_client_status(OmNetClient *client, const char *stream, uint64_t time_ns, OmNetStreamInfo *out, uint32_t max);

/**
 * Ask for the records of `stream` (NULL = the default) in [from, to) that are there now; OM_ERR_NET_END follows the
 * last. `id` (may be NULL) is the identity that the stream must have (OM_ERR_NET_IDENTITY). OM_ERR_NET_RANGE: records
 * from `from` on were removed, and OM_NET_ALLOW_LOSS was not given.
 */
int om_net_client_replay(OmNetClient *client, const char *stream, uint64_t from, uint64_t to, const uint8_t *id,
                         uint32_t flags);

/** Ask for the records of `stream` from `from` on, for ever: history, then live. */
int om_net_client_subscribe(OmNetClient *client, const char *stream, uint64_t from, const uint8_t *id, uint32_t flags);

/**
 * Next record: 1 = in *rec, 0 = none within timeout_ns (< 0: no limit), or an error:
 * OM_ERR_NET_END: the range is complete; ask for the next one;
 * OM_ERR_BUS_TCP_DISCONNECTED: the connection is lost, and reconnect_ms (if any) has passed in vain;
 * OM_ERR_NET_IDENTITY: after a reconnect the stream was another one;
 * OM_ERR_BUS_CRC_MISMATCH: a record was damaged on its way or in the server's log; the transfer is over.
 * The payload is valid until the next call with this client.
 */
int om_net_client_next(OmNetClient *client, OmLogRecord *rec, int64_t timeout_ns);

/** Up to max records at once, as many as have arrived; returns how many, or what om_net_client_next() returns. */
int om_net_client_next_batch(OmNetClient *client, OmLogRecord *recs, size_t max, int64_t timeout_ns);

/** A run of whole frames as they came, for code that reads frames itself. Padding frames (wal_type 0xFF) may be among
 * them. Plain frames (no timestamp) come from streams without log. */
typedef struct OmNetSpan {
    const uint8_t *data;
    size_t size_bytes;
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t records;
} OmNetSpan;

/** The next run of frames that have arrived, up to max_bytes (but at least one frame): 1, 0 or an error, as next. */
int om_net_client_next_span(OmNetClient *client, size_t max_bytes, OmNetSpan *span, int64_t timeout_ns);

/** wal_seq from which a new client would have to go on: behind the last record handed out. */
uint64_t om_net_client_position(const OmNetClient *client);

/** Identity of the stream of the present or last transfer; zeros without log. */
void om_net_client_stream_id(const OmNetClient *client, uint8_t id[OM_LOG_ID_SIZE]);

/** How often a lost connection was replaced. */
uint64_t om_net_client_reconnects(const OmNetClient *client);

/** NULL-safe. */
void om_net_client_close(OmNetClient *client);

OM_END_DECLS

#endif
