#ifndef OM_BUS_H
#define OM_BUS_H

/**
 * @file om_bus.h
 * @brief The shared-memory ring: one producer (OmBusStream), many consumers (OmBusEndpoint), one host.
 *
 * The ring is the fast broadcast of a write-ahead log. Every consumer sees every record; a full ring blocks the
 * producer until the slowest live consumer has read (back-pressure over loss). The ring stores no history.
 *
 * Names: "/om-bus-engine-0"; a missing leading slash is added. Objects are created with mode 0600.
 * Threads: one thread at a time per handle, but for om_bus_stream_stats() and the endpoint's getters (wal_seq, index,
 * max_payload, missed), which any thread may call while another uses the handle. A handle must not be used after fork()
 * (OM_ERR_BUS_FORKED). Memory layout: docs/ring-format.md. All integers are little-endian.
 */

#ifdef __cplusplus
/* The shared-memory structs hold C11 atomics; from C++ they are plain words of the same layout. */
#define OM_BUS_ATOMIC(type) type
#else
#include <stdatomic.h>
#define OM_BUS_ATOMIC(type) _Atomic type
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "om_bus_error.h"

OM_BEGIN_DECLS

#define OM_BUS_SHM_MAGIC 0x4F4D4253U /* "OMBS" */
#define OM_BUS_SHM_VERSION 1U
#define OM_BUS_HEADER_PAGE 4096U
#define OM_BUS_SLOT_HEADER_SIZE 24U
#define OM_BUS_CONSUMER_ALIGN 64U
#define OM_BUS_NAME_SIZE 64U
#define OM_BUS_DEFAULT_SLOT_SIZE 256U
#define OM_BUS_DEFAULT_CAPACITY 4096U
#define OM_BUS_DEFAULT_MAX_CONSUMERS 8U
#define OM_BUS_MAX_CONSUMERS_LIMIT 4096U

#define OM_BUS_FLAG_CRC 0x1U            /* CRC-32C over each payload, checked by consumers */
#define OM_BUS_FLAG_REJECT_REORDER 0x2U /* report a wal_seq below the expected one as an error */

#define OM_BUS_CURSOR_MAGIC 0x4F4D4243U /* "OMBC" */

#define OM_BUS_CONSUMER_ANY UINT32_MAX /* consumer_index: take the first free slot */
#define OM_BUS_FOREVER (-1)            /* timeout_ns: no limit */

/* ---- Layout in shared memory (fixed; see docs/ring-format.md) ---- */

/** Start of every slot; the payload follows. */
typedef struct OmBusSlotHeader {
    OM_BUS_ATOMIC(uint64_t) seq; /* position + 1 once published; the release store that publishes */
    uint64_t wal_seq;
    uint8_t wal_type;
    uint8_t reserved;
    uint16_t payload_len;
    uint32_t crc32; /* CRC-32C of the payload when OM_BUS_FLAG_CRC is set */
} OmBusSlotHeader;

/** First page of the object. Bytes from 112 on hold ombus' additions, which a version-1 reader ignores. */
typedef struct OmBusShmHeader {
    uint32_t magic;
    uint32_t version;
    uint32_t slot_size;
    uint32_t capacity;
    uint32_t max_consumers;
    uint32_t flags;
    OM_BUS_ATOMIC(uint64_t) head;     /* next position to publish */
    OM_BUS_ATOMIC(uint64_t) min_tail; /* slowest live consumer, as the producer last saw it */
    OM_BUS_ATOMIC(uint64_t) producer_epoch;
    char stream_name[OM_BUS_NAME_SIZE];
    uint8_t extension[OM_BUS_HEADER_PAGE - 112];
} OmBusShmHeader;

/** One per consumer slot, on a cache line of its own. `claim` and what follows are ombus' additions. */
typedef struct OmBusConsumerTail {
    OM_BUS_ATOMIC(uint64_t) tail;         /* next position to read */
    OM_BUS_ATOMIC(uint64_t) wal_seq;      /* last wal_seq consumed */
    OM_BUS_ATOMIC(uint64_t) last_poll_ns; /* CLOCK_MONOTONIC, sampled; 0 = nobody ever opened this slot */
    OM_BUS_ATOMIC(uint64_t) claim;        /* state << 32 | pid; 0 = free */
    OM_BUS_ATOMIC(uint64_t) claim_start;  /* start time of that process: tells a reused pid apart */
    OM_BUS_ATOMIC(uint64_t) claim_pidns;  /* its pid namespace: a pid means nothing in another one */
    uint8_t pad[16];
} OmBusConsumerTail;

/** A record as it is handed out and taken in. */
typedef struct OmBusRecord {
    uint64_t wal_seq;
    uint8_t wal_type;
    uint16_t payload_len;
    const void *payload;
} OmBusRecord;

/* ---- Producer ---- */

/** Called once each time the producer has to wait long for room (after the spinning phases). */
typedef void (*OmBusBackpressureCb)(uint64_t head, uint64_t min_tail, void *ctx);

