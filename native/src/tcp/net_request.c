#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/sha256.h"
#include "tcp/auth.h"
#include "tcp/net_server.h"

/* Every handler answers by itself; what it returns is an error that ends the connection. */

static int finish_handshake(OmiNetConn *conn) {
    conn->phase = OMI_CONN_READY;
    if (conn->in_handshake)
        conn->server->handshakes--;
    conn->in_handshake = false;
    free(conn->handshake);
    conn->handshake = NULL;
    return 0;
}

static int answer_hello(OmiNetConn *conn, uint64_t request) {
    OmNetServer *srv = conn->server;
    char agent[64];
    int agent_len = snprintf(agent, sizeof agent, "ombus %s", om_bus_version());
    OmiHelloAnswer answer = {.header = omi_message_header(OMI_MESSAGE_HELLO),
                             .server_id = srv->id,
                             .flags = srv->secret ? OMI_HELLO_AUTH_REQUIRED : 0,
                             .streams = srv->secret ? 0 : srv->stream_count,
                             .agent_len = (uint16_t)agent_len};
    if (!omi_random_bytes(answer.nonce, sizeof answer.nonce))
        return omi_fail(OM_ERR_NET_SOURCE, "the system gives no random numbers");
    uint8_t frame[OMI_WIRE_HEADER + sizeof answer + sizeof agent];
    uint32_t size = omi_message_encode(frame, request, &answer, sizeof answer, agent, answer.agent_len);
    conn->handshake->server_size = (uint16_t)(size - OMI_WIRE_HEADER);
    memcpy(conn->handshake->server_hello, frame + OMI_WIRE_HEADER, conn->handshake->server_size);
    omi_conn_queue(conn, frame, size);
    conn->leave = conn->listening != NULL; /* no longer silent: the live frames end in front of this answer */
    return 0;
}

static int on_hello(OmiNetConn *conn, const OmiWireFrame *frame) {
    OmiHelloRequest hello;
    const char *agent;
    uint16_t agent_len;
    int rc = omi_message_decode_text(frame->payload, frame->payload_len, &hello, sizeof hello, OMI_MESSAGE_TEXT_MAX,
                                     &agent, &agent_len);
    if (rc != 0)
        return rc;
    size_t shown = agent_len < sizeof conn->agent - 1 ? agent_len : sizeof conn->agent - 1;
    for (size_t i = 0; i < shown; i++) /* it will be printed */
        conn->agent[i] = agent[i] >= ' ' && agent[i] <= '~' ? agent[i] : '?';
    conn->handshake = malloc(sizeof *conn->handshake);
    if (!conn->handshake)
        return omi_fail(OM_ERR_NET_LIMIT, "the server is out of memory");
    memcpy(conn->handshake->client_hello, frame->payload, frame->payload_len);
    conn->handshake->client_size = (uint16_t)frame->payload_len;
    rc = answer_hello(conn, frame->wal_seq);
    if (rc != 0 || !conn->server->secret)
        return rc != 0 ? rc : finish_handshake(conn);
    conn->phase = OMI_CONN_GREETED;
    if (!conn->in_handshake) { /* it was silent and served; now it owes a proof */
        conn->in_handshake = true;
        conn->server->handshakes++;
    }
    return 0;
}

static int on_auth(OmiNetConn *conn, const OmiWireFrame *frame) {
    OmNetServer *srv = conn->server;
    OmiAuth auth;
    uint8_t expected[OMI_PROOF_SIZE], bytes[OMI_WIRE_HEADER + sizeof auth];
    int rc = omi_message_decode(frame->payload, frame->payload_len, &auth, sizeof auth);
    if (rc != 0)
        return rc;
    const OmiHandshake *shake = conn->handshake;
    OmiTranscript transcript = {shake->client_hello, shake->server_hello, shake->client_size, shake->server_size};
    omi_auth_proof(OMI_AUTH_CLIENT, srv->secret, srv->config.secret_size, &transcript, expected);
    if (!omi_secret_equal(expected, auth.proof, sizeof expected)) {
        omi_count(&srv->counters.auth_failures, 1);
        return omi_fail(OM_ERR_NET_AUTH_FAILED, "the client does not know this server's secret");
    }
    auth.header = omi_message_header(OMI_MESSAGE_AUTH);
    omi_auth_proof(OMI_AUTH_SERVER, srv->secret, srv->config.secret_size, &transcript, auth.proof);
    omi_conn_queue(conn, bytes, omi_message_encode(bytes, frame->wal_seq, &auth, sizeof auth, NULL, 0));
    return finish_handshake(conn);
}

