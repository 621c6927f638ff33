#ifndef OMI_LOG_SEGMENT_H
#define OMI_LOG_SEGMENT_H

#include <stdbool.h>

#include "log/files.h"
#include "log/index.h"
#include "log/layout.h"

/** A mapped segment file, shared by reference count: by a writer's threads, or by a reader and its holds. */
typedef struct OmiSegment {
    _Atomic uint32_t refs;
    int fd;
    uint8_t *base;
    uint64_t size;
    uint64_t number;
    OmiIndex index;
    bool index_ready;     /* readers: opened or built */
    uint64_t index_epoch; /* readers: writer epoch in which it was opened */
    bool dir_synced;      /* writers: its directory entry is on disk */
    uint64_t prefaulted;  /* writers: pages before this are ready */
    uint64_t synced;      /* writers: bytes before this are on disk */
} OmiSegment;

static inline OmiSegmentHeader *omi_segment_header(const OmiSegment *segment) {
    return (OmiSegmentHeader *)segment->base;
}

/** Make a new segment under its final name: reserved, mapped for writing, identity written, an index beside it. */
int omi_segment_create(OmiSegment **out, const OmiLogDir *dir, const uint8_t log_id[OM_LOG_ID_SIZE], uint64_t number,
                       uint64_t size, uint32_t index_bytes);

/** Map an existing one, whatever it holds, as large as its file is. OM_ERR_LOG_NOT_FOUND; OM_ERR_LOG_CORRUPT when it is
 * shorter than a header. */
int omi_segment_map(OmiSegment **out, const OmiLogDir *dir, uint64_t number, bool writable);

void omi_segment_ref(OmiSegment *segment);
void omi_segment_unref(OmiSegment *segment);

/** Make pages in [from, to) writable without a fault later. */
void omi_segment_prefault(OmiSegment *segment, uint64_t from, uint64_t to);

/** Remove a segment's files. */
void omi_segment_remove(const OmiLogDir *dir, uint64_t number);

/** Read a header without mapping the file. *file_size may be NULL. Errors as omi_segment_map(). */
int omi_segment_read_header(const OmiLogDir *dir, uint64_t number, OmiSegmentHeader *out, uint64_t *file_size);

/* ---- Blocks of the header ---- */

/** The identity block is whole and says that it is this number's. */
bool omi_ident_valid(const OmiSegmentHeader *header, uint64_t number);
bool omi_use_valid(const OmiSegmentHeader *header);
bool omi_seal_valid(const OmiSegmentHeader *header);

void omi_ident_write(OmiSegmentHeader *header, const OmiSegmentIdent *ident);
void omi_use_write(OmiSegmentHeader *header, const OmiSegmentUse *use);
void omi_seal_write(OmiSegmentHeader *header, const OmiSegmentSeal *seal);

#endif
