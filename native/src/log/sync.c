#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/process.h"
#include "log/writer.h"

/*
 * One sync: note what has been appended, put sealed segments and the dirty range of the current one on disk, then say
 * so. One thread syncs at a time, for all that was appended before it began; those who waited meanwhile find it done,
 * or one of them syncs for all the others: that is the group commit.
 */

/** In OM_LOG_SYNC_NONE sealed segments are let go unsynced; reach them by name again. */
static int sync_left_behind(OmLogWriter *w, uint64_t current) {
    for (; w->first_unsynced < current; w->first_unsynced++) {
        char name[OMI_FILE_NAME_SIZE];
        omi_file_name(name, w->first_unsynced, OMI_SEGMENT_SUFFIX);
        int fd = openat(w->dir.fd, name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) /* pruned meanwhile */
            continue;
        if (fd < 0)
            return omi_fail_errno(OM_ERR_LOG_OPEN, "cannot open '%s/%s' to sync it", w->dir.path, name);
        int rc = omi_sync_file(fd);
        close(fd);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/** Sync and release sealed segments. */
static int sync_sealed(OmLogWriter *w, OmiSealed *sealed) {
    int rc = 0;
    while (sealed) {
        OmiSealed *next = sealed->next;
        omi_seal_write(omi_segment_header(sealed->segment), &sealed->seal);
        if (rc == 0)
            rc = omi_sync_file(sealed->segment->fd);
        if (rc == 0 && !sealed->segment->dir_synced)
            rc = omi_sync_dir(&w->dir);
        omi_segment_unref(sealed->segment);
        free(sealed);
        sealed = next;
    }
    return rc;
}

static int sync_current(OmLogWriter *w, OmiSegment *segment, uint64_t offset) {
    int rc = 0;
    if (segment->synced < offset)
        rc = omi_sync_range(segment->fd, segment->base, segment->synced, offset);
    if (rc == 0 && !segment->dir_synced) {
        rc = omi_sync_dir(&w->dir);
        segment->dir_synced = rc == 0;
    }
    if (rc == 0)
        segment->synced = offset;
    return rc;
}

/** Only the thread that has set `syncing` comes here. */
static int sync_now(OmLogWriter *w) {
    if (w->sync_failed)
        return omi_fail(OM_ERR_LOG_IO, "an earlier sync of '%s' failed: close it, check the disk, open it again",
                        w->dir.path);
    pthread_mutex_lock(&w->lock);
    uint64_t seq = atomic_load_explicit(&w->last_seq, memory_order_acquire);
    uint64_t offset = atomic_load_explicit(&w->offset, memory_order_acquire);
    OmiSegment *segment = w->current;
    OmiSealed *sealed = omi_writer_take_sealed(w);
    if (segment)
        omi_segment_ref(segment);
    if (w->sync == OM_LOG_SYNC_LINGER) /* from here on the next records count */
        atomic_store_explicit(&w->sync_at, atomic_load_explicit(&w->appended, memory_order_relaxed) + w->linger_records,
                              memory_order_relaxed);
    pthread_mutex_unlock(&w->lock);

    int rc = sync_sealed(w, sealed);
    if (rc == 0 && segment && w->sync == OM_LOG_SYNC_NONE)
        rc = sync_left_behind(w, segment->number);
    if (rc == 0 && segment)
        rc = sync_current(w, segment, offset);
    if (rc == 0 && segment) {
        omi_control_set_mark(&w->control, seq, segment->number, offset);
        atomic_store_explicit(&w->shared->durable_seq, seq, memory_order_release);
        omi_doorbell_notify(&w->shared->bell);
        atomic_fetch_add_explicit(&w->syncs, 1, memory_order_relaxed);
    } else if (rc != 0) {
        w->sync_failed = true;
        atomic_fetch_add_explicit(&w->sync_errors, 1, memory_order_relaxed);
    }
    omi_segment_unref(segment);
    return rc;
}

static uint64_t durable_seq(const OmLogWriter *w) {
    return atomic_load_explicit(&w->shared->durable_seq, memory_order_acquire);
}

/** Be the one who syncs: 1 = we are, 0 = another one has synced up to seq meanwhile, or OM_ERR_LOG_TIMEOUT. */
static int begin_sync(OmLogWriter *w, uint64_t seq, const struct timespec *limit) {
    int rc = 1;
    pthread_mutex_lock(&w->lock);
    while (rc == 1 && w->syncing) {
        if (!limit)
            pthread_cond_wait(&w->sync_done, &w->lock);
        else if (pthread_cond_clockwait(&w->sync_done, &w->lock, CLOCK_MONOTONIC, limit) == ETIMEDOUT)
            rc = OM_ERR_LOG_TIMEOUT;
    }
    if (durable_seq(w) >= seq)
        rc = 0;
    else if (rc == 1)
        w->syncing = true;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static int sync_until(OmLogWriter *w, uint64_t seq, const struct timespec *limit) {
    int rc = begin_sync(w, seq, limit);
    if (rc != 1)
        return rc == 0 ? 0 : omi_fail(rc, "wal_seq %llu is not on disk yet", (unsigned long long)seq);
    rc = sync_now(w);
    pthread_mutex_lock(&w->lock);
    w->syncing = false;
    pthread_cond_broadcast(&w->sync_done);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

int omi_writer_sync(OmLogWriter *w, uint64_t seq) {
    return sync_until(w, seq, 0);
}

int omi_writer_sync_due(OmLogWriter *w) {
    if (w->sync == OM_LOG_SYNC_EACH)
        return omi_writer_sync(w, atomic_load_explicit(&w->last_seq, memory_order_relaxed));
    pthread_mutex_lock(&w->lock);
    atomic_store_explicit(&w->sync_at, UINT64_MAX, memory_order_relaxed);
    w->sync_requested = true;
    pthread_cond_signal(&w->sync_wake);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

int om_log_sync(OmLogWriter *w) {
    if (!w || w->forks != omi_fork_count)
        return omi_fail(w ? OM_ERR_BUS_FORKED : OM_ERR_BUS_INIT, "no log writer of this process given");
    return omi_writer_sync(w, atomic_load_explicit(&w->last_seq, memory_order_acquire));
}

int om_log_wait_durable(OmLogWriter *w, uint64_t wal_seq, int64_t timeout_ns) {
    if (!w || w->forks != omi_fork_count)
        return omi_fail(w ? OM_ERR_BUS_FORKED : OM_ERR_BUS_INIT, "no log writer of this process given");
    if (durable_seq(w) >= wal_seq)
        return 0;
    if (wal_seq > atomic_load_explicit(&w->last_seq, memory_order_acquire))
        return omi_fail(OM_ERR_LOG_SEQ_ORDER, "wal_seq %llu has not been appended yet", (unsigned long long)wal_seq);
    if (timeout_ns < 0)
        return omi_writer_sync(w, wal_seq);
    uint64_t limit_ns = omi_deadline_ns(timeout_ns);
    struct timespec limit = {.tv_sec = (time_t)(limit_ns / OMI_NS_PER_S), .tv_nsec = (long)(limit_ns % OMI_NS_PER_S)};
    return sync_until(w, wal_seq, &limit);
}

/** Sleep until there is something to sync; costs nothing while there is not. */
static void wait_for_records(OmLogWriter *w) {
    OmiDoorbell *bell = &w->shared->bell;
    uint32_t rings = omi_doorbell_arm(bell);
    if (atomic_load(&w->last_seq) == durable_seq(w) && !atomic_load(&w->syncer_stop))
        omi_doorbell_sleep(bell, rings,
                           atomic_load(&w->shared->writer_registered) ? 10 * OMI_NS_PER_S
                                                                      : (int64_t)w->linger_ms * OMI_NS_PER_MS);
}

void *omi_syncer_run(void *writer) {
    OmLogWriter *w = writer;
    while (!atomic_load(&w->syncer_stop)) {
        if (atomic_load_explicit(&w->last_seq, memory_order_acquire) == durable_seq(w)) {
            wait_for_records(w);
            continue;
        }
        /* The first record since the last sync has come: linger, unless the writer or a rotation calls. */
        uint64_t limit_ns = omi_monotonic_ns() + (uint64_t)w->linger_ms * OMI_NS_PER_MS;
        struct timespec limit = {.tv_sec = (time_t)(limit_ns / OMI_NS_PER_S),
                                 .tv_nsec = (long)(limit_ns % OMI_NS_PER_S)};
        pthread_mutex_lock(&w->lock);
        while (!w->sync_requested && !atomic_load(&w->syncer_stop) &&
               pthread_cond_clockwait(&w->sync_wake, &w->lock, CLOCK_MONOTONIC, &limit) == 0) {
        }
        w->sync_requested = false;
        pthread_mutex_unlock(&w->lock);
        /* A failed sync keeps the records pending; try again after a linger, not at once. */
        if (omi_writer_sync(w, atomic_load_explicit(&w->last_seq, memory_order_acquire)) != 0)
            usleep(w->linger_ms * 1000 + 1000);
    }
    return 0;
}
