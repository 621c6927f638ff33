#include <time.h>

#include "core/error.h"
#include "core/hint.h"
#include "tcp/net_client.h"

/** Whether trying again can help. */
static bool is_passing(int rc) {
    return rc == OM_ERR_BUS_TCP_CONNECT || rc == OM_ERR_BUS_TCP_DISCONNECTED || rc == OM_ERR_BUS_TCP_IO ||
           rc == OM_ERR_NET_TIMEOUT || rc == OM_ERR_NET_SHUTDOWN || rc == OM_ERR_NET_LIMIT;
}

/** The connection is lost: begin to reconnect, or give up. */
static int on_lost(OmNetClient *client, int rc) {
    omi_session_disconnect(&client->session);
    if (client->reconnect_ms == 0 || !is_passing(rc)) {
        client->wish.active = false;
        return rc;
    }
    client->give_up_ns = omi_monotonic_ns() + (uint64_t)client->reconnect_ms * OMI_NS_PER_MS;
    client->retry_ns = 0;
    client->attempts = 0;
    return 0;
}

static void sleep_until(uint64_t until_ns) {
    uint64_t now_ns = omi_monotonic_ns();
    if (now_ns >= until_ns)
        return;
    uint64_t ns = until_ns - now_ns;
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / OMI_NS_PER_S), .tv_nsec = (long)(ns % OMI_NS_PER_S)}, NULL);
}

/** Pause, longer each time. */
static void plan_retry(OmNetClient *client) {
    uint64_t pause_ms = client->retry_base_ms;
    for (uint32_t i = 0; i < client->attempts && pause_ms < client->retry_max_ms; i++)
        pause_ms *= 2;
    if (pause_ms > client->retry_max_ms)
        pause_ms = client->retry_max_ms;
    client->attempts++;
    client->retry_ns = omi_monotonic_ns() + pause_ms * OMI_NS_PER_MS;
}

/** One more attempt to reconnect and resume: 1 = done, 0 = not yet, or an error that ends the transfer. */
static int resume(OmNetClient *client, uint64_t deadline_ns) {
    sleep_until(client->retry_ns < deadline_ns ? client->retry_ns : deadline_ns);
    if (omi_monotonic_ns() < client->retry_ns)
        return 0;
    int rc = omi_session_connect(&client->session, omi_client_answer_deadline(client));
    if (rc == 0) {
        /* Without a log there is nothing to resume from but the live end: what was missed shows as a gap. */
        uint64_t from = client->wish.has_log ? client->position : OM_NET_FROM_LIVE;
        rc = omi_client_ask_range(client, from);
        if (rc == 0) {
            client->reconnects++;
            return 1;
        }
    }
    omi_session_disconnect(&client->session);
    if (is_passing(rc) && omi_monotonic_ns() < client->give_up_ns) {
        plan_retry(client);
        return 0;
    }
    client->wish.active = false;
    return rc;
}

/** A control frame in the middle of a transfer: what it means for the transfer; 0 = go on. */
static OMI_COLD int on_control(OmNetClient *client, const OmiWireFrame *frame) {
    OmiEnd end;
    int op = omi_message_op(frame->payload, frame->payload_len);
    if (op == OMI_MESSAGE_END && omi_message_decode(frame->payload, frame->payload_len, &end, sizeof end) == 0) {
        client->position = end.next > client->position ? end.next : client->position;
        client->wish.active = false;
        return omi_fail(OM_ERR_NET_END, "the range ends before wal_seq %llu", (unsigned long long)end.next);
    }
    int rc = op == OMI_MESSAGE_ERROR ? omi_message_error_code(frame->payload, frame->payload_len)
             : op < 0                ? op
                                     : omi_fail(OM_ERR_NET_PROTOCOL, "%s during a transfer", omi_message_op_name(op));
    if (is_passing(rc))
        return on_lost(client, rc);
    client->wish.active = false;
    return omi_client_after_error(client, rc);
}

/** Whether a record may be handed out: 1, or an error that ends the transfer. */
static inline int judge(OmNetClient *client, const OmiWireFrame *frame) {
    if (!(client->flags & OM_LOG_NO_CRC) && (frame->flags & OMI_WIRE_FLAG_EXT) &&
        OMI_UNLIKELY(!omi_wire_crc_ok(frame->payload - OMI_WIRE_EXT_HEADER, frame)))
        return omi_fail(OM_ERR_BUS_CRC_MISMATCH, "record with wal_seq %llu", (unsigned long long)frame->wal_seq);
    if (client->wish.has_log && OMI_UNLIKELY(frame->wal_seq < client->position))
        return omi_fail(OM_ERR_NET_PROTOCOL, "wal_seq %llu after position %llu", (unsigned long long)frame->wal_seq,
                        (unsigned long long)client->position);
    return 1;
}

