#include "log/writer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/error.h"
#include "core/process.h"

static int take_options(OmLogWriter *w, const OmLogWriterOptions *given) {
    OmLogWriterOptions options = given ? *given : (OmLogWriterOptions){0};
    w->segment_bytes = options.segment_bytes ? options.segment_bytes : 64U << 20;
    w->prefault_bytes = options.prefault_bytes ? options.prefault_bytes : 16U << 20;
    w->sync = options.sync;
    w->linger_records = options.linger_records ? options.linger_records : 500;
    w->linger_ms = options.linger_ms ? options.linger_ms : 100;
    w->index_bytes = options.index_bytes ? options.index_bytes : 64U << 10;
    w->retention = options.retention;
    if (w->segment_bytes < OM_LOG_SEGMENT_BYTES_MIN || w->segment_bytes > OM_LOG_SEGMENT_BYTES_MAX)
        return omi_fail(OM_ERR_BUS_INIT, "segment_bytes %llu: use %u to %u", (unsigned long long)w->segment_bytes,
                        OM_LOG_SEGMENT_BYTES_MIN, OM_LOG_SEGMENT_BYTES_MAX);
    if (w->sync > OM_LOG_SYNC_EACH)
        return omi_fail(OM_ERR_BUS_INIT, "sync %u: use an OmLogSync value", w->sync);
    if (w->index_bytes < 1024)
        return omi_fail(OM_ERR_BUS_INIT, "index_bytes %u: use at least 1024", w->index_bytes);
    if (options.flags & ~(OM_LOG_SALVAGE | OM_LOG_NO_CREATE))
        return omi_fail(OM_ERR_BUS_INIT, "flags 0x%x: unknown bits", options.flags);
    w->segment_bytes = (w->segment_bytes + OMI_PAGE - 1) & ~(uint64_t)(OMI_PAGE - 1);
    return 0;
}

/** The control file as it is, or a new one: for a new log, or for one whose control file was lost. */
static int open_control(OmLogWriter *w, bool create) {
    bool fresh = false;
    int rc = omi_control_open(&w->control, &w->dir, true);
    if (rc != OM_ERR_LOG_NOT_FOUND && rc != OM_ERR_LOG_FOREIGN)
        return rc;
    if (!omi_recover_id(&w->dir, w->log_id)) {
        uint64_t *numbers;
        size_t count;
        int listed = omi_dir_segments(&w->dir, &numbers, &count);
        if (listed != 0)
            return listed;
        free(numbers);
        if (rc == OM_ERR_LOG_FOREIGN)
            return rc;
        if (count > 0)
            return omi_fail(OM_ERR_LOG_FOREIGN, "'%s' holds segment files that are not an ombus log's", w->dir.path);
        if (!create)
            return omi_fail(OM_ERR_LOG_NOT_FOUND, "there is no log in '%s'", w->dir.path);
        if (getrandom(w->log_id, sizeof w->log_id, 0) != (ssize_t)sizeof w->log_id)
            return omi_fail_errno(OM_ERR_LOG_IO, "no random numbers for the log's identity");
        fresh = true;
    }
    return omi_control_create(&w->control, &w->dir, w->log_id, fresh);
}

