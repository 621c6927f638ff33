#include "tcp/net_conn.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "tcp/net_server.h"
#include "tcp/socket.h"

enum {
    INPUT_BYTES = 2048,
    TURN_BYTES_MAX = 4 << 20, /* then others get their turn */
    CLOSING_MS = 2000,        /* how long a last message may take to leave */
};

static void on_event(OmiWatch *watch, uint32_t events) {
    OmiNetConn *conn = (OmiNetConn *)watch;
    if (events & OMI_LOOP_HANGUP)
        conn->lost = true;
    if ((events & OMI_LOOP_READ) && !conn->lost) {
        int rc = conn->input.bytes ? 0 : omi_recv_buffer_open(&conn->input, INPUT_BYTES, OMI_MESSAGE_REQUEST_MAX);
        /* A full buffer of complete requests (held back by a REPLAY) takes no more; READ is not asked for then. */
        if (rc == 0)
            rc = omi_recv_buffer_fill(&conn->input, watch->fd);
        if (rc == OM_ERR_BUS_TCP_DISCONNECTED || rc == OM_ERR_BUS_NO_MEMORY)
            conn->lost = true;
    }
    omi_conn_run(conn);
}

OmiNetConn *omi_conn_open(OmNetServer *srv, int fd, uint32_t slot, const char *peer) {
    OmiNetConn *conn = calloc(1, sizeof *conn);
    if (!conn || omi_loop_add(srv->loop, &conn->watch, fd, OMI_LOOP_READ, on_event) != 0) {
        free(conn);
        close(fd);
        return NULL;
    }
    conn->server = srv;
    conn->slot = slot;
    conn->stop = UINT64_MAX;
    strncpy(conn->peer, peer, sizeof conn->peer - 1);
    srv->conns[slot] = conn;
    return conn;
}

static void stop_listening(OmiNetConn *conn) {
    if (conn->listening)
        omi_net_stream_unlisten(conn->listening);
    conn->listening = NULL;
    conn->leave = false;
    conn->stop = UINT64_MAX;
}

void omi_conn_close(OmiNetConn *conn) {
    OmNetServer *srv = conn->server;
    int fd = conn->watch.fd;
    stop_listening(conn);
    if (conn->transfer.stream)
        omi_count(&srv->counters.transfers, -1);
    omi_transfer_close(&conn->transfer);
    omi_loop_remove(srv->loop, &conn->watch);
    omi_socket_close_gently(fd);
    if (conn->in_handshake)
        srv->handshakes--;
    srv->conns[conn->slot] = NULL;
    omi_count(&srv->counters.connections, -1);
    omi_count(&srv->counters.closed, 1);
    omi_recv_buffer_close(&conn->input);
    free(conn->handshake);
    free(conn->queue);
    free(conn);
}

void omi_conn_queue(OmiNetConn *conn, const void *frames, uint32_t size) {
    if (conn->queue_size + size > conn->queue_capacity) {
        uint32_t capacity = conn->queue_size + size + 256;
        uint8_t *queue = realloc(conn->queue, capacity);
        if (!queue) {
            conn->lost = true;
            return;
        }
        conn->queue = queue;
        conn->queue_capacity = capacity;
    }
    memcpy(conn->queue + conn->queue_size, frames, size);
    conn->queue_size += size;
    if (conn->listening && conn->stop == UINT64_MAX)
        conn->stop = conn->listening->fanout.head; /* a frame's end, and where this belongs in time */
}

void omi_conn_error(OmiNetConn *conn, uint64_t request, int code, const char *text, bool fatal) {
    uint8_t frame[OMI_MESSAGE_ERROR_MAX];
    omi_conn_queue(conn, frame, omi_message_encode_error(frame, request, code, text));
    omi_count(&conn->server->counters.request_errors, 1);
    if (fatal)
        omi_conn_close_after_queue(conn);
}

void omi_conn_close_after_queue(OmiNetConn *conn) {
    conn->closing = true;
    conn->leave = conn->listening != NULL;
    conn->deadline_ns = omi_monotonic_ns() + CLOSING_MS * OMI_NS_PER_MS;
}

int omi_conn_listen(OmiNetConn *conn, OmiNetStream *stream) {
    int rc = omi_net_stream_listen(stream);
    if (rc < 0)
        return rc;
    conn->listening = stream;
    conn->position = stream->fanout.head;
    conn->stop = conn->queue_size > 0 ? conn->position : UINT64_MAX;
    return 0;
}

void omi_conn_detach(OmiNetConn *conn) {
    const OmiFanout *fanout = &conn->listening->fanout;
    uint64_t owed = fanout->head - conn->position;
    if (conn->queue_size == 0)
        omi_conn_queue(conn, omi_fanout_at(fanout, conn->position), (uint32_t)owed);
    else
        conn->lost =
            true; /* the queue belongs into the middle of what is owed: not worth sorting out for its last words */
    stop_listening(conn);
}

void omi_conn_set_deadline(OmiNetConn *conn, uint64_t now_ns) {
    const OmNetServerConfig *config = &conn->server->config;
    if (conn->closing)
        return;
    if (conn->in_handshake)
        conn->deadline_ns = now_ns + (uint64_t)config->handshake_timeout_ms * OMI_NS_PER_MS;
    else if (conn->phase != OMI_CONN_READY || conn->listening || conn->transfer.stream)
        conn->deadline_ns = 0;
    else
        conn->deadline_ns = now_ns + (uint64_t)config->idle_timeout_ms * OMI_NS_PER_MS;
}

