#ifndef OM_BUS_TCP_H
#define OM_BUS_TCP_H

/**
 * @file om_bus_tcp.h
 * @brief Live records over TCP: a server that broadcasts, a client that polls, a client that reconnects by itself.
 *
 * A client connects, says nothing and receives every record broadcast from then on. Nothing is stored: a client that
 * falls behind is warned and dropped, and finds what it missed in the log (om_net.h resumes by itself).
 * Calls never block unless they say so. Threads: one thread at a time per handle. Wire format: docs/protocol.md.
 */

#include <stddef.h>
#include <stdint.h>

#include "om_bus.h"

OM_BEGIN_DECLS

#define OM_BUS_TCP_FRAME_MAGIC 0x4F4D5446U /* "OMTF" */
#define OM_BUS_TCP_FRAME_HEADER_SIZE 16U
#define OM_BUS_TCP_WAL_TYPE_SLOW_WARNING 0xFEU

#define OM_BUS_TCP_DEFAULT_MAX_CLIENTS 64U
#define OM_BUS_TCP_DEFAULT_SEND_BUF_SIZE (256U * 1024U)
#define OM_BUS_TCP_DEFAULT_RECV_BUF_SIZE (256U * 1024U)
#define OM_BUS_TCP_DEFAULT_RETRY_BASE_MS 100U
#define OM_BUS_TCP_DEFAULT_RETRY_MAX_MS 5000U

/** Start of every frame; payload_len bytes of payload follow. Little-endian. */
typedef struct OmBusTcpFrameHeader {
    uint32_t magic;
    uint8_t wal_type;
    uint8_t flags; /* 0 here; bit 0 marks the extended frame of docs/protocol.md */
    uint16_t payload_len;
    uint64_t wal_seq;
} __attribute__((packed)) OmBusTcpFrameHeader;

/* ---- Server ---- */

/** Zero in a numeric field means its default. */
typedef struct OmBusTcpServerConfig {
    const char *bind_addr;  /* NULL = "0.0.0.0" */
    uint16_t port;          /* 0 = any free one: see om_bus_tcp_server_port() */
    uint32_t max_clients;   /* (64) */
    uint32_t send_buf_size; /* bytes a client may lag behind before it is dropped (256 KB) */
} OmBusTcpServerConfig;

typedef struct OmBusTcpServer OmBusTcpServer;

typedef struct OmBusTcpServerStats {
    uint64_t records_broadcast;
    uint64_t bytes_broadcast; /* payload bytes, once per record */
    uint64_t clients_accepted;
    uint64_t clients_disconnected; /* for any reason, slow ones too */
    uint64_t slow_client_drops;
} OmBusTcpServerStats;

/** Bind and listen. OM_ERR_BUS_TCP_BIND when that fails. */
int om_bus_tcp_server_create(OmBusTcpServer **out, const OmBusTcpServerConfig *config);

/**
 * Queue one record for every connected client; no I/O. A client that lags more than send_buf_size behind gets a warning
 * frame (if it fits) and is closed by the next om_bus_tcp_server_poll_io(). Returns 0.
 */
int om_bus_tcp_server_broadcast(OmBusTcpServer *srv, uint64_t wal_seq, uint8_t wal_type, const void *payload,
                                uint16_t len);

/** Queue all records in order. Returns 0; nothing is queued when an argument is wrong. */
int om_bus_tcp_server_broadcast_batch(OmBusTcpServer *srv, const OmBusRecord *recs, uint32_t count);

/** Send what is queued, accept and close connections. Returns 0, or OM_ERR_BUS_TCP_IO. */
int om_bus_tcp_server_poll_io(OmBusTcpServer *srv);

/** As om_bus_tcp_server_poll_io(), sleeping up to timeout_ns (< 0: no limit) while no socket has work. */
int om_bus_tcp_server_wait_io(OmBusTcpServer *srv, int64_t timeout_ns);

/** Connected clients. */
uint32_t om_bus_tcp_server_client_count(const OmBusTcpServer *srv);

