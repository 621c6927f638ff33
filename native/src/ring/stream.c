/* The producer's handle: creating, taking over and leaving a ring. The hot path is in publish.c. */

#include "ring/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/copy.h"
#include "core/error.h"

enum { UNFINISHED_PATIENCE_MS = 50 };

typedef struct Shape {
    uint32_t capacity, slot_size, max_consumers, flags;
} Shape;

static int read_shape(Shape *shape, const OmBusStreamConfig *config) {
    shape->capacity = config->capacity ? config->capacity : OM_BUS_DEFAULT_CAPACITY;
    shape->slot_size = config->slot_size ? config->slot_size : OM_BUS_DEFAULT_SLOT_SIZE;
    shape->max_consumers = config->max_consumers ? config->max_consumers : OM_BUS_DEFAULT_MAX_CONSUMERS;
    shape->flags = config->flags;
    if (shape->capacity & (shape->capacity - 1))
        return omi_fail(OM_ERR_BUS_NOT_POW2, "capacity %u is not a power of two", shape->capacity);
    if (shape->slot_size <= OM_BUS_SLOT_HEADER_SIZE)
        return omi_fail(OM_ERR_BUS_INIT, "slot_size %u leaves no room for a payload: use at least 25",
                        shape->slot_size);
    /* A slot starts with an atomic word: its size must keep the next one aligned. */
    shape->slot_size = shape->slot_size > UINT32_MAX - 7 ? UINT32_MAX - 7 : (shape->slot_size + 7) & ~7U;
    if (shape->max_consumers > OM_BUS_MAX_CONSUMERS_LIMIT)
        return omi_fail(OM_ERR_BUS_INIT, "max_consumers %u is above %u", shape->max_consumers,
                        OM_BUS_MAX_CONSUMERS_LIMIT);
    if (omi_ring_size(shape->capacity, shape->slot_size, shape->max_consumers) == 0)
        return omi_fail(OM_ERR_BUS_INIT, "a ring of %u slots of %u bytes is too large", shape->capacity,
                        shape->slot_size);
    return 0;
}

static bool same_shape(const OmBusShmHeader *h, const Shape *shape) {
    return h->capacity == shape->capacity && h->slot_size == shape->slot_size &&
           h->max_consumers == shape->max_consumers;
}

static int create_fresh(OmiRing *ring, const Shape *shape) {
    uint64_t size = omi_ring_size(shape->capacity, shape->slot_size, shape->max_consumers);
    int rc = omi_shm_create(&ring->shm, ring->name, size);
    if (rc != 0)
        return rc;
    flock(ring->shm.fd, LOCK_EX | LOCK_NB); /* nobody else can know the object yet */
    OmBusShmHeader *h = ring->shm.base;
    h->version = OM_BUS_SHM_VERSION;
    h->slot_size = shape->slot_size;
    h->capacity = shape->capacity;
    h->max_consumers = shape->max_consumers;
    h->flags = shape->flags;
    memcpy(h->stream_name, ring->name, sizeof h->stream_name);
    OmiRingExtension *x = (OmiRingExtension *)((uint8_t *)ring->shm.base + OMI_RING_EXTENSION_OFFSET);
    x->magic = OMI_RING_EXTENSION_MAGIC;
    omi_ring_bind(ring);
    return 0;
}

/* This process's producers. When one takes over from another, the lock has to move between their descriptors: it would
 * otherwise end with the former handle while the new one lives on unprotected. */
static pthread_mutex_t own_streams_mutex = PTHREAD_MUTEX_INITIALIZER;
static OmBusStream *own_streams;

static void enlist(OmBusStream *s) {
    pthread_mutex_lock(&own_streams_mutex);
    s->next = own_streams;
    own_streams = s;
    pthread_mutex_unlock(&own_streams_mutex);
}

static void delist(const OmBusStream *s) {
    pthread_mutex_lock(&own_streams_mutex);
    for (OmBusStream **link = &own_streams; *link; link = &(*link)->next)
        if (*link == s) {
            *link = s->next;
            break;
        }
    pthread_mutex_unlock(&own_streams_mutex);
}

