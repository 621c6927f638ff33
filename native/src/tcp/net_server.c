#include "tcp/net_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/sha256.h"
#include "tcp/socket.h"

enum { MAX_CONNECTIONS_LIMIT = 65536, BACKLOG = 512 };

static uint32_t or_default(uint32_t value, uint32_t fallback) {
    return value ? value : fallback;
}

static uint64_t sweep_interval_ns(const OmNetServerConfig *config) {
    uint32_t least_ms =
        config->handshake_timeout_ms < config->idle_timeout_ms ? config->handshake_timeout_ms : config->idle_timeout_ms;
    uint64_t interval_ms = least_ms / 10;
    interval_ms = interval_ms < 1 ? 1 : interval_ms > 200 ? 200 : interval_ms;
    return interval_ms * OMI_NS_PER_MS;
}

static void set_config(OmNetServer *srv, const OmNetServerConfig *config) {
    srv->config = *config;
    srv->config.bind_addr = NULL;
    srv->config.secret = NULL;
    srv->config.max_connections = or_default(config->max_connections, 1024);
    srv->config.max_handshakes = or_default(config->max_handshakes, 128);
    srv->config.handshake_timeout_ms = or_default(config->handshake_timeout_ms, 10000);
    srv->config.idle_timeout_ms = or_default(config->idle_timeout_ms, 300000);
    srv->config.accepts_per_s = or_default(config->accepts_per_s, 1000);
    srv->config.send_buf_size = or_default(config->send_buf_size, 1 << 20);
    srv->sweep_interval_ns = sweep_interval_ns(&srv->config);
}

static int copy_secret(OmNetServer *srv, const OmNetServerConfig *config) {
    if (!config->secret)
        return 0;
    if (config->secret_size == 0 || config->secret_size > OM_NET_SECRET_MAX)
        return omi_fail(OM_ERR_BUS_INIT, "secret of %u bytes, 1 to %u expected", config->secret_size,
                        OM_NET_SECRET_MAX);
    srv->secret = malloc(config->secret_size);
    if (!srv->secret)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "secret");
    memcpy(srv->secret, config->secret, config->secret_size);
    return 0;
}

static int start_listening(OmNetServer *srv, const OmNetServerConfig *config) {
    int fd = omi_socket_listen(config->bind_addr ? config->bind_addr : "127.0.0.1", config->port, BACKLOG, &srv->port);
    if (fd < 0)
        return fd;
    int rc = omi_loop_add(srv->loop, &srv->listener, fd, OMI_LOOP_READ, omi_net_accept);
    if (rc != 0)
        close(fd);
    return rc;
}

int om_net_server_create(OmNetServer **out, const OmNetServerConfig *config) {
    if (!out || !config)
        return omi_fail(OM_ERR_BUS_INIT, "om_net_server_create without %s", out ? "a config" : "an out pointer");
    *out = NULL;
    if (config->max_connections > MAX_CONNECTIONS_LIMIT)
        return omi_fail(OM_ERR_BUS_INIT, "max_connections %u, at most %d", config->max_connections,
                        MAX_CONNECTIONS_LIMIT);
    OmNetServer *srv = calloc(1, sizeof *srv);
    if (!srv)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "server");
    srv->listener.fd = -1;
    set_config(srv, config);
    srv->accept_ns = omi_monotonic_ns();
    srv->conns = calloc(srv->config.max_connections, sizeof(OmiNetConn *));
    int rc = srv->conns ? 0 : omi_fail(OM_ERR_BUS_NO_MEMORY, "%u connections", srv->config.max_connections);
    if (rc == 0 && !omi_random_bytes(&srv->id, sizeof srv->id))
        rc = omi_fail(OM_ERR_BUS_INIT, "the system gives no random numbers");
    if (rc == 0)
        rc = copy_secret(srv, config);
    if (rc == 0)
        rc = omi_loop_create(&srv->loop, OMI_LOOP_BEST);
    if (rc == 0)
        rc = start_listening(srv, config);
    if (rc != 0) {
        om_net_server_destroy(srv);
        return rc;
    }
    *out = srv;
    return 0;
}

