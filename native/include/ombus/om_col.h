#ifndef OM_COL_H
#define OM_COL_H

/**
 * @file om_col.h
 * @brief Columns over frames: a range of a log, or a buffer of frames, as batches of row addresses.
 *
 * A row is the address of a checked frame, so a batch is one array of addresses and every column is a view: the value
 * of row i is read at rows[i] plus a fixed offset (OM_COL_AT_*), and nothing is copied or decoded that nobody asks for.
 * Filters are applied before an address is handed out. All lengths inside a frame have been checked by then, so that a
 * reader of columns needs no bounds of its own but the payload's.
 *
 * Results and threads: as in om_log.h.
 */

#include <stddef.h>
#include <stdint.h>

#include "om_log.h"

OM_BEGIN_DECLS

/* Where a row's values are, from its address on. All little-endian; the payload is 8-byte aligned. */
#define OM_COL_AT_TYPE 4U         /* uint8_t wal_type */
#define OM_COL_AT_SEQ 8U          /* uint64_t wal_seq */
#define OM_COL_AT_TIME 16U        /* uint64_t timestamp_ns */
#define OM_COL_AT_PAYLOAD_LEN 28U /* uint32_t payload bytes */
#define OM_COL_AT_PAYLOAD 32U

#define OM_COL_DROP_SHORT 0x1U /* leave out rows whose payload is shorter than payload_min says */

/** Which records become rows. All zero = all. */
typedef struct OmColFilter {
    uint64_t from_time_ns;       /* timestamps from here on */
    uint64_t to_time_ns;         /* and below this; 0 = no such bound */
    uint64_t types[4];           /* bit (t & 63) of word (t >> 6) lets wal_type t pass; all zero = every type */
    const uint32_t *payload_min; /* 256 payload sizes by wal_type, below which a row counts as short; NULL = none is */
    uint32_t flags;              /* OM_COL_DROP_SHORT */
    uint32_t reserved;
} OmColFilter;

/** What has been read so far; counters only grow. */
typedef struct OmColStats {
    uint64_t records;  /* looked at */
    uint64_t bytes;    /* of their frames */
    uint64_t rows;     /* handed out */
    uint64_t gaps;     /* places where wal_seq jumps, and ... */
    uint64_t gap_seqs; /* ... the sequence numbers that no record has */
    uint64_t short_payloads;
    uint64_t short_seq;      /* wal_seq of the latest one that was short; 0 = none */
    uint64_t short_len;      /* and its payload's size */
    uint64_t damages;        /* skipped, with OM_LOG_SKIP_CORRUPT */
    uint64_t pruned_ranges;  /* passed over, with OM_COL_SKIP_PRUNED */
    uint64_t lost_first_seq; /* latest range lost to damage or retention: from here ... */
    uint64_t lost_last_seq;  /* ... to here */
    uint64_t next_seq;       /* everything below has been looked at */
    uint64_t done;           /* 1 = the end of the range has been reached */
} OmColStats;

/* ---- A range of a log ---- */

#define OM_COL_SKIP_PRUNED 0x100U /* reader flag: go on behind records that retention has removed */

/** Zero in a field means its default. */
typedef struct OmColOptions {
    uint64_t from_seq;              /* (1) */
    uint64_t to_seq;                /* exclusive; must not lie behind the log's last record + 1 (that) */
    uint32_t flags;                 /* OM_LOG_NO_CRC, OM_LOG_SKIP_CORRUPT, OM_LOG_DURABLE_ONLY, OM_COL_SKIP_PRUNED */
    uint32_t rows_max;              /* most rows of a batch (8192) */
    uint64_t batch_bytes_max;       /* frame bytes after which a batch ends (16 MiB), so that copies of it stay small */
    uint8_t log_id[OM_LOG_ID_SIZE]; /* the log's identity must be this one, else OM_ERR_LOG_FOREIGN; all zero = any */
    OmColFilter filter;             /* payload_min is copied */
} OmColOptions;

typedef struct OmColReader OmColReader;

/** Open [from_seq, to_seq) of the log in dir. OM_ERR_LOG_PRUNED when its start is gone (unless OM_COL_SKIP_PRUNED). */
int om_col_open(OmColReader **out, const char *dir, const OmColOptions *options);

/**
 * The next batch of rows, in order: puts up to rows_max addresses into rows and returns how many. 0 with stats->done =
 * 0 says that a stretch of the log had no row (call again), with done = 1 that the range is at its end. The addresses
 * are valid until the next call or close. stats may be NULL. OM_ERR_COL_INCOMPLETE: the log ends before the range does,
 * so that records which were there have gone.
 */
int om_col_next(OmColReader *c, uint64_t *rows, OmColStats *stats);

/** NULL-safe. */
void om_col_close(OmColReader *c);

/* ---- Frames in memory, such as a receive buffer ---- */

/** Where an index over consecutive buffers stands. Starts as all zero. */
typedef struct OmColCursor {
    uint64_t last_seq; /* of the last frame; the next must be greater */
    uint64_t from_seq; /* frames below are passed over */
    uint64_t to_seq;   /* the first frame from here on ends the range: stats->done; 0 = no such bound */
} OmColCursor;

/**
 * Rows of the frames that begin at `data` (8-byte aligned): up to rows_max addresses into rows; returns how many.
 * *consumed is how many bytes of whole frames were taken; what follows is an incomplete frame (bring more bytes), a
 * frame that is no record (wal_type above OM_LOG_TYPE_MAX, the caller's to understand), or more rows than fit.
 * Flags: OM_LOG_NO_CRC. OM_ERR_COL_FRAME: the bytes are no frame with extended header, or one that is damaged.
 */
int om_col_index(const void *data, size_t size, uint32_t flags, const OmColFilter *filter, OmColCursor *cursor,
                 uint64_t *rows, uint32_t rows_max, size_t *consumed, OmColStats *stats);

OM_END_DECLS

#endif
