#include "tcp/fanout.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hint.h"

int omi_fanout_open(OmiFanout *fanout, uint32_t limit) {
    *fanout = (OmiFanout){.limit = limit, .buffer = malloc((size_t)limit * 2)};
    return fanout->buffer ? 0 : omi_fail(OM_ERR_BUS_NO_MEMORY, "send buffer of %u bytes", limit);
}

void omi_fanout_close(OmiFanout *fanout) {
    free(fanout->buffer);
    fanout->buffer = NULL;
}

uint8_t *omi_fanout_reserve(OmiFanout *fanout, uint32_t size) {
    if (OMI_UNLIKELY(fanout->head - fanout->tail + size > fanout->limit))
        return NULL;
    if (OMI_UNLIKELY(fanout->head - fanout->base + size > (uint64_t)fanout->limit * 2)) {
        memmove(fanout->buffer, omi_fanout_at(fanout, fanout->tail), fanout->head - fanout->tail);
        fanout->base = fanout->tail;
    }
    return fanout->buffer + (fanout->head - fanout->base);
}

void omi_fanout_release(OmiFanout *fanout, uint64_t tail) {
    fanout->tail = tail;
    if (tail == fanout->head)
        fanout->base = tail; /* empty: start over at the front, which is still in the cache */
}