OmiNetStream *omi_net_server_stream(OmNetServer *srv, const char *name, size_t length) {
    if (length == 0)
        return srv->stream_count > 0 ? srv->streams[0] : NULL;
    for (uint32_t i = 0; i < srv->stream_count; i++)
        if (strlen(srv->streams[i]->name) == length && memcmp(srv->streams[i]->name, name, length) == 0)
            return srv->streams[i];
    return NULL;
}

static int check_new_stream(OmNetServer *srv, const char *name) {
    if (!srv || !name)
        return omi_fail(OM_ERR_BUS_INIT, "adding a stream without %s", srv ? "a name" : "a server");
    if (srv->stream_count == OM_NET_STREAMS_MAX)
        return omi_fail(OM_ERR_NET_LIMIT, "more than %u streams", OM_NET_STREAMS_MAX);
    if (*name && omi_net_server_stream(srv, name, strlen(name)))
        return omi_fail(OM_ERR_BUS_INIT, "two streams called \"%s\"", name);
    return 0;
}

int om_net_server_add_log(OmNetServer *srv, const char *name, const char *dir) {
    int rc = check_new_stream(srv, name);
    if (rc == 0)
        rc = omi_net_stream_open_log(&srv->streams[srv->stream_count], name, dir, srv->loop, srv->config.send_buf_size);
    if (rc == 0)
        srv->stream_count++;
    return rc;
}

int om_net_server_add_ring(OmNetServer *srv, const char *name, const char *ring_name, uint32_t consumer_index) {
    int rc = check_new_stream(srv, name);
    if (rc == 0)
        rc = omi_net_stream_open_ring(&srv->streams[srv->stream_count], name, ring_name, consumer_index, srv->loop,
                                      srv->config.send_buf_size);
    if (rc == 0)
        srv->stream_count++;
    return rc;
}

static void expire(OmNetServer *srv, OmiNetConn *conn) {
    if (conn->closing) { /* its last words do not get through */
        omi_conn_close(conn);
        return;
    }
    omi_count(&srv->counters.timeouts, 1);
    if (conn->in_handshake && srv->secret)
        omi_conn_error(conn, 0, OM_ERR_NET_AUTH_REQUIRED, "no proof of the secret in time", true);
    else
        omi_conn_error(conn, 0, OM_ERR_NET_TIMEOUT, conn->in_handshake ? "no HELLO in time" : "idle for too long",
                       true);
    omi_conn_run(conn);
}

/** Look at deadlines, now and then. */
static void sweep(OmNetServer *srv) {
    uint64_t now_ns = omi_monotonic_ns();
    if (now_ns < srv->sweep_ns)
        return;
    srv->sweep_ns = now_ns + srv->sweep_interval_ns;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        OmiNetConn *conn = srv->conns[i];
        if (conn && conn->deadline_ns && conn->deadline_ns < now_ns)
            expire(srv, conn);
    }
    while (srv->slots_used > 0 && !srv->conns[srv->slots_used - 1])
        srv->slots_used--;
    omi_net_accept_resume(srv, now_ns);
}

int om_net_server_step(OmNetServer *srv, int64_t timeout_ns) {
    if (!srv)
        return omi_fail(OM_ERR_BUS_INIT, "om_net_server_step without a server");
    int64_t limit = srv->hot ? 0 : (int64_t)srv->sweep_interval_ns;
    int rc = omi_loop_run(srv->loop, timeout_ns < 0 || timeout_ns > limit ? limit : timeout_ns);
    omi_net_live_serve(srv);
    sweep(srv);
    return rc < 0 ? rc : 0;
}

