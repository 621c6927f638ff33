#include <errno.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "tcp/net_server.h"
#include "tcp/socket.h"

enum { ACCEPTS_PER_TURN = 64 };

/* A token bucket: accepts_per_s on average, a tenth of a second's worth at once. */
static void refill(OmNetServer *srv, uint64_t now_ns) {
    double burst = srv->config.accepts_per_s / 10.0 + 1;
    srv->accept_tokens += (double)(now_ns - srv->accept_ns) * srv->config.accepts_per_s / (double)OMI_NS_PER_S;
    if (srv->accept_tokens > burst)
        srv->accept_tokens = burst;
    srv->accept_ns = now_ns;
}

/** Leave further connections in the kernel's queue; the sweep resumes. */
static void pause_accepting(OmNetServer *srv) {
    omi_loop_set_interest(srv->loop, &srv->listener, 0);
    srv->accept_paused = true;
}

void omi_net_accept_resume(OmNetServer *srv, uint64_t now_ns) {
    refill(srv, now_ns);
    if (!srv->accept_paused || srv->accept_tokens < 1)
        return;
    srv->accept_paused = false;
    omi_loop_set_interest(srv->loop, &srv->listener, OMI_LOOP_READ);
}

static void refuse(OmNetServer *srv, int fd) {
    uint8_t frame[OMI_MESSAGE_ERROR_MAX];
    uint32_t size = omi_message_encode_error(frame, 0, OM_ERR_NET_LIMIT, "too many connections");
    omi_count(&srv->counters.refused, 1);
    (void)omi_socket_send(fd, frame, size);
    omi_socket_close_gently(fd);
}

/** Make room among those who owe a handshake: the one that has taken longest is the least likely to finish it. */
static void drop_oldest_handshake(OmNetServer *srv) {
    OmiNetConn *oldest = NULL;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        OmiNetConn *conn = srv->conns[i];
        if (conn && conn->in_handshake && (!oldest || conn->deadline_ns < oldest->deadline_ns))
            oldest = conn;
    }
    if (oldest) {
        omi_count(&srv->counters.refused, 1);
        omi_conn_close(oldest);
    }
}

static void welcome(OmNetServer *srv, int fd, const char *peer) {
    uint32_t slot = 0;
    while (slot < srv->slots_used && srv->conns[slot])
        slot++;
    if (slot == srv->config.max_connections) {
        refuse(srv, fd);
        return;
    }
    bool silent_served = omi_net_server_serves_silent(srv);
    if (!silent_served && srv->handshakes >= srv->config.max_handshakes)
        drop_oldest_handshake(srv);
    OmiNetConn *conn = omi_conn_open(srv, fd, slot, peer);
    if (!conn)
        return;
    if (slot == srv->slots_used)
        srv->slots_used++;
    if (silent_served) {
        (void)omi_conn_listen(conn, srv->streams[0]); /* failing, it may still ask for something else */
    } else {
        conn->in_handshake = true;
        srv->handshakes++;
    }
    omi_conn_set_deadline(conn, omi_monotonic_ns());
    /* Last: who sees it counted may rely on it being served. */
    omi_count(&srv->counters.connections, 1);
    omi_count(&srv->counters.accepted, 1);
}

void omi_net_accept(OmiWatch *watch, uint32_t events) {
    (void)events;
    OmNetServer *srv = (OmNetServer *)((char *)watch - offsetof(OmNetServer, listener));
    refill(srv, omi_monotonic_ns());
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        if (srv->accept_tokens < 1) {
            pause_accepting(srv);
            return;
        }
        char peer[80];
        int fd = omi_socket_accept(watch->fd, peer, sizeof peer);
        if (fd < 0) {
            if (errno != EAGAIN &&
                errno != EWOULDBLOCK) /* out of descriptors or memory: try again later, not at once */
                pause_accepting(srv);
            return;
        }
        srv->accept_tokens -= 1;
        welcome(srv, fd, peer);
    }
}
