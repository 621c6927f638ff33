/* Looking at rings, and removing them, without being a consumer. */

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/error.h"
#include "ring/consumers.h"
#include "ring/ownership.h"

static void describe(const OmiRing *ring, OmBusStreamInfo *info) {
    OmBusShmHeader *h = ring->header;
    OmiProcess producer = omi_ring_owner(ring);
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "%s", ring->name);
    info->size_bytes = ring->shm.size;
    info->slot_size = ring->slot_size;
    info->capacity = ring->capacity;
    info->max_consumers = ring->max_consumers;
    info->flags = ring->flags;
    info->head = atomic_load_explicit(&h->head, memory_order_acquire);
    info->min_tail = omi_consumers_slowest(ring, info->head, 0);
    info->producer_epoch = atomic_load(&h->producer_epoch);
    info->producer_pid = producer.pid;
    info->producer_alive = producer.pid != 0 && omi_process_liveness(producer) != OMI_DEAD;
    const OmBusSlotHeader *last = omi_ring_slot(ring, info->head - 1);
    if (atomic_load_explicit(&last->seq, memory_order_acquire) == info->head && info->head != 0)
        info->last_wal_seq = last->wal_seq;
}

int om_bus_inspect(const char *stream_name, OmBusStreamInfo *info, OmBusConsumerInfo *consumers,
                   uint32_t max_consumers) {
    OmiRing ring;
    if (!info)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_inspect: NULL info");
    int rc = omi_ring_open(&ring, stream_name, false);
    if (rc != 0)
        return rc;
    describe(&ring, info);
    for (uint32_t i = 0; consumers && i < ring.max_consumers && i < max_consumers; i++)
        omi_consumer_describe(&ring, i, &consumers[i]);
    rc = (int)ring.max_consumers;
    omi_ring_close(&ring);
    return rc;
}

int om_bus_list(int (*fn)(const OmBusStreamInfo *info, void *ctx), void *ctx) {
    int count = 0;
    OmBusStreamInfo info;
    struct dirent *entry;
    if (!fn)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_list: NULL callback");
    DIR *dir = opendir(OMI_SHM_DIR);
    if (!dir)
        return omi_fail_errno(OM_ERR_BUS_SHM_OPEN, "cannot list %s", OMI_SHM_DIR);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) > OM_BUS_NAME_SIZE - 2)
            continue;
        if (om_bus_inspect(entry->d_name, &info, 0, 0) < 0)
            continue; /* something else, or not ours to read */
        count++;
        if (fn(&info, ctx) != 0)
            break;
    }
    closedir(dir);
    return count;
}

int om_bus_unlink(const char *stream_name) {
    OmiShm shm;
    OmiRing ring;
    int rc = omi_shm_name(ring.name, stream_name);
    if (rc == 0)
        rc = omi_shm_open(&shm, ring.name, sizeof(OmBusShmHeader), 0);
    if (rc != 0)
        return rc;
    uint32_t magic = ((const OmBusShmHeader *)shm.base)->magic;
    omi_shm_close(&shm);
    if (magic != OM_BUS_SHM_MAGIC)
        return omi_fail(OM_ERR_BUS_MAGIC_MISMATCH, "'%s' is not an ombus ring: not removed", ring.name);
    bool whole = omi_ring_open(&ring, stream_name, true) == 0; /* a damaged one goes, too */
    if (shm_unlink(ring.name) != 0)
        rc = omi_fail_errno(OM_ERR_BUS_SHM_OPEN, "cannot remove '%s'", ring.name);
    if (whole) {
        if (rc == 0)
            omi_ring_retire(&ring);
        omi_ring_close(&ring);
    }
    return rc;
}
