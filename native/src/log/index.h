#ifndef OMI_LOG_INDEX_H
#define OMI_LOG_INDEX_H

#include <stdbool.h>

#include "log/files.h"
#include "log/layout.h"

/**
 * The sparse index of one segment. The writer adds an entry about every index_bytes while it appends, in a mapped file,
 * so that readers find their way in the live segment, too. An entry is believed only when its checksum fits; where
 * the file is missing or wrong a reader walks the frames once and keeps the entries in memory.
 */
typedef struct OmiIndex {
    OmiIndexEntry *entries;
    uint32_t capacity;
    uint32_t seed;  /* of the entries' checksums */
    uint32_t count; /* built in memory, or added by this writer */
    void *map;      /* NULL = built in memory */
    size_t map_size;
    /* where building in memory goes on */
    uint64_t walked_offset;
    uint64_t walked_seq;
    uint64_t walked_time_ns;
    uint32_t walked_records;
} OmiIndex;

/** What a lookup is by. All rise along the entries. */
typedef enum OmiIndexKey { OMI_BY_SEQ, OMI_BY_OFFSET, OMI_BY_ORDINAL, OMI_BY_TIME } OmiIndexKey;

/** How many entries a segment can need: two frames per interval at most start an entry (see omi_index_add's callers).
 */
uint32_t omi_index_capacity(uint64_t segment_size, uint32_t index_bytes);

/** Make a new, empty, mapped index file for a segment. */
int omi_index_create(OmiIndex *index, const OmiLogDir *dir, const OmiSegmentIdent *ident);

/** Map the segment's index file for reading; non-zero when it is missing or not this segment's. Sets no error text. */
int omi_index_open(OmiIndex *index, const OmiLogDir *dir, const OmiSegmentIdent *ident);

void omi_index_close(OmiIndex *index);

/** Append an entry; false when the file is full (lookups then walk further). */
bool omi_index_add(OmiIndex *index, uint64_t seq, uint64_t max_time_ns, uint64_t offset, uint32_t ordinal);

/** Number of entries published so far. */
uint32_t omi_index_count(const OmiIndex *index);

static inline uint64_t omi_index_key(const OmiIndexEntry *entry, OmiIndexKey key) {
    switch (key) {
    case OMI_BY_SEQ:
        return atomic_load_explicit(&entry->seq, memory_order_acquire);
    case OMI_BY_OFFSET:
        return entry->offset;
    case OMI_BY_ORDINAL:
        return entry->ordinal;
    default:
        return entry->max_time_ns;
    }
}

/** The last entry whose key is <= value, or NULL; *valid is false when that entry does not pass its checksum. */
const OmiIndexEntry *omi_index_floor(const OmiIndex *index, OmiIndexKey key, uint64_t value, bool *valid);

/**
 * Build entries in memory by walking the frames of a mapped segment from where the last build stopped, up to the end of
 * data or the first damage. Headers are checked, payloads are not read.
 */
int omi_index_build(OmiIndex *index, const uint8_t *base, uint64_t size, uint32_t index_bytes, uint64_t prev_seq,
                    uint64_t prev_max_time_ns);

/** Replace the segment's index file by one made from its frames; it stays open for more entries. */
int omi_index_rewrite(OmiIndex *index, const OmiLogDir *dir, const OmiSegmentHeader *header, uint64_t size);

#endif
