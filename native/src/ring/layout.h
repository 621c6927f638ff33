#ifndef OMI_RING_LAYOUT_H
#define OMI_RING_LAYOUT_H

/**
 * The ring object, version 1 (docs/ring-format.md):
 *
 *     header page 4096 B | consumer tails, 64 B each | slots, slot_size each
 *
 * Offsets are fixed: libombus of OpenMatch maps the same bytes. What we add lives in bytes a version-1 reader ignores.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/doorbell.h"
#include "core/hint.h"
#include "ombus/om_bus.h"

#define OMI_RING_EXTENSION_MAGIC 0x58424D4FU /* "OMBX" */

enum {
    OMI_RING_FEATURE_BARRIER = 1 /* the producer answers membarrier(): consumers need not sleep blind */
};

/** Our additions in the header page, from byte 128 on. Each group has a cache line of its own. */
typedef struct OmiRingExtension {
    /* Written at producer start only, so that a consumer may look at it on every poll for the price of a cache hit;
     * the header's own producer_epoch shares its line with `head`, which changes with every record. */
    uint32_t magic;
    _Atomic uint32_t features;
    _Atomic uint64_t epoch;       /* copy of producer_epoch */
    _Atomic uint64_t epoch_head;  /* position of this producer's first record */
    _Atomic uint64_t owner;       /* pid << 32 | start time of the producer; 0 = none. See ownership.h */
    _Atomic uint64_t owner_pidns; /* its pid namespace */
    _Atomic uint32_t retired;     /* the ring was removed or replaced: nothing comes any more, reopen it by name */
    uint8_t pad0[20];
    OmiDoorbell data; /* consumers sleep, the producer rings */
    uint8_t pad1[56];
    OmiDoorbell room; /* the producer sleeps, consumers ring */
    uint8_t pad2[56];
} OmiRingExtension;

enum { OMI_RING_EXTENSION_OFFSET = 128 };

/**
 * A slot's seq while position is being (over)written: neither the old nor the new value, so that a consumer that lost
 * its place cannot take a half-written record for a whole one.
 */
#define OMI_SLOT_WRITING(position) (~((position) + 1))

static_assert(sizeof(OmBusShmHeader) == 4096, "header page");
static_assert(offsetof(OmBusShmHeader, magic) == 0, "layout");
static_assert(offsetof(OmBusShmHeader, version) == 4, "layout");
static_assert(offsetof(OmBusShmHeader, slot_size) == 8, "layout");
static_assert(offsetof(OmBusShmHeader, capacity) == 12, "layout");
static_assert(offsetof(OmBusShmHeader, max_consumers) == 16, "layout");
static_assert(offsetof(OmBusShmHeader, flags) == 20, "layout");
static_assert(offsetof(OmBusShmHeader, head) == 24, "layout");
static_assert(offsetof(OmBusShmHeader, min_tail) == 32, "layout");
static_assert(offsetof(OmBusShmHeader, producer_epoch) == 40, "layout");
static_assert(offsetof(OmBusShmHeader, stream_name) == 48, "layout");
static_assert(offsetof(OmBusShmHeader, extension) == 112, "layout");
static_assert(sizeof(OmBusConsumerTail) == 64, "consumer tail");
static_assert(offsetof(OmBusConsumerTail, tail) == 0, "layout");
static_assert(offsetof(OmBusConsumerTail, wal_seq) == 8, "layout");
static_assert(offsetof(OmBusConsumerTail, last_poll_ns) == 16, "layout");
static_assert(sizeof(OmBusSlotHeader) == 24, "slot header");
static_assert(offsetof(OmBusSlotHeader, seq) == 0, "layout");
static_assert(offsetof(OmBusSlotHeader, wal_seq) == 8, "layout");
static_assert(offsetof(OmBusSlotHeader, wal_type) == 16, "layout");
static_assert(offsetof(OmBusSlotHeader, payload_len) == 18, "layout");
static_assert(offsetof(OmBusSlotHeader, crc32) == 20, "layout");
static_assert(sizeof(OmBusRecord) == 24, "record");
static_assert(offsetof(OmBusRecord, wal_type) == 8 && offsetof(OmBusRecord, payload_len) == 10, "layout");
static_assert(offsetof(OmBusRecord, payload) == 16, "layout");
static_assert(sizeof(OmBusStreamConfig) == 48 && sizeof(OmBusEndpointConfig) == 16, "configs");
static_assert(offsetof(OmiRingExtension, data) == OMI_CACHE_LINE, "cache lines");
static_assert(offsetof(OmiRingExtension, room) == 2 * OMI_CACHE_LINE, "cache lines");

#endif