/** Move the producer's lock of this object from whichever of our handles has it to ours. */
static void inherit_lock(const OmiRing *ring) {
    struct stat ours, theirs;
    if (fstat(ring->shm.fd, &ours) != 0)
        return;
    pthread_mutex_lock(&own_streams_mutex);
    for (OmBusStream *s = own_streams; s; s = s->next)
        if (fstat(s->ring.shm.fd, &theirs) == 0 && theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev)
            flock(s->ring.shm.fd, LOCK_UN);
    flock(ring->shm.fd, LOCK_EX | LOCK_NB);
    pthread_mutex_unlock(&own_streams_mutex);
}

/** Become the producer of the mapped object, unless another live process is. */
static int lock_producer(const OmiRing *ring) {
    if (flock(ring->shm.fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    /* The kernel drops the lock with its holder, so that one lives; unless it is a forked child that inherited the
     * lock from a producer which is gone. Our own process may take over from itself: its former handle is fenced off
     * by the epoch. */
    OmiRing bound = *ring;
    omi_ring_bind(&bound);
    OmiProcess producer = omi_ring_producer(&bound);
    if (producer.pid == (uint32_t)getpid()) {
        inherit_lock(ring);
        return 0;
    }
    if (omi_process_liveness(producer) == OMI_DEAD)
        return 0;
    return omi_fail(OM_ERR_BUS_IN_USE, "ring '%s' is being published to by pid %u: stop it first", ring->name,
                    producer.pid);
}

/** Where the former producer stopped. It may have been killed between publishing a slot and moving `head`. */
static uint64_t recover_head(const OmiRing *ring) {
    uint64_t head = atomic_load_explicit(&ring->header->head, memory_order_acquire);
    for (uint32_t i = 0; i < ring->capacity; i++, head++) /* a batch moves head once, after all its slots */
        if (atomic_load_explicit(&omi_ring_slot(ring, head)->seq, memory_order_acquire) != head + 1)
            break;
    return head;
}

/** Tell the consumers of a ring of another shape that it is over, and free its name. */
static void retire(OmiRing *ring) {
    if (ring->extension) {
        atomic_store(&ring->extension->retired, 1);
        atomic_fetch_add(&ring->extension->epoch, 1);
        omi_doorbell_ring(&ring->extension->data);
    }
    atomic_fetch_add(&ring->header->producer_epoch, 1);
    shm_unlink(ring->name);
    omi_ring_close(ring);
}

enum { TAKE_OVER_UNFINISHED = 1 };

/** Continue an existing ring. TAKE_OVER_UNFINISHED: there is an object, but not (yet) a whole ring. */
static int take_over(OmiRing *ring, const Shape *shape) {
    int rc = omi_shm_open(&ring->shm, ring->name, sizeof(OmBusShmHeader), 1);
    if (rc != 0)
        return rc == OM_ERR_BUS_SHM_MAP ? TAKE_OVER_UNFINISHED : rc;
    rc = lock_producer(ring);
    if (rc == 0)
        rc = ((OmBusShmHeader *)ring->shm.base)->magic == 0 ? TAKE_OVER_UNFINISHED
                                                            : omi_ring_validate(&ring->shm, ring->name);
    if (rc != 0) {
        omi_shm_close(&ring->shm);
        return rc == OM_ERR_BUS_CORRUPT ? TAKE_OVER_UNFINISHED : rc;
    }
    omi_ring_bind(ring);
    if (!ring->extension || !same_shape(ring->header, shape)) {
        retire(ring);
        return create_fresh(ring, shape);
    }
    atomic_store(&ring->header->head, recover_head(ring));
    ring->header->flags = ring->flags = shape->flags;
    return 0;
}

static int create_or_take_over(OmiRing *ring, const Shape *shape) {
    for (int attempt = 0; attempt < UNFINISHED_PATIENCE_MS; attempt++) {
        int rc = create_fresh(ring, shape);
        if (rc != OM_ERR_BUS_IN_USE)
            return rc;
        rc = take_over(ring, shape);
        if (rc != TAKE_OVER_UNFINISHED && rc != OM_ERR_BUS_SHM_OPEN)
            return rc;
        if (rc == OM_ERR_BUS_SHM_OPEN && errno != ENOENT) /* ENOENT: removed between the two calls */
            return rc;
        usleep(1000); /* its creator may be at work right now */
    }
    shm_unlink(ring->name); /* its creator died half way, or its fields are nonsense */
    return create_fresh(ring, shape);
}

/** Announce this producer: from here on consumers see the new epoch. */
static void begin_epoch(OmBusStream *s) {
    OmiRing *ring = &s->ring;
    OmiRingExtension *x = ring->extension;
    OmiProcess self = omi_process_self();
    uint64_t last = atomic_load(&ring->header->producer_epoch);
    s->epoch = omi_monotonic_ns();
    if (s->epoch <= last) /* the clock restarts with the machine, the ring does not outlive it; still never repeat */
        s->epoch = last + 1;
    atomic_store(&x->producer_pid, self.pid);
    atomic_store(&x->producer_start, self.start);
    atomic_store(&x->producer_pidns, self.pidns);
    atomic_store(&x->features, omi_doorbell_register_notifier() ? OMI_RING_FEATURE_BARRIER : 0);
    uint64_t head = atomic_load(&ring->header->head);
    atomic_store(&x->epoch_head, head);
    atomic_store(&x->epoch, s->epoch);
    atomic_store(&ring->header->producer_epoch, s->epoch);
    s->min_tail = omi_consumers_slowest(ring, head, 0);
    /* Last: a reader that sees the magic sees all of the above. */
    atomic_thread_fence(memory_order_release);
    ring->header->magic = OM_BUS_SHM_MAGIC;
    omi_doorbell_ring(&x->data);
}

int om_bus_stream_create(OmBusStream **out, const OmBusStreamConfig *config) {
    Shape shape;
    if (!out || !config)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_stream_create: NULL argument");
    *out = 0;
    int rc = read_shape(&shape, config);
    if (rc != 0)
        return rc;
    OmBusStream *s;
    if (posix_memalign((void **)&s, OMI_CACHE_LINE, sizeof *s) != 0)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "no memory for a stream handle");
    memset(s, 0, sizeof *s);
    rc = omi_shm_name(s->ring.name, config->stream_name);
    if (rc == 0)
        rc = create_or_take_over(&s->ring, &shape);
    if (rc != 0) {
        free(s);
        return rc;
    }
    s->watch = calloc(shape.max_consumers, sizeof *s->watch);
    if (!s->watch) {
        omi_ring_close(&s->ring);
        free(s);
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "no memory for a stream handle");
    }
    omi_process_watch_forks();
    s->fork_count = omi_fork_count;
    s->plain_max = s->ring.max_payload < OMI_COPY_SMALL_MAX ? s->ring.max_payload : OMI_COPY_SMALL_MAX;
    if (shape.flags & OM_BUS_FLAG_CRC)
        s->plain_max = 0;
    s->staleness_ns = config->staleness_ns;
    s->backpressure_cb = config->backpressure_cb;
    s->backpressure_ctx = config->backpressure_ctx;
    enlist(s);
    begin_epoch(s);
    *out = s;
    return 0;
}

