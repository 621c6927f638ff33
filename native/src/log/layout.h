#ifndef OMI_LOG_LAYOUT_H
#define OMI_LOG_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/doorbell.h"
#include "core/hint.h"
#include "ombus/om_log.h"

/**
 * Everything that a log has on disk; docs/log-format.md is the description for people. All little-endian.
 *
 *   DIR/log.ctl             OmiControl, shared by all processes; log.lock beside it is what writers lock
 *   DIR/0000000001.seg      OmiSegmentHeader, then frames, then zeros up to the file's end
 *   DIR/0000000001.idx      OmiIndexHeader, then OmiIndexEntry[], then zeros
 *   DIR/consumers/NAME.cursor
 *
 * Each block ends in the CRC-32C of its bytes before the crc field; the CRC of the identity block seeds those of the
 * blocks that belong to it, so that blocks of two files never fit together. A block of zeros is never valid.
 */

enum {
    OMI_LOG_VERSION = 1,
    OMI_PAGE = 4096,
    OMI_SEGMENT_DATA = OM_LOG_SEGMENT_HEADER_SIZE, /* offset of the first frame */
    OMI_FRAME_HEADER = OM_LOG_FRAME_HEADER_SIZE,
    OMI_FRAME_FLAG_EXT = 1,
    OMI_TYPE_PADDING = 0xFF,
};

#define OMI_CONTROL_MAGIC 0x4F4D4C43U /* "OMLC" */
#define OMI_SEGMENT_MAGIC 0x4F4D4C53U /* "OMLS" */
#define OMI_INDEX_MAGIC 0x4F4D4C49U   /* "OMLI" */
#define OMI_FRAME_MAGIC 0x4F4D5446U   /* "OMTF": a log frame is a TCP frame */

/** Header of a frame; the payload follows, zero-padded to 8 bytes. */
typedef struct OmiFrame {
    _Atomic uint64_t word; /* magic 0:4, wal_type 4:1, flags 5:1, payload_len 6:2; its release store publishes */
    uint64_t wal_seq;
    uint64_t timestamp_ns;
    uint32_t crc; /* over bytes 4..24, 28..32 and the payload */
    uint32_t payload_len;
} OmiFrame;
_Static_assert(sizeof(OmiFrame) == OMI_FRAME_HEADER, "frame header");

/* ---- Segment file ---- */

/** Written when the file is made. */
typedef struct OmiSegmentIdent {
    uint32_t magic;
    uint32_t version;
    uint8_t log_id[OM_LOG_ID_SIZE];
    uint64_t number;
    uint64_t created_ns;
    uint64_t size_bytes;
    uint32_t index_bytes;
    uint32_t crc;
} OmiSegmentIdent;

/** Written when the first record is about to go in; until then the segment is a spare. */
typedef struct OmiSegmentUse {
    uint64_t base_seq;         /* wal_seq of the first record */
    uint64_t prev_seq;         /* last wal_seq before this segment; 0 = none */
    uint64_t prev_max_time_ns; /* newest timestamp before it */
    uint64_t records_before;   /* in the log since it was created */
    uint64_t bytes_before;     /* of their frames */
    uint64_t first_time_ns;
    uint64_t writer_epoch;
    uint32_t reserved;
    uint32_t crc;
} OmiSegmentUse;

/** A summary written some time after the segment was sealed; without it readers walk the frames. */
typedef struct OmiSegmentSeal {
    uint64_t end_offset; /* of the seal frame */
    uint64_t last_seq;
    uint64_t records;
    uint64_t max_time_ns; /* newest timestamp up to its end, earlier segments included */
    uint64_t sealed_ns;
    uint32_t reserved;
    uint32_t crc;
} OmiSegmentSeal;

