#include "log/walk.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/error.h"
#include "log/frame.h"

void omi_walk_tell(OmiWalk *walk, const OmLogDamage *damage, const char *what) {
    static const char *const kinds[] = {
        "", "damaged frame", "damaged header", "missing segment", "foreign segment", "torn tail", "wrong index"};
    const OmiRecovery *recovery = walk->recovery;
    char text[400], lost[96] = "";
    OmLogReport *report = recovery->report;
    if (damage->kind == OM_LOG_DAMAGE_TAIL) {
        report->tail_bytes += damage->size_bytes;
        report->tail_records += damage->records;
    } else if (damage->kind == OM_LOG_DAMAGE_INDEX) {
        report->indexes_wrong++;
    } else {
        report->damages++;
        report->damaged_bytes += damage->size_bytes;
        if (damage->lost_last_seq)
            snprintf(lost, sizeof lost, "; lost wal_seq %" PRIu64 " to %" PRIu64, damage->lost_first_seq,
                     damage->lost_last_seq);
        else
            snprintf(lost, sizeof lost, "; lost wal_seq from %" PRIu64, damage->lost_first_seq);
    }
    snprintf(text, sizeof text, "segment %010" PRIu64 " offset %" PRIu64 ": %s, %" PRIu64 " bytes%s%s%s",
             damage->segment, damage->offset, kinds[damage->kind], damage->size_bytes, *what ? ", " : "", what, lost);
    if (recovery->visitor && recovery->visitor->damage)
        recovery->visitor->damage(damage, text, recovery->visitor->ctx);
    if (damage->kind != OM_LOG_DAMAGE_TAIL && damage->kind != OM_LOG_DAMAGE_INDEX && !recovery->salvage) {
        if (walk->rc == 0)
            omi_fail(OM_ERR_LOG_CORRUPT, "'%.200s': %s", recovery->dir->path, text);
        walk->rc = OM_ERR_LOG_CORRUPT;
    }
}

bool omi_walk_behind_mark(const OmiWalk *walk, uint64_t segment, uint64_t offset) {
    const OmiRecovery *recovery = walk->recovery;
    if (!recovery->have_mark)
        return walk->used_end == 0 || segment >= walk->numbers[walk->used_end - 1];
    return segment > recovery->mark.segment || (segment == recovery->mark.segment && offset >= recovery->mark.offset);
}

static int progress(OmiWalk *walk, uint64_t bytes) {
    OmiRecovery *recovery = walk->recovery;
    recovery->done_bytes += bytes;
    if (recovery->visitor && recovery->visitor->progress &&
        recovery->visitor->progress(recovery->done_bytes, recovery->total_bytes, recovery->visitor->ctx) != 0)
        return omi_fail(OM_ERR_LOG_CANCELLED, "stopped by the caller");
    return 0;
}

static void count_record(OmiWalk *walk, const OmiFrameView *view) {
    OmiTail *tail = walk->tail;
    OmLogReport *report = walk->recovery->report;
    tail->last_seq = view->seq;
    tail->records++;
    tail->segment_records++;
    if (view->time_ns > tail->max_time_ns)
        tail->max_time_ns = view->time_ns;
    if (report->records++ == 0)
        report->first_seq = view->seq;
    report->bytes += view->size;
    report->last_seq = view->seq;
}

uint64_t omi_walk_next_base_seq(const OmiWalk *walk, size_t i) {
    OmiSegmentHeader header;
    for (size_t k = i + 1; k < walk->used_end; k++)
        if (omi_segment_read_header(walk->recovery->dir, walk->numbers[k], &header, 0) == 0 &&
            omi_ident_valid(&header, walk->numbers[k]) && omi_use_valid(&header))
            return header.use.base_seq;
    return 0;
}

