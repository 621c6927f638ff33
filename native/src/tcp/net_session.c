#include "tcp/net_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/sha256.h"
#include "tcp/auth.h"
#include "tcp/socket.h"

enum { FRAME_MAX = OMI_WIRE_EXT_HEADER + (int)OM_LOG_PAYLOAD_MAX + 8, DEFAULT_RECV_BUF = 1 << 20 };

int omi_session_init(OmiSession *session, const OmNetClientConfig *config) {
    char agent[64];
    *session = (OmiSession){.fd = -1, .port = config->port};
    snprintf(agent, sizeof agent, "ombus %s", om_bus_version());
    session->host = strdup(config->host);
    session->agent = strndup(config->agent ? config->agent : agent, OMI_MESSAGE_TEXT_MAX);
    if (!session->host || !session->agent)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "client");
    if (config->secret) {
        if (config->secret_size == 0 || config->secret_size > OM_NET_SECRET_MAX)
            return omi_fail(OM_ERR_BUS_INIT, "secret of %u bytes, 1 to %u expected", config->secret_size,
                            OM_NET_SECRET_MAX);
        session->secret = malloc(config->secret_size);
        if (!session->secret)
            return omi_fail(OM_ERR_BUS_NO_MEMORY, "client");
        memcpy(session->secret, config->secret, config->secret_size);
        session->secret_size = config->secret_size;
    }
    return omi_recv_buffer_open(&session->input, config->recv_buf_size ? config->recv_buf_size : DEFAULT_RECV_BUF,
                                FRAME_MAX);
}

void omi_session_disconnect(OmiSession *session) {
    if (session->fd >= 0)
        close(session->fd);
    session->fd = -1;
    session->input.start = session->input.end = 0;
}

void omi_session_free(OmiSession *session) {
    omi_session_disconnect(session);
    omi_recv_buffer_close(&session->input);
    if (session->secret)
        omi_secret_wipe(session->secret, session->secret_size);
    free(session->secret);
    free(session->host);
    free(session->agent);
}

/** Time left, as a timeout; -1 = no limit. */
static int64_t left_ns(uint64_t deadline_ns) {
    if (deadline_ns == UINT64_MAX)
        return -1;
    uint64_t now_ns = omi_monotonic_ns();
    return now_ns < deadline_ns ? (int64_t)(deadline_ns - now_ns) : 0;
}

int omi_session_frame(OmiSession *session, OmiWireFrame *frame, uint64_t deadline_ns) {
    for (;;) {
        int rc = omi_recv_buffer_peek(&session->input, frame);
        if (rc != 0)
            return rc;
        rc = omi_recv_buffer_fill(&session->input, session->fd);
        if (rc < 0)
            return rc;
        if (rc > 0)
            continue;
        rc = omi_socket_wait(session->fd, false, left_ns(deadline_ns));
        if (rc <= 0)
            return rc;
    }
}

int omi_session_send(OmiSession *session, const void *fixed, size_t fixed_size, const char *text, size_t text_len,
                     uint64_t deadline_ns) {
    uint8_t bytes[OMI_MESSAGE_REQUEST_MAX];
    if (OMI_WIRE_HEADER + fixed_size + text_len > sizeof bytes)
        return omi_fail(OM_ERR_BUS_INIT, "a name of %zu bytes", text_len);
    size_t size = omi_message_encode(bytes, ++session->request, fixed, fixed_size, text, text_len);
    for (size_t sent = 0; sent < size;) {
        ssize_t n = omi_socket_send(session->fd, bytes + sent, size - sent);
        if (n < 0)
            return omi_fail_errno(OM_ERR_BUS_TCP_DISCONNECTED, "%s port %u", session->host, session->port);
        sent += (size_t)n;
        if (n == 0 && omi_socket_wait(session->fd, true, left_ns(deadline_ns)) <= 0)
            return omi_fail(OM_ERR_NET_TIMEOUT, "%s port %u: the server takes no request", session->host,
                            session->port);
    }
    return 0;
}

