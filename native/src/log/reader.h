#ifndef OMI_LOG_READER_H
#define OMI_LOG_READER_H

#include <stdbool.h>

#include "log/control.h"
#include "log/frame.h"
#include "log/recovery.h"
#include "log/segment.h"

/** One segment file as the reader knows it. */
typedef enum OmiEntryState { OMI_ENTRY_UNKNOWN, OMI_ENTRY_USED, OMI_ENTRY_UNUSED, OMI_ENTRY_BAD } OmiEntryState;

typedef struct OmiEntry {
    uint64_t number;
    OmiEntryState state;
    OmiSegmentUse use;
    uint64_t file_size;
} OmiEntry;

enum { OMI_MAPPED_DEFAULT = 4, OMI_MAPPED_MAX = 64 };

/** A place in the log, in front of a frame, with what lies before it. */
typedef struct OmiPlace {
    uint64_t segment;
    uint64_t offset;
    uint64_t last_seq; /* of the record before; with no_walk: a bound of it */
    uint64_t records;  /* before, since the log was created */
    uint64_t bytes;
    uint64_t max_time_ns; /* newest timestamp before */
} OmiPlace;

struct OmLogReader {
    /* where it stands */
    OmiSegment *current; /* with a reference; NULL = at the start, not placed yet */
    uint64_t offset;
    uint64_t last_seq; /* of the frame before offset: the next must be greater */
    uint64_t position; /* records below are passed over */
    uint64_t stop_seq; /* records from here on are not handed out: range end or durability */
    uint64_t end_seq;  /* range end; UINT64_MAX = none */
    bool check_crc, skip_corrupt, durable_only;
    uint32_t forks;
    OmLogReaderStats stats;
    OmLogDamage damage;

    OmiLogDir dir;
    OmiControlFile control; /* map NULL: none to be had */
    uint8_t log_id[OM_LOG_ID_SIZE];
    uint8_t boot_id[16];

    /* mapped segments, most recently used first */
    OmiSegment *mapped[OMI_MAPPED_MAX];
    uint32_t mapped_count, mapped_max;

    /* catalog of segment files, ascending */
    OmiEntry *entries;
    size_t entries_count;

    /* the end of the log as far as it has been walked, for logs without a live writer of this boot */
    bool settled;
    OmiPlace end;
};

/* ---- catalog.c ---- */

/** List the directory again; update does so only when segments have come since. */
int omi_catalog_refresh(OmLogReader *r);
int omi_catalog_update(OmLogReader *r);

/** Entry i with its header read. */
OmiEntry *omi_catalog_entry(OmLogReader *r, size_t i);

/** Index of the first entry whose number is >= number. */
size_t omi_catalog_find(const OmLogReader *r, uint64_t number);

/** First and last segment in use; -1 = none. */
ptrdiff_t omi_catalog_first(OmLogReader *r);
ptrdiff_t omi_catalog_last(OmLogReader *r);

/** What omi_catalog_floor() compares. */
typedef enum OmiEntryKey { OMI_ENTRY_SEQ, OMI_ENTRY_RECORDS, OMI_ENTRY_BYTES, OMI_ENTRY_TIME } OmiEntryKey;

/** The last segment in use whose key is <= value, or the first one; -1 = none. */
ptrdiff_t omi_catalog_floor(OmLogReader *r, OmiEntryKey key, uint64_t value);

/** A mapping of a segment, from the cache or new; the cache owns it. */
int omi_reader_map(OmLogReader *r, uint64_t number, OmiSegment **out);

/** The control file's counters are of this boot. */
bool omi_reader_trusts_control(const OmLogReader *r);

/** Whether a segment after `number` is in use; `sealed`: that one ends in a seal. */
bool omi_reader_has_later(OmLogReader *r, uint64_t number, bool sealed);

/** Whether the durable mark says that there was data at this place. */
bool omi_reader_before_mark(const OmLogReader *r, uint64_t segment, uint64_t offset);

/** Durable wal_seq by the control file's checked mark, not by its bare counter. */
uint64_t omi_reader_marked_seq(const OmLogReader *r);

/** Walk to the end of a log that has no live writer of this boot: r->end. */
int omi_reader_settle(OmLogReader *r);

/** Last wal_seq that this reader may hand out. */
int64_t omi_reader_visible_seq(OmLogReader *r);

/* ---- locate.c ---- */

/** How exact a place must be. */
typedef enum OmiExactness {
    OMI_EXACT,  /* the first frame that satisfies the key */
    OMI_NEARBY, /* the index entry at or before it: no data is read */
} OmiExactness;

/** The place in catalog entry i of the first record whose key is >= value; the end of its data when there is none. */
int omi_locate(OmLogReader *r, size_t i, OmiIndexKey key, uint64_t value, OmiExactness exactness, OmiPlace *out);

/** The same for a wal_seq in the whole log. OM_ERR_LOG_NOT_FOUND when the log is empty. */
int omi_locate_seq(OmLogReader *r, uint64_t seq, OmiPlace *out);

/* ---- next.c ---- */

/** Make sure that the reader stands in a segment: 1 = yes, 0 = the log is empty, or an error. */
int omi_reader_place(OmLogReader *r);

/** Stand in front of a frame. */
int omi_reader_stand(OmLogReader *r, const OmiPlace *place);

int omi_reader_check_handle(const OmLogReader *r);

#endif