/** Whether this handle still owns the ring: not a forked copy, not superseded by a newer producer. */
static bool owns_ring(const OmBusStream *s) {
    return s->fork_count == omi_fork_count && atomic_load(&s->ring.extension->epoch) == s->epoch;
}

/** Whether the name still leads to the object we have mapped. */
static bool owns_name(const OmBusStream *s) {
    struct stat ours, named;
    char path[sizeof OMI_SHM_DIR + OM_BUS_NAME_SIZE];
    snprintf(path, sizeof path, "%s%s", OMI_SHM_DIR, s->ring.name);
    return fstat(s->ring.shm.fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino;
}

void om_bus_stream_detach(OmBusStream *s) {
    if (!s)
        return;
    if (owns_ring(s))
        atomic_store(&s->ring.extension->producer_pid, 0);
    delist(s);
    omi_ring_close(&s->ring);
    free(s->watch);
    free(s);
}

void om_bus_stream_destroy(OmBusStream *s) {
    if (!s)
        return;
    if (owns_ring(s) && owns_name(s))
        shm_unlink(s->ring.name);
    om_bus_stream_detach(s);
}

void om_bus_stream_stats(const OmBusStream *s, OmBusStreamStats *out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!s)
        return;
    out->records_published = __atomic_load_n(&s->records_published, __ATOMIC_RELAXED);
    out->head = atomic_load_explicit(&s->ring.header->head, memory_order_acquire);
    out->min_tail = omi_consumers_slowest(&s->ring, out->head, s->staleness_ns);
}
