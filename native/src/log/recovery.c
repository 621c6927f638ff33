#include "log/recovery.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "log/frame.h"
#include "log/walk.h"

static int check_index(OmiWalk *walk, OmiSegment *segment) {
    const OmiSegmentHeader *header = omi_segment_header(segment);
    OmiIndex index;
    bool right = omi_index_open(&index, walk->recovery->dir, &header->ident) == 0;
    uint32_t count = right ? omi_index_count(&index) : 0;
    right = right && (count > 0 || walk->tail->segment_records == 0);
    for (uint32_t k = 0; right && k < count; k++) {
        uint64_t seq = omi_index_key(&index.entries[k], OMI_BY_SEQ);
        bool valid;
        OmiFrameView view;
        const OmiIndexEntry *entry = omi_index_floor(&index, OMI_BY_SEQ, seq, &valid);
        right = valid && entry == &index.entries[k] &&
                omi_frame_check(segment->base, entry->offset, segment->size, 0, false, &view) == OMI_FRAME_RECORD &&
                view.seq == seq;
    }
    omi_index_close(&index);
    if (right)
        return 0;
    OmLogDamage damage = {.kind = OM_LOG_DAMAGE_INDEX, .segment = segment->number};
    omi_walk_tell(walk, &damage, "");
    return omi_walk_may_repair(walk) ? omi_repair_index(walk->recovery, segment) : 0;
}

/** Everything from entry i on lies behind a torn place: move aside what is in use or holds data, drop bare spares. */
static int drop_rest(OmiWalk *walk, size_t i) {
    if (walk->recovery->live)
        return 0;
    for (; i < walk->count; i++) {
        OmiSegment *segment;
        uint64_t number = walk->numbers[i], end = 0, size = 0;
        uint32_t records = 0;
        bool in_use = i < walk->used_end;
        if (omi_segment_map(&segment, walk->recovery->dir, number, false) == 0) {
            size = segment->size;
            end = omi_frame_data_end(segment->base, OMI_SEGMENT_DATA, size);
            records = omi_frame_count(segment->base, OMI_SEGMENT_DATA, end);
            omi_segment_unref(segment);
        }
        if (in_use || end > OMI_SEGMENT_DATA) {
            OmLogDamage damage = {.kind = OM_LOG_DAMAGE_TAIL,
                                  .segment = number,
                                  .offset = OMI_SEGMENT_DATA,
                                  .size_bytes = end > OMI_SEGMENT_DATA ? end - OMI_SEGMENT_DATA : 0,
                                  .records = records,
                                  .lost_first_seq = walk->tail->last_seq + 1};
            omi_walk_tell(walk, &damage, "behind the torn place");
            int rc = omi_walk_may_repair(walk) ? omi_repair_move(walk->recovery, number) : 0;
            if (rc != 0)
                return rc;
        } else if (omi_walk_may_repair(walk)) {
            omi_segment_remove(walk->recovery->dir, number);
        }
    }
    return 0;
}

/** A place in the row of segments where no file, or not ours, is. */
static int missing(OmiWalk *walk, size_t i, uint64_t number, OmLogDamageKind kind) {
    uint64_t bound = omi_walk_next_base_seq(walk, i);
    OmLogDamage damage = {.kind = kind,
                          .segment = number,
                          .lost_first_seq = walk->tail->last_seq + 1,
                          .lost_last_seq = bound ? bound - 1 : 0};
    omi_walk_tell(walk, &damage, "");
    if (!walk->recovery->salvage)
        return 0;
    int rc = kind == OM_LOG_DAMAGE_FOREIGN ? omi_repair_move(walk->recovery, number) : 0;
    return rc != 0 ? rc : omi_repair_fill(walk->recovery, number, walk->tail);
}

