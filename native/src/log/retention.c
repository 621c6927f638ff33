#include "log/retention.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "log/control.h"
#include "log/segment.h"

/** A segment in use that the log can lose: all that is asked of it stands in the next one's header. */
static bool readable(const OmiLogDir *dir, uint64_t number, OmiSegmentHeader *header, uint64_t *size) {
    return omi_segment_read_header(dir, number, header, size) == 0 && omi_ident_valid(header, number) &&
           omi_use_valid(header);
}

int omi_retain(const OmiLogDir *dir, const OmLogRetention *policy) {
    uint64_t *numbers, total_bytes = 0, now_ns = omi_wall_ns();
    size_t count;
    int removed = 0;
    int rc = omi_dir_segments(dir, &numbers, &count);
    if (rc != 0)
        return rc;
    uint64_t needed_seq = policy->min_seq ? policy->min_seq : UINT64_MAX; /* this and later ones stay */
    if (policy->flags & OM_LOG_RETAIN_FOR_CONSUMERS) {
        uint64_t min = omi_consumers_min(dir);
        if (min < UINT64_MAX && min + 1 < needed_seq)
            needed_seq = min + 1;
    }
    OmiSegmentHeader header;
    OmiControlFile control;
    uint64_t *sizes = calloc(count + 1, sizeof *sizes);
    if (!sizes)
        rc = omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    else
        rc = omi_control_open(&control, dir, true);
    if (rc != 0) {
        free(sizes);
        free(numbers);
        return rc;
    }
    size_t condemned = 0;
    for (size_t i = 0; i < count; i++)
        if (readable(dir, numbers[i], &header, &sizes[i]))
            total_bytes += sizes[i];
    for (size_t i = 0; i + 1 < count; i++) {
        /* Oldest first, and none left out: what remains is always one piece. Damage stops it: better kept. */
        if (!readable(dir, numbers[i], &header, 0) || !readable(dir, numbers[i + 1], &header, 0) ||
            numbers[i + 1] != numbers[i] + 1)
            break;
        bool too_many = policy->max_bytes && total_bytes > policy->max_bytes;
        bool too_old = policy->max_age_ns && header.use.prev_max_time_ns + policy->max_age_ns < now_ns;
        if (!(too_many || too_old) || header.use.prev_seq >= needed_seq)
            break;
        total_bytes -= sizes[i];
        condemned = i + 1;
    }
    if (condemned)
        rc = omi_control_set_pruned(&control, numbers[condemned - 1]);
    for (; rc == 0 && (size_t)removed < condemned; removed++)
        omi_segment_remove(dir, numbers[removed]);
    if (removed)
        omi_sync_dir(dir);
    omi_control_close(&control);
    free(sizes);
    free(numbers);
    return rc != 0 ? rc : removed;
}

int om_log_retain(const char *path, const OmLogRetention *policy) {
    OmiLogDir dir;
    if (!policy)
        return omi_fail(OM_ERR_BUS_INIT, "no retention policy given");
    int rc = omi_dir_open(&dir, path, false);
    if (rc != 0)
        return rc;
    rc = omi_retain(&dir, policy);
    omi_dir_close(&dir);
    return rc;
}