/** Append a stream's entry to the answer at `at`; returns its size. */
static size_t put_status(OmNetServer *srv, OmiNetStream *stream, uint64_t time_ns, uint8_t *at) {
    OmiStatusEntry entry;
    if (omi_net_stream_status(stream, time_ns, &entry) < 0)
        entry = (OmiStatusEntry){.flags = OMI_STREAM_UNAVAILABLE, .name_len = (uint16_t)strlen(stream->name)};
    if (stream == srv->streams[0])
        entry.flags |= OMI_STREAM_DEFAULT;
    memcpy(at, &entry, sizeof entry);
    memcpy(at + sizeof entry, stream->name, entry.name_len);
    return sizeof entry + entry.name_len;
}

static int no_stream(OmiNetConn *conn, uint64_t request, const char *name, uint16_t length) {
    char text[OM_NET_NAME_MAX + 64];
    snprintf(text, sizeof text, "no stream \"%.*s\" here", length < OM_NET_NAME_MAX ? length : (int)OM_NET_NAME_MAX,
             name);
    omi_conn_error(conn, request, OM_ERR_NET_NO_STREAM, text, false);
    return 0;
}

static int on_status(OmiNetConn *conn, const OmiWireFrame *frame) {
    OmNetServer *srv = conn->server;
    OmiStatusRequest request;
    const char *name;
    uint16_t length;
    int rc = omi_message_decode_text(frame->payload, frame->payload_len, &request, sizeof request, OMI_MESSAGE_TEXT_MAX,
                                     &name, &length);
    if (rc != 0)
        return rc;
    OmiNetStream *one = length ? omi_net_server_stream(srv, name, length) : NULL;
    if (length && !one)
        return no_stream(conn, frame->wal_seq, name, length);
    OmiStatusAnswer answer = {.header = omi_message_header(OMI_MESSAGE_STATUS), .count = one ? 1 : srv->stream_count};
    uint8_t *payload = malloc(sizeof answer + answer.count * (sizeof(OmiStatusEntry) + OM_NET_NAME_MAX));
    if (!payload)
        return omi_fail(OM_ERR_NET_LIMIT, "the server is out of memory");
    size_t size = 0;
    for (uint32_t i = 0; i < answer.count; i++)
        size += put_status(srv, one ? one : srv->streams[i], request.time_ns, payload + size);
    uint8_t head[OMI_WIRE_HEADER + sizeof answer];
    OmBusTcpFrameHeader header = {OM_BUS_TCP_FRAME_MAGIC, OMI_WIRE_TYPE_CONTROL, 0, (uint16_t)(sizeof answer + size),
                                  frame->wal_seq};
    memcpy(head, &header, sizeof header);
    memcpy(head + sizeof header, &answer, sizeof answer);
    omi_conn_queue(conn, head, sizeof head);
    omi_conn_queue(conn, payload, (uint32_t)size);
    free(payload);
    return 0;
}

static void begin_log(OmiNetConn *conn, OmiNetStream *stream, const OmiRangeRequest *request, uint64_t number,
                      bool follow) {
    OmiRangeAnswer answer;
    uint8_t bytes[OMI_WIRE_HEADER + sizeof answer];
    int rc = omi_transfer_begin(&conn->transfer, stream, request, follow, &answer);
    if (rc < 0) {
        omi_conn_error(conn, number, rc, om_bus_last_error(), false);
        return;
    }
    conn->transfer.request = number;
    omi_count(&conn->server->counters.transfers, 1);
    omi_conn_queue(conn, bytes, omi_message_encode(bytes, number, &answer, sizeof answer, NULL, 0));
}

