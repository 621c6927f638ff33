#include "tcp/net_client.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

int om_net_client_open(OmNetClient **out, const OmNetClientConfig *config) {
    if (!out || !config || !config->host)
        return omi_fail(OM_ERR_BUS_INIT, "om_net_client_open without %s", out && config ? "a host" : "an argument");
    *out = NULL;
    OmNetClient *client = calloc(1, sizeof *client);
    if (!client)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "client");
    client->flags = config->flags;
    client->timeout_ms = config->timeout_ms ? config->timeout_ms : 10000;
    client->reconnect_ms = config->reconnect_ms;
    client->retry_base_ms = config->retry_base_ms ? config->retry_base_ms : 100;
    client->retry_max_ms = config->retry_max_ms ? config->retry_max_ms : 5000;
    int rc = omi_session_init(&client->session, config);
    if (rc == 0)
        rc = omi_session_connect(&client->session, omi_client_answer_deadline(client));
    if (rc != 0) {
        om_net_client_close(client);
        return rc;
    }
    *out = client;
    return 0;
}

void om_net_client_close(OmNetClient *client) {
    if (!client)
        return;
    omi_session_free(&client->session);
    free(client);
}

/** Before a question: connected (again), and no transfer under way. */
static int be_ready(OmNetClient *client) {
    if (client->wish.active)
        return omi_fail(OM_ERR_NET_BUSY, "a transfer is under way on this client");
    return client->session.fd >= 0 ? 0 : omi_session_connect(&client->session, omi_client_answer_deadline(client));
}

int omi_client_after_error(OmNetClient *client, int rc) {
    bool understood = rc == OM_ERR_NET_NO_STREAM || rc == OM_ERR_NET_RANGE || rc == OM_ERR_NET_NO_HISTORY ||
                      rc == OM_ERR_NET_IDENTITY || rc == OM_ERR_NET_SOURCE || rc == OM_ERR_NET_BUSY;
    if (!understood)
        omi_session_disconnect(&client->session);
    return rc;
}

static int read_entry(const OmiWireFrame *frame, size_t *at, OmNetStreamInfo *info) {
    OmiStatusEntry entry;
    const char *name;
    uint16_t length;
    if (*at > frame->payload_len)
        return omi_fail(OM_ERR_NET_PROTOCOL, "STATUS is cut short");
    int rc = omi_message_decode_text(frame->payload + *at, frame->payload_len - *at, &entry, sizeof entry,
                                     OM_NET_NAME_MAX, &name, &length);
    if (rc != 0)
        return rc;
    *at += sizeof entry + length;
    *info = (OmNetStreamInfo){.first_seq = entry.first_seq,
                              .last_seq = entry.last_seq,
                              .durable_seq = entry.durable_seq,
                              .epoch = entry.epoch,
                              .time_seq = entry.time_seq,
                              .flags = entry.flags};
    memcpy(info->id, entry.id, sizeof info->id);
    memcpy(info->name, name, length);
    return 0;
}

static int ask_status(OmNetClient *client, const char *stream, uint64_t time_ns, OmNetStreamInfo *out, uint32_t max) {
    size_t length = stream ? strlen(stream) : 0, at = sizeof(OmiStatusAnswer);
    OmiStatusRequest request = {
        .header = omi_message_header(OMI_MESSAGE_STATUS), .time_ns = time_ns, .stream_len = (uint16_t)length};
    OmiStatusAnswer answer;
    OmiWireFrame frame;
    uint64_t deadline_ns = omi_client_answer_deadline(client);
    int rc = omi_session_send(&client->session, &request, sizeof request, stream, length, deadline_ns);
    if (rc == 0)
        rc = omi_session_answer(&client->session, OMI_MESSAGE_STATUS, &answer, sizeof answer, &frame, deadline_ns);
    if (rc != 0)
        return rc;
    if (answer.count > OM_NET_STREAMS_MAX)
        return omi_fail(OM_ERR_NET_PROTOCOL, "STATUS of %u streams", answer.count);
    for (uint32_t i = 0; i < answer.count && rc == 0; i++) {
        OmNetStreamInfo info;
        rc = read_entry(&frame, &at, &info);
        if (rc == 0 && i < max)
            out[i] = info;
    }
    return rc != 0 ? rc : (int)answer.count;
}