static void count_sent(OmiNetConn *conn, int64_t sent) {
    conn->bytes_sent += (uint64_t)sent;
    omi_count(&conn->server->counters.bytes_sent, sent);
}

/** Send to the socket; false when it is full or lost. */
static bool send_bytes(OmiNetConn *conn, const void *bytes, uint64_t size, uint64_t *advance) {
    ssize_t sent = omi_socket_send(conn->watch.fd, bytes, size);
    if (sent < 0) {
        conn->lost = true;
        return false;
    }
    count_sent(conn, sent);
    *advance += (uint64_t)sent;
    conn->blocked = (uint64_t)sent < size;
    return !conn->blocked;
}

static bool flush_fanout(OmiNetConn *conn) {
    if (!conn->listening)
        return true;
    const OmiFanout *fanout = &conn->listening->fanout;
    uint64_t until = conn->stop < fanout->head ? conn->stop : fanout->head;
    if (conn->position < until &&
        !send_bytes(conn, omi_fanout_at(fanout, conn->position), until - conn->position, &conn->position))
        return false;
    if (conn->leave && conn->position == conn->stop)
        stop_listening(conn);
    return true;
}

static bool flush_queue(OmiNetConn *conn) {
    if (conn->queue_size == 0)
        return true;
    uint64_t sent = conn->queue_sent;
    bool done = send_bytes(conn, conn->queue + sent, conn->queue_size - sent, &sent);
    conn->queue_sent = (uint32_t)sent;
    if (!done)
        return false;
    conn->queue_size = conn->queue_sent = 0;
    conn->stop = UINT64_MAX;
    return true;
}

static bool flush_span(OmiNetConn *conn, int64_t *budget) {
    while (omi_transfer_pending(&conn->transfer) > 0) {
        int64_t sent = omi_transfer_send(&conn->transfer, conn->watch.fd);
        if (sent < 0) {
            conn->lost = true;
            return false;
        }
        count_sent(conn, sent);
        *budget -= sent;
        if (sent == 0) {
            conn->blocked = true;
            return false;
        }
    }
    return true;
}

static void end_transfer(OmiNetConn *conn) {
    omi_transfer_end(&conn->transfer);
    omi_count(&conn->server->counters.transfers, -1);
    omi_conn_set_deadline(conn, omi_monotonic_ns());
}

/** Load more of the transfer: true when there are bytes to send now. */
static bool load_more(OmiNetConn *conn) {
    OmiTransfer *transfer = &conn->transfer;
    int rc = omi_transfer_next(transfer);
    if (rc == 1) {
        omi_count(&conn->server->counters.records_sent, (int64_t)transfer->span.records);
        return true;
    }
    if (rc == 0 && transfer->follow)
        return false;
    if (rc == 0) {
        OmiEnd end = {.header = omi_message_header(OMI_MESSAGE_END), .next = omi_transfer_position(transfer)};
        uint8_t frame[OMI_WIRE_HEADER + sizeof end];
        omi_conn_queue(conn, frame, omi_message_encode(frame, transfer->request, &end, sizeof end, NULL, 0));
    } else
        omi_conn_error(conn, transfer->request, rc, om_bus_last_error(), false);
    end_transfer(conn);
    return true;
}

/** Send until there is nothing more to send or the socket is full. */
static void flush(OmiNetConn *conn) {
    int64_t budget = TURN_BYTES_MAX;
    conn->blocked = false;
    while (flush_span(conn, &budget) && flush_fanout(conn) && flush_queue(conn)) {
        if (conn->closing || !conn->transfer.stream || !load_more(conn))
            return;
        if (budget <= 0) {
            conn->blocked = true; /* the loop comes back at once: the socket can be written */
            return;
        }
    }
}

/** Whether the next request may be taken. */
static bool is_willing(const OmiNetConn *conn) {
    return !conn->lost && !conn->closing && !conn->blocked && conn->queue_size == 0 &&
           !(conn->transfer.stream && !conn->transfer.follow);
}

/** Act on the next complete request; false when there is none. */
static bool take_request(OmiNetConn *conn) {
    OmiWireFrame frame;
    int rc = omi_recv_buffer_peek(&conn->input, &frame);
    if (rc == 0)
        return false;
    if (rc < 0) {
        omi_count(&conn->server->counters.protocol_errors, 1);
        omi_conn_error(conn, 0, OM_ERR_NET_PROTOCOL, om_bus_last_error(), true);
        return true;
    }
    omi_count(&conn->server->counters.requests, 1);
    omi_net_request(conn, &frame);
    omi_recv_buffer_skip(&conn->input, &frame);
    omi_conn_set_deadline(conn, omi_monotonic_ns());
    return true;
}

void omi_conn_run(OmiNetConn *conn) {
    if (!conn->lost)
        do
            flush(conn);
        while (is_willing(conn) && take_request(conn));
    if (conn->lost || (conn->closing && conn->queue_size == 0)) {
        omi_conn_close(conn);
        return;
    }
    uint32_t interest = (is_willing(conn) ? OMI_LOOP_READ : 0U) | (conn->blocked ? OMI_LOOP_WRITE : 0U);
    if (omi_loop_set_interest(conn->server->loop, &conn->watch, interest) != 0)
        omi_conn_close(conn);
}
