#include "ombus/om_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "ombus/om_bus.h"

enum {
    BATCH_RECORDS_DEFAULT = 1024,
    BATCH_RECORDS_MAX = 1 << 16,
    SEGMENT_BYTES_DEFAULT = 16 << 20,
    PAYLOADS_BYTES_MIN = 1 << 20,
};

#define WAIT_NS (20 * OMI_NS_PER_MS)        /* between looks at the stop flag */
#define DISK_FULL_NS (100 * OMI_NS_PER_MS)  /* between attempts */
#define STOP_NS ((uint64_t)OMI_NS_PER_S)    /* how long a stop goes on draining */
#define INSPECT_NS ((uint64_t)OMI_NS_PER_S) /* of an idle ring, whether another has its name */

struct OmSpool {
    OmBusEndpoint *ring;
    OmLogWriter *log;
    char ring_name[OM_BUS_NAME_SIZE * 2];
    char dir[4096];
    uint64_t ring_epoch;
    uint64_t idle_since_ns;
    const char *loss; /* why records before the next one may be missing; NULL = none are */

    uint32_t batch_records;
    size_t payloads_size;
    uint64_t *seqs;
    uint8_t *types;
    uint32_t *offsets;
    uint8_t *payloads;
    OmLogRecord *records;

    pthread_t thread;
    bool started;
    atomic_bool stop;
    uint64_t stop_ns; /* written before `stop` */

    pthread_mutex_t lock; /* of what follows */
    OmSpoolStatus status;
    int result;
    char result_text[512];
};

static void set_result(OmSpool *s, int rc) {
    pthread_mutex_lock(&s->lock);
    s->result = rc;
    snprintf(s->result_text, sizeof s->result_text, "%s", om_bus_last_error());
    pthread_mutex_unlock(&s->lock);
}

/** Write down that [from, to) is lost; on disk before the record behind it. */
static int write_loss(OmSpool *s, uint64_t from, uint64_t to, const char *why) {
    char path[sizeof s->dir + 32], line[256];
    snprintf(path, sizeof path, "%s/" OM_SPOOL_LOSSES_FILE, s->dir);
    int size = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 " %s\n", from, to, why);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return omi_fail_errno(OM_ERR_LOG_OPEN, "cannot open '%s'", path);
    bool good = write(fd, line, (size_t)size) == size && fdatasync(fd) == 0;
    int rc = good ? 0 : omi_fail_errno(OM_ERR_LOG_IO, "cannot write '%s'", path);
    close(fd);
    pthread_mutex_lock(&s->lock);
    s->status.losses++;
    s->status.lost_seqs += to - from;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/** Append the first n of the batch; waits while the disk is full. */
