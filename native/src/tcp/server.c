#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hint.h"
#include "ombus/om_bus_tcp.h"
#include "tcp/message.h"
#include "tcp/server_client.h"
#include "tcp/socket.h"
#include "tcp/wire.h"

enum { MAX_CLIENTS_LIMIT = 65536 };

struct OmBusTcpServer {
    OmiLoop *loop;
    OmiWatch listener;
    OmiFanout fanout;
    OmiServerClient *clients;
    uint32_t max_clients;
    uint32_t slots_used; /* no client at or above this index */
    uint32_t client_count;
    uint16_t port;
    OmBusTcpServerStats stats;
};

_Static_assert(sizeof(OmBusTcpServerConfig) == 24, "seed layout");
_Static_assert(sizeof(OmBusTcpServerStats) == 40, "seed layout");

static void drop_client(OmBusTcpServer *srv, OmiServerClient *client) {
    omi_server_client_close(client, srv->loop);
    srv->client_count--;
    srv->stats.clients_disconnected++;
    while (srv->slots_used > 0 && srv->clients[srv->slots_used - 1].watch.fd < 0)
        srv->slots_used--;
}

/** Somebody talks to a server that only broadcasts: say so and close. */
static void refuse_input(OmBusTcpServer *srv, OmiServerClient *client, const uint8_t *input, size_t size) {
    uint8_t frame[OMI_MESSAGE_ERROR_MAX];
    uint32_t magic = OM_BUS_TCP_FRAME_MAGIC;
    bool control = size > 4 && memcmp(input, &magic, 4) == 0 && input[4] == OMI_WIRE_TYPE_CONTROL;
    int code = control ? OM_ERR_NET_NO_HISTORY : OM_ERR_NET_PROTOCOL;
    uint32_t frame_size = omi_message_encode_error(frame, 0, code, om_bus_error_string(code));
    omi_server_client_dismiss(client, &srv->fanout, frame, frame_size);
}

static void on_client(OmiWatch *watch, uint32_t events) {
    OmiServerClient *client = (OmiServerClient *)watch;
    OmBusTcpServer *srv = client->owner;
    if (events & OMI_LOOP_READ) {
        uint8_t input[64];
        ssize_t got = omi_socket_recv(watch->fd, input, sizeof input);
        if (got < 0) {
            drop_client(srv, client);
            return;
        }
        if (got > 0)
            refuse_input(srv, client, input, (size_t)got);
    }
    if ((events & OMI_LOOP_HANGUP) ||
        ((events & OMI_LOOP_WRITE) && !omi_server_client_flush(client, srv->loop, &srv->fanout)))
        drop_client(srv, client);
}

static OmiServerClient *free_slot(OmBusTcpServer *srv) {
    if (srv->client_count == srv->max_clients)
        return NULL;
    for (uint32_t i = 0; i < srv->slots_used; i++)
        if (srv->clients[i].watch.fd < 0)
            return &srv->clients[i];
    return &srv->clients[srv->slots_used++];
}

static void on_connect(OmiWatch *watch, uint32_t events) {
    (void)events;
    OmBusTcpServer *srv = (OmBusTcpServer *)((char *)watch - offsetof(OmBusTcpServer, listener));
    /* Bounded: a flood of connections must not keep the clients that are there from their records. */
    for (int i = 0; i < 256; i++) {
        int fd = omi_socket_accept(watch->fd, NULL, 0);
        if (fd < 0)
            return;
        OmiServerClient *client = free_slot(srv);
        if (!client) {
            close(fd);
            continue;
        }
        *client = (OmiServerClient){.owner = srv, .position = srv->fanout.head};
        if (omi_loop_add(srv->loop, &client->watch, fd, OMI_LOOP_READ, on_client) != 0) {
            close(fd);
            continue;
        }
        srv->client_count++;
        srv->stats.clients_accepted++;
    }
}