/** Map and check one segment in use, then walk it. */
static int visit(OmiWalk *walk, size_t i) {
    OmiRecovery *recovery = walk->recovery;
    OmiTail *tail = walk->tail;
    OmiSegment *segment;
    uint64_t number = walk->numbers[i];
    int rc = omi_segment_map(&segment, recovery->dir, number, recovery->repair || recovery->salvage);
    if (rc == OM_ERR_LOG_CORRUPT) { /* too short for a header */
        if (omi_walk_behind_mark(walk, number, 0)) {
            walk->torn = true;
            return drop_rest(walk, i);
        }
        return missing(walk, i, number, OM_LOG_DAMAGE_FOREIGN);
    }
    if (rc != 0)
        return rc;
    const OmiSegmentHeader *header = omi_segment_header(segment);
    bool ident = omi_ident_valid(header, number);
    if (ident && header->ident.size_bytes > segment->size && omi_walk_may_repair(walk)) {
        /* Cut short, by a power cut or by hand: give it its length back, as zeros. What is missing shows below. */
        char name[OMI_FILE_NAME_SIZE];
        omi_file_name(name, number, OMI_SEGMENT_SUFFIX);
        rc = omi_file_reserve(recovery->dir, name, segment->fd, header->ident.size_bytes);
        omi_segment_unref(segment);
        if (rc == 0)
            rc = omi_segment_map(&segment, recovery->dir, number, true);
        if (rc != 0)
            return rc;
        header = omi_segment_header(segment);
    }
    if (ident && memcmp(header->ident.log_id, recovery->log_id, OM_LOG_ID_SIZE) != 0) {
        omi_segment_unref(segment);
        return missing(walk, i, number, OM_LOG_DAMAGE_FOREIGN);
    }
    bool usable = ident && omi_use_valid(header) && header->use.base_seq > tail->last_seq;
    if (!usable && omi_walk_behind_mark(walk, number, 0)) {
        omi_segment_unref(segment);
        walk->torn = true;
        return drop_rest(walk, i);
    }
    if (!usable) {
        OmLogDamage damage = {.kind = OM_LOG_DAMAGE_HEADER,
                              .segment = number,
                              .size_bytes = OMI_SEGMENT_DATA,
                              .lost_first_seq = tail->last_seq + 1,
                              .lost_last_seq = tail->last_seq};
        omi_walk_tell(walk, &damage, "its records may be whole");
        rc = recovery->salvage ? omi_repair_header(recovery, segment, tail) : 0;
        if (rc == OM_ERR_LOG_CORRUPT) { /* nothing in it */
            omi_segment_unref(segment);
            rc = omi_repair_move(recovery, number);
            return rc != 0 ? rc : omi_repair_fill(recovery, number, tail);
        }
    }
    if (rc == 0 && (usable || recovery->salvage)) {
        if (header->use.prev_seq > tail->last_seq)
            tail->last_seq = header->use.prev_seq;
        tail->records = header->use.records_before;
        tail->bytes = header->use.bytes_before;
        if (header->use.prev_max_time_ns > tail->max_time_ns)
            tail->max_time_ns = header->use.prev_max_time_ns;
    }
    recovery->report->segments++;
    if (rc == 0)
        rc = omi_walk_segment(walk, i, segment);
    if (rc == 0 && recovery->all)
        rc = check_index(walk, segment);
    if (rc == 0 && omi_walk_may_repair(walk) && tail->sealed)
        rc = omi_repair_summary(segment, tail);
    omi_segment_unref(segment);
    if (rc == 0 && walk->torn)
        rc = drop_rest(walk, i + 1);
    return rc;
}

/** Find which files are in use: up to the last one whose header says so, or that the mark says were durable. */
static void find_used(OmiWalk *walk) {
    OmiSegmentHeader header;
    walk->used_end = 0;
    for (size_t i = walk->count; i > 0 && walk->used_end == 0; i--) {
        uint64_t number = walk->numbers[i - 1];
        bool marked = walk->recovery->have_mark && number <= walk->recovery->mark.segment;
        if (marked || (omi_segment_read_header(walk->recovery->dir, number, &header, 0) == 0 &&
                       omi_ident_valid(&header, number) && omi_use_valid(&header)))
            walk->used_end = i;
    }
}

/** Records that were durable are missing at the end. When that is accepted, their numbers stay taken: an empty segment
 * remembers them. */
static int lost_end(OmiWalk *walk) {
    OmiRecovery *recovery = walk->recovery;
    OmiTail *tail = walk->tail;
    OmLogDamage damage = {.kind = OM_LOG_DAMAGE_MISSING,
                          .segment = recovery->mark.segment,
                          .offset = recovery->mark.offset,
                          .lost_first_seq = tail->last_seq + 1,
                          .lost_last_seq = recovery->mark.seq};
    omi_walk_tell(walk, &damage, "the end of the log is gone");
    if (!recovery->salvage)
        return 0;
    if (tail->segment && !tail->sealed) {
        OmiSegment *segment;
        int rc = omi_segment_map(&segment, recovery->dir, tail->segment, true);
        if (rc == 0) {
            rc = omi_repair_seal(recovery, segment, tail->offset, tail->last_seq, tail->max_time_ns);
            omi_segment_unref(segment);
        }
        if (rc != 0)
            return rc;
    }
    tail->last_seq = recovery->mark.seq;
    return omi_repair_fill(recovery, (tail->segment ? tail->segment : recovery->pruned) + 1, tail);
}