/** Find the end of the log, mend its tail, and stand there. */
static int resume(OmLogWriter *w, bool salvage) {
    OmiRecovery recovery;
    OmiTail tail;
    omi_recovery_init(&recovery, &w->dir, w->shared);
    recovery.repair = true;
    recovery.salvage = salvage;
    recovery.report = &w->repair_report;
    memcpy(w->log_id, w->shared->log_id, OM_LOG_ID_SIZE);
    int rc = omi_recover(&recovery, &tail);
    if (rc != 0)
        return rc;
    uint64_t unsynced =
        recovery.have_mark && recovery.mark.segment > tail.first_segment ? recovery.mark.segment : tail.first_segment;
    uint64_t durable = recovery.have_mark ? recovery.mark.seq : 0;
    if (w->sync != OM_LOG_SYNC_NONE) {
        rc = omi_repair_sync(&recovery, unsynced, &tail);
        if (rc != 0)
            return rc;
        durable = tail.last_seq;
        omi_control_set_mark(&w->control, tail.last_seq, tail.segment, tail.segment ? tail.offset : 0);
    }
    w->first_unsynced = unsynced;
    w->records_before = tail.records;
    w->bytes_before = tail.bytes;
    w->max_time_ns = tail.max_time_ns;
    w->next_number = (tail.segment ? tail.segment : recovery.pruned) + 1;
    atomic_store(&w->last_seq, tail.last_seq);
    atomic_store(&w->shared->last_seq, tail.last_seq);
    atomic_store(&w->shared->durable_seq, durable < tail.last_seq ? durable : tail.last_seq);
    atomic_store(&w->shared->newest_segment, tail.segment);
    if (tail.segment == 0 || tail.sealed)
        return 0;
    OmiSegment *segment;
    rc = omi_segment_map(&segment, &w->dir, tail.segment, true);
    if (rc != 0)
        return rc;
    omi_index_rewrite(&segment->index, &w->dir, omi_segment_header(segment), segment->size);
    w->current = segment;
    w->base = segment->base;
    w->end = segment->size - OMI_FRAME_HEADER;
    w->records_before -= tail.segment_records;
    w->bytes_before -= tail.offset - OMI_SEGMENT_DATA;
    w->segment_start_offset = tail.offset;
    w->segment_start_appended = 0 - (uint64_t)tail.segment_records;
    segment->prefaulted = tail.offset;
    atomic_store(&w->offset, tail.offset);
    if (w->sync != OM_LOG_SYNC_NONE) {
        segment->synced = tail.offset;
        segment->dir_synced = true;
    }
    return 0;
}

static int start_threads(OmLogWriter *w) {
    w->want_spare = true;
    w->preparer_started = pthread_create(&w->preparer, 0, omi_preparer_run, w) == 0;
    if (!w->preparer_started)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "cannot start the log's preparing thread");
    if (w->sync != OM_LOG_SYNC_LINGER)
        return 0;
    w->syncer_started = pthread_create(&w->syncer, 0, omi_syncer_run, w) == 0;
    return w->syncer_started ? 0 : omi_fail(OM_ERR_BUS_NO_MEMORY, "cannot start the log's syncing thread");
}

static void stop_threads(OmLogWriter *w) {
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    atomic_store(&w->syncer_stop, true);
    pthread_cond_broadcast(&w->prepare_wake);
    pthread_cond_broadcast(&w->sync_wake);
    pthread_mutex_unlock(&w->lock);
    if (w->preparer_started)
        pthread_join(w->preparer, 0);
    if (w->syncer_started) {
        omi_doorbell_ring(&w->shared->bell);
        pthread_join(w->syncer, 0);
    }
    w->preparer_started = w->syncer_started = false;
}

static void free_writer(OmLogWriter *w) {
    stop_threads(w);
    omi_writer_finish_sealed(w);
    if (w->spare) {
        omi_segment_remove(&w->dir, w->spare->number); /* its reserved space would be lost to others */
        omi_segment_unref(w->spare);
    }
    omi_segment_unref(w->current);
    omi_control_close(&w->control);
    if (w->lock_fd >= 0)
        omi_log_unlock(w->lock_fd);
    omi_dir_close(&w->dir);
    free(w);
}

