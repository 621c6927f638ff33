#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "columns/filter.h"
#include "core/error.h"
#include "ombus/om_col.h"

/* Records are taken from the log this many at a time: their headers and payloads, which the checksum has just read,
 * and this array then still lie in the first two caches. */
enum { RECORDS_AT_ONCE = 256 };

enum {
    ROWS_DEFAULT = 8192,
    ROWS_MAX = 1 << 20,
    BATCH_BYTES_DEFAULT = 16 << 20,
    QUIET_BYTES_MAX = 64 << 20, /* looked at without a row before the caller gets a chance to stop */
    LOG_FLAGS = OM_LOG_NO_CRC | OM_LOG_SKIP_CORRUPT | OM_LOG_DURABLE_ONLY,
};

struct OmColReader {
    OmLogReader *log;
    OmiColFilter filter;
    OmColStats stats;
    uint64_t to_seq;
    uint64_t batch_bytes_max;
    uint32_t rows_max;
    uint32_t flags;
    uint64_t expected_seq; /* 0 = not known: gaps are counted after the first record */
    /* Segments that the rows handed out lie in; one reference each. */
    OmLogHold **holds;
    size_t holds_count, holds_size;
    /* Taken from the log, not yet handed out. */
    OmLogRecord records[RECORDS_AT_ONCE];
    size_t at, count;
    OmLogHold *pending; /* keeps them valid */
    /* An error met behind rows: they go out first, then it. */
    int failed;
    char failed_text[512];
};

static void drop_holds(OmColReader *c) {
    for (size_t i = 0; i < c->holds_count; i++)
        om_log_hold_release(c->holds[i]);
    c->holds_count = 0;
}

void om_col_close(OmColReader *c) {
    if (!c)
        return;
    drop_holds(c);
    om_log_hold_release(c->pending);
    om_log_reader_close(c->log);
    free(c->holds);
    free(c);
}

/** Move the reference of the pending records to the batch, unless it has one of the same segment as its latest. */
static int keep_pending(OmColReader *c) {
    if (!c->pending)
        return 0;
    if (c->holds_count != 0 && c->holds[c->holds_count - 1] == c->pending) {
        om_log_hold_release(c->pending);
        c->pending = 0;
        return 0;
    }
    if (c->holds_count == c->holds_size) {
        size_t size = c->holds_size ? 2 * c->holds_size : 4;
        OmLogHold **holds = realloc(c->holds, size * sizeof *holds);
        if (!holds)
            return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory for %zu segments of a batch", size);
        c->holds = holds;
        c->holds_size = size;
    }
    c->holds[c->holds_count++] = c->pending;
    c->pending = 0;
    return 0;
}

static OMI_COLD void note_loss(OmColReader *c, uint64_t first_seq, uint64_t last_seq) {
    c->stats.lost_first_seq = first_seq;
    c->stats.lost_last_seq = last_seq ? last_seq : c->to_seq - 1;
    c->expected_seq = 0; /* told as loss, not as a gap of the writer's */
}

/** What is not a record: 0 = look again, or an error. */
static OMI_COLD int at_trouble(OmColReader *c, int rc) {
    if (rc == OM_ERR_LOG_SKIPPED) {
        OmLogDamage damage;
        om_log_damage(c->log, &damage);
        c->stats.damages++;
        note_loss(c, damage.lost_first_seq, damage.lost_last_seq);
        return 0;
    }
    if (rc == OM_ERR_LOG_PRUNED && (c->flags & OM_COL_SKIP_PRUNED)) {
        int64_t first = om_log_first_seq(c->log);
        if (first < 0)
            return (int)first;
        c->stats.pruned_ranges++;
        note_loss(c, c->stats.next_seq, first ? (uint64_t)first - 1 : 0);
        return 0;
    }
    return rc;
}

/** The log has nothing more to give now: the end of the range, or too early. */
static OMI_COLD int at_end(OmColReader *c) {
    int64_t last = om_log_last_seq(c->log);
    if (last < 0)
        return (int)last;
    if (c->stats.next_seq < c->to_seq && (uint64_t)last + 1 < c->to_seq)
        return omi_fail(OM_ERR_COL_INCOMPLETE, "asked for wal_seq %" PRIu64 " to %" PRIu64 ", but the last is %" PRId64,
                        c->stats.next_seq, c->to_seq - 1, last);
    c->stats.next_seq = c->to_seq;
    c->stats.done = 1;
    return 0;
}

/** Fill `records`: 1 = there are some, 0 = there are none (the range is done), or an error. */
static int refill(OmColReader *c) {
    for (;;) {
        int n = om_log_next_batch(c->log, c->records, RECORDS_AT_ONCE);
        if (OMI_LIKELY(n > 0)) {
            om_log_hold_release(c->pending);
            c->pending = om_log_hold(c->log);
            c->at = 0;
            c->count = (size_t)n;
            return 1;
        }
        int rc = n == 0 ? at_end(c) : at_trouble(c, n);
        if (rc != 0 || c->stats.done)
            return rc;
    }
}

