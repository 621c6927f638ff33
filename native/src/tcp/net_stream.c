#include "tcp/net_stream.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"

enum { PUMP_MAX = 1024, RETRY_NS = 100 * OMI_NS_PER_MS };

static bool is_name(const char *name) {
    size_t length = strnlen(name, OM_NET_NAME_MAX + 1);
    if (length == 0 || length > OM_NET_NAME_MAX)
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
}

static int wait_for_log(void *ctx, int64_t timeout_ns) {
    return om_log_wait(((OmiBell *)ctx)->reader, timeout_ns);
}

static int wait_for_ring(void *ctx, int64_t timeout_ns) {
    return om_bus_endpoint_wait(((OmiBell *)ctx)->endpoint, timeout_ns);
}

static int open_log_bell(OmiBell *bell, const char *dir, uint32_t reader_flags, OmiLoop *loop) {
    OmLogReaderOptions options = {.flags = reader_flags};
    int rc = om_log_open_reader(&bell->reader, dir, &options);
    return rc == 0 ? omi_waiter_open(&bell->waiter, loop, wait_for_log, bell) : rc;
}

static void close_bell(OmiBell *bell) {
    omi_waiter_close(bell->waiter); /* first: its thread uses the handles below */
    om_log_reader_close(bell->reader);
    om_bus_endpoint_close(bell->endpoint);
}

static int open_common(OmiNetStream **out, const char *name, const char *source, OmiLoop *loop, uint32_t fanout_limit) {
    if (!name || !is_name(name))
        return omi_fail(OM_ERR_BUS_INIT, "stream name \"%s\": 1 to %u letters, digits, '.', '_', '-'", name ? name : "",
                        OM_NET_NAME_MAX);
    if (!source)
        return omi_fail(OM_ERR_BUS_INIT, "stream %s without a source", name);
    OmiNetStream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "stream %s", name);
    strcpy(stream->name, name);
    stream->loop = loop;
    *out = stream;
    return omi_fanout_open(&stream->fanout, fanout_limit);
}

static int finish_open(OmiNetStream **out, OmiNetStream *stream, int rc) {
    if (rc != 0) {
        omi_net_stream_close(stream);
        return rc;
    }
    *out = stream;
    return 0;
}

int omi_net_stream_open_log(OmiNetStream **out, const char *name, const char *dir, OmiLoop *loop,
                            uint32_t fanout_limit) {
    OmiNetStream *stream = NULL;
    int rc = open_common(&stream, name, dir, loop, fanout_limit);
    if (rc == 0 && !(stream->dir = strdup(dir)))
        rc = omi_fail(OM_ERR_BUS_NO_MEMORY, "stream %s", name);
    if (rc == 0)
        rc = om_log_open_reader(&stream->status, dir, NULL);
    if (rc == 0)
        rc = open_log_bell(&stream->visible, dir, 0, loop);
    return finish_open(out, stream, rc);
}

static int open_endpoint(OmiNetStream *stream) {
    OmBusEndpointConfig config = {.stream_name = stream->ring, .consumer_index = stream->consumer_index};
    return om_bus_endpoint_open(&stream->visible.endpoint, &config);
}

static void close_endpoint(OmiNetStream *stream) {
    om_bus_endpoint_close(stream->visible.endpoint);
    stream->visible.endpoint = NULL;
}

int omi_net_stream_open_ring(OmiNetStream **out, const char *name, const char *ring_name, uint32_t consumer_index,
                             OmiLoop *loop, uint32_t fanout_limit) {
    OmiNetStream *stream = NULL;
    int rc = open_common(&stream, name, ring_name, loop, fanout_limit);
    if (rc == 0 && !(stream->ring = strdup(ring_name)))
        rc = omi_fail(OM_ERR_BUS_NO_MEMORY, "stream %s", name);
    if (rc == 0) {
        stream->consumer_index = consumer_index;
        rc = open_endpoint(stream); /* to learn now whether it works; held only while somebody listens */
    }
    if (rc == 0) {
        close_endpoint(stream);
        rc = omi_waiter_open(&stream->visible.waiter, loop, wait_for_ring, &stream->visible);
    }
    return finish_open(out, stream, rc);
}

void omi_net_stream_close(OmiNetStream *stream) {
    if (!stream)
        return;
    close_bell(&stream->visible);
    close_bell(&stream->durable);
    om_log_reader_close(stream->status);
    om_log_reader_close(stream->tail);
    omi_fanout_close(&stream->fanout);
    free(stream->dir);
    free(stream->ring);
    free(stream);
}

static int ring_status(const OmiNetStream *stream, OmiStatusEntry *entry) {
    OmBusStreamInfo info;
    int rc = om_bus_inspect(stream->ring, &info, NULL, 0);
    if (rc < 0)
        return rc;
    entry->last_seq = info.last_wal_seq;
    entry->epoch = info.producer_epoch;
    return 0;
}

static int log_status(const OmiNetStream *stream, uint64_t time_ns, OmiStatusEntry *entry) {
    int64_t first = om_log_first_seq(stream->status), last = om_log_last_seq(stream->status),
            durable = om_log_durable_seq(stream->status);
    int64_t rc = first < 0 ? first : last < 0 ? last : durable < 0 ? durable : 0;
    if (rc == 0 && time_ns > 0) {
        rc = om_log_seek_time(stream->status, time_ns);
        entry->time_seq = om_log_position(stream->status);
    }
    if (rc < 0)
        return (int)rc;
    entry->flags |= OMI_STREAM_HAS_LOG;
    entry->first_seq = (uint64_t)first;
    entry->last_seq = (uint64_t)last;
    entry->durable_seq = (uint64_t)durable;
    entry->epoch = om_log_epoch(stream->status);
    om_log_id(stream->status, entry->id);
    return 0;
}

