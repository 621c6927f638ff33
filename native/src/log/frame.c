#include "log/frame.h"

/** A record, seal or padding that would be accepted at `offset`; checksums are always checked when guessing. */
static bool plausible(const uint8_t *base, uint64_t offset, uint64_t size, uint64_t last_seq, uint64_t bound_seq,
                      OmiFrameView *view) {
    OmiFrameState state = omi_frame_check(base, offset, size, last_seq, true, view);
    if (state == OMI_FRAME_RECORD)
        return bound_seq == 0 || view->seq < bound_seq;
    return state == OMI_FRAME_SEAL || state == OMI_FRAME_PADDING;
}

uint64_t omi_frame_resync(const uint8_t *base, uint64_t offset, uint64_t size, uint64_t last_seq, uint64_t bound_seq) {
    OmiFrameView view;
    /* Most damage hits a payload and leaves the length right. Trusting it first also keeps us from taking frames that
     * a payload holds as its content for records of this log. */
    OmiFrameState state = omi_frame_check(base, offset, size, 0, false, &view);
    if (state != OMI_FRAME_BAD && state != OMI_FRAME_NONE && size - offset - view.size >= OMI_FRAME_HEADER) {
        uint64_t next = offset + view.size;
        if (omi_frame_load_word(base + next) == 0 || plausible(base, next, size, last_seq, bound_seq, &view))
            return next;
    }
    for (uint64_t at = offset + OMI_FRAME_HEADER; at + OMI_FRAME_HEADER <= size; at += OM_LOG_FRAME_ALIGN) {
        uint64_t word = omi_frame_load_word(base + at);
        if ((word & OMI_FRAME_WORD_FIXED_MASK) != OMI_FRAME_WORD_FIXED ||
            !plausible(base, at, size, last_seq, bound_seq, &view))
            continue;
        /* What follows must go on like a log, too: another frame, or nothing. */
        OmiFrameView next;
        uint64_t seq = view.type == OMI_TYPE_PADDING ? last_seq : view.seq;
        if (at + view.size + OMI_FRAME_HEADER > size ||
            omi_frame_check(base, at + view.size, size, seq, false, &next) != OMI_FRAME_BAD)
            return at;
    }
    return size;
}

uint32_t omi_frame_count(const uint8_t *base, uint64_t offset, uint64_t end) {
    uint32_t count = 0;
    uint64_t last_seq = 0;
    while (offset + OMI_FRAME_HEADER <= end) {
        OmiFrameView view;
        OmiFrameState state = omi_frame_check(base, offset, end, last_seq, true, &view);
        if (state == OMI_FRAME_RECORD) {
            count++;
            last_seq = view.seq;
        }
        offset = state == OMI_FRAME_NONE || state == OMI_FRAME_BAD ? omi_frame_resync(base, offset, end, last_seq, 0)
                                                                   : offset + view.size;
    }
    return count;
}

uint64_t omi_frame_data_end(const uint8_t *base, uint64_t offset, uint64_t end) {
    static const uint8_t zeros[OMI_PAGE];
    while (end > offset) {
        uint64_t from = end - offset > OMI_PAGE ? end - OMI_PAGE : offset;
        if (memcmp(base + from, zeros, end - from) != 0)
            break;
        end = from;
    }
    while (end > offset && base[end - 1] == 0)
        end--;
    return end;
}