/** Zero in a numeric field means its default. */
typedef struct OmBusStreamConfig {
    const char *stream_name;
    uint32_t capacity;      /* slots, a power of two (4096) */
    uint32_t slot_size;     /* bytes, at least 25, rounded up to a multiple of 8 (256) */
    uint32_t max_consumers; /* (8) */
    uint32_t flags;         /* OM_BUS_FLAG_* */
    uint64_t staleness_ns;  /* a consumer that blocks the ring this long is passed over; 0 = wait for it */
    OmBusBackpressureCb backpressure_cb;
    void *backpressure_ctx;
} OmBusStreamConfig;

typedef struct OmBusStream OmBusStream;

/** Counters of one producer handle and the ring's positions. */
typedef struct OmBusStreamStats {
    uint64_t records_published;
    uint64_t head;
    uint64_t min_tail; /* slowest live consumer; equals head when there is none */
} OmBusStreamStats;

/**
 * Create the ring, or take it over when the name exists: a ring of the same shape goes on at its old position,
 * so that consumers first read what the former producer left and then get OM_ERR_BUS_EPOCH_CHANGED once. With
 * another shape (or with OM_BUS_FLAG_CRC switched) a new one takes the name and the old one is retired: its consumers
 * read it to the end, then get OM_ERR_BUS_RING_GONE and must reopen. OM_ERR_BUS_IN_USE when another live process
 * publishes to it.
 */
int om_bus_stream_create(OmBusStream **out, const OmBusStreamConfig *config);

/** Publish one record; waits while the ring is full. Returns 0. */
int om_bus_stream_publish(OmBusStream *s, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint16_t len);

/** As om_bus_stream_publish(), waiting at most timeout_ns (0: not at all) -> OM_ERR_BUS_TIMEOUT, nothing published. */
int om_bus_stream_publish_timed(OmBusStream *s, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint16_t len,
                                int64_t timeout_ns);

/** Publish all records in order, waiting for room as needed. All sizes are checked before the first. Returns 0. */
int om_bus_stream_publish_batch(OmBusStream *s, const OmBusRecord *recs, uint32_t count);

/** As publish_batch, waiting at most timeout_ns in all. Returns how many were published (the first ones). */
int64_t om_bus_stream_publish_batch_timed(OmBusStream *s, const OmBusRecord *recs, uint32_t count, int64_t timeout_ns);

/**
 * Publish `count` payloads of item_size bytes, stride bytes apart, as wal_seq first_seq, first_seq + 1, ...
 * Returns how many were published within timeout_ns (the first ones), or an error.
 */
int64_t om_bus_stream_publish_array(OmBusStream *s, uint64_t first_seq, uint8_t wal_type, const void *items,
                                    uint16_t item_size, size_t stride, size_t count, int64_t timeout_ns);

/**
 * Wait until the next publish needs not wait. Returns how many of `wanted` records have room now (at least 1), or
 * OM_ERR_BUS_TIMEOUT. For whoever must know before doing something else first, such as appending to a log.
 */
int64_t om_bus_stream_wait_room(OmBusStream *s, uint64_t wanted, int64_t timeout_ns);

void om_bus_stream_stats(const OmBusStream *s, OmBusStreamStats *out);

/** Close the handle and leave the ring for the next producer; consumers read on. NULL-safe. */
void om_bus_stream_detach(OmBusStream *s);

/** Close the handle and remove the ring. NULL-safe. Its consumers read it to the end, then get OM_ERR_BUS_RING_GONE. */
void om_bus_stream_destroy(OmBusStream *s);

/* ---- Consumer ---- */

typedef struct OmBusEndpointConfig {
    const char *stream_name;
    uint32_t consumer_index; /* below max_consumers, or OM_BUS_CONSUMER_ANY */
    bool zero_copy;          /* poll() hands out pointers into the ring instead of a private copy */
} OmBusEndpointConfig;

typedef struct OmBusEndpoint OmBusEndpoint;

/** Attach as a consumer at the live end. OM_ERR_BUS_IN_USE when a live endpoint holds that index. */
int om_bus_endpoint_open(OmBusEndpoint **out, const OmBusEndpointConfig *config);

/**
 * Next record: 1 = record in *rec, 0 = empty, or
 * OM_ERR_BUS_GAP_DETECTED, OM_ERR_BUS_REORDER_DETECTED: *rec is filled, the record is consumed;
 * OM_ERR_BUS_CRC_MISMATCH, OM_ERR_BUS_CORRUPT: the damaged record is skipped;
 * OM_ERR_BUS_EPOCH_CHANGED: the producer has restarted, once, before the present producer's first record (several
 * restarts since the last poll are reported as one); OM_ERR_BUS_RING_GONE: nothing comes any more, reopen by name;
 * OM_ERR_BUS_CONSUMER_STALE: overrun; the endpoint now stands at the live end (om_bus_endpoint_missed() counts).
 * The payload is valid until the next poll; with zero_copy only until the producer reuses the slot.
 */
int om_bus_endpoint_poll(OmBusEndpoint *ep, OmBusRecord *rec);

/**
 * Up to max records at once; returns how many. Stops before a record that poll() would report, so that the next
 * call reports it. Payloads point into the ring and last until the producer reuses the slots: to hold them, use
 * om_bus_endpoint_peek_batch().
 */