int om_net_server_run(OmNetServer *srv) {
    if (!srv)
        return omi_fail(OM_ERR_BUS_INIT, "om_net_server_run without a server");
    int rc = 0;
    while (rc == 0 && !atomic_load_explicit(&srv->stop, memory_order_acquire))
        rc = om_net_server_step(srv, -1);
    return rc;
}

void om_net_server_stop(OmNetServer *srv) {
    if (!srv)
        return;
    atomic_store_explicit(&srv->stop, true, memory_order_release);
    omi_loop_wake(srv->loop);
}

uint16_t om_net_server_port(const OmNetServer *srv) {
    return srv ? srv->port : 0;
}

void om_net_server_stats(const OmNetServer *srv, OmNetServerStats *out) {
    if (!out)
        return;
    *out = (OmNetServerStats){0};
    if (!srv)
        return;
#define GET(field) atomic_load_explicit(&((OmNetServer *)srv)->counters.field, memory_order_relaxed)
    out->connections = GET(connections);
    out->transfers = GET(transfers);
    out->connections_accepted = GET(accepted);
    out->connections_refused = GET(refused);
    out->connections_closed = GET(closed);
    out->auth_failures = GET(auth_failures);
    out->protocol_errors = GET(protocol_errors);
    out->timeouts = GET(timeouts);
    out->requests = GET(requests);
    out->request_errors = GET(request_errors);
    out->records_sent = GET(records_sent);
    out->bytes_sent = GET(bytes_sent);
    out->slow_client_drops = GET(slow_client_drops);
#undef GET
}

static OmNetConnectionInfo describe(const OmiNetConn *conn) {
    const OmiNetStream *stream = conn->transfer.stream ? conn->transfer.stream : conn->listening;
    OmNetConnectionInfo info = {
        .peer = conn->peer, .stream = stream ? stream->name : "", .agent = conn->agent, .bytes_sent = conn->bytes_sent};
    if (conn->transfer.stream) {
        int64_t last = om_log_last_seq(stream->status);
        info.next_seq = omi_transfer_position(&conn->transfer);
        info.lag = last > 0 && (uint64_t)last + 1 > info.next_seq ? (uint64_t)last + 1 - info.next_seq : 0;
    }
    return info;
}

int om_net_server_connections(OmNetServer *srv, int (*fn)(const OmNetConnectionInfo *info, void *ctx), void *ctx) {
    if (!srv || !fn)
        return omi_fail(OM_ERR_BUS_INIT, "om_net_server_connections without %s", srv ? "a function" : "a server");
    int seen = 0;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        if (!srv->conns[i])
            continue;
        OmNetConnectionInfo info = describe(srv->conns[i]);
        seen++;
        if (fn(&info, ctx) != 0)
            break;
    }
    return seen;
}

/** Tell those who can understand it that they may come back later. */
static void say_goodbye(OmiNetConn *conn) {
    if (conn->phase == OMI_CONN_READY && !conn->closing && !conn->blocked &&
        omi_transfer_pending(&conn->transfer) == 0) {
        omi_conn_error(conn, conn->transfer.request, OM_ERR_NET_SHUTDOWN, om_bus_error_string(OM_ERR_NET_SHUTDOWN),
                       true);
        omi_conn_run(conn);
    } else
        omi_conn_close(conn);
}

void om_net_server_destroy(OmNetServer *srv) {
    if (!srv)
        return;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        if (srv->conns[i])
            say_goodbye(srv->conns[i]);
        if (srv->conns[i])
            omi_conn_close(srv->conns[i]);
    }
    for (uint32_t i = 0; i < srv->stream_count; i++)
        omi_net_stream_close(srv->streams[i]);
    int fd = srv->listener.fd;
    if (srv->loop)
        omi_loop_remove(srv->loop, &srv->listener);
    if (fd >= 0)
        close(fd);
    omi_loop_destroy(srv->loop);
    if (srv->secret)
        omi_secret_wipe(srv->secret, srv->config.secret_size);
    free(srv->secret);
    free(srv->conns);
    free(srv);
}
