#ifndef OMI_COL_FILTER_H
#define OMI_COL_FILTER_H

#include <stdbool.h>

#include "core/hint.h"
#include "ombus/om_col.h"

/** A filter made ready for the scan: no special cases are left to ask for per record. */
typedef struct OmiColFilter {
    uint64_t from_time_ns, time_span_ns; /* passes: time - from <= span, one comparison for both bounds */
    uint64_t types[4];
    uint32_t payload_min[256];
    bool drop_short;
    bool passes_all; /* neither time nor type is filtered */
} OmiColFilter;

/** Check and prepare; filter NULL = all records. */
int omi_col_filter_init(OmiColFilter *out, const OmColFilter *filter);

/** Whether a record becomes a row; counts gaps and short payloads on the way. */
static inline bool omi_col_take(const OmiColFilter *f, OmColStats *stats, uint64_t seq, uint64_t time_ns, uint8_t type,
                                uint32_t len) {
    if (OMI_UNLIKELY(!f->passes_all) &&
        !((f->types[type >> 6] >> (type & 63) & 1) && time_ns - f->from_time_ns <= f->time_span_ns))
        return false;
    if (OMI_UNLIKELY(len < f->payload_min[type])) {
        stats->short_payloads++;
        stats->short_seq = seq;
        stats->short_len = len;
        return !f->drop_short;
    }
    return true;
}

/** Account for a jump of wal_seq from `expected` to `seq`; expected 0 = not known. */
static inline void omi_col_count_gap(OmColStats *stats, uint64_t expected, uint64_t seq) {
    if (OMI_UNLIKELY(seq != expected && expected != 0 && seq > expected)) {
        stats->gaps++;
        stats->gap_seqs += seq - expected;
    }
}

#endif
