#ifndef OM_LOG_H
#define OM_LOG_H

/**
 * @file om_log.h
 * @brief The write-ahead log: one writer, any number of readers in any process, positions by wal_seq and by time.
 *
 * A log is a directory of memory-mapped segment files that hold frames (docs/log-format.md). A record is visible to
 * every reader when om_log_append() returns, survives the writer's death from then on, and survives a power cut from
 * the moment om_log_durable_seq() has reached it.
 *
 * wal_seq: 1 to OM_LOG_SEQ_MAX, strictly rising; gaps are allowed and kept. A position is "the next wal_seq to read".
 *
 * Results: int and int64_t functions return 0 or a count or a wal_seq, and a negative OM_ERR_* on failure;
 * om_bus_error_string(rc) says what to do, om_bus_last_error() names file, offset and sequence.
 * Threads: one thread at a time per handle, but for the functions marked "any thread".
 * Fork: a handle belongs to the process that opened it; a child gets OM_ERR_BUS_FORKED.
 * Mappings: files of a live log must not be truncated by others, and a failing disk raises SIGBUS in whoever touches
 * the lost page, as with any memory-mapped file.
 */

#include <stddef.h>
#include <stdint.h>

#include "om_bus_error.h"

OM_BEGIN_DECLS

#define OM_LOG_SEQ_MAX ((uint64_t)INT64_MAX - 1) /* so that the position after it still fits a signed 64-bit integer \
                                                  */
#define OM_LOG_PAYLOAD_MAX (64U << 20)
#define OM_LOG_TYPE_MAX 0xFCU /* 0xFD control, 0xFE slow-client warning and 0xFF padding are reserved */
#define OM_LOG_FRAME_HEADER_SIZE 32U
#define OM_LOG_FRAME_ALIGN 8U
#define OM_LOG_SEGMENT_HEADER_SIZE 4096U
#define OM_LOG_SEGMENT_BYTES_MIN (16U << 10)
#define OM_LOG_SEGMENT_BYTES_MAX (1U << 30)
#define OM_LOG_ID_SIZE 16U
#define OM_LOG_CONSUMER_NAME_MAX 200U
#define OM_LOG_FOREVER (-1) /* timeout_ns: no limit */

/** A record as it is taken in and handed out. */
typedef struct OmLogRecord {
    uint64_t wal_seq;      /* append: 0 = the last one plus 1 */
    uint64_t timestamp_ns; /* CLOCK_REALTIME of the append; append: 0 = now */
    const void *payload;
    uint32_t payload_len;
    uint8_t wal_type;
    uint8_t reserved[3];
} OmLogRecord;

/* ---- Retention and consumers (see below) ---- */

#define OM_LOG_RETAIN_FOR_CONSUMERS 0x1U /* keep what a saved consumer position has not passed */

/** What may be removed: a sealed segment that ANY of the two limits condemns and that nobody still needs. */
typedef struct OmLogRetention {
    uint64_t max_bytes;  /* remove the oldest segments while the log is larger; 0 = no limit */
    uint64_t max_age_ns; /* remove segments whose newest record is older; 0 = no limit */
    uint64_t min_seq;    /* never remove a record with this wal_seq or a later one; 0 = no such bound */
    uint32_t flags;      /* OM_LOG_RETAIN_* */
    uint32_t reserved;
} OmLogRetention;

/* ---- Writer ---- */

typedef enum OmLogSync {
    OM_LOG_SYNC_LINGER = 0, /* a background thread syncs every linger_records or linger_ms, whichever comes first */
    OM_LOG_SYNC_NONE = 1,   /* only om_log_sync() syncs; the system writes back in its own time */
    OM_LOG_SYNC_EACH = 2,   /* every append returns when its records are on disk */
} OmLogSync;

#define OM_LOG_SALVAGE 0x1U   /* open: accept damage before the durable point, as om_log_repair(OM_LOG_SALVAGE) */
#define OM_LOG_NO_CREATE 0x2U /* open: OM_ERR_LOG_NOT_FOUND rather than creating a log */

/** Zero in a field means its default. */
typedef struct OmLogWriterOptions {
    uint64_t segment_bytes;  /* size of segment files (64 MiB); a larger record gets a larger one of its own */
    uint64_t prefault_bytes; /* how far ahead of the writer pages are made ready (16 MiB) */
    uint32_t sync;           /* OmLogSync */
    uint32_t linger_records; /* (500) */
    uint32_t linger_ms;      /* (100) */
    uint32_t index_bytes;    /* distance of index entries (64 KiB) */
    uint32_t flags;          /* OM_LOG_SALVAGE, OM_LOG_NO_CREATE */
    uint32_t reserved;
    OmLogRetention retention; /* applied whenever a segment is sealed; all zero = keep everything */
} OmLogWriterOptions;