int om_net_client_status(OmNetClient *client, const char *stream, uint64_t time_ns, OmNetStreamInfo *out,
                         uint32_t max) {
    if (!client || (!out && max))
        return omi_fail(OM_ERR_BUS_INIT, "om_net_client_status without %s",
                        client ? "room for the answer" : "a client");
    if (stream && strlen(stream) > OM_NET_NAME_MAX)
        return omi_fail(OM_ERR_BUS_INIT, "stream name of more than %u bytes", OM_NET_NAME_MAX);
    int rc = be_ready(client);
    if (rc != 0)
        return rc;
    rc = ask_status(client, stream, time_ns, out, max);
    if (rc == OM_ERR_BUS_TCP_DISCONNECTED) { /* an idle connection that the server has closed: once more */
        rc = omi_session_connect(&client->session, omi_client_answer_deadline(client));
        if (rc == 0)
            rc = ask_status(client, stream, time_ns, out, max);
    }
    return rc < 0 ? omi_client_after_error(client, rc) : rc;
}

int omi_client_ask_range(OmNetClient *client, uint64_t from) {
    OmiWish *wish = &client->wish;
    OmiMessageOp op = wish->follow ? OMI_MESSAGE_SUBSCRIBE : OMI_MESSAGE_REPLAY;
    size_t length = strlen(wish->stream);
    OmiRangeRequest request = {.header = omi_message_header(op),
                               .flags = wish->flags,
                               .from = from,
                               .to = wish->to,
                               .stream_len = (uint16_t)length};
    memcpy(request.id, wish->id, sizeof request.id);
    OmiRangeAnswer answer;
    OmiWireFrame frame;
    uint64_t deadline_ns = omi_client_answer_deadline(client);
    int rc = omi_session_send(&client->session, &request, sizeof request, wish->stream, length, deadline_ns);
    if (rc == 0)
        rc = omi_session_answer(&client->session, op, &answer, sizeof answer, &frame, deadline_ns);
    if (rc != 0)
        return rc;
    client->position = answer.from;
    wish->to = answer.to;
    wish->has_log = (answer.flags & OMI_STREAM_HAS_LOG) != 0;
    memcpy(wish->id, answer.id, sizeof wish->id);
    wish->active = true;
    return 0;
}

static int start_transfer(OmNetClient *client, const char *stream, uint64_t from, const OmiWish *wish) {
    if (!client)
        return omi_fail(OM_ERR_BUS_INIT, "a transfer without a client");
    if (stream && strlen(stream) > OM_NET_NAME_MAX)
        return omi_fail(OM_ERR_BUS_INIT, "stream name of more than %u bytes", OM_NET_NAME_MAX);
    int rc = be_ready(client);
    if (rc != 0)
        return rc;
    client->wish = *wish;
    strcpy(client->wish.stream, stream ? stream : "");
    rc = omi_client_ask_range(client, from);
    if (rc == OM_ERR_BUS_TCP_DISCONNECTED) { /* an idle connection that the server has closed: once more */
        rc = omi_session_connect(&client->session, omi_client_answer_deadline(client));
        if (rc == 0)
            rc = omi_client_ask_range(client, from);
    }
    return rc < 0 ? omi_client_after_error(client, rc) : 0;
}

int om_net_client_replay(OmNetClient *client, const char *stream, uint64_t from, uint64_t to, const uint8_t *id,
                         uint32_t flags) {
    OmiWish wish = {.to = to, .flags = flags};
    if (id)
        memcpy(wish.id, id, sizeof wish.id);
    return start_transfer(client, stream, from, &wish);
}

int om_net_client_subscribe(OmNetClient *client, const char *stream, uint64_t from, const uint8_t *id, uint32_t flags) {
    OmiWish wish = {.to = UINT64_MAX, .flags = flags, .follow = true};
    if (id)
        memcpy(wish.id, id, sizeof wish.id);
    return start_transfer(client, stream, from, &wish);
}

uint64_t om_net_client_position(const OmNetClient *client) {
    return client ? client->position : 0;
}

void om_net_client_stream_id(const OmNetClient *client, uint8_t id[OM_LOG_ID_SIZE]) {
    if (client)
        memcpy(id, client->wish.id, OM_LOG_ID_SIZE);
    else
        memset(id, 0, OM_LOG_ID_SIZE);
}

uint64_t om_net_client_reconnects(const OmNetClient *client) {
    return client ? client->reconnects : 0;
}