int om_bus_endpoint_poll_batch(OmBusEndpoint *ep, OmBusRecord *recs, size_t max);

/**
 * As poll_batch, but the records stay reserved (the producer cannot reuse them) until om_bus_endpoint_release(). They
 * lie in adjacent slots: a call never goes around the ring's end. A gap or reorder is reported once; the record itself
 * comes with the next call.
 */
int om_bus_endpoint_peek_batch(OmBusEndpoint *ep, OmBusRecord *recs, size_t max);

/**
 * Give back the first `count` peeked records. OM_ERR_BUS_CONSUMER_STALE when the producer passed this consumer
 * over in between (staleness_ns): what was peeked may have been overwritten while it was read.
 */
int om_bus_endpoint_release(OmBusEndpoint *ep, size_t count);

/**
 * Copy up to max records into columns: wal_seq and wal_type per record, payload i in payloads[offsets[i] ..
 * offsets[i + 1]) (offsets holds max + 1 values). Stops when a payload no longer fits. Errors as poll_batch; one that
 * poll() delivers with its error (gap, reorder) is put into row 0.
 */
int om_bus_endpoint_poll_columns(OmBusEndpoint *ep, size_t max, uint64_t *wal_seqs, uint8_t *wal_types,
                                 uint32_t *offsets, void *payloads, size_t payloads_size);

/** Sleep until poll() has something to say: 1 = yes, 0 = timeout. timeout_ns < 0 waits for ever. Uses no CPU. */
int om_bus_endpoint_wait(OmBusEndpoint *ep, int64_t timeout_ns);

/** wal_seq of the last record consumed; 0 before the first. */
uint64_t om_bus_endpoint_wal_seq(const OmBusEndpoint *ep);

/** The consumer slot in use. */
uint32_t om_bus_endpoint_index(const OmBusEndpoint *ep);

/** Largest payload the ring can carry, in bytes: the size of a safe copy buffer. */
uint32_t om_bus_endpoint_max_payload(const OmBusEndpoint *ep);

/** Records passed over in all OM_ERR_BUS_CONSUMER_STALE so far. */
uint64_t om_bus_endpoint_missed(const OmBusEndpoint *ep);

/** Free the consumer slot and unmap. NULL-safe. */
void om_bus_endpoint_close(OmBusEndpoint *ep);

/* ---- Cursor file: where a consumer stands, across restarts ---- */

/** Write the endpoint's wal_seq to a 16-byte file: atomically (rename) and durably (fsync). */
int om_bus_endpoint_save_cursor(const OmBusEndpoint *ep, const char *path);

/** The same for a wal_seq that is not an endpoint's. */
int om_bus_cursor_save(const char *path, uint64_t wal_seq);

/** Read a cursor file. Missing or short: OM_ERR_BUS_SHM_OPEN; bad magic or CRC: OM_ERR_BUS_CRC_MISMATCH. */
int om_bus_endpoint_load_cursor(const char *path, uint64_t *wal_seq_out);

/* ---- Looking at rings without being a consumer ---- */

typedef enum OmBusConsumerState {
    OM_BUS_CONSUMER_FREE = 0,
    OM_BUS_CONSUMER_CLAIMED = 1,
    OM_BUS_CONSUMER_PASSED_OVER = 2, /* stale: the producer no longer waits for it */
    OM_BUS_CONSUMER_DEAD = 3,        /* its process is gone: the slot is free to take */
    OM_BUS_CONSUMER_FOREIGN = 4,     /* a version-1 consumer, which leaves no claim */
} OmBusConsumerState;

typedef struct OmBusConsumerInfo {
    uint32_t index;
    uint32_t state; /* OmBusConsumerState */
    uint32_t pid;   /* 0 = unknown */
    uint32_t reserved;
    uint64_t tail;
    uint64_t wal_seq;
    uint64_t lag; /* records not yet read */
} OmBusConsumerInfo;

typedef struct OmBusStreamInfo {
    char name[OM_BUS_NAME_SIZE];
    uint64_t size_bytes;
    uint32_t slot_size;
    uint32_t capacity;
    uint32_t max_consumers;
    uint32_t flags;
    uint64_t head;
    uint64_t min_tail;
    uint64_t producer_epoch;
    uint64_t last_wal_seq; /* of the newest record; 0 when none */
    uint32_t producer_pid; /* 0 = unknown */
    uint32_t producer_alive;
} OmBusStreamInfo;

/** Describe a ring; fills up to max_consumers entries of `consumers` (may be NULL). Returns how many slots it has. */
int om_bus_inspect(const char *stream_name, OmBusStreamInfo *info, OmBusConsumerInfo *consumers,
                   uint32_t max_consumers);

/** Call fn for every ring on this host that we may read, until it returns non-zero. Returns how many. */
int om_bus_list(int (*fn)(const OmBusStreamInfo *info, void *ctx), void *ctx);

/** Remove a ring, as om_bus_stream_destroy(). OM_ERR_BUS_MAGIC_MISMATCH rather than removing something that is not one.
 */
int om_bus_unlink(const char *stream_name);

OM_END_DECLS

#endif
