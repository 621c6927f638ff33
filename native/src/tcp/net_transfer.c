#include "tcp/net_transfer.h"

#include <string.h>

#include "core/error.h"
#include "ombus/om_net.h"
#include "tcp/socket.h"

enum { SPAN_BYTES = 1 << 20 };

static int open_reader(OmiTransfer *transfer, OmiNetStream *stream, uint32_t flags) {
    uint32_t reader_flags = flags & OM_NET_DURABLE_ONLY ? OM_LOG_DURABLE_ONLY : 0;
    if (transfer->reader && transfer->reader_stream == stream && transfer->reader_flags == reader_flags)
        return 0;
    om_log_reader_close(transfer->reader);
    transfer->reader = NULL;
    OmLogReaderOptions options = {.flags = reader_flags, .mapped_segments_max = 2};
    int rc = om_log_open_reader(&transfer->reader, stream->dir, &options);
    transfer->reader_stream = stream;
    transfer->reader_flags = reader_flags;
    return rc;
}

/** A failing log, told in words that a client may see: no path of the server's. */
static int source_error(const OmiNetStream *stream, int rc) {
    return omi_fail(OM_ERR_NET_SOURCE, "stream %s: %s (%s)", stream->name, om_bus_error_string(rc),
                    om_bus_error_name(rc) ? om_bus_error_name(rc) : "?");
}

static int removed_error(const OmiTransfer *transfer, const OmiNetStream *stream, uint64_t from) {
    int64_t first = om_log_first_seq(transfer->reader);
    return omi_fail(OM_ERR_NET_RANGE,
                    "stream %s: records from wal_seq %llu on were removed; the first one left is %lld", stream->name,
                    (unsigned long long)from, (long long)first);
}

/** Stand at `from`, as far as retention has left it there. */
static int seek(OmiTransfer *transfer, OmiNetStream *stream, uint64_t from, uint64_t to, uint32_t flags) {
    if (from == OM_NET_FROM_LIVE) {
        int rc = om_log_seek_end(transfer->reader);
        return rc < 0 ? source_error(stream, rc) : 0;
    }
    uint64_t start = from;
    if (from == OM_NET_FROM_FIRST) {
        int64_t first = om_log_first_seq(transfer->reader);
        if (first < 0)
            return source_error(stream, (int)first);
        start = first > 0 ? (uint64_t)first : 1;
    }
    int rc = om_log_seek_range(transfer->reader, start, to);
    bool may_lose = from == OM_NET_FROM_FIRST || (flags & OM_NET_ALLOW_LOSS);
    if (rc == OM_ERR_LOG_PRUNED)
        return may_lose ? 0 : removed_error(transfer, stream, from);
    return rc < 0 ? source_error(stream, rc) : 0;
}

int omi_transfer_begin(OmiTransfer *transfer, OmiNetStream *stream, const OmiRangeRequest *request, bool follow,
                       OmiRangeAnswer *answer) {
    static const uint8_t any[OMI_STREAM_ID_SIZE];
    int rc = open_reader(transfer, stream, request->flags);
    if (rc < 0)
        return source_error(stream, rc);
    *answer = (OmiRangeAnswer){.header = omi_message_header(follow ? OMI_MESSAGE_SUBSCRIBE : OMI_MESSAGE_REPLAY),
                               .flags = OMI_STREAM_HAS_LOG,
                               .epoch = om_log_epoch(transfer->reader)};
    om_log_id(transfer->reader, answer->id);
    if (memcmp(request->id, any, sizeof any) != 0 && memcmp(request->id, answer->id, sizeof any) != 0)
        return omi_fail(OM_ERR_NET_IDENTITY, "stream %s: the log is not the one with that identity", stream->name);
    uint64_t to = UINT64_MAX;
    if (!follow) {
        /* To what is there now: a range that ends at the live end must end even if records keep coming. */
        int64_t last = om_log_last_seq(transfer->reader);
        if (last < 0)
            return source_error(stream, (int)last);
        to = request->to < (uint64_t)last + 1 ? request->to : (uint64_t)last + 1;
    }
    rc = seek(transfer, stream, request->from, to, request->flags);
    if (rc < 0)
        return rc;
    int64_t first =
        om_log_first_seq(transfer->reader); /* where records were removed, it stands before the first left */
    answer->from = omi_transfer_position(transfer);
    if (first > 0 && (uint64_t)first > answer->from)
        answer->from = (uint64_t)first;
    answer->to = to;
    transfer->stream = stream;
    transfer->flags = request->flags;
    transfer->follow = follow;
    transfer->waiting = false;
    transfer->span = (OmLogSpan){0};
    transfer->span_sent = 0;
    return 0;
}

int omi_transfer_next(OmiTransfer *transfer) {
    uint64_t before = omi_transfer_position(transfer);
    transfer->span = (OmLogSpan){0};
    transfer->span_sent = 0;
    int rc = om_log_next_span(transfer->reader, SPAN_BYTES, &transfer->span);
    if (rc == OM_ERR_LOG_PRUNED) /* retention overtook it */
        rc = transfer->flags & OM_NET_ALLOW_LOSS ? om_log_next_span(transfer->reader, SPAN_BYTES, &transfer->span)
                                                 : removed_error(transfer, transfer->stream, before);
    transfer->waiting = rc == 0;
    return rc >= 0 || rc == OM_ERR_NET_RANGE ? rc : source_error(transfer->stream, rc);
}

int64_t omi_transfer_send(OmiTransfer *transfer, int fd) {
    const OmLogSpan *span = &transfer->span;
    ssize_t sent = omi_socket_send_file(fd, span->fd, span->offset + transfer->span_sent,
                                        span->data + transfer->span_sent, omi_transfer_pending(transfer));
    if (sent > 0)
        transfer->span_sent += (size_t)sent;
    return sent;
}

void omi_transfer_end(OmiTransfer *transfer) {
    transfer->stream = NULL;
    transfer->waiting = false;
    transfer->span = (OmLogSpan){0};
    transfer->span_sent = 0;
}

void omi_transfer_close(OmiTransfer *transfer) {
    omi_transfer_end(transfer);
    om_log_reader_close(transfer->reader);
    transfer->reader = NULL;
}