typedef struct OmLogWriter OmLogWriter;

/**
 * Open the log in `dir` for writing; creates directory and log when missing, else resumes behind the last record.
 * A torn tail is cut on the way (om_log_writer_repair_report() tells). options may be NULL.
 * OM_ERR_LOG_LOCKED: another writer has it; om_bus_last_error() names its pid.
 * OM_ERR_LOG_CORRUPT: damage before the durable point; nothing was changed; see om_log_repair().
 */
int om_log_open_writer(OmLogWriter **out, const char *dir, const OmLogWriterOptions *options);

/**
 * Append one record. Returns its wal_seq (> 0) or an error; on an error nothing was appended.
 * wal_seq 0 assigns the last one plus 1. OM_ERR_LOG_SEQ_ORDER: not greater than the last; OM_ERR_LOG_SEQ_LIMIT: beyond
 * OM_LOG_SEQ_MAX; OM_ERR_LOG_DISK_FULL: no room for a new segment, try again when there is.
 * With OM_LOG_SYNC_EACH an OM_ERR_LOG_IO says that the record was appended but its sync failed.
 */
int64_t om_log_append(OmLogWriter *w, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint32_t len);

/**
 * Append `count` records in order, with one clock read for all those without a timestamp. All fields are checked before
 * the first is appended. Returns how many were appended: fewer than count only when space ran out on the way, an error
 * when none was. Readers may see a prefix of the batch, never a hole.
 */
int64_t om_log_append_batch(OmLogWriter *w, const OmLogRecord *recs, size_t count);

/**
 * Append `count` payloads of item_size bytes, stride bytes apart, as first_seq, first_seq + 1, ... (0: after the last).
 * Returns as om_log_append_batch().
 */
int64_t om_log_append_array(OmLogWriter *w, uint64_t first_seq, uint8_t wal_type, const void *items, uint32_t item_size,
                            size_t stride, size_t count);

/**
 * Room for a payload of up to `len` bytes inside the log, to be written in place; *payload is zeroed and 8-byte
 * aligned. One reservation at a time; until commit or abort other appends fail with OM_ERR_LOG_STATE.
 */
int om_log_reserve(OmLogWriter *w, uint32_t len, void **payload);

/** Publish the reserved payload's first `len` bytes as a record. Returns its wal_seq; on an error it stays reserved. */
int64_t om_log_commit(OmLogWriter *w, uint64_t wal_seq, uint8_t wal_type, uint32_t len);

/** Give the reservation back. */
int om_log_abort(OmLogWriter *w);

/** Put everything appended so far on disk. Any thread. */
int om_log_sync(OmLogWriter *w);

/**
 * Wait until everything up to wal_seq is on disk; several waiters share one sync (group commit), which starts at once.
 * OM_ERR_LOG_TIMEOUT after timeout_ns (< 0: never). Any thread. wal_seq must have been appended.
 */
int om_log_wait_durable(OmLogWriter *w, uint64_t wal_seq, int64_t timeout_ns);

/** wal_seq of the last record appended; 0 = none. Any thread. */
uint64_t om_log_writer_last_seq(const OmLogWriter *w);

/** Everything up to this wal_seq is on disk. Any thread. */
uint64_t om_log_writer_durable_seq(const OmLogWriter *w);

/** Counters of one writer handle. */
typedef struct OmLogWriterStats {
    uint64_t records; /* appended through this handle */
    uint64_t bytes;   /* of frames, with headers and padding */
    uint64_t rotations;
    uint64_t rotation_waits; /* rotations that found no segment ready and had to make one */
    uint64_t syncs;
    uint64_t sync_errors;
    uint64_t segments_pruned; /* by the retention option */
    uint64_t publish_skipped; /* too large for the attached ring: its consumers see a gap and read the log */
    uint64_t publish_errors;  /* the attached ring failed otherwise */
} OmLogWriterStats;

void om_log_writer_stats(const OmLogWriter *w, OmLogWriterStats *out);

/** Called after each record is in the log, in the appending thread. Its result is counted, never returned. */
typedef int (*OmLogPublishFn)(uint64_t wal_seq, uint8_t wal_type, const void *payload, uint32_t len, void *ctx);