/** A stream without log: only its live end can be had. */
static void begin_live(OmiNetConn *conn, OmiNetStream *stream, const OmiRangeRequest *request, uint64_t number,
                       bool follow) {
    uint8_t bytes[OMI_WIRE_HEADER + sizeof(OmiRangeAnswer)];
    OmiStatusEntry status;
    if (!follow || request->from != OM_NET_FROM_LIVE) {
        omi_conn_error(conn, number, OM_ERR_NET_NO_HISTORY, om_bus_error_string(OM_ERR_NET_NO_HISTORY), false);
        return;
    }
    int rc = omi_net_stream_status(stream, 0, &status);
    if (rc == 0)
        rc = omi_conn_listen(conn, stream);
    if (rc < 0) {
        omi_conn_error(conn, number, OM_ERR_NET_SOURCE, om_bus_error_string(rc), false);
        return;
    }
    OmiRangeAnswer answer = {.header = omi_message_header(OMI_MESSAGE_SUBSCRIBE),
                             .from = status.last_seq + 1,
                             .to = UINT64_MAX,
                             .epoch = status.epoch};
    omi_conn_queue(conn, bytes, omi_message_encode(bytes, number, &answer, sizeof answer, NULL, 0));
}

static int on_range(OmiNetConn *conn, const OmiWireFrame *frame, bool follow) {
    OmiRangeRequest request;
    const char *name;
    uint16_t length;
    int rc = omi_message_decode_text(frame->payload, frame->payload_len, &request, sizeof request, OMI_MESSAGE_TEXT_MAX,
                                     &name, &length);
    if (rc != 0)
        return rc;
    OmiNetStream *stream = omi_net_server_stream(conn->server, name, length);
    if (!stream)
        return no_stream(conn, frame->wal_seq, name, length);
    if (conn->transfer.stream || conn->listening)
        omi_conn_error(conn, frame->wal_seq, OM_ERR_NET_BUSY, om_bus_error_string(OM_ERR_NET_BUSY), false);
    else if (stream->dir)
        begin_log(conn, stream, &request, frame->wal_seq, follow);
    else
        begin_live(conn, stream, &request, frame->wal_seq, follow);
    return 0;
}

static int dispatch(OmiNetConn *conn, const OmiWireFrame *frame) {
    if (frame->wal_type != OMI_WIRE_TYPE_CONTROL || (frame->flags & OMI_WIRE_FLAG_EXT))
        return omi_fail(OM_ERR_NET_PROTOCOL, "only control frames are taken from clients, not wal_type 0x%02X",
                        frame->wal_type);
    int op = omi_message_op(frame->payload, frame->payload_len);
    if (op < 0)
        return op;
    OmiMessageOp due = conn->phase == OMI_CONN_NEW ? OMI_MESSAGE_HELLO : OMI_MESSAGE_AUTH;
    if (conn->phase != OMI_CONN_READY && op != (int)due)
        return omi_fail(conn->phase == OMI_CONN_GREETED ? OM_ERR_NET_AUTH_REQUIRED : OM_ERR_NET_PROTOCOL,
                        "%s where %s is due", omi_message_op_name(op), omi_message_op_name((int)due));
    switch (op) {
    case OMI_MESSAGE_HELLO:
        return conn->phase == OMI_CONN_NEW ? on_hello(conn, frame) : omi_fail(OM_ERR_NET_PROTOCOL, "a second HELLO");
    case OMI_MESSAGE_AUTH:
        return conn->phase == OMI_CONN_GREETED ? on_auth(conn, frame)
                                               : omi_fail(OM_ERR_NET_PROTOCOL, "AUTH that is not due");
    case OMI_MESSAGE_STATUS:
        return on_status(conn, frame);
    case OMI_MESSAGE_REPLAY:
    case OMI_MESSAGE_SUBSCRIBE:
        return on_range(conn, frame, op == OMI_MESSAGE_SUBSCRIBE);
    }
    return omi_fail(OM_ERR_NET_UNKNOWN_OP, "operation %d is not known to this server", op);
}

void omi_net_request(OmiNetConn *conn, const OmiWireFrame *frame) {
    int rc = dispatch(conn, frame);
    if (rc >= 0)
        return;
    if (rc == OM_ERR_NET_PROTOCOL || rc == OM_ERR_NET_VERSION || rc == OM_ERR_NET_UNKNOWN_OP)
        omi_count(&conn->server->counters.protocol_errors, 1);
    omi_conn_error(conn, frame->wal_seq, rc, om_bus_last_error(), true);
}
