#ifndef OMI_FANOUT_H
#define OMI_FANOUT_H

#include <stdint.h>

/**
 * One buffer of encoded frames that many connections send from, each at a position of its own. A record is encoded
 * once however many clients there are, and memory does not grow with them (a buffer per client would cost a copy and
 * send_buf_size each). Positions count bytes since the start and never wrap.
 *
 *      buffer   |....sent by all....|#### wanted by somebody ####|......free......|
 *               base                tail                         head      base + 2 * limit
 *
 * `tail` is a lower bound of all positions, so that the usual append looks at no client. With at most `limit` bytes
 * between tail and head, twice that as buffer needs at most one byte moved per byte appended; no wrap, so no frame is
 * split.
 */
typedef struct OmiFanout {
    uint8_t *buffer;
    uint32_t limit;
    uint64_t base, tail, head;
} OmiFanout;

/** `limit`: how far a client may lag behind, in bytes. */
int omi_fanout_open(OmiFanout *fanout, uint32_t limit);
void omi_fanout_close(OmiFanout *fanout);

/** Room for `size` bytes at head, or NULL when tail would lag more than limit: move the tail or drop who holds it. */
uint8_t *omi_fanout_reserve(OmiFanout *fanout, uint32_t size);

/** Make the reserved bytes part of the stream. */
static inline void omi_fanout_commit(OmiFanout *fanout, uint32_t size) {
    fanout->head += size;
}

/** Nobody needs bytes before `tail` any more. */
void omi_fanout_release(OmiFanout *fanout, uint64_t tail);

/** The bytes from `position` to head. */
static inline const uint8_t *omi_fanout_at(const OmiFanout *fanout, uint64_t position) {
    return fanout->buffer + (position - fanout->base);
}

#endif
