#ifndef OMI_LOG_RECOVERY_H
#define OMI_LOG_RECOVERY_H

#include <stdbool.h>

#include "log/control.h"
#include "log/files.h"
#include "log/segment.h"

/**
 * Recovery: walk the log from the durable mark (or from its start), tell a torn tail from damage, and mend what the
 * caller allows. om_log_verify(), om_log_repair() and a resuming writer are this one walk.
 *
 * The rule: what lies before the durable mark was on disk once, so a break there is damage. A break behind it is the
 * tail that a power cut tore, together with everything after it, even where later pages did reach the disk.
 */
typedef struct OmiRecovery {
    const OmiLogDir *dir;
    uint8_t log_id[OM_LOG_ID_SIZE];
    bool have_mark;
    OmiDurableMark mark;
    uint64_t pruned; /* omi_control_pruned() */
    bool live;       /* a writer is at work: its end moves */
    bool all;        /* from the first segment, indexes included; else from the mark's */
    bool repair;     /* cut a torn tail; mend indexes and summaries */
    bool salvage;    /* cover damage, too */
    const OmLogVisitor *visitor;
    OmLogReport *report;
    uint64_t total_bytes, done_bytes;
} OmiRecovery;

/** Where the log ends, and where a writer goes on. */
typedef struct OmiTail {
    uint64_t segment; /* 0 = no segment is in use */
    uint64_t offset;  /* of the next frame, or of the seal */
    bool sealed;
    uint64_t first_segment;
    uint64_t last_seq;
    uint64_t max_time_ns;
    uint64_t records; /* since the log was created */
    uint64_t bytes;
    uint32_t segment_records;
} OmiTail;

/** Take identity and marks from the control file. */
void omi_recovery_init(OmiRecovery *recovery, const OmiLogDir *dir, const OmiControl *control);

/** OM_ERR_LOG_CORRUPT when there is damage that was not mended. */
int omi_recover(OmiRecovery *recovery, OmiTail *tail);

/** A log's identity from its first readable segment, for when the control file is gone. */
bool omi_recover_id(const OmiLogDir *dir, uint8_t log_id[OM_LOG_ID_SIZE]);

/* ---- repair.c: each first copies what it changes into a side file ---- */

/** Zero everything from `offset` to the end of data. */
int omi_repair_cut(OmiRecovery *recovery, OmiSegment *segment, uint64_t offset);

/** Put a padding frame over [offset, end). */
int omi_repair_pad(OmiRecovery *recovery, OmiSegment *segment, uint64_t offset, uint64_t end);

/** Seal the segment at `offset`. */
int omi_repair_seal(OmiRecovery *recovery, OmiSegment *segment, uint64_t offset, uint64_t last_seq, uint64_t time_ns);

/** Rebuild a header from what the walk knows; OM_ERR_LOG_CORRUPT when the segment holds no record to take over. */
int omi_repair_header(OmiRecovery *recovery, OmiSegment *segment, const OmiTail *before);

/** Move a segment's file aside. */
int omi_repair_move(OmiRecovery *recovery, uint64_t number);

/** An empty, sealed segment in the place of one that is gone; the tail then stands behind it. */
int omi_repair_fill(OmiRecovery *recovery, uint64_t number, OmiTail *tail);

/** What recovery kept may be in the page cache only (its writer was killed): put it on disk before it is promised. */
int omi_repair_sync(OmiRecovery *recovery, uint64_t from, const OmiTail *tail);

/** Write the segment's index file anew from its frames. */
int omi_repair_index(OmiRecovery *recovery, OmiSegment *segment);

/** Write the segment's summary where it is missing or wrong. */
int omi_repair_summary(OmiSegment *segment, const OmiTail *tail);

#endif