int om_bus_tcp_server_create(OmBusTcpServer **out, const OmBusTcpServerConfig *config) {
    if (!out || !config)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_server_create without %s", out ? "a config" : "an out pointer");
    *out = NULL;
    if (config->max_clients > MAX_CLIENTS_LIMIT)
        return omi_fail(OM_ERR_BUS_INIT, "max_clients %u, at most %d", config->max_clients, MAX_CLIENTS_LIMIT);
    OmBusTcpServer *srv = calloc(1, sizeof *srv);
    if (!srv)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "TCP server");
    srv->listener.fd = -1;
    srv->max_clients = config->max_clients ? config->max_clients : OM_BUS_TCP_DEFAULT_MAX_CLIENTS;
    srv->clients = calloc(srv->max_clients, sizeof *srv->clients);
    for (uint32_t i = 0; srv->clients && i < srv->max_clients; i++)
        srv->clients[i].watch.fd = -1;
    int rc = srv->clients ? 0 : omi_fail(OM_ERR_BUS_NO_MEMORY, "%u clients", srv->max_clients);
    if (rc == 0)
        rc = omi_fanout_open(&srv->fanout,
                             config->send_buf_size ? config->send_buf_size : OM_BUS_TCP_DEFAULT_SEND_BUF_SIZE);
    if (rc == 0)
        rc = omi_loop_create(&srv->loop, OMI_LOOP_BEST);
    if (rc == 0) {
        const char *host = config->bind_addr ? config->bind_addr : "0.0.0.0";
        int fd = rc = omi_socket_listen(host, config->port, 128, &srv->port);
        if (fd >= 0) {
            rc = omi_loop_add(srv->loop, &srv->listener, fd, OMI_LOOP_READ, on_connect);
            if (rc != 0)
                close(fd);
        }
    }
    if (rc < 0) {
        om_bus_tcp_server_destroy(srv);
        return rc;
    }
    *out = srv;
    return 0;
}

/** Move the fanout's tail to the slowest client. */
static void refresh_tail(OmBusTcpServer *srv) {
    uint64_t tail = srv->fanout.head;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        const OmiServerClient *client = &srv->clients[i];
        if (client->watch.fd >= 0 && !client->doomed && client->position < tail)
            tail = client->position;
    }
    omi_fanout_release(&srv->fanout, tail);
}

/** Warn and doom every client that the next `size` bytes would put more than the limit behind. */
static OMI_COLD void dismiss_slow(OmBusTcpServer *srv, uint32_t size) {
    const OmiFanout *fanout = &srv->fanout;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        OmiServerClient *client = &srv->clients[i];
        uint64_t pending = fanout->head - client->position;
        if (client->watch.fd < 0 || client->doomed || pending + size <= fanout->limit)
            continue;
        uint8_t warning[OMI_WIRE_SLOW_WARNING];
        omi_wire_encode_slow_warning(warning, (uint32_t)pending, fanout->limit);
        bool fits = pending + sizeof warning <= fanout->limit;
        omi_server_client_dismiss(client, fanout, warning, fits ? sizeof warning : 0);
        srv->stats.slow_client_drops++;
    }
}

static OMI_COLD uint8_t *make_room(OmBusTcpServer *srv, uint32_t size) {
    refresh_tail(srv);
    uint8_t *to = omi_fanout_reserve(&srv->fanout, size);
    if (to)
        return to;
    dismiss_slow(srv, size);
    refresh_tail(srv);
    return omi_fanout_reserve(&srv->fanout, size);
}

static inline void queue_record(OmBusTcpServer *srv, uint64_t wal_seq, uint8_t wal_type, const void *payload,
                                uint16_t len) {
    uint32_t size = omi_wire_size(len);
    srv->stats.records_broadcast++;
    srv->stats.bytes_broadcast += len;
    if (srv->client_count == 0)
        return;
    uint8_t *to = omi_fanout_reserve(&srv->fanout, size);
    if (OMI_UNLIKELY(!to)) {
        to = make_room(srv, size);
        if (!to) /* longer than the whole buffer: every client was dropped for it */
            return;
    }
    omi_wire_encode(to, wal_seq, wal_type, payload, len);
    omi_fanout_commit(&srv->fanout, size);
}