int om_log_open_writer(OmLogWriter **out, const char *dir, const OmLogWriterOptions *options) {
    if (!out)
        return omi_fail(OM_ERR_BUS_INIT, "no place for the log writer given");
    *out = 0;
    OmLogWriter *w = calloc(1, sizeof *w);
    if (!w)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    w->lock_fd = w->control.fd = w->dir.fd = -1;
    pthread_mutex_init(&w->lock, 0);
    pthread_cond_init(&w->sync_done, 0);
    pthread_cond_init(&w->prepare_wake, 0);
    pthread_cond_init(&w->spare_ready, 0);
    pthread_cond_init(&w->sync_wake, 0);
    w->sealed_last = &w->sealed_first;
    omi_process_watch_forks();
    w->forks = omi_fork_count;
    bool create = !options || !(options->flags & OM_LOG_NO_CREATE);
    int rc = take_options(w, options);
    if (rc == 0)
        rc = omi_dir_open(&w->dir, dir, create);
    if (rc == 0)
        rc = omi_log_lock(&w->dir, &w->lock_fd);
    if (rc == 0)
        rc = open_control(w, create);
    if (rc == 0) {
        w->shared = w->control.map;
        rc = resume(w, options && (options->flags & OM_LOG_SALVAGE));
    }
    if (rc == 0) {
        omi_control_set_writer(w->shared);
        w->epoch = atomic_load(&w->shared->writer_epoch);
        atomic_store(&w->sync_at, w->sync == OM_LOG_SYNC_EACH     ? 0
                                  : w->sync == OM_LOG_SYNC_LINGER ? w->linger_records
                                                                  : UINT64_MAX);
        rc = start_threads(w);
    }
    if (rc != 0) {
        free_writer(w);
        return rc;
    }
    *out = w;
    return 0;
}

int om_log_close(OmLogWriter *w) {
    if (!w)
        return 0;
    if (w->forks != omi_fork_count) /* threads and lock are the parent's */
        return omi_fail(OM_ERR_BUS_FORKED, "this log writer belongs to the parent process");
    if (w->reserved)
        om_log_abort(w);
    stop_threads(w);
    int rc = 0;
    if (w->sync != OM_LOG_SYNC_NONE) {
        uint64_t last_seq = atomic_load(&w->last_seq);
        pthread_mutex_lock(&w->lock);
        bool sealed = w->sealed_first != 0;
        pthread_mutex_unlock(&w->lock);
        rc = omi_writer_sync(w, sealed ? UINT64_MAX : last_seq);
        if (rc == 0 && w->current) {
            /* Both copies of the mark, on disk: after a clean close every break is damage. */
            omi_control_set_mark(&w->control, last_seq, w->current->number, atomic_load(&w->offset));
            omi_control_set_mark(&w->control, last_seq, w->current->number, atomic_load(&w->offset));
            rc = omi_sync_range(w->control.fd, (uint8_t *)w->shared, 0, sizeof *w->shared);
        }
    }
    free_writer(w);
    return rc;
}

uint64_t om_log_writer_last_seq(const OmLogWriter *w) {
    return w ? atomic_load_explicit(&w->last_seq, memory_order_acquire) : 0;
}

uint64_t om_log_writer_durable_seq(const OmLogWriter *w) {
    return w ? atomic_load_explicit(&w->shared->durable_seq, memory_order_acquire) : 0;
}

void om_log_writer_stats(const OmLogWriter *w, OmLogWriterStats *out) {
    if (!out)
        return;
    *out = (OmLogWriterStats){0};
    if (!w)
        return;
    *out = (OmLogWriterStats){.records = atomic_load(&w->appended),
                              .bytes = w->bytes_appended_before + atomic_load(&w->offset) - w->segment_start_offset,
                              .rotations = w->rotations,
                              .rotation_waits = w->rotation_waits,
                              .syncs = atomic_load(&w->syncs),
                              .sync_errors = atomic_load(&w->sync_errors),
                              .segments_pruned = atomic_load(&w->pruned),
                              .publish_skipped = w->publish_skipped,
                              .publish_errors = w->publish_errors};
}

int om_log_set_publish(OmLogWriter *w, OmLogPublishFn fn, void *ctx) {
    if (!w)
        return omi_fail(OM_ERR_BUS_INIT, "no log writer given");
    w->publish = fn;
    w->publish_ctx = ctx;
    return 0;
}

void om_log_writer_repair_report(const OmLogWriter *w, OmLogReport *out) {
    if (out)
        *out = w ? w->repair_report : (OmLogReport){0};
}