int om_col_next(OmColReader *c, uint64_t *rows, OmColStats *stats) {
    if (!c || !rows)
        return omi_fail(OM_ERR_BUS_INIT, "no column reader or no place for rows given");
    drop_holds(c);
    if (OMI_UNLIKELY(c->failed))
        return omi_fail(c->failed, "%s", c->failed_text);
    uint32_t n = 0;
    int rc = 0;
    uint64_t batch_bytes = 0, start_bytes = c->stats.bytes;
    while (n < c->rows_max && batch_bytes < c->batch_bytes_max && c->stats.bytes - start_bytes < QUIET_BYTES_MAX) {
        if (c->at == c->count && (c->stats.done || (rc = refill(c)) <= 0))
            break;
        uint32_t before = n;
        uint64_t bytes = 0, expected = c->expected_seq;
        size_t at = c->at;
        for (; at < c->count && n < c->rows_max && batch_bytes < c->batch_bytes_max; at++) {
            const OmLogRecord *rec = &c->records[at];
            uint64_t size = ((uint64_t)rec->payload_len + OM_COL_AT_PAYLOAD + 7) & ~(uint64_t)7;
            omi_col_count_gap(&c->stats, expected, rec->wal_seq);
            expected = rec->wal_seq + 1;
            bytes += size;
            if (!omi_col_take(&c->filter, &c->stats, rec->wal_seq, rec->timestamp_ns, rec->wal_type, rec->payload_len))
                continue;
            rows[n++] = (uint64_t)(uintptr_t)rec->payload - OM_COL_AT_PAYLOAD;
            batch_bytes += size;
        }
        c->stats.records += at - c->at;
        c->stats.bytes += bytes;
        c->at = at;
        c->expected_seq = c->stats.next_seq = expected;
        if (n != before) {
            OmLogHold *more = at < c->count ? om_log_hold(c->log) : 0; /* for the rest of them, the next batch's */
            rc = keep_pending(c);
            c->pending = more;
            if (rc != 0)
                break;
        }
    }
    if (OMI_UNLIKELY(rc < 0 && n != 0)) {
        c->failed = rc;
        snprintf(c->failed_text, sizeof c->failed_text, "%s", om_bus_last_error());
        rc = 0;
    }
    c->stats.rows += n;
    if (stats)
        *stats = c->stats;
    return rc < 0 ? rc : (int)n;
}

/** The log must be the one that the range was planned on. */
static int check_identity(const OmLogReader *log, const char *dir, const uint8_t expected[OM_LOG_ID_SIZE]) {
    static const uint8_t any[OM_LOG_ID_SIZE];
    uint8_t found[OM_LOG_ID_SIZE];
    om_log_id(log, found);
    if (memcmp(expected, any, sizeof any) == 0 || memcmp(expected, found, sizeof found) == 0)
        return 0;
    return omi_fail(OM_ERR_LOG_FOREIGN, "'%s' is another log than the one that was planned on", dir);
}

static int open_range(OmColReader *c, const char *dir, const OmColOptions *options) {
    OmLogReaderOptions log_options = {.flags = options->flags & LOG_FLAGS};
    int rc = om_log_open_reader(&c->log, dir, &log_options);
    if (rc == 0)
        rc = check_identity(c->log, dir, options->log_id);
    if (rc != 0)
        return rc;
    uint64_t from = options->from_seq ? options->from_seq : 1;
    c->to_seq = options->to_seq;
    if (c->to_seq == 0) {
        int64_t last = om_log_last_seq(c->log);
        if (last < 0)
            return (int)last;
        c->to_seq = (uint64_t)last + 1;
    }
    c->stats.next_seq = from;
    if (from >= c->to_seq) {
        c->stats.done = 1;
        return 0;
    }
    rc = om_log_seek_range(c->log, from, c->to_seq);
    return rc < 0 ? at_trouble(c, rc) : 0;
}

int om_col_open(OmColReader **out, const char *dir, const OmColOptions *options) {
    static const OmColOptions defaults;
    if (!out)
        return omi_fail(OM_ERR_BUS_INIT, "no place for the column reader given");
    *out = 0;
    if (!options)
        options = &defaults;
    if (options->flags & ~(uint32_t)(LOG_FLAGS | OM_COL_SKIP_PRUNED))
        return omi_fail(OM_ERR_BUS_INIT, "flags 0x%x: unknown bits", options->flags);
    if (options->rows_max > ROWS_MAX)
        return omi_fail(OM_ERR_BUS_INIT, "rows_max %u is above %u", options->rows_max, (unsigned)ROWS_MAX);
    OmColReader *c = calloc(1, sizeof *c);
    if (!c)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    c->flags = options->flags;
    c->rows_max = options->rows_max ? options->rows_max : ROWS_DEFAULT;
    c->batch_bytes_max = options->batch_bytes_max ? options->batch_bytes_max : BATCH_BYTES_DEFAULT;
    int rc = omi_col_filter_init(&c->filter, &options->filter);
    if (rc == 0)
        rc = open_range(c, dir, options);
    if (rc != 0) {
        om_col_close(c);
        return rc;
    }
    *out = c;
    return 0;
}