/** The log ends at `offset` of this segment: what follows in it was torn off. */
static int torn_tail(OmiWalk *walk, OmiSegment *segment, uint64_t offset) {
    uint64_t end = omi_frame_data_end(segment->base, offset, segment->size);
    walk->torn = true;
    if (end == offset || walk->recovery->live) /* a live writer is just copying a record in */
        return 0;
    OmLogDamage damage = {.kind = OM_LOG_DAMAGE_TAIL,
                          .segment = segment->number,
                          .offset = offset,
                          .size_bytes = end - offset,
                          .records = omi_frame_count(segment->base, offset, end),
                          .lost_first_seq = walk->tail->last_seq + 1};
    omi_walk_tell(walk, &damage, "");
    return omi_walk_may_repair(walk) ? omi_repair_cut(walk->recovery, segment, offset) : 0;
}

/** Damage at *offset before the mark: report it, cover it when allowed, and go on behind it. */
static int damaged_frames(OmiWalk *walk, size_t i, OmiSegment *segment, uint64_t *offset) {
    OmiRecovery *recovery = walk->recovery;
    OmiTail *tail = walk->tail;
    uint64_t bound = omi_walk_next_base_seq(walk, i), from = *offset;
    uint64_t next = omi_frame_resync(segment->base, from, segment->size, tail->last_seq, bound);
    OmLogDamage damage = {.kind = OM_LOG_DAMAGE_FRAME,
                          .segment = segment->number,
                          .offset = from,
                          .lost_first_seq = tail->last_seq + 1,
                          .lost_last_seq = bound ? bound - 1 : 0};
    bool found = next < segment->size && omi_frame_load_word(segment->base + next) != 0;
    uint64_t end = found ? next : omi_frame_data_end(segment->base, from, segment->size);
    damage.size_bytes = end - from;
    if (found) {
        OmiFrameView view;
        if (omi_frame_check(segment->base, next, segment->size, tail->last_seq, true, &view) == OMI_FRAME_RECORD)
            damage.lost_last_seq = view.seq - 1;
    }
    omi_walk_tell(walk, &damage, "");
    *offset = found ? next : segment->size;
    if (!recovery->salvage)
        return 0;
    if (found)
        return omi_repair_pad(recovery, segment, from, next);
    if (i + 1 < walk->used_end)
        return omi_repair_seal(recovery, segment, from, tail->last_seq, tail->max_time_ns);
    walk->torn = true;
    return omi_repair_cut(recovery, segment, from);
}

/** OmiWalk the frames of a segment in use. */
int omi_walk_segment(OmiWalk *walk, size_t i, OmiSegment *segment) {
    enum { PROGRESS_BYTES = 8 << 20 };
    OmiTail *tail = walk->tail;
    uint64_t offset = OMI_SEGMENT_DATA, told = 0, bytes_before = tail->bytes;
    tail->segment = segment->number;
    tail->segment_records = 0;
    tail->sealed = false;
    for (;;) {
        OmiFrameView view;
        OmiFrameState state = omi_frame_check(segment->base, offset, segment->size, tail->last_seq, true, &view);
        tail->offset = offset;
        if (state == OMI_FRAME_RECORD || state == OMI_FRAME_PADDING) {
            if (state == OMI_FRAME_RECORD)
                count_record(walk, &view);
            offset += view.size;
            if (offset - told >= PROGRESS_BYTES) {
                int rc = progress(walk, offset - told);
                told = offset;
                if (rc != 0)
                    return rc;
            }
            continue;
        }
        tail->sealed = state == OMI_FRAME_SEAL;
        if (tail->sealed)
            break;
        if (omi_walk_behind_mark(walk, segment->number, offset) && (!walk->recovery->live || state == OMI_FRAME_NONE)) {
            int rc = torn_tail(walk, segment, offset);
            if (rc != 0)
                return rc;
            break;
        }
        uint64_t from = offset;
        int rc = damaged_frames(walk, i, segment, &offset);
        if (rc != 0)
            return rc;
        if (walk->torn)
            break;
        if (offset >= segment->size) { /* nothing valid follows in this segment */
            tail->offset = from;
            tail->sealed = walk->recovery->salvage;
            break;
        }
    }
    tail->bytes = bytes_before + (tail->offset - OMI_SEGMENT_DATA);
    return progress(walk, segment->size - told);
}
