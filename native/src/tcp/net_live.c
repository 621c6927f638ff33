#include "core/hint.h"
#include "tcp/net_server.h"

enum { PUMP_RECORDS = 4096 };

/** Move the fanout's tail to the slowest listener. */
static void refresh_tail(OmNetServer *srv, OmiNetStream *stream) {
    uint64_t tail = stream->fanout.head;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        const OmiNetConn *conn = srv->conns[i];
        if (conn && conn->listening == stream && conn->position < tail)
            tail = conn->position;
    }
    omi_fanout_release(&stream->fanout, tail);
}

/** Warn and drop every listener that the next `size` bytes would put more than the limit behind, as the seed does. */
static OMI_COLD void dismiss_slow(OmNetServer *srv, OmiNetStream *stream, uint32_t size) {
    const OmiFanout *fanout = &stream->fanout;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        OmiNetConn *conn = srv->conns[i];
        if (!conn || conn->listening != stream || fanout->head - conn->position + size <= fanout->limit)
            continue;
        uint8_t warning[OMI_WIRE_SLOW_WARNING];
        omi_wire_encode_slow_warning(warning, (uint32_t)(fanout->head - conn->position), fanout->limit);
        omi_conn_detach(conn);
        omi_conn_queue(conn, warning, sizeof warning);
        omi_conn_close_after_queue(conn);
        omi_count(&srv->counters.slow_client_drops, 1);
    }
}

typedef struct Live {
    OmNetServer *srv;
    OmiNetStream *stream;
} Live;

static void to_fanout(void *context, const OmBusRecord *rec) {
    const Live *live = context;
    OmiFanout *fanout = &live->stream->fanout;
    if (live->stream->listeners == 0)
        return; /* the last one was dropped in this very batch */
    uint32_t size = omi_wire_size(rec->payload_len);
    uint8_t *to = omi_fanout_reserve(fanout, size);
    if (OMI_UNLIKELY(!to)) {
        refresh_tail(live->srv, live->stream);
        to = omi_fanout_reserve(fanout, size);
    }
    if (OMI_UNLIKELY(!to)) {
        dismiss_slow(live->srv, live->stream, size);
        refresh_tail(live->srv, live->stream);
        to = omi_fanout_reserve(fanout, size);
    }
    if (!to)
        return; /* longer than the buffer: a gap for the listeners */
    omi_wire_encode(to, rec->wal_seq, rec->wal_type, rec->payload, rec->payload_len);
    omi_fanout_commit(fanout, size);
    omi_count(&live->srv->counters.records_sent, live->stream->listeners);
}

static bool waits(const OmiNetConn *conn, const OmiNetStream *stream, bool durable) {
    return conn->transfer.stream == stream && conn->transfer.waiting &&
           durable == ((conn->transfer.flags & OM_NET_DURABLE_ONLY) != 0);
}

/** Run everybody who waits at this bell; the least position of those who still do. */
static uint64_t run_waiting(OmNetServer *srv, OmiNetStream *stream, bool durable) {
    uint64_t waiting_at = UINT64_MAX;
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        OmiNetConn *conn = srv->conns[i];
        if (!conn || !waits(conn, stream, durable))
            continue;
        if (!conn->blocked)
            omi_conn_run(conn);
        conn = srv->conns[i]; /* it may be gone */
        if (!conn || !waits(conn, stream, durable))
            continue;
        uint64_t position = omi_transfer_position(&conn->transfer);
        waiting_at = position < waiting_at ? position : waiting_at;
    }
    return waiting_at;
}

/** Send to the listeners, and see off those who were dismissed. */
static void run_listeners(OmNetServer *srv, const OmiNetStream *stream) {
    for (uint32_t i = 0; i < srv->slots_used; i++) {
        OmiNetConn *conn = srv->conns[i];
        if (conn && !conn->blocked &&
            (conn->closing || (conn->listening == stream && conn->position < stream->fanout.head)))
            omi_conn_run(conn);
    }
}

static void serve_visible(OmNetServer *srv, OmiNetStream *stream) {
    if (!omi_net_stream_bell_idle(stream, false))
        return; /* still waiting: nothing is new */
    Live live = {srv, stream};
    int pumped = omi_net_stream_pump(stream, PUMP_RECORDS, to_fanout, &live);
    run_listeners(srv, stream);
    uint64_t waiting_at = run_waiting(srv, stream, false), tail_at = omi_net_stream_tail_position(stream);
    refresh_tail(srv, stream);
    if (pumped > 0)
        srv->hot = true; /* there may be more; the network gets its turn in between */
    else if (waiting_at != UINT64_MAX || stream->listeners > 0)
        omi_net_stream_arm(stream, false, waiting_at < tail_at ? waiting_at : tail_at);
}

static void serve_durable(OmNetServer *srv, OmiNetStream *stream) {
    if (!omi_net_stream_bell_idle(stream, true))
        return;
    uint64_t waiting_at = run_waiting(srv, stream, true);
    if (waiting_at != UINT64_MAX)
        omi_net_stream_arm(stream, true, waiting_at);
}

void omi_net_live_serve(OmNetServer *srv) {
    srv->hot = false;
    for (uint32_t i = 0; i < srv->stream_count; i++) {
        serve_visible(srv, srv->streams[i]);
        serve_durable(srv, srv->streams[i]);
    }
}