int omi_net_stream_status(OmiNetStream *stream, uint64_t time_ns, OmiStatusEntry *entry) {
    *entry = (OmiStatusEntry){.name_len = (uint16_t)strlen(stream->name)};
    return stream->dir ? log_status(stream, time_ns, entry) : ring_status(stream, entry);
}

static int open_tail(OmiNetStream *stream) {
    /* Listeners cannot ask for what is damaged; it is a gap for them. */
    OmLogReaderOptions options = {.flags = OM_LOG_SKIP_CORRUPT};
    int rc = stream->tail ? 0 : om_log_open_reader(&stream->tail, stream->dir, &options);
    return rc == 0 ? om_log_seek_end(stream->tail) : rc;
}

int omi_net_stream_listen(OmiNetStream *stream) {
    int rc = 0;
    if (stream->listeners == 0 && stream->dir)
        rc = open_tail(stream);
    if (stream->listeners == 0 && stream->ring && !stream->visible.endpoint)
        rc = open_endpoint(stream);
    if (rc == 0)
        stream->listeners++;
    return rc;
}

/* The last one leaves the sources open: a pump may be under way, and the waiter may have them. The next pump closes. */
void omi_net_stream_unlisten(OmiNetStream *stream) {
    stream->listeners--;
}

static void close_sources(OmiNetStream *stream) {
    om_log_reader_close(stream->tail);
    stream->tail = NULL;
    if (stream->visible.endpoint)
        close_endpoint(stream);
}

static int pump_log(OmiNetStream *stream, int max, OmiNetSink sink, void *ctx) {
    OmLogRecord recs[64];
    int total = 0;
    while (total < max && stream->listeners > 0) {
        int count = om_log_next_batch(stream->tail, recs, 64);
        if (count == OM_ERR_LOG_PRUNED || count == OM_ERR_LOG_SKIPPED) {
            total++; /* the reader has moved on; count it, so that this ends */
            continue;
        }
        if (count <= 0)
            return count < 0 ? count : total;
        for (int i = 0; i < count; i++) {
            if (recs[i].payload_len > OMI_WIRE_PLAIN_PAYLOAD_MAX)
                continue;
            OmBusRecord rec = {.wal_seq = recs[i].wal_seq,
                               .wal_type = recs[i].wal_type,
                               .payload_len = (uint16_t)recs[i].payload_len,
                               .payload = recs[i].payload};
            sink(ctx, &rec);
        }
        total += count;
    }
    return total;
}

static int pump_ring(OmiNetStream *stream, int max, OmiNetSink sink, void *ctx) {
    int total = 0;
    for (; total < max && stream->listeners > 0; total++) {
        OmBusRecord rec;
        int rc = om_bus_endpoint_poll(stream->visible.endpoint, &rec);
        if (rc == OM_ERR_BUS_RING_GONE) { /* replaced: what comes next is in the new ring of that name */
            close_endpoint(stream);
            return open_endpoint(stream);
        }
        if (rc == OM_ERR_BUS_CRC_MISMATCH || rc == OM_ERR_BUS_CONSUMER_STALE || rc == OM_ERR_BUS_CORRUPT ||
            rc == OM_ERR_BUS_EPOCH_CHANGED)
            continue; /* the ring has moved on: at most a gap for the listeners */
        if (rc != 1 && rc != OM_ERR_BUS_GAP_DETECTED && rc != OM_ERR_BUS_REORDER_DETECTED)
            return rc < 0 ? rc : total;
        sink(ctx, &rec);
    }
    return total;
}

int omi_net_stream_pump(OmiNetStream *stream, int max, OmiNetSink sink, void *ctx) {
    if (stream->listeners == 0) {
        close_sources(stream);
        return 0;
    }
    if (stream->retry_ns && omi_monotonic_ns() < stream->retry_ns)
        return 0;
    int rc = stream->ring && !stream->visible.endpoint ? open_endpoint(stream) : 0;
    if (rc == 0)
        rc = stream->dir ? pump_log(stream, max, sink, ctx) : pump_ring(stream, max, sink, ctx);
    stream->retry_ns = rc < 0 ? omi_monotonic_ns() + RETRY_NS : 0;
    return rc < 0 ? 0 : rc;
}

bool omi_net_stream_bell_idle(OmiNetStream *stream, bool durable) {
    OmiBell *bell = durable ? &stream->durable : &stream->visible;
    return !bell->waiter || omi_waiter_take(bell->waiter);
}

void omi_net_stream_arm(OmiNetStream *stream, bool durable, uint64_t position) {
    OmiBell *bell = durable ? &stream->durable : &stream->visible;
    if (stream->retry_ns || (stream->ring && !bell->endpoint))
        return; /* the server's timer tries again */
    if (!bell->waiter && open_log_bell(bell, stream->dir, OM_LOG_DURABLE_ONLY, stream->loop) != 0) {
        close_bell(bell);
        *bell = (OmiBell){0};
        return;
    }
    if (stream->dir) {
        /* Not beyond the end: who comes to wait later, while this is armed, waits at the end of then. */
        int64_t last = om_log_last_seq(bell->reader);
        if (last >= 0 && position > (uint64_t)last + 1)
            position = (uint64_t)last + 1;
        (void)om_log_seek(bell->reader, position); /* failing, it rings at once and whoever reads meets the error */
    }
    omi_waiter_arm(bell->waiter);
}

uint64_t omi_net_stream_tail_position(const OmiNetStream *stream) {
    return stream->tail && stream->listeners > 0 ? om_log_position(stream->tail) : UINT64_MAX;
}