static OMI_COLD int fail_transfer(OmNetClient *client, int rc) {
    client->wish.active = false;
    omi_session_disconnect(&client->session);
    return rc;
}

/** The next record's frame, at the front of the input and not yet skipped: 1, 0 = none before the deadline, or an
 * error. */
static int next_record_frame(OmNetClient *client, OmiWireFrame *frame, uint64_t deadline_ns) {
    for (;;) {
        if (OMI_UNLIKELY(!client->wish.active))
            return omi_fail(OM_ERR_NET_END, "no transfer is under way");
        int rc;
        if (OMI_UNLIKELY(client->session.fd < 0)) {
            rc = resume(client, deadline_ns);
            if (rc < 0 || (rc == 0 && omi_monotonic_ns() >= deadline_ns))
                return rc;
            continue;
        }
        rc = omi_session_frame(&client->session, frame, deadline_ns);
        if (rc == 0)
            return 0;
        if (OMI_UNLIKELY(rc < 0))
            rc = on_lost(client, rc);
        else if (OMI_LIKELY(frame->wal_type < OMI_WIRE_TYPE_CONTROL))
            return judge(client, frame) == 1 ? 1 : fail_transfer(client, judge(client, frame));
        else {
            omi_recv_buffer_skip(&client->session.input, frame);
            rc = frame->wal_type == OMI_WIRE_TYPE_CONTROL ? on_control(client, frame)
                                                          : 0; /* else padding or a warning */
        }
        if (rc < 0)
            return rc;
    }
}

static void take(OmNetClient *client, const OmiWireFrame *frame) {
    omi_recv_buffer_skip(&client->session.input, frame);
    client->position = frame->wal_seq + 1;
}

static void fill_record(OmLogRecord *rec, const OmiWireFrame *frame) {
    *rec = (OmLogRecord){.wal_seq = frame->wal_seq,
                         .timestamp_ns = frame->timestamp_ns,
                         .payload = frame->payload,
                         .payload_len = frame->payload_len,
                         .wal_type = frame->wal_type};
}

int om_net_client_next_batch(OmNetClient *client, OmLogRecord *recs, size_t max, int64_t timeout_ns) {
    if (OMI_UNLIKELY(!client || !recs || max == 0))
        return omi_fail(OM_ERR_BUS_INIT, "om_net_client_next without %s", client ? "room for a record" : "a client");
    OmiWireFrame frame;
    int rc = next_record_frame(client, &frame, timeout_ns ? omi_deadline_ns(timeout_ns) : 0);
    if (rc <= 0)
        return rc;
    size_t count = 0;
    do {
        fill_record(&recs[count++], &frame);
        take(client, &frame);
        /* Only what is buffered: receiving would move the payloads handed out. What is odd is left to the next call. */
    } while (count < max && count < INT32_MAX && omi_recv_buffer_peek(&client->session.input, &frame) == 1 &&
             frame.wal_type < OMI_WIRE_TYPE_CONTROL && judge(client, &frame) == 1);
    return (int)count;
}

int om_net_client_next(OmNetClient *client, OmLogRecord *rec, int64_t timeout_ns) {
    return om_net_client_next_batch(client, rec, 1, timeout_ns);
}

int om_net_client_next_span(OmNetClient *client, size_t max_bytes, OmNetSpan *span, int64_t timeout_ns) {
    if (!client || !span)
        return omi_fail(OM_ERR_BUS_INIT, "om_net_client_next_span without %s", client ? "a span" : "a client");
    OmiWireFrame frame;
    int rc = next_record_frame(client, &frame, timeout_ns ? omi_deadline_ns(timeout_ns) : 0);
    if (rc <= 0)
        return rc;
    const uint8_t *start = client->session.input.bytes + client->session.input.start;
    *span = (OmNetSpan){.data = start, .first_seq = frame.wal_seq};
    do {
        if (frame.wal_type != OMI_WIRE_TYPE_PADDING) {
            span->last_seq = frame.wal_seq;
            span->records++;
            take(client, &frame);
        } else
            omi_recv_buffer_skip(&client->session.input, &frame);
        span->size_bytes += frame.size;
    } while (omi_recv_buffer_peek(&client->session.input, &frame) == 1 && span->size_bytes + frame.size <= max_bytes &&
             (frame.wal_type == OMI_WIRE_TYPE_PADDING ||
              (frame.wal_type < OMI_WIRE_TYPE_CONTROL && judge(client, &frame) == 1)));
    return 1;
}