/** Call fn for every record from now on; NULL ends it. om_bus_attach_log() (om_bus_log.h) uses it for a ring. */
int om_log_set_publish(OmLogWriter *w, OmLogPublishFn fn, void *ctx);

/** Sync what is pending (not with OM_LOG_SYNC_NONE), stop the threads, release the log. NULL-safe. The handle is gone
 * even when an error is returned, which then says that the last records may not be on disk. */
int om_log_close(OmLogWriter *w);

/* ---- Reader ---- */

#define OM_LOG_NO_CRC 0x1U       /* do not check checksums: only for data that was checked before */
#define OM_LOG_SKIP_CORRUPT 0x2U /* go on behind damage, after reporting it once with OM_ERR_LOG_SKIPPED */
#define OM_LOG_DURABLE_ONLY 0x4U /* hand out a record only when a power cut can no longer take it back */

/** Zero in a field means its default. */
typedef struct OmLogReaderOptions {
    uint32_t flags;               /* OM_LOG_NO_CRC, OM_LOG_SKIP_CORRUPT, OM_LOG_DURABLE_ONLY */
    uint32_t mapped_segments_max; /* how many segments stay mapped (4) */
} OmLogReaderOptions;

typedef struct OmLogReader OmLogReader;

/** Open a log for reading; the reader stands at the first record. Needs read rights only (waiting is then by polling).
 * OM_ERR_LOG_NOT_FOUND: there is no log in dir. */
int om_log_open_reader(OmLogReader **out, const char *dir, const OmLogReaderOptions *options);

void om_log_reader_close(OmLogReader *r);

/** First wal_seq that is still there; 0 = the log is empty. */
int64_t om_log_first_seq(OmLogReader *r);

/** Last wal_seq visible to this reader (with OM_LOG_DURABLE_ONLY: durable); 0 = none. */
int64_t om_log_last_seq(OmLogReader *r);

/** Everything up to this wal_seq is on disk; 0 = nothing. */
int64_t om_log_durable_seq(OmLogReader *r);

/** The log's random identity, made when it was created: a recreated log has another one. */
void om_log_id(const OmLogReader *r, uint8_t id[OM_LOG_ID_SIZE]);

/** How often the log has been opened for writing: a change means that the writer restarted. */
uint64_t om_log_epoch(const OmLogReader *r);

/**
 * Stand at the first record with wal_seq >= seq, which may not have been appended yet. Lifts a range's end.
 * OM_ERR_LOG_PRUNED: retention has removed records from seq on; the reader stands at the first one that is left.
 */
int om_log_seek(OmLogReader *r, uint64_t seq);

/** As om_log_seek(from), and hand out only records below `to`: om_log_next() then returns 0 and om_log_position() is
 * at least `to`, or the live end of the log has been reached. */
int om_log_seek_range(OmLogReader *r, uint64_t from, uint64_t to);

/**
 * Stand at the first record at which the clock had reached time_ns: the first whose timestamp, or an earlier record's,
 * is >= time_ns. Where the clock stepped backward, records after the step thus count as no older than those before it.
 * Behind the last record when there is none.
 */
int om_log_seek_time(OmLogReader *r, uint64_t time_ns);

/** Stand behind the last record. */
int om_log_seek_end(OmLogReader *r);

/** The position: records below this wal_seq have been read or passed over. */
uint64_t om_log_position(const OmLogReader *r);

/**
 * Next record: 1 = in *rec, 0 = none now.
 * OM_ERR_LOG_CORRUPT: damage; the reader stays in front of it. With OM_LOG_SKIP_CORRUPT instead OM_ERR_LOG_SKIPPED,
 * once, and the next call goes on behind it. om_log_damage() tells segment, offset and the wal_seq range lost.
 * OM_ERR_LOG_PRUNED: retention was faster than this reader; it now stands at the first record that is left.
 * The payload points into the mapped log (8-byte aligned, read only) and is valid until the next call that moves this
 * reader (next*, seek*, plan and range functions do not) or closes it; om_log_hold() extends that.
 */
int om_log_next(OmLogReader *r, OmLogRecord *rec);

/** Up to max records at once, all of one segment; returns how many. Stops before a record that om_log_next() would
 * report as an error, so that the next call reports it. Payloads are valid as with om_log_next(). */
int om_log_next_batch(OmLogReader *r, OmLogRecord *recs, size_t max);

/** A run of whole, checked, adjacent frames in one segment. */
typedef struct OmLogSpan {
    const uint8_t *data; /* first frame; valid as om_log_next()'s payload */
    size_t size_bytes;
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t records;
    uint64_t segment;
    uint64_t offset; /* of data in the segment's file */
    int fd;          /* that file, for sendfile(); open as long as data is valid */
    int reserved;
} OmLogSpan;