typedef struct OmiSegmentHeader {
    OmiSegmentIdent ident;
    uint8_t pad0[64 - sizeof(OmiSegmentIdent)];
    OmiSegmentUse use;
    uint8_t pad1[64];
    OmiSegmentSeal seal;
    uint8_t pad2[OMI_SEGMENT_DATA - 192 - sizeof(OmiSegmentSeal)];
} OmiSegmentHeader;
_Static_assert(offsetof(OmiSegmentHeader, use) == 64 && offsetof(OmiSegmentHeader, seal) == 192, "segment header");
_Static_assert(sizeof(OmiSegmentUse) == 64 && sizeof(OmiSegmentSeal) == 48, "segment header blocks");
_Static_assert(sizeof(OmiSegmentHeader) == OMI_SEGMENT_DATA, "segment header");

/* ---- Index file ---- */

typedef struct OmiIndexHeader {
    uint32_t magic;
    uint32_t version;
    uint8_t log_id[OM_LOG_ID_SIZE];
    uint64_t number;
    uint64_t created_ns; /* the segment's: an index of an earlier file of that number does not fit */
    uint32_t capacity;   /* entries that fit the file */
    uint32_t crc;
    uint8_t pad[16];
} OmiIndexHeader;
_Static_assert(sizeof(OmiIndexHeader) == 64, "index header");

/** One frame about every index_bytes; the first frame always has one. */
typedef struct OmiIndexEntry {
    _Atomic uint64_t seq; /* stored last, with release: readers use entries of a live segment */
    uint64_t max_time_ns; /* newest timestamp of all records before this one */
    uint32_t offset;
    uint32_t ordinal; /* records before it in this segment */
    uint32_t crc;     /* seeded with the header's */
    uint32_t reserved;
} OmiIndexEntry;
_Static_assert(sizeof(OmiIndexEntry) == 32, "index entry");

/* ---- Control file ---- */

/** The durable point: everything before it was on disk when this was written, so damage there is damage. */
typedef struct OmiDurableMark {
    uint64_t seq;
    uint64_t segment;
    uint64_t offset;
    uint64_t generation;
    uint32_t reserved;
    uint32_t crc; /* seeded with the control file's identity */
} OmiDurableMark;

typedef struct OmiControl {
    /* identity */
    uint32_t magic;
    uint32_t version;
    uint8_t log_id[OM_LOG_ID_SIZE];
    uint64_t created_ns;
    uint32_t reserved;
    uint32_t crc;
    uint8_t pad0[24];
    /* the present or last writer */
    _Atomic uint64_t writer_epoch;
    _Atomic uint32_t writer_pid;
    _Atomic uint32_t writer_registered; /* its membarrier registration: sleepers need not look again */
    _Atomic uint64_t writer_start;
    _Atomic uint64_t writer_pidns;
    uint8_t boot_id[16]; /* the boot in which the counters below were written: in another one they are history */
    uint8_t pad1[16];
    /* the writer's hot line */
    _Atomic uint64_t last_seq;
    _Atomic uint64_t newest_segment; /* in use */
    uint8_t pad2[48];
    /* the syncer's line */
    _Atomic uint64_t durable_seq;
    uint8_t pad3[56];
    OmiDoorbell bell; /* rung for records and for durability */
    uint8_t pad4[56];
    uint8_t pad5[OMI_PAGE - 320];
    /* A page of its own: it goes to disk at each sync, and a page under write-back stalls who stores into it. Two
     * copies, sectors apart, written in turn. */
    OmiDurableMark mark0;
    uint8_t pad6[2048 - sizeof(OmiDurableMark)];
    OmiDurableMark mark1;
    uint8_t pad7[1024 - sizeof(OmiDurableMark)];
    /* Segments up to this number were removed on purpose: number << 16 | check (omi_control_pruned()). */
    _Atomic uint64_t pruned;
    uint8_t pad8[1024 - 8];
} OmiControl;
_Static_assert(offsetof(OmiControl, writer_epoch) == 64 && offsetof(OmiControl, last_seq) == 128 &&
                   offsetof(OmiControl, durable_seq) == 192 && offsetof(OmiControl, bell) == 256 &&
                   offsetof(OmiControl, mark0) == OMI_PAGE && sizeof(OmiControl) == 2 * OMI_PAGE,
               "control file");

#endif
