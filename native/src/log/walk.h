#ifndef OMI_LOG_WALK_H
#define OMI_LOG_WALK_H

#include "log/recovery.h"

/** What recovery.c (the row of segments) and walk.c (the frames of one) share. */

/** State of one walk. */
typedef struct OmiWalk {
    OmiRecovery *recovery;
    OmiTail *tail;
    uint64_t *numbers; /* of all segment files */
    size_t count;
    size_t used_end; /* segments from here on are not in use */
    bool torn;       /* the log ends here, whatever follows */
    int rc;
} OmiWalk;

/** A log that is refused for its damage is left as it is. */
static inline bool omi_walk_may_repair(const OmiWalk *walk) {
    return walk->recovery->repair && walk->rc == 0;
}

/** Whether a break at this place is a torn tail. Without a mark only the last segment's end can be one. */
bool omi_walk_behind_mark(const OmiWalk *walk, uint64_t segment, uint64_t offset);

/** Count a finding, tell the visitor, and refuse the log when it is damage that may not be salvaged. */
void omi_walk_tell(OmiWalk *walk, const OmLogDamage *damage, const char *what);

/** base_seq of the first usable segment after entry i; 0 = none. */
uint64_t omi_walk_next_base_seq(const OmiWalk *walk, size_t i);

/** Walk the frames of entry i, a segment in use. */
int omi_walk_segment(OmiWalk *walk, size_t i, OmiSegment *segment);

#endif