/** The next run of frames, up to max_bytes (but at least one frame): 1 = in *span, 0 = none now, errors as
 * om_log_next(). Besides records a run may hold padding frames (wal_type 0xFF), which readers of frames skip. */
int om_log_next_span(OmLogReader *r, size_t max_bytes, OmLogSpan *span);

/** Sleep until om_log_next() has something to say: 1 = yes, 0 = timeout (timeout_ns < 0: never). Uses no CPU. */
int om_log_wait(OmLogReader *r, int64_t timeout_ns);

typedef struct OmLogHold OmLogHold;

/** Keep everything that the last next call handed out valid until om_log_hold_release(), even past
 * om_log_reader_close(). NULL when nothing was handed out or memory is short. */
OmLogHold *om_log_hold(OmLogReader *r);

/** NULL-safe. Any thread. */
void om_log_hold_release(OmLogHold *hold);

/** Counters of one reader handle. */
typedef struct OmLogReaderStats {
    uint64_t records; /* handed out */
    uint64_t bytes;   /* of their frames */
    uint64_t segments_mapped;
    uint64_t damages_skipped;
    uint64_t damaged_bytes_skipped;
    uint64_t indexes_rebuilt; /* missing, stale or wrong index files */
} OmLogReaderStats;

void om_log_reader_stats(const OmLogReader *r, OmLogReaderStats *out);

/* ---- Damage ---- */

typedef enum OmLogDamageKind {
    OM_LOG_DAMAGE_FRAME = 1,   /* bytes that are not a valid frame */
    OM_LOG_DAMAGE_HEADER = 2,  /* a segment's header */
    OM_LOG_DAMAGE_MISSING = 3, /* a segment file that should be there */
    OM_LOG_DAMAGE_FOREIGN = 4, /* a segment of another log */
    OM_LOG_DAMAGE_TAIL = 5,    /* a torn tail: not damage of promised data; the next writer cuts it */
    OM_LOG_DAMAGE_INDEX = 6,   /* an index file: harmless, readers rebuild it */
} OmLogDamageKind;

typedef struct OmLogDamage {
    uint32_t kind;    /* OmLogDamageKind */
    uint32_t records; /* whole records found inside what was or would be cut */
    uint64_t segment;
    uint64_t offset;
    uint64_t size_bytes;     /* up to the next valid frame, or the end of data */
    uint64_t lost_first_seq; /* records from here ... */
    uint64_t lost_last_seq;  /* ... to here may be lost; 0 = all that followed */
} OmLogDamage;

/** The damage that the last OM_ERR_LOG_CORRUPT or OM_ERR_LOG_SKIPPED of this reader was about. */
void om_log_damage(const OmLogReader *r, OmLogDamage *out);

/* ---- Ranges, from the index: for planners ---- */

typedef struct OmLogRange {
    uint64_t from_seq;
    uint64_t to_seq; /* exclusive */
    uint64_t bytes;  /* of frames */
    uint64_t records;
} OmLogRange;

/**
 * Cut [from, to) into at most n ranges of about equal bytes that together cover it, in order; returns how many. Cuts
 * are made at index entries (64 KiB apart), so that no data is read unless the range is small. to = 0: to the last
 * record.
 */
int om_log_plan(OmLogReader *r, uint64_t from, uint64_t to, uint32_t n, OmLogRange *out);

/** Exact number of records and frame bytes in [from, to), without reading what lies between. to = 0: to the last. */
int om_log_range_stats(OmLogReader *r, uint64_t from, uint64_t to, OmLogRange *out);

/**
 * Where to stop for a batch of limited size: an end in (from, to] such that [from, end) holds max_records records, or
 * as few as reach max_bytes of frames (0 = no such limit), but at least one; or `to` when the range has less. to = 0:
 * behind the last record.
 */
int om_log_limit(OmLogReader *r, uint64_t from, uint64_t to, uint64_t max_records, uint64_t max_bytes, uint64_t *end);

/* ---- Looking at and mending a log ---- */

typedef struct OmLogInfo {
    uint8_t id[OM_LOG_ID_SIZE];
    uint64_t created_ns;
    uint64_t epoch;
    uint64_t first_seq; /* 0 = empty */
    uint64_t last_seq;
    uint64_t durable_seq;
    uint64_t records; /* still there */
    uint64_t bytes;   /* of their frames */
    uint64_t first_time_ns;
    uint64_t last_time_ns; /* newest timestamp so far */
    uint64_t disk_bytes;   /* of all segment files */
    uint64_t segment_bytes;
    uint32_t segments;     /* in use */
    uint32_t writer_pid;   /* of the present or last writer; 0 = none yet */
    uint32_t writer_alive; /* 1 = the log is open for writing now */
    uint32_t reserved;
} OmLogInfo;

