#include "columns/filter.h"

#include <inttypes.h>
#include <string.h>

#include "core/error.h"

int omi_col_filter_init(OmiColFilter *out, const OmColFilter *filter) {
    static const OmColFilter all;
    if (!filter)
        filter = &all;
    if (filter->flags & ~OM_COL_DROP_SHORT)
        return omi_fail(OM_ERR_BUS_INIT, "filter flags 0x%x: unknown bits", filter->flags);
    if (filter->to_time_ns && filter->to_time_ns <= filter->from_time_ns)
        return omi_fail(OM_ERR_BUS_INIT, "times from %" PRIu64 " to %" PRIu64 " are no range", filter->from_time_ns,
                        filter->to_time_ns);
    bool any_type = !(filter->types[0] | filter->types[1] | filter->types[2] | filter->types[3]);
    memset(out, 0, sizeof *out);
    out->from_time_ns = filter->from_time_ns;
    out->time_span_ns = (filter->to_time_ns ? filter->to_time_ns - 1 : UINT64_MAX) - filter->from_time_ns;
    for (int i = 0; i < 4; i++)
        out->types[i] = any_type ? UINT64_MAX : filter->types[i];
    if (filter->payload_min)
        memcpy(out->payload_min, filter->payload_min, sizeof out->payload_min);
    out->drop_short = filter->flags & OM_COL_DROP_SHORT;
    out->passes_all = any_type && filter->from_time_ns == 0 && filter->to_time_ns == 0;
    return 0;
}
