#include "ring/create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "ring/ownership.h"

enum { UNFINISHED_PATIENCE_MS = 200, UNFINISHED = 1, VANISHED = 2 };

int omi_ring_shape(OmiRingShape *shape, const OmBusStreamConfig *config) {
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

/** With or without checksums is part of it: unread records of the former producer must be read by its rules. */
static bool has_shape(const OmiRing *ring, const OmiRingShape *shape) {
    return ring->capacity == shape->capacity && ring->slot_size == shape->slot_size &&
           ring->max_consumers == shape->max_consumers && !((ring->flags ^ shape->flags) & OM_BUS_FLAG_CRC);
}

/** A new object under `object`, for the ring ring->name. */
static int create_fresh(OmiRing *ring, const char *object, const OmiRingShape *shape, const OmiProcess *self) {
    uint64_t size = omi_ring_size(shape->capacity, shape->slot_size, shape->max_consumers);
    int rc = omi_shm_create(&ring->shm, object, size);
    if (rc != 0)
        return rc;
    OmBusShmHeader *h = ring->shm.base;
    OmiRingExtension *x = (OmiRingExtension *)((uint8_t *)ring->shm.base + OMI_RING_EXTENSION_OFFSET);
    x->magic = OMI_RING_EXTENSION_MAGIC; /* first: tells a ring in the making from something else */
    atomic_thread_fence(memory_order_release);
    h->version = OM_BUS_SHM_VERSION;
    h->slot_size = shape->slot_size;
    h->capacity = shape->capacity;
    h->max_consumers = shape->max_consumers;
    h->flags = shape->flags;
    memcpy(h->stream_name, ring->name, sizeof h->stream_name);
    omi_ring_lay_out(ring, shape->capacity, shape->slot_size, shape->max_consumers, shape->flags);
    rc = omi_ring_own(ring, self);
    if (rc != 0)
        omi_ring_close(ring);
    return rc;
}

/** Where the former producer stopped. It may have been killed between publishing a slot and moving `head`. */
static uint64_t recover_head(const OmiRing *ring) {
    uint64_t head = atomic_load_explicit(&ring->header->head, memory_order_acquire);
    for (uint32_t i = 0; i < ring->capacity; i++, head++) /* a batch moves head once, after all its slots */
        if (atomic_load_explicit(&omi_ring_slot(ring, head)->seq, memory_order_acquire) != head + 1)
            break;
    return head;
}

/** Put a new ring of another shape in the place of `old`, which is owned by us. On failure the old one is untouched. */
static int replace(OmiRing *ring, OmiRing *old, const OmiRingShape *shape, const OmiProcess *self) {
    char temporary[OMI_SHM_NAME_SIZE];
    snprintf(temporary, sizeof temporary, "/.ombus-new-%d", (int)getpid());
    shm_unlink(temporary); /* a former life of this pid may have left one */
    int rc = create_fresh(ring, temporary, shape, self);
    if (rc != 0)
        return rc;
    rc = omi_shm_rename(temporary, ring->name);
    if (rc != 0) {
        shm_unlink(temporary);
        omi_ring_close(ring);
        return rc;
    }
    omi_ring_retire(old);
    return 0;
}

/** Whether an object that had no magic is a ring not yet, or never, finished, rather than something that is not ours.
 */
static bool is_in_the_making(const OmiShm *shm) {
    static const uint8_t zeros[OM_BUS_HEADER_PAGE];
    const OmBusShmHeader *h = shm->base;
    const OmiRingExtension *x = (const OmiRingExtension *)((const uint8_t *)shm->base + OMI_RING_EXTENSION_OFFSET);
    uint32_t magic = __atomic_load_n(&h->magic, __ATOMIC_ACQUIRE);
    if (magic != 0)
        return magic == OM_BUS_SHM_MAGIC; /* finished since we looked */
    if (memcmp(h, zeros, sizeof zeros) == 0)
        return true;
    /* Only now: its creator may have begun to write since; it writes this first. */
    atomic_thread_fence(memory_order_acquire);
    return __atomic_load_n(&x->magic, __ATOMIC_RELAXED) == OMI_RING_EXTENSION_MAGIC;
}

/** Remove an unfinished object if its creator is dead. UNFINISHED: it may still be at work. */
static int clear_unfinished(const char *name) {
    int fd = shm_open(name, O_RDWR | O_NONBLOCK, 0);
    if (fd < 0)
        return errno == ENOENT ? VANISHED : UNFINISHED;
    OmiShm shm = {.fd = fd};
    /* The creator locks before all else; we hold the lock, so nobody else is removing it either. */
    bool removable = flock(fd, LOCK_EX | LOCK_NB) == 0 && omi_shm_is_named(&shm, name);
    if (removable)
        shm_unlink(name);
    close(fd);
    return removable ? VANISHED : UNFINISHED;
}

/** Continue or replace the ring that has the name. UNFINISHED: it is not whole; VANISHED: it is gone by now. */
static int take_over(OmiRing *ring, const OmiRingShape *shape, const OmiProcess *self) {
    OmiRing found = *ring;
    int rc = omi_shm_open(&found.shm, found.name, 0, 1);
    if (rc != 0) /* an empty object cannot be mapped */
        return rc == OM_ERR_BUS_SHM_MAP ? UNFINISHED : errno == ENOENT ? VANISHED : rc;
    if (found.shm.size < sizeof(OmBusShmHeader)) {
        rc = omi_fail(OM_ERR_BUS_MAGIC_MISMATCH, "'%s' is not an ombus ring: %zu bytes", found.name, found.shm.size);
    } else {
        rc = omi_ring_bind(&found);
        if ((rc == OM_ERR_BUS_MAGIC_MISMATCH && is_in_the_making(&found.shm)) || rc == OM_ERR_BUS_CORRUPT)
            rc = UNFINISHED; /* or a ring by its magic, useless by its shape: no reader can have it */
    }
    if (rc == 0 && !found.extension) { /* version 1 pure: it cannot tell us whether its producer lives */
        rc = replace(ring, &found, shape, self);
        omi_ring_close(&found);
        return rc;
    }
    if (rc == 0)
        rc = omi_ring_own(&found, self);
    if (rc == 0 && !omi_shm_is_named(&found.shm, found.name))
        rc = VANISHED; /* removed or replaced between the two */
    if (rc == 0 && !has_shape(&found, shape)) {
        rc = replace(ring, &found, shape, self);
    } else if (rc == 0) {
        atomic_store(&found.header->head, recover_head(&found));
        __atomic_store_n(&found.header->flags, shape->flags, __ATOMIC_RELAXED);
        found.flags = shape->flags;
        *ring = found;
        return 0;
    }
    omi_ring_close(&found);
    return rc;
}

int omi_ring_create(OmiRing *ring, const OmiRingShape *shape, const OmiProcess *self) {
    int unfinished_ms = 0;
    for (;;) {
        int rc = create_fresh(ring, ring->name, shape, self);
        if (rc != OM_ERR_BUS_IN_USE)
            return rc;
        rc = take_over(ring, shape, self);
        if (rc <= 0)
            return rc;
        if (rc == UNFINISHED && ++unfinished_ms > UNFINISHED_PATIENCE_MS && clear_unfinished(ring->name) == UNFINISHED)
            return omi_fail(OM_ERR_BUS_IN_USE, "ring '%s' is being created by another process", ring->name);
        usleep(1000);
    }
}