/** Describe a log without being its reader. */
int om_log_info(const char *dir, OmLogInfo *out);

typedef struct OmLogSegmentInfo {
    uint64_t number;
    uint64_t first_seq; /* 0 = no record yet */
    uint64_t last_seq;
    uint64_t records;
    uint64_t bytes; /* of frames */
    uint64_t first_time_ns;
    uint64_t max_time_ns; /* newest timestamp up to its end */
    uint64_t file_bytes;
    uint64_t writer_epoch;
    uint32_t sealed;
    uint32_t damaged; /* its header cannot be read */
} OmLogSegmentInfo;

/** Call fn for each segment in order until it returns non-zero. Returns how many were seen. */
int om_log_segments(const char *dir, int (*fn)(const OmLogSegmentInfo *info, void *ctx), void *ctx);

/** What om_log_verify(), om_log_repair() and a resuming writer found. */
typedef struct OmLogReport {
    uint64_t segments;
    uint64_t records; /* valid ones, in order */
    uint64_t bytes;
    uint64_t first_seq;
    uint64_t last_seq;
    uint64_t damages; /* without torn tail and indexes */
    uint64_t damaged_bytes;
    uint64_t tail_bytes;   /* torn tail: cut by a writer or om_log_repair() */
    uint64_t tail_records; /* whole records in it: never reported durable */
    uint64_t indexes_wrong;
    char side_file[256]; /* the last file that holds what was cut; "" = nothing was */
} OmLogReport;

/** Both may be NULL. A non-zero result of progress stops with OM_ERR_LOG_CANCELLED. */
typedef struct OmLogVisitor {
    void (*damage)(const OmLogDamage *damage, const char *text, void *ctx);
    int (*progress)(uint64_t done_bytes, uint64_t total_bytes, void *ctx);
    void *ctx;
} OmLogVisitor;

/**
 * Check every byte of a log with the code that recovers it, changing nothing. Returns 0 when it is whole or has only a
 * torn tail (report tells), OM_ERR_LOG_CORRUPT when damaged. visitor and report may be NULL.
 */
int om_log_verify(const char *dir, const OmLogVisitor *visitor, OmLogReport *report);

/**
 * Mend a log that no writer holds: cut a torn tail, rewrite wrong indexes and summaries, and with OM_LOG_SALVAGE in
 * flags also cover damage in the middle, so that reading goes on behind it. Nothing is deleted: what is cut is first
 * copied into a side file SEGMENT.cut-OFFSET-TIME beside the segments.
 */
int om_log_repair(const char *dir, uint32_t flags, const OmLogVisitor *visitor, OmLogReport *report);

/** What om_log_open_writer() had to repair. */
void om_log_writer_repair_report(const OmLogWriter *w, OmLogReport *out);

/* ---- Retention ---- */

/** Remove what the policy allows; whole sealed segments only, never the newest. Readers that have one mapped keep it.
 * Works beside a live writer. Returns how many segments went. */
int om_log_retain(const char *dir, const OmLogRetention *policy);

/* ---- Named consumers: DIR/consumers/NAME.cursor, in the format of om_bus_cursor_save() ---- */

/** Remember that consumer `name` needs nothing up to and with wal_seq any more; durable. Name: letters, digits, . _ -.
 */
int om_log_consumer_save(const char *dir, const char *name, uint64_t wal_seq);

/** Its position. OM_ERR_LOG_NOT_FOUND: no such consumer; OM_ERR_BUS_CRC_MISMATCH: its file is damaged. */
int om_log_consumer_load(const char *dir, const char *name, uint64_t *wal_seq);

/** Forget it. */
int om_log_consumer_remove(const char *dir, const char *name);

typedef struct OmLogConsumer {
    const char *name;
    uint64_t wal_seq;
    uint64_t saved_ns; /* CLOCK_REALTIME of the last save */
    int result;        /* 0, or why its position cannot be read */
} OmLogConsumer;

/** Call fn for each consumer until it returns non-zero. Returns how many were seen. */
int om_log_consumers(const char *dir, int (*fn)(const OmLogConsumer *consumer, void *ctx), void *ctx);

OM_END_DECLS

#endif
