#ifndef OMI_LOG_WRITER_H
#define OMI_LOG_WRITER_H

#include <pthread.h>
#include <stdbool.h>

#include "log/control.h"
#include "log/recovery.h"
#include "log/segment.h"

/**
 * The writer: one appending thread, and two helpers that keep slow things away from it. The preparer (prepare.c) makes
 * and prefaults the next segment and finishes sealed ones; the syncer (sync.c) puts records on disk.
 *
 * Who may touch what: the first block belongs to the appending thread; of it the others read only the atomics. `lock`
 * guards which segments there are; the appending thread takes it only when it leaves the hot path.
 */
struct OmLogWriter {
    /* hot: read and written by each append */
    uint8_t *base;           /* of the current segment; NULL = none yet */
    _Atomic uint64_t offset; /* of the next frame */
    uint64_t soft_limit;     /* a frame that ends beyond this takes the slow path, omi_writer_make_room() */
    _Atomic uint64_t last_seq;
    uint64_t max_time_ns;
    _Atomic uint64_t sync_at;  /* records in this handle at which the syncer wants to be called */
    _Atomic uint64_t appended; /* records through this handle */
    OmiControl *shared;
    uint32_t forks;
    OmLogPublishFn publish;
    void *publish_ctx;

    /* the appending thread's, off the hot path */
    uint64_t end;                          /* frames of the current segment end here; the seal has its place behind */
    uint64_t index_mark;                   /* a frame that ends beyond this gets an index entry */
    uint64_t prefault_mark;                /* ... and beyond this calls the preparer */
    uint64_t records_before, bytes_before; /* in the log before the current segment */
    uint64_t bytes_appended_before;        /* through this handle, before the current segment */
    uint64_t segment_start_offset;         /* where this handle began in the current segment */
    uint64_t segment_start_appended;       /* ... as a count of `appended`, less the records found there */
    uint32_t reserved_len;
    bool reserved;
    uint64_t rotations, rotation_waits, publish_skipped, publish_errors;

    /* set when opened */
    OmiLogDir dir;
    OmiControlFile control;
    int lock_fd;
    uint8_t log_id[OM_LOG_ID_SIZE];
    uint64_t epoch;
    uint64_t segment_bytes, prefault_bytes;
    uint32_t sync, linger_records, linger_ms, index_bytes;
    OmLogRetention retention;
    OmLogReport repair_report;

    /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t prepare_wake; /* for the preparer */
    pthread_cond_t spare_ready;  /* for a writer that waits for it */
    pthread_cond_t sync_wake;    /* for the syncer */
    OmiSegment *current;
    OmiSegment *spare;
    uint64_t next_number; /* of the next segment when there is no current one */
    bool preparing;       /* the preparer is making a spare */
    bool want_spare, want_prune, sync_requested, stop;
    struct OmiSealed *sealed_first, **sealed_last; /* sealed, not yet finished */
    pthread_t preparer, syncer;
    bool preparer_started, syncer_started;
    _Atomic bool syncer_stop;

    /* belongs to the one thread that syncs, who has set `syncing` under lock; the others wait for sync_done */
    bool syncing;
    pthread_cond_t sync_done;
    uint64_t first_unsynced; /* segments from here to the current one may have unsynced data (OM_LOG_SYNC_NONE) */
    bool sync_failed; /* once is for ever: the kernel may drop pages that it could not write, and say so only once */
    _Atomic uint64_t syncs, sync_errors, pruned;
};

/** A segment that was left behind, and what its summary must say. */
typedef struct OmiSealed {
    struct OmiSealed *next;
    OmiSegment *segment;
    OmiSegmentSeal seal;
} OmiSealed;

/** Records in the current segment. */
static inline uint64_t omi_writer_segment_records(const OmLogWriter *w) {
    return atomic_load_explicit(&w->appended, memory_order_relaxed) - w->segment_start_appended;
}

/** soft_limit is the nearest of the marks. */
static inline void omi_writer_set_limit(OmLogWriter *w) {
    uint64_t limit = w->end;
    limit = w->index_mark < limit ? w->index_mark : limit;
    w->soft_limit = w->prefault_mark < limit ? w->prefault_mark : limit;
}

/** Slow path of every append: a segment with room for `size` bytes, index entry, prefault call. 0 or an error, with
 * nothing changed for readers. */
int omi_writer_make_room(OmLogWriter *w, uint64_t size, uint64_t seq, uint64_t time_ns);

/** Slow path after an append: call the syncer, or with OM_LOG_SYNC_EACH sync. */
int omi_writer_sync_due(OmLogWriter *w);

/** The preparer's thread; and making a segment, which a writer in need also does itself. */
void *omi_preparer_run(void *writer);
int omi_writer_make_segment(OmLogWriter *w, uint64_t number, uint64_t size, OmiSegment **out);

/** Write the summaries of sealed segments and let go of them; for OM_LOG_SYNC_NONE, whose syncer has no thread. */
void omi_writer_finish_sealed(OmLogWriter *w);

/** Take the list of sealed segments. */
OmiSealed *omi_writer_take_sealed(OmLogWriter *w);

/** The syncer's thread; and one sync of everything appended so far, which any thread may do. */
void *omi_syncer_run(void *writer);
int omi_writer_sync(OmLogWriter *w, uint64_t seq);

#endif