static int append(OmSpool *s, int n) {
    uint64_t last = om_log_writer_last_seq(s->log), bytes = s->offsets[n];
    if (last != 0 && s->seqs[0] <= last)
        return omi_fail(OM_ERR_SPOOL_RESET, "ring '%s': wal_seq %" PRIu64 " after %" PRIu64 " in the spool '%s'",
                        s->ring_name, s->seqs[0], last, s->dir);
    if (s->loss) {
        int rc = last != 0 && s->seqs[0] > last + 1 ? write_loss(s, last + 1, s->seqs[0], s->loss) : 0;
        if (rc != 0)
            return rc;
        s->loss = 0;
    }
    for (int i = 0; i < n; i++)
        s->records[i] = (OmLogRecord){.wal_seq = s->seqs[i],
                                      .wal_type = s->types[i],
                                      .payload = s->payloads + s->offsets[i],
                                      .payload_len = s->offsets[i + 1] - s->offsets[i]};
    for (int done = 0; done < n;) {
        int64_t rc = om_log_append_batch(s->log, s->records + done, (size_t)(n - done));
        if (rc > 0) {
            done += (int)rc;
            continue;
        }
        if (rc == OM_ERR_LOG_SEQ_ORDER)
            return omi_fail(OM_ERR_SPOOL_RESET, "ring '%s': wal_seq goes backward after %" PRIu64, s->ring_name,
                            om_log_writer_last_seq(s->log));
        if (rc != OM_ERR_LOG_DISK_FULL)
            return (int)rc;
        pthread_mutex_lock(&s->lock);
        s->status.waits++;
        pthread_mutex_unlock(&s->lock);
        struct timespec nap = {.tv_nsec = DISK_FULL_NS};
        nanosleep(&nap, 0);
        if (atomic_load(&s->stop))
            return write_loss(s, s->records[done].wal_seq, s->seqs[n - 1] + 1, "the disk was full when it was stopped");
    }
    pthread_mutex_lock(&s->lock);
    s->status.records += (uint64_t)n;
    s->status.bytes += bytes;
    s->status.last_seq = s->seqs[n - 1];
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/** Room for a few of the ring's largest payloads; a ring created anew may have larger ones. */
static int allocate_payloads(OmSpool *s) {
    size_t payload = om_bus_endpoint_max_payload(s->ring);
    size_t size = payload * 4 > PAYLOADS_BYTES_MIN ? payload * 4 : PAYLOADS_BYTES_MIN;
    if (size <= s->payloads_size)
        return 0;
    free(s->payloads);
    s->payloads = malloc(size);
    s->payloads_size = s->payloads ? size : 0;
    return s->payloads ? 0 : omi_fail(OM_ERR_BUS_NO_MEMORY, "no memory for %zu bytes of payloads", size);
}

static int open_ring(OmSpool *s) {
    OmBusStreamInfo info;
    OmBusEndpointConfig config = {.stream_name = s->ring_name, .consumer_index = OM_BUS_CONSUMER_ANY};
    int rc = om_bus_inspect(s->ring_name, &info, 0, 0);
    if (rc < 0)
        return rc;
    s->ring_epoch = info.producer_epoch;
    rc = om_bus_endpoint_open(&s->ring, &config);
    return rc == 0 ? allocate_payloads(s) : rc;
}

/** The ring's name belongs to another object: go over to it, if it is there already. */
static int reopen_ring(OmSpool *s) {
    OmBusEndpoint *old = s->ring;
    int rc = open_ring(s);
    if (rc != 0) {
        s->ring = old;
        bool not_yet = rc == OM_ERR_BUS_SHM_OPEN || rc == OM_ERR_BUS_SHM_MAP || rc == OM_ERR_BUS_MAGIC_MISMATCH ||
                       rc == OM_ERR_BUS_RING_GONE;
        return not_yet ? 0 : rc; /* removed, or still being made */
    }
    om_bus_endpoint_close(old);
    s->loss = "the ring was created anew";
    pthread_mutex_lock(&s->lock);
    s->status.reopened++;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/** Nothing to read: sleep, and now and then look whether the ring is still the one with its name. */
static int idle(OmSpool *s) {
    if (om_bus_endpoint_wait(s->ring, WAIT_NS) != 0) {
        s->idle_since_ns = 0;
        return 0;
    }
    uint64_t now_ns = omi_monotonic_ns();
    if (s->idle_since_ns == 0)
        s->idle_since_ns = now_ns;
    if (now_ns - s->idle_since_ns < INSPECT_NS)
        return 0;
    s->idle_since_ns = now_ns;
    OmBusStreamInfo info;
    bool other = om_bus_inspect(s->ring_name, &info, 0, 0) >= 0 && info.producer_epoch != s->ring_epoch;
    return other ? reopen_ring(s) : 0;
}

/** Another producer took the same ring over: what it publishes follows, and nothing was missed. */
static int enter_epoch(OmSpool *s) {
    OmBusStreamInfo info;
    if (om_bus_inspect(s->ring_name, &info, 0, 0) >= 0)
        s->ring_epoch = info.producer_epoch;
    return 0;
}

/** The ring that we have is no longer the one with its name, which may take a while to come. */
static int follow_ring(OmSpool *s) {
    uint64_t before = s->status.reopened;
    int rc = reopen_ring(s);
    if (rc == 0 && s->status.reopened == before) {
        struct timespec nap = {.tv_nsec = WAIT_NS};
        nanosleep(&nap, 0);
    }
    return rc;
}

/** What a poll says besides records: 0 = go on. */
static int attend(OmSpool *s, int rc) {
    switch (rc) {
    case OM_ERR_BUS_GAP_DETECTED:     /* the producer's own; the record is in row 0 */
    case OM_ERR_BUS_REORDER_DETECTED: /* refused by append() */
        return append(s, 1);
    case OM_ERR_BUS_CONSUMER_STALE:
        s->loss = "the ring passed the spool over";
        return 0;
    case OM_ERR_BUS_CRC_MISMATCH:
    case OM_ERR_BUS_CORRUPT:
        s->loss = "damaged in the ring";
        return 0;
    case OM_ERR_BUS_EPOCH_CHANGED:
        return enter_epoch(s);
    case OM_ERR_BUS_RING_GONE:
        return follow_ring(s);
    default:
        return rc;
    }
}

static void *run(void *arg) {
    OmSpool *s = arg;
    int rc = 0;
    while (rc == 0) {
        int n = om_bus_endpoint_poll_columns(s->ring, s->batch_records, s->seqs, s->types, s->offsets, s->payloads,
                                             s->payloads_size);
        if (atomic_load(&s->stop) && (n <= 0 || omi_monotonic_ns() > s->stop_ns + STOP_NS)) {
            /* What was published before the stop is spooled, but nobody waits for a producer that never rests. */
            rc = n > 0 ? append(s, n) : 0;
            break;
        }
        rc = n > 0 ? append(s, n) : n == 0 ? idle(s) : attend(s, n);
    }
    if (rc != 0)
        set_result(s, rc);
    return 0;
}

static void release(OmSpool *s) {
    om_bus_endpoint_close(s->ring);
    free(s->seqs);
    free(s->types);
    free(s->offsets);
    free(s->payloads);
    free(s->records);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int allocate(OmSpool *s) {
    size_t n = s->batch_records;
    s->seqs = malloc(n * sizeof *s->seqs);
    s->types = malloc(n);
    s->offsets = malloc((n + 1) * sizeof *s->offsets);
    s->records = malloc(n * sizeof *s->records);
    return s->seqs && s->types && s->offsets && s->records ? 0 : omi_fail(OM_ERR_BUS_NO_MEMORY, "no memory");
}

static int start(OmSpool *s, const OmSpoolOptions *options) {
    OmLogWriterOptions log = options ? options->log : (OmLogWriterOptions){0};
    if (log.segment_bytes == 0)
        log.segment_bytes = SEGMENT_BYTES_DEFAULT;
    int rc = om_log_open_writer(&s->log, s->dir, &log);
    if (rc == 0)
        rc = open_ring(s);
    if (rc == 0)
        rc = allocate(s);
    if (rc != 0)
        return rc;
    s->status.last_seq = om_log_writer_last_seq(s->log);
    if (s->status.last_seq != 0)
        s->loss = "no spool ran";
    rc = pthread_create(&s->thread, 0, run, s);
    if (rc != 0) {
        errno = rc;
        return omi_fail_errno(OM_ERR_BUS_NO_MEMORY, "cannot start the spool's thread");
    }
    s->started = true;
    return 0;
}

int om_spool_start(OmSpool **out, const char *ring, const char *dir, const OmSpoolOptions *options) {
    if (!out || !ring || !dir)
        return omi_fail(OM_ERR_BUS_INIT, "no ring or directory given");
    *out = 0;
    uint32_t batch = options && options->batch_records ? options->batch_records : BATCH_RECORDS_DEFAULT;
    if (batch > BATCH_RECORDS_MAX)
        return omi_fail(OM_ERR_BUS_INIT, "batch_records %u is above %u", batch, (unsigned)BATCH_RECORDS_MAX);
    OmSpool *s = calloc(1, sizeof *s);
    if (!s)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    pthread_mutex_init(&s->lock, 0);
    atomic_init(&s->stop, false);
    s->batch_records = batch;
    bool fits = snprintf(s->ring_name, sizeof s->ring_name, "%s", ring) < (int)sizeof s->ring_name &&
                snprintf(s->dir, sizeof s->dir, "%s", dir) < (int)sizeof s->dir;
    int rc = fits ? start(s, options) : omi_fail(OM_ERR_BUS_INIT, "the ring's or the directory's name is too long");
    if (rc != 0) {
        int closed = om_log_close(s->log);
        (void)closed; /* nothing was appended; the first error is the one to tell */
        release(s);
        return rc;
    }
    *out = s;
    return 0;
}

int om_spool_status(OmSpool *s, OmSpoolStatus *out) {
    if (!s)
        return omi_fail(OM_ERR_BUS_INIT, "no spool given");
    pthread_mutex_lock(&s->lock);
    if (out)
        *out = s->status;
    int rc = s->result ? omi_fail(s->result, "%s", s->result_text) : 0;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int om_spool_stop(OmSpool *s) {
    if (!s)
        return 0;
    s->stop_ns = omi_monotonic_ns();
    atomic_store(&s->stop, true);
    if (s->started)
        pthread_join(s->thread, 0);
    int rc = om_log_close(s->log);
    release(s);
    return rc;
}