int omi_session_answer(OmiSession *session, OmiMessageOp op, void *fixed, size_t fixed_size, OmiWireFrame *frame,
                       uint64_t deadline_ns) {
    for (;;) {
        int rc = omi_session_frame(session, frame, deadline_ns);
        if (rc == 0)
            return omi_fail(OM_ERR_NET_TIMEOUT, "%s port %u: no answer to %s", session->host, session->port,
                            omi_message_op_name((int)op));
        if (rc < 0)
            return rc;
        omi_recv_buffer_skip(&session->input, frame);
        if (frame->wal_type != OMI_WIRE_TYPE_CONTROL)
            continue; /* live frames from before the server knew that we speak */
        int got = omi_message_op(frame->payload, frame->payload_len);
        if (got < 0)
            return got;
        if (got == OMI_MESSAGE_ERROR) {
            int code = omi_message_error_code(frame->payload, frame->payload_len);
            /* Said to nobody in particular, some time ago: the server has closed an idle connection, or is stopping. */
            bool stale = frame->wal_seq == 0 && (code == OM_ERR_NET_TIMEOUT || code == OM_ERR_NET_SHUTDOWN);
            return stale ? OM_ERR_BUS_TCP_DISCONNECTED : code;
        }
        if (got != (int)op || frame->wal_seq != session->request)
            return omi_fail(OM_ERR_NET_PROTOCOL, "%s %llu where %s %llu is due", omi_message_op_name(got),
                            (unsigned long long)frame->wal_seq, omi_message_op_name((int)op),
                            (unsigned long long)session->request);
        return omi_message_decode(frame->payload, frame->payload_len, fixed, fixed_size);
    }
}

/** Prove that we know the secret, and have the server prove that it does. */
static int authenticate(OmiSession *session, const OmiTranscript *transcript, uint64_t deadline_ns) {
    OmiAuth auth = {.header = omi_message_header(OMI_MESSAGE_AUTH)};
    uint8_t expected[OMI_PROOF_SIZE];
    OmiWireFrame frame;
    omi_auth_proof(OMI_AUTH_CLIENT, session->secret, session->secret_size, transcript, auth.proof);
    int rc = omi_session_send(session, &auth, sizeof auth, NULL, 0, deadline_ns);
    if (rc == 0)
        rc = omi_session_answer(session, OMI_MESSAGE_AUTH, &auth, sizeof auth, &frame, deadline_ns);
    if (rc != 0)
        return rc;
    omi_auth_proof(OMI_AUTH_SERVER, session->secret, session->secret_size, transcript, expected);
    if (!omi_secret_equal(expected, auth.proof, sizeof expected))
        return omi_fail(OM_ERR_NET_AUTH_FAILED, "%s port %u cannot prove that it knows the secret", session->host,
                        session->port);
    return 0;
}

static int shake_hands(OmiSession *session, uint64_t deadline_ns) {
    size_t agent_len = strlen(session->agent);
    OmiHelloRequest hello = {.header = omi_message_header(OMI_MESSAGE_HELLO), .agent_len = (uint16_t)agent_len};
    if (!omi_random_bytes(hello.nonce, sizeof hello.nonce))
        return omi_fail(OM_ERR_BUS_INIT, "the system gives no random numbers");
    uint8_t sent[OMI_MESSAGE_REQUEST_MAX], got[1024];
    memcpy(sent, &hello, sizeof hello);
    memcpy(sent + sizeof hello, session->agent, agent_len);
    OmiHelloAnswer answer;
    OmiWireFrame frame;
    int rc = omi_session_send(session, &hello, sizeof hello, session->agent, agent_len, deadline_ns);
    if (rc == 0)
        rc = omi_session_answer(session, OMI_MESSAGE_HELLO, &answer, sizeof answer, &frame, deadline_ns);
    if (rc != 0)
        return rc;
    bool asked = (answer.flags & OMI_HELLO_AUTH_REQUIRED) != 0;
    if (asked && !session->secret)
        return omi_fail(OM_ERR_NET_AUTH_REQUIRED, "%s port %u", session->host, session->port);
    if (!asked && session->secret) /* else anybody could pose as the server by not asking */
        return omi_fail(OM_ERR_NET_AUTH_FAILED, "%s port %u does not ask for the secret, so it cannot know it",
                        session->host, session->port);
    if (!asked)
        return 0;
    if (frame.payload_len > sizeof got)
        return omi_fail(OM_ERR_NET_PROTOCOL, "HELLO of %u bytes", frame.payload_len);
    memcpy(got, frame.payload, frame.payload_len);
    OmiTranscript transcript = {sent, got, sizeof hello + agent_len, frame.payload_len};
    return authenticate(session, &transcript, deadline_ns);
}

int omi_session_connect(OmiSession *session, uint64_t deadline_ns) {
    omi_session_disconnect(session);
    int fd = omi_socket_connect(session->host, session->port, left_ns(deadline_ns));
    if (fd < 0)
        return fd;
    session->fd = fd;
    session->request = 0;
    int rc = shake_hands(session, deadline_ns);
    if (rc != 0)
        omi_session_disconnect(session);
    return rc;
}
