#include <stdlib.h>

#include "core/error.h"
#include "log/retention.h"
#include "log/writer.h"

/** Prefaulting goes in steps, so that a rotation or the end does not wait for a long one. */
enum { PREFAULT_STEP = 1 << 20 };

int omi_writer_make_segment(OmLogWriter *w, uint64_t number, uint64_t size, OmiSegment **out) {
    return omi_segment_create(out, &w->dir, w->log_id, number, size, w->index_bytes);
}

/** Make the next segment. lock is held, but not while the disk works. */
static void make_spare(OmLogWriter *w) {
    uint64_t number = w->current ? w->current->number + 1 : w->next_number;
    OmiSegment *segment = 0;
    w->want_spare = false;
    w->preparing = true;
    pthread_mutex_unlock(&w->lock);
    int rc = omi_writer_make_segment(w, number, w->segment_bytes, &segment);
    pthread_mutex_lock(&w->lock);
    w->preparing = false;
    w->spare = rc == 0 ? segment : 0; /* a full disk is told to the append that needs the segment, which tries again */
    pthread_cond_broadcast(&w->spare_ready);
}

/** The segment whose pages are needed next: the current one's up to prefault_bytes ahead of the writer, then what is
 * left of that in the spare. NULL = all are ready. lock is held. */
static OmiSegment *next_to_prefault(OmLogWriter *w) {
    uint64_t ahead = w->prefault_bytes;
    if (w->current) {
        uint64_t target = atomic_load_explicit(&w->offset, memory_order_relaxed) + ahead;
        if (w->current->prefaulted < (target < w->current->size ? target : w->current->size))
            return w->current;
        ahead = target > w->current->size ? target - w->current->size : 0;
    }
    if (ahead < PREFAULT_STEP)
        ahead = PREFAULT_STEP; /* a rotation finds at least its first pages */
    return w->spare && w->spare->prefaulted < (ahead < w->spare->size ? ahead : w->spare->size) ? w->spare : 0;
}

/** Make one step of pages ready. lock is held, but not while faulting. */
static void prefault(OmLogWriter *w, OmiSegment *segment) {
    uint64_t from = segment->prefaulted;
    segment->prefaulted += PREFAULT_STEP;
    omi_segment_ref(segment);
    pthread_mutex_unlock(&w->lock);
    omi_segment_prefault(segment, from, from + PREFAULT_STEP);
    omi_segment_unref(segment);
    pthread_mutex_lock(&w->lock);
}

OmiSealed *omi_writer_take_sealed(OmLogWriter *w) {
    OmiSealed *first = w->sealed_first;
    w->sealed_first = 0;
    w->sealed_last = &w->sealed_first;
    return first;
}

void omi_writer_finish_sealed(OmLogWriter *w) {
    pthread_mutex_lock(&w->lock);
    OmiSealed *sealed = omi_writer_take_sealed(w);
    pthread_mutex_unlock(&w->lock);
    while (sealed) {
        OmiSealed *next = sealed->next;
        omi_seal_write(omi_segment_header(sealed->segment), &sealed->seal);
        omi_segment_unref(sealed->segment);
        free(sealed);
        sealed = next;
    }
}

static void prune(OmLogWriter *w) {
    w->want_prune = false;
    const OmLogRetention *policy = &w->retention;
    if (policy->max_bytes == 0 && policy->max_age_ns == 0)
        return;
    pthread_mutex_unlock(&w->lock);
    int pruned = omi_retain(&w->dir, policy);
    if (pruned > 0)
        atomic_fetch_add(&w->pruned, (uint64_t)pruned);
    pthread_mutex_lock(&w->lock);
}

void *omi_preparer_run(void *writer) {
    OmLogWriter *w = writer;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        OmiSegment *segment;
        if (w->want_spare && !w->spare) {
            make_spare(w);
        } else if ((segment = next_to_prefault(w))) {
            prefault(w, segment);
        } else if (w->sealed_first && w->sync == OM_LOG_SYNC_NONE) {
            pthread_mutex_unlock(&w->lock);
            omi_writer_finish_sealed(w);
            pthread_mutex_lock(&w->lock);
        } else if (w->want_prune) {
            prune(w);
        } else {
            pthread_cond_wait(&w->prepare_wake, &w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return 0;
}