/** The port bound. */
uint16_t om_bus_tcp_server_port(const OmBusTcpServer *srv);

void om_bus_tcp_server_stats(const OmBusTcpServer *srv, OmBusTcpServerStats *out);

/** Send what the sockets still take, close everything. NULL-safe. */
void om_bus_tcp_server_destroy(OmBusTcpServer *srv);

/* ---- Client ---- */

typedef struct OmBusTcpClientConfig {
    const char *host;
    uint16_t port;
    uint32_t recv_buf_size; /* (256 KB); grows to hold the largest frame */
    uint32_t flags;         /* OM_BUS_FLAG_REJECT_REORDER */
} OmBusTcpClientConfig;

typedef struct OmBusTcpClient OmBusTcpClient;

/** Connect; blocks until the connection stands or fails (OM_ERR_BUS_TCP_CONNECT). */
int om_bus_tcp_client_connect(OmBusTcpClient **out, const OmBusTcpClientConfig *config);

/**
 * Next record: 1 = record in *rec, 0 = none complete yet, or
 * OM_ERR_BUS_GAP_DETECTED, OM_ERR_BUS_REORDER_DETECTED: *rec is filled, the record is consumed;
 * OM_ERR_BUS_TCP_SLOW_WARNING: the server is about to drop this client; *rec holds the warning;
 * OM_ERR_BUS_TCP_DISCONNECTED: the peer closed, and all it had sent was delivered;
 * OM_ERR_BUS_TCP_PROTOCOL: the bytes are not frames; the connection is of no more use;
 * OM_ERR_NET_*: the server refused this client and says why.
 * The payload is valid until the next poll.
 */
int om_bus_tcp_client_poll(OmBusTcpClient *client, OmBusRecord *rec);

/**
 * Up to max records; returns how many, or what om_bus_tcp_client_poll() returns. Stops before a record that poll()
 * would report, so that the next call reports it (a gap or reorder: rec 0 is filled). Payloads are valid until the next
 * poll.
 */
int om_bus_tcp_client_poll_batch(OmBusTcpClient *client, OmBusRecord *recs, size_t max);

/** Sleep until poll() has something to say: 1 = yes, 0 = timeout. timeout_ns < 0 waits for ever. Uses no CPU. */
int om_bus_tcp_client_wait(OmBusTcpClient *client, int64_t timeout_ns);

/** wal_seq of the last record delivered; 0 before the first. */
uint64_t om_bus_tcp_client_wal_seq(const OmBusTcpClient *client);

/** NULL-safe. */
void om_bus_tcp_client_close(OmBusTcpClient *client);

/* ---- Client that reconnects ---- */

typedef struct OmBusTcpAutoClientConfig {
    OmBusTcpClientConfig base;
    uint32_t max_retries;   /* failed attempts in a row before giving up; 0 = no limit */
    uint32_t retry_base_ms; /* first pause, doubled each time (100) */
    uint32_t retry_max_ms;  /* longest pause (5000) */
} OmBusTcpAutoClientConfig;

typedef struct OmBusTcpAutoClient OmBusTcpAutoClient;

/** Start connecting; the server need not run yet. Blocks only to resolve a host that is a name. */
int om_bus_tcp_auto_client_create(OmBusTcpAutoClient **out, const OmBusTcpAutoClientConfig *config);

/**
 * As om_bus_tcp_client_poll(), but 0 while disconnected, and the sequence is tracked across connections: records missed
 * in between are a gap. After OM_ERR_BUS_TCP_PROTOCOL the next poll reconnects. OM_ERR_BUS_TCP_CONNECT: gave up
 * (max_retries).
 */
int om_bus_tcp_auto_client_poll(OmBusTcpAutoClient *client, OmBusRecord *rec);

/** wal_seq of the last record delivered, over all connections; 0 before the first. */
uint64_t om_bus_tcp_auto_client_wal_seq(const OmBusTcpAutoClient *client);

/** NULL-safe. */
void om_bus_tcp_auto_client_close(OmBusTcpAutoClient *client);

OM_END_DECLS

#endif