int om_bus_tcp_server_broadcast(OmBusTcpServer *srv, uint64_t wal_seq, uint8_t wal_type, const void *payload,
                                uint16_t len) {
    if (OMI_UNLIKELY(!srv || (!payload && len)))
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_server_broadcast without %s", srv ? "a payload" : "a server");
    queue_record(srv, wal_seq, wal_type, payload, len);
    return 0;
}

int om_bus_tcp_server_broadcast_batch(OmBusTcpServer *srv, const OmBusRecord *recs, uint32_t count) {
    if (!srv || (!recs && count))
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_server_broadcast_batch without %s", srv ? "records" : "a server");
    for (uint32_t i = 0; i < count; i++)
        if (!recs[i].payload && recs[i].payload_len)
            return omi_fail(OM_ERR_BUS_INIT, "record %u of the batch (wal_seq %llu) has no payload", i,
                            (unsigned long long)recs[i].wal_seq);
    for (uint32_t i = 0; i < count; i++)
        queue_record(srv, recs[i].wal_seq, recs[i].wal_type, recs[i].payload, recs[i].payload_len);
    return 0;
}

/** Send to every client that is not known to be blocked; a full socket announces itself through the loop. */
static void flush_all(OmBusTcpServer *srv) {
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        OmiServerClient *client = &srv->clients[i];
        if (client->watch.fd < 0)
            continue;
        bool pending = client->doomed || client->position != srv->fanout.head;
        if (pending && (!client->blocked || client->doomed) &&
            !omi_server_client_flush(client, srv->loop, &srv->fanout))
            drop_client(srv, client);
    }
}

static void close_doomed(OmBusTcpServer *srv) {
    for (uint32_t i = 0; i < srv->slots_used; i++)
        if (srv->clients[i].watch.fd >= 0 && srv->clients[i].doomed) {
            omi_server_client_flush(&srv->clients[i], srv->loop, &srv->fanout);
            drop_client(srv, &srv->clients[i]);
        }
}

int om_bus_tcp_server_wait_io(OmBusTcpServer *srv, int64_t timeout_ns) {
    if (!srv)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_server_poll_io without a server");
    flush_all(srv); /* before looking for events: what was just broadcast should leave at once */
    int rc = omi_loop_run(srv->loop, timeout_ns);
    close_doomed(srv);
    refresh_tail(srv);
    return rc < 0 ? rc : 0;
}

int om_bus_tcp_server_poll_io(OmBusTcpServer *srv) {
    return om_bus_tcp_server_wait_io(srv, 0);
}

uint32_t om_bus_tcp_server_client_count(const OmBusTcpServer *srv) {
    return srv ? srv->client_count : 0;
}

uint16_t om_bus_tcp_server_port(const OmBusTcpServer *srv) {
    return srv ? srv->port : 0;
}

void om_bus_tcp_server_stats(const OmBusTcpServer *srv, OmBusTcpServerStats *out) {
    if (!out)
        return;
    *out = srv ? srv->stats : (OmBusTcpServerStats){0};
}

void om_bus_tcp_server_destroy(OmBusTcpServer *srv) {
    if (!srv)
        return;
    for (uint32_t i = 0; i < srv->slots_used; i++)
        if (srv->clients[i].watch.fd >= 0) {
            omi_server_client_flush(&srv->clients[i], srv->loop, &srv->fanout);
            omi_server_client_close(&srv->clients[i], srv->loop);
        }
    int fd = srv->listener.fd;
    if (srv->loop)
        omi_loop_remove(srv->loop, &srv->listener);
    if (fd >= 0)
        close(fd);
    omi_loop_destroy(srv->loop);
    omi_fanout_close(&srv->fanout);
    free(srv->clients);
    free(srv);
}