void omi_recovery_init(OmiRecovery *recovery, const OmiLogDir *dir, const OmiControl *control) {
    *recovery = (OmiRecovery){.dir = dir};
    memcpy(recovery->log_id, control->log_id, OM_LOG_ID_SIZE);
    recovery->have_mark = omi_control_mark(control, &recovery->mark);
    recovery->pruned = omi_control_pruned(control);
}

/** Segments that were pruned but whose removal did not reach the disk are not part of the log. */
static void leave_out_pruned(OmiWalk *walk) {
    size_t gone = 0;
    for (; gone < walk->count && walk->numbers[gone] <= walk->recovery->pruned; gone++)
        if (walk->recovery->repair)
            omi_segment_remove(walk->recovery->dir, walk->numbers[gone]);
    walk->count -= gone;
    memmove(walk->numbers, walk->numbers + gone, walk->count * sizeof *walk->numbers);
}

int omi_recover(OmiRecovery *recovery, OmiTail *tail) {
    OmiWalk walk = {.recovery = recovery, .tail = tail};
    *tail = (OmiTail){0};
    int rc = omi_dir_segments(recovery->dir, &walk.numbers, &walk.count);
    if (rc != 0)
        return rc;
    leave_out_pruned(&walk);
    find_used(&walk);
    if (recovery->have_mark && recovery->mark.segment == 0 && walk.count && walk.numbers[0] != recovery->pruned + 1) {
        walk.torn = true; /* nothing was ever durable, and the first segment is not there */
        rc = drop_rest(&walk, 0);
        walk.used_end = 0;
    }
    size_t first = 0;
    while (!recovery->all && recovery->have_mark && first + 1 < walk.used_end &&
           walk.numbers[first] < recovery->mark.segment)
        first++;
    if (walk.used_end > 0) {
        OmiSegmentHeader header;
        tail->first_segment = walk.numbers[0];
        if (omi_segment_read_header(recovery->dir, walk.numbers[first], &header, 0) == 0 &&
            omi_ident_valid(&header, walk.numbers[first]) && omi_use_valid(&header))
            tail->last_seq = header.use.prev_seq;
    }
    for (size_t i = first; i < walk.used_end; i++) {
        uint64_t file_size = 0;
        OmiSegmentHeader header;
        if (omi_segment_read_header(recovery->dir, walk.numbers[i], &header, &file_size) == 0)
            recovery->total_bytes += file_size;
    }
    for (size_t i = first; rc == 0 && i < walk.used_end && !walk.torn; i++) {
        for (uint64_t gap = i > first ? walk.numbers[i - 1] + 1 : walk.numbers[i]; rc == 0 && gap < walk.numbers[i];
             gap++)
            if (omi_walk_behind_mark(&walk, gap, 0)) {
                walk.torn = true;
                rc = drop_rest(&walk, i);
                break;
            } else {
                rc = missing(&walk, i - 1, gap, OM_LOG_DAMAGE_MISSING);
            }
        if (rc == 0 && !walk.torn)
            rc = visit(&walk, i);
    }
    if (rc == 0 && !walk.torn)
        rc = drop_rest(&walk, walk.used_end);
    if (rc == 0 && recovery->have_mark && tail->last_seq < recovery->mark.seq && walk.rc == 0 && !recovery->live)
        rc = lost_end(&walk);
    free(walk.numbers);
    return rc != 0 ? rc : walk.rc;
}

bool omi_recover_id(const OmiLogDir *dir, uint8_t log_id[OM_LOG_ID_SIZE]) {
    uint64_t *numbers;
    size_t count;
    bool found = false;
    if (omi_dir_segments(dir, &numbers, &count) != 0)
        return false;
    for (size_t i = 0; i < count && !found; i++) {
        OmiSegmentHeader header;
        found = omi_segment_read_header(dir, numbers[i], &header, 0) == 0 && omi_ident_valid(&header, numbers[i]);
        if (found)
            memcpy(log_id, header.ident.log_id, OM_LOG_ID_SIZE);
    }
    free(numbers);
    return found;
}
