#include <inttypes.h>

#include "columns/filter.h"
#include "core/error.h"
#include "log/frame.h"
#include "ombus/om_col.h"

/** What stands at the start of `size` bytes. */
typedef enum Head { INCOMPLETE, OTHER, RECORD } Head;

/** A length that no record has counts as a record, for the check to refuse: waiting for so many bytes would be vain. */
static Head look(const uint8_t *at, size_t size) {
    if (size < sizeof(uint64_t))
        return INCOMPLETE;
    uint64_t word = omi_frame_load_word(at);
    if ((uint32_t)word == OMI_FRAME_MAGIC && (uint8_t)(word >> 32) > OM_LOG_TYPE_MAX)
        return OTHER;
    if ((word & OMI_FRAME_WORD_FIXED_MASK) != OMI_FRAME_WORD_FIXED)
        return RECORD;
    if (size < OMI_FRAME_HEADER)
        return INCOMPLETE;
    uint32_t len = ((const OmiFrame *)at)->payload_len;
    return len <= OM_LOG_PAYLOAD_MAX && omi_frame_size(len) > size ? INCOMPLETE : RECORD;
}

int om_col_index(const void *data, size_t size, uint32_t flags, const OmColFilter *filter, OmColCursor *cursor,
                 uint64_t *rows, uint32_t rows_max, size_t *consumed, OmColStats *stats) {
    OmiColFilter f;
    if (!data || !cursor || !rows || !consumed || !stats || rows_max == 0 || (uintptr_t)data % OM_LOG_FRAME_ALIGN != 0)
        return omi_fail(OM_ERR_BUS_INIT, "no aligned frames, or no place for the results given");
    if (flags & ~OM_LOG_NO_CRC)
        return omi_fail(OM_ERR_BUS_INIT, "flags 0x%x: unknown bits", flags);
    int rc = omi_col_filter_init(&f, filter);
    if (rc != 0)
        return rc;
    const uint8_t *base = data;
    size_t offset = 0;
    uint32_t n = 0;
    while (n < rows_max && !stats->done && look(base + offset, size - offset) == RECORD) {
        const uint8_t *at = base + offset;
        OmiFrameView view;
        if (omi_frame_check(base, offset, size, cursor->last_seq, !(flags & OM_LOG_NO_CRC), &view) !=
            OMI_FRAME_RECORD) {
            rc = omi_fail(OM_ERR_COL_FRAME, "byte %zu after wal_seq %" PRIu64 " is no valid frame", offset,
                          cursor->last_seq);
            break;
        }
        if (cursor->to_seq && view.seq >= cursor->to_seq) {
            stats->done = 1;
            break;
        }
        offset += view.size;
        if (cursor->last_seq)
            omi_col_count_gap(stats, cursor->last_seq + 1, view.seq);
        cursor->last_seq = view.seq;
        if (view.seq < cursor->from_seq)
            continue;
        stats->records++;
        stats->bytes += view.size;
        stats->next_seq = view.seq + 1;
        if (cursor->to_seq && stats->next_seq >= cursor->to_seq)
            stats->done = 1;
        if (omi_col_take(&f, stats, view.seq, view.time_ns, view.type, view.len))
            rows[n++] = (uint64_t)(uintptr_t)at;
    }
    *consumed = offset;
    stats->rows += n;
    return rc < 0 && n == 0 ? rc : (int)n;
}
