#ifndef OMI_LOG_FRAME_H
#define OMI_LOG_FRAME_H

#include <stdbool.h>
#include <string.h>

#include "core/crc32c.h"
#include "log/layout.h"

/**
 * The frame codec: what a writer stores and what every reader of untrusted bytes checks.
 *
 * wal_type 0xFF frames are not records: with wal_seq 0 they are padding (repair puts them over damage), with another
 * wal_seq they seal the segment, and that wal_seq is the least that may follow.
 */

typedef enum OmiFrameState {
    OMI_FRAME_NONE, /* a zero word: nothing was published here */
    OMI_FRAME_RECORD,
    OMI_FRAME_PADDING,
    OMI_FRAME_SEAL,
    OMI_FRAME_BAD,
} OmiFrameState;

#define OMI_FRAME_WORD_FIXED ((uint64_t)OMI_FRAME_FLAG_EXT << 40 | OMI_FRAME_MAGIC)
#define OMI_FRAME_WORD_FIXED_MASK 0x0000FF00FFFFFFFFULL

static inline uint64_t omi_frame_word(uint8_t wal_type, uint32_t len) {
    uint64_t len16 = len < 0xFFFF ? len : 0xFFFF;
    return OMI_FRAME_WORD_FIXED | (uint64_t)wal_type << 32 | len16 << 48;
}

/** Bytes of a whole frame. */
static inline uint64_t omi_frame_size(uint32_t len) {
    return ((uint64_t)len + OMI_FRAME_HEADER + OM_LOG_FRAME_ALIGN - 1) & ~(uint64_t)(OM_LOG_FRAME_ALIGN - 1);
}

/** The checksum: bytes 4..24 and 28..32 of the header are 24 bytes, three words, in front of the payload. */
static inline uint32_t omi_frame_crc(uint64_t word, uint64_t seq, uint64_t time_ns, const void *payload, uint32_t len) {
    return omi_crc32c_words(word >> 32 | seq << 32, seq >> 32 | time_ns << 32, time_ns >> 32 | (uint64_t)len << 32,
                            payload, len);
}

static inline uint64_t omi_frame_load_word(const uint8_t *at) {
    return atomic_load_explicit(&((const OmiFrame *)at)->word, memory_order_acquire);
}

/** Everything of a frame but its first word and the payload. `at` must be zero from the payload's end to the frame's.
 */
static inline void omi_frame_fill(uint8_t *at, uint64_t word, uint64_t seq, uint64_t time_ns, const void *payload,
                                  uint32_t len) {
    OmiFrame *frame = (OmiFrame *)at;
    frame->wal_seq = seq;
    frame->timestamp_ns = time_ns;
    frame->payload_len = len;
    frame->crc = omi_frame_crc(word, seq, time_ns, payload, len);
}

/** Make the frame visible, whole. */
static inline void omi_frame_publish(uint8_t *at, uint64_t word) {
    atomic_store_explicit(&((OmiFrame *)at)->word, word, memory_order_release);
}

/** What a checked frame says. */
typedef struct OmiFrameView {
    uint64_t seq;
    uint64_t time_ns;
    const uint8_t *payload;
    uint64_t size; /* of the whole frame */
    uint32_t len;
    uint8_t type;
} OmiFrameView;

/**
 * Look at the frame at base + offset in a mapping of `size` bytes. Nothing is read outside the mapping, whatever the
 * bytes say. A record whose wal_seq is not above last_seq is bad. `check_crc` false skips only the checksum.
 */
static inline OmiFrameState omi_frame_check(const uint8_t *base, uint64_t offset, uint64_t size, uint64_t last_seq,
                                            bool check_crc, OmiFrameView *view) {
    if (OMI_UNLIKELY(offset + OMI_FRAME_HEADER > size))
        return OMI_FRAME_BAD;
    const uint8_t *at = base + offset;
    const OmiFrame *frame = (const OmiFrame *)at;
    uint64_t word = omi_frame_load_word(at);
    if (OMI_UNLIKELY((word & OMI_FRAME_WORD_FIXED_MASK) != OMI_FRAME_WORD_FIXED))
        return word == 0 ? OMI_FRAME_NONE : OMI_FRAME_BAD;
    uint32_t len = frame->payload_len;
    uint8_t type = (uint8_t)(word >> 32);
    view->len = len;
    view->type = type;
    view->seq = frame->wal_seq;
    view->time_ns = frame->timestamp_ns;
    view->payload = at + OMI_FRAME_HEADER;
    view->size = omi_frame_size(len);
    if (OMI_UNLIKELY(view->size > size - offset || word >> 48 != (len < 0xFFFF ? len : 0xFFFF)))
        return OMI_FRAME_BAD;
    if (check_crc && OMI_UNLIKELY(omi_frame_crc(word, view->seq, view->time_ns, view->payload, len) != frame->crc))
        return OMI_FRAME_BAD;
    if (OMI_LIKELY(type <= OM_LOG_TYPE_MAX))
        return OMI_LIKELY(view->seq > last_seq && view->seq <= OM_LOG_SEQ_MAX && len <= OM_LOG_PAYLOAD_MAX)
                   ? OMI_FRAME_RECORD
                   : OMI_FRAME_BAD;
    if (type != OMI_TYPE_PADDING)
        return OMI_FRAME_BAD;
    if (view->seq == 0)
        return OMI_FRAME_PADDING;
    return len == 0 && view->seq > last_seq ? OMI_FRAME_SEAL : OMI_FRAME_BAD;
}

/** Write a seal or padding frame that covers `size` bytes (a multiple of 8, at least 32); its payload is zeroed. */
static inline void omi_frame_put_padding(uint8_t *at, uint64_t seal_seq, uint64_t time_ns, uint64_t size) {
    uint32_t len = (uint32_t)(size - OMI_FRAME_HEADER);
    uint64_t word = omi_frame_word(OMI_TYPE_PADDING, len);
    memset(at + OMI_FRAME_HEADER, 0, len);
    omi_frame_fill(at, word, seal_seq, time_ns, at + OMI_FRAME_HEADER, len);
    omi_frame_publish(at, word);
}

/**
 * The first frame behind damage at `offset`: where the damaged frame's own length leads when a frame or the end of data
 * is there, else the next place that holds a checked frame. `bound_seq` (0 = none) is a wal_seq that all must be below.
 * Returns `size` when there is none.
 */
uint64_t omi_frame_resync(const uint8_t *base, uint64_t offset, uint64_t size, uint64_t last_seq, uint64_t bound_seq);

/** Whole records that can be found in [offset, end). */
uint32_t omi_frame_count(const uint8_t *base, uint64_t offset, uint64_t end);

/** One past the last byte that is not zero in [offset, end); `offset` when all are. */
uint64_t omi_frame_data_end(const uint8_t *base, uint64_t offset, uint64_t end);

#endif
