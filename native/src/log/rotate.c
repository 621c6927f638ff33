#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "log/frame.h"
#include "log/writer.h"

/** Bytes a segment needs for one frame of `size`. */
static uint64_t segment_need(uint64_t size) {
    uint64_t need = OMI_SEGMENT_DATA + size + OMI_FRAME_HEADER;
    return (need + OMI_PAGE - 1) & ~(uint64_t)(OMI_PAGE - 1);
}

/** A spare with room for `size`, taken from the preparer or made here. lock is held, and held again on return. */
static int take_spare(OmLogWriter *w, uint64_t size, OmiSegment **out) {
    uint64_t number = w->current ? w->current->number + 1 : w->next_number;
    if (w->preparing)
        w->rotation_waits++;
    while (w->preparing)
        pthread_cond_wait(&w->spare_ready, &w->lock);
    OmiSegment *spare = w->spare;
    if (spare && spare->size >= segment_need(size)) {
        w->spare = 0;
        *out = spare;
        return 0;
    }
    w->rotation_waits++;
    if (spare) { /* too small for this record; nobody has used it */
        w->spare = 0;
        omi_segment_remove(&w->dir, number);
        omi_segment_unref(spare);
    }
    uint64_t bytes = segment_need(size) > w->segment_bytes ? segment_need(size) : w->segment_bytes;
    return omi_writer_make_segment(w, number, bytes, out);
}

/** Leave the current segment: seal it for readers, queue it for its summary and last sync. */
static void seal_current(OmLogWriter *w, OmiSealed *sealed) {
    uint64_t offset = atomic_load_explicit(&w->offset, memory_order_relaxed);
    uint64_t last_seq = atomic_load_explicit(&w->last_seq, memory_order_relaxed);
    sealed->segment = w->current;
    sealed->next = 0;
    sealed->seal = (OmiSegmentSeal){.end_offset = offset,
                                    .last_seq = last_seq,
                                    .records = omi_writer_segment_records(w),
                                    .max_time_ns = w->max_time_ns,
                                    .sealed_ns = omi_wall_ns()};
    omi_frame_put_padding(w->base + offset, last_seq + 1, w->max_time_ns, OMI_FRAME_HEADER);
    w->bytes_appended_before += offset - w->segment_start_offset;
    w->records_before += sealed->seal.records;
    w->bytes_before += offset - OMI_SEGMENT_DATA;
    *w->sealed_last = sealed;
    w->sealed_last = &sealed->next;
}

static int rotate(OmLogWriter *w, uint64_t size, uint64_t seq, uint64_t time_ns) {
    OmiSegment *segment;
    OmiSealed *sealed = w->current ? malloc(sizeof *sealed) : 0;
    if (w->current && !sealed)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    pthread_mutex_lock(&w->lock);
    int rc = take_spare(w, size, &segment);
    if (rc != 0) {
        pthread_mutex_unlock(&w->lock);
        free(sealed);
        return rc;
    }
    if (sealed)
        seal_current(w, sealed);
    /* Only now: a reader that finds a segment in use may rely on the one before being sealed. */
    OmiSegmentUse use = {.base_seq = seq,
                         .prev_seq = atomic_load_explicit(&w->last_seq, memory_order_relaxed),
                         .prev_max_time_ns = w->max_time_ns,
                         .records_before = w->records_before,
                         .bytes_before = w->bytes_before,
                         .first_time_ns = time_ns,
                         .writer_epoch = w->epoch};
    omi_use_write(omi_segment_header(segment), &use);
    w->current = segment;
    w->base = segment->base;
    w->end = segment->size - OMI_FRAME_HEADER;
    atomic_store_explicit(&w->offset, OMI_SEGMENT_DATA, memory_order_relaxed);
    atomic_store_explicit(&w->shared->newest_segment, segment->number, memory_order_release);
    w->segment_start_offset = OMI_SEGMENT_DATA;
    w->segment_start_appended = atomic_load_explicit(&w->appended, memory_order_relaxed);
    w->index_mark = 0;
    w->prefault_mark = w->prefault_bytes / 4;
    w->want_spare = true;
    w->want_prune = true;
    w->rotations++;
    pthread_cond_signal(&w->prepare_wake);
    if (w->sync == OM_LOG_SYNC_LINGER) { /* the sealed one should go to disk soon, whatever the counts */
        w->sync_requested = true;
        pthread_cond_signal(&w->sync_wake);
    }
    pthread_mutex_unlock(&w->lock);
    return 0;
}

int omi_writer_make_room(OmLogWriter *w, uint64_t size, uint64_t seq, uint64_t time_ns) {
    if (w->reserved)
        return omi_fail(OM_ERR_LOG_STATE, "a reservation is open: commit or abort it first");
    if (!w->current || atomic_load_explicit(&w->offset, memory_order_relaxed) + size > w->end) {
        int rc = rotate(w, size, seq, time_ns);
        if (rc != 0)
            return rc;
    }
    uint64_t offset = atomic_load_explicit(&w->offset, memory_order_relaxed);
    if (offset + size > w->index_mark) {
        omi_index_add(&w->current->index, seq, w->max_time_ns, offset, (uint32_t)omi_writer_segment_records(w));
        w->index_mark = offset + w->index_bytes;
    }
    if (offset + size > w->prefault_mark) {
        w->prefault_mark = offset + size + w->prefault_bytes / 4;
        pthread_mutex_lock(&w->lock);
        pthread_cond_signal(&w->prepare_wake);
        pthread_mutex_unlock(&w->lock);
    }
    omi_writer_set_limit(w);
    return 0;
}
