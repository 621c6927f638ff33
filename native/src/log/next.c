#include <inttypes.h>
#include <stdio.h>

#include "core/backoff.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/process.h"
#include "log/reader.h"

int omi_reader_check_handle(const OmLogReader *r) {
    if (OMI_LIKELY(r && r->forks == omi_fork_count))
        return 0;
    return r ? omi_fail(OM_ERR_BUS_FORKED, "this log reader belongs to the parent process")
             : omi_fail(OM_ERR_BUS_INIT, "no log reader given");
}

static void enter(OmLogReader *r, OmiSegment *segment, uint64_t offset, uint64_t last_seq) {
    if (segment != r->current) {
        omi_segment_ref(segment);
        omi_segment_unref(r->current);
        r->current = segment;
    }
    r->offset = offset;
    r->last_seq = last_seq;
}

int omi_reader_stand(OmLogReader *r, const OmiPlace *place) {
    OmiSegment *segment;
    int rc = omi_reader_map(r, place->segment, &segment);
    if (rc == 0)
        enter(r, segment, place->offset, place->last_seq);
    return rc;
}

static OMI_COLD int report_damage(OmLogReader *r, OmLogDamage damage, const char *what) {
    char lost[80];
    r->damage = damage;
    if (damage.lost_last_seq)
        snprintf(lost, sizeof lost, "wal_seq %" PRIu64 " to %" PRIu64, damage.lost_first_seq, damage.lost_last_seq);
    else
        snprintf(lost, sizeof lost, "wal_seq from %" PRIu64, damage.lost_first_seq);
    if (r->skip_corrupt) {
        r->stats.damages_skipped++;
        r->stats.damaged_bytes_skipped += damage.size_bytes;
    }
    return omi_fail(r->skip_corrupt ? OM_ERR_LOG_SKIPPED : OM_ERR_LOG_CORRUPT,
                    "'%s' segment %010" PRIu64 " offset %" PRIu64 ": %s, %" PRIu64 " bytes; lost %s", r->dir.path,
                    damage.segment, damage.offset, what, damage.size_bytes, lost);
}

/** wal_seq at which the next readable segment after `number` starts; 0 = none. */
static uint64_t later_base_seq(OmLogReader *r, uint64_t number) {
    if (omi_catalog_refresh(r) != 0)
        return 0;
    for (size_t i = omi_catalog_find(r, number + 1); i < r->entries_count; i++)
        if (omi_catalog_entry(r, i)->state == OMI_ENTRY_USED)
            return r->entries[i].use.base_seq;
    return 0;
}

/** A break behind the durable mark of a log that nobody writes is its torn tail: the end, not damage. */
static bool torn_at(OmLogReader *r, uint64_t segment, uint64_t offset) {
    OmiDurableMark mark;
    if (omi_log_locked(&r->dir))
        return false;
    if (!r->control.map || !omi_control_mark(r->control.map, &mark))
        return later_base_seq(r, segment) == 0;
    return segment > mark.segment || (segment == mark.segment && offset >= mark.offset);
}

static int next_segment(OmLogReader *r, uint64_t after);

/** The bytes at the offset are no frame, or none where one must be. */
static OMI_COLD int frame_damage(OmLogReader *r) {
    OmiSegment *segment = r->current;
    if (torn_at(r, segment->number, r->offset))
        return 0;
    uint64_t bound = later_base_seq(r, segment->number), from = r->offset;
    uint64_t next = omi_frame_resync(segment->base, from, segment->size, r->last_seq, bound);
    bool found = next + OMI_FRAME_HEADER <= segment->size;
    bool data = found && omi_frame_load_word(segment->base + next) != 0;
    OmLogDamage damage = {.kind = OM_LOG_DAMAGE_FRAME,
                          .segment = segment->number,
                          .offset = from,
                          .size_bytes = (found ? next : omi_frame_data_end(segment->base, from, segment->size)) - from,
                          .lost_first_seq = r->last_seq + 1,
                          .lost_last_seq = bound ? bound - 1 : 0};
    OmiFrameView view;
    if (data && omi_frame_check(segment->base, next, segment->size, r->last_seq, true, &view) == OMI_FRAME_RECORD)
        damage.lost_last_seq = view.seq - 1;
    if (r->skip_corrupt) {
        if (found && (data || bound == 0)) {
            r->offset = next;
        } else if (bound != 0) { /* the rest of the segment is lost */
            int rc = next_segment(r, segment->number);
            if (rc < 0)
                return rc;
        } else { /* to where data ends; should that be short of a frame to come, the next look finds it */
            r->offset = (from + damage.size_bytes + OM_LOG_FRAME_ALIGN - 1) & ~(uint64_t)(OM_LOG_FRAME_ALIGN - 1);
        }
    }
    return report_damage(r, damage, "no valid frame");
}

/** Enter the segment after `after`: 1 = entered, 0 = there is none yet, or an error (a reported damage). */
static OMI_COLD int next_segment(OmLogReader *r, uint64_t after) {
    uint64_t number = after + 1;
    OmiSegment *segment;
    if (!omi_reader_has_later(r, after, true))
        return 0;
    int rc = omi_reader_map(r, number, &segment);
    OmLogDamage damage = {.segment = number, .lost_first_seq = r->last_seq + 1};
    if (rc == OM_ERR_LOG_NOT_FOUND) {
        rc = omi_catalog_refresh(r);
        if (rc != 0)
            return rc;
        ptrdiff_t first = omi_catalog_first(r);
        if (first < 0)
            return 0;
        const OmiEntry *entry = &r->entries[first];
        if (entry->number > number) { /* everything up to there has gone: retention */
            OmiPlace place = {.segment = entry->number, .offset = OMI_SEGMENT_DATA, .last_seq = entry->use.prev_seq};
            rc = omi_reader_stand(r, &place);
            return rc != 0 ? rc
                           : omi_fail(OM_ERR_LOG_PRUNED, "'%s': wal_seq %" PRIu64 " to %" PRIu64 " were pruned",
                                      r->dir.path, r->position, entry->use.prev_seq);
        }
        damage.kind = OM_LOG_DAMAGE_MISSING;
        if (torn_at(r, number, 0))
            return 0;
    } else if (rc == OM_ERR_LOG_CORRUPT) {
        damage.kind = OM_LOG_DAMAGE_FOREIGN;
        if (torn_at(r, number, 0))
            return 0;
    } else if (rc != 0) {
        return rc;
    } else {
        const OmiSegmentHeader *header = omi_segment_header(segment);
        bool ident = omi_ident_valid(header, number);
        if (ident && memcmp(header->ident.log_id, r->log_id, OM_LOG_ID_SIZE) != 0)
            damage.kind = OM_LOG_DAMAGE_FOREIGN;
        else if (!ident || !omi_use_valid(header))
            damage.kind = OM_LOG_DAMAGE_HEADER;
        if (damage.kind == OM_LOG_DAMAGE_HEADER && torn_at(r, number, 0))
            return 0;
        if (damage.kind == 0 || (damage.kind == OM_LOG_DAMAGE_HEADER && r->skip_corrupt))
            enter(r, segment, OMI_SEGMENT_DATA, r->last_seq);
        if (damage.kind == 0)
            return 1;
        damage.size_bytes = OMI_SEGMENT_DATA;
        if (damage.kind == OM_LOG_DAMAGE_HEADER) {
            damage.lost_last_seq = r->last_seq; /* none: the records carry their own checksums */
            return report_damage(r, damage, "damaged header");
        }
    }
    uint64_t bound = later_base_seq(r, number);
    damage.lost_last_seq = bound ? bound - 1 : 0;
    if (r->skip_corrupt && bound != 0) {
        rc = next_segment(r, number); /* stands behind what is missing */
        if (rc < 0)
            return rc;
    }
    return report_damage(r, damage, damage.kind == OM_LOG_DAMAGE_MISSING ? "segment is missing" : "foreign segment");
}

int omi_reader_place(OmLogReader *r) {
    if (r->current)
        return 1;
    int rc = omi_catalog_refresh(r);
    if (rc == 0 && !omi_reader_trusts_control(r))
        rc = omi_reader_settle(r);
    if (rc != 0)
        return rc;
    ptrdiff_t first = omi_catalog_first(r);
    if (first < 0)
        return 0;
    /* A first segment whose header is damaged is passed over only when damage may be skipped. */
    if (first > 0 && !r->skip_corrupt) {
        const OmiEntry *entry = &r->entries[0];
        OmLogDamage damage = {.kind = OM_LOG_DAMAGE_HEADER,
                              .segment = entry->number,
                              .size_bytes = OMI_SEGMENT_DATA,
                              .lost_first_seq = r->position,
                              .lost_last_seq = r->entries[first].use.prev_seq};
        return report_damage(r, damage, "damaged header");
    }
    OmiPlace place = {
        .segment = r->entries[first].number, .offset = OMI_SEGMENT_DATA, .last_seq = r->entries[first].use.prev_seq};
    rc = omi_reader_stand(r, &place);
    return rc == 0 ? 1 : rc;
}

/** The scan stopped in front of something that is not a record: 1 = go on, 0 = nothing now, or an error. */
static OMI_COLD int at_stop(OmLogReader *r, OmiFrameState state) {
    if (state == OMI_FRAME_SEAL)
        return next_segment(r, r->current->number);
    if (state == OMI_FRAME_NONE) {
        if (!omi_reader_has_later(r, r->current->number, false) &&
            !omi_reader_before_mark(r, r->current->number, r->offset))
            return 0;
        /* A later segment is in use, so this one was sealed before: look again, with that knowledge. Or there was data
         * here once. */
        atomic_thread_fence(memory_order_acquire);
        OmiFrameView view;
        if (omi_frame_check(r->current->base, r->offset, r->current->size, r->last_seq, false, &view) != OMI_FRAME_NONE)
            return 1;
    }
    return frame_damage(r);
}

/** Raise stop_seq as far as range and durability allow; true when it moved. */
static OMI_COLD bool raise_stop(OmLogReader *r) {
    uint64_t stop = r->end_seq;
    if (r->durable_only) {
        int64_t visible = omi_reader_visible_seq(r);
        if (visible >= 0 && (uint64_t)visible + 1 < stop)
            stop = (uint64_t)visible + 1;
    }
    bool moved = stop > r->stop_seq;
    r->stop_seq = stop;
    return moved;
}

/** A run of frames from the reader's place on, all in one segment. */
typedef struct Run {
    OmLogRecord *recs; /* NULL: only the run is wanted */
    size_t records_max;
    uint64_t bytes_max;
    size_t records;
    uint64_t first_offset, end_offset, first_seq;
} Run;

/** The hot loop. Returns the state it stopped at: OMI_FRAME_RECORD when the run is full or the stop reached. */
static inline OmiFrameState scan(OmLogReader *r, Run *run, bool check_crc) {
    const uint8_t *base = r->current->base;
    const uint64_t size = r->current->size, position = r->position, stop_seq = r->stop_seq;
    uint64_t offset = r->offset, last_seq = r->last_seq;
    size_t n = 0;
    OmiFrameState state = OMI_FRAME_RECORD;
    while (n < run->records_max) {
        OmiFrameView view;
        state = omi_frame_check(base, offset, size, last_seq, check_crc, &view);
        if (OMI_UNLIKELY(state != OMI_FRAME_RECORD)) {
            if (state != OMI_FRAME_PADDING)
                break;
            offset += view.size;
            continue;
        }
        if (OMI_UNLIKELY(view.seq >= stop_seq))
            break;
        if (OMI_LIKELY(view.seq >= position)) {
            if (n == 0) {
                run->first_offset = offset;
                run->first_seq = view.seq;
            } else if (OMI_UNLIKELY(offset + view.size - run->first_offset > run->bytes_max)) {
                break;
            }
            if (run->recs)
                run->recs[n] = (OmLogRecord){.wal_seq = view.seq,
                                             .timestamp_ns = view.time_ns,
                                             .payload = view.payload,
                                             .payload_len = view.len,
                                             .wal_type = view.type};
            n++;
        }
        last_seq = view.seq;
        offset += view.size;
    }
    run->records = n;
    run->end_offset = offset;
    r->offset = offset;
    r->last_seq = last_seq;
    if (n != 0)
        r->position = last_seq + 1;
    return state;
}

/** Fill the run: 1 = something, 0 = nothing now, or an error. */
static inline int read_run(OmLogReader *r, Run *run) {
    if (OMI_UNLIKELY(!r->current)) {
        int rc = omi_reader_place(r);
        if (rc <= 0)
            return rc;
    }
    for (;;) {
        OmiFrameState state = r->check_crc ? scan(r, run, true) : scan(r, run, false);
        if (OMI_LIKELY(run->records != 0)) {
            r->stats.records += run->records;
            r->stats.bytes += run->end_offset - run->first_offset;
            return 1;
        }
        if (OMI_UNLIKELY(r->position >= r->end_seq))
            return 0; /* the range is done: what lies behind it, even damage, is not its reader's */
        int rc = state == OMI_FRAME_RECORD ? raise_stop(r) : at_stop(r, state);
        if (rc <= 0)
            return rc;
    }
}

int om_log_next(OmLogReader *r, OmLogRecord *rec) {
    return om_log_next_batch(r, rec, 1);
}

int om_log_next_batch(OmLogReader *r, OmLogRecord *recs, size_t max) {
    int rc = omi_reader_check_handle(r);
    if (OMI_UNLIKELY(rc != 0))
        return rc;
    if (OMI_UNLIKELY(!recs || max == 0))
        return omi_fail(OM_ERR_BUS_INIT, "no place for records given");
    Run run = {.recs = recs, .records_max = max < INT32_MAX ? max : INT32_MAX, .bytes_max = UINT64_MAX};
    rc = read_run(r, &run);
    return rc == 1 ? (int)run.records : rc;
}

int om_log_next_span(OmLogReader *r, size_t max_bytes, OmLogSpan *span) {
    int rc = omi_reader_check_handle(r);
    if (rc != 0)
        return rc;
    if (!span)
        return omi_fail(OM_ERR_BUS_INIT, "no place for a span given");
    Run run = {.records_max = SIZE_MAX, .bytes_max = max_bytes};
    rc = read_run(r, &run);
    if (rc != 1)
        return rc;
    *span = (OmLogSpan){.data = r->current->base + run.first_offset,
                        .size_bytes = run.end_offset - run.first_offset,
                        .first_seq = run.first_seq,
                        .last_seq = r->last_seq,
                        .records = run.records,
                        .segment = r->current->number,
                        .offset = run.first_offset,
                        .fd = r->current->fd};
    return 1;
}

/** Whether the next call has something to say; looks without moving. */
static bool something_next(OmLogReader *r) {
    OmiFrameView view;
    if (r->position >= r->end_seq)
        return false;
    if (!r->current)
        return omi_reader_place(r) != 0;
    OmiFrameState state = omi_frame_check(r->current->base, r->offset, r->current->size, r->last_seq, false, &view);
    if (state == OMI_FRAME_RECORD && view.seq >= r->stop_seq)
        return raise_stop(r) && view.seq < r->stop_seq;
    if (state == OMI_FRAME_RECORD && view.seq < r->position)
        return omi_reader_visible_seq(r) >= (int64_t)r->position;
    if (state == OMI_FRAME_NONE || state == OMI_FRAME_SEAL)
        return omi_reader_has_later(r, r->current->number, state == OMI_FRAME_SEAL) ||
               (state == OMI_FRAME_NONE && omi_reader_before_mark(r, r->current->number, r->offset));
    return true;
}

int om_log_wait(OmLogReader *r, int64_t timeout_ns) {
    int rc = omi_reader_check_handle(r);
    if (rc != 0)
        return rc;
    uint64_t limit_ns = omi_deadline_ns(timeout_ns);
    OmiControlFile *control = &r->control;
    for (uint32_t turns = 0;;) {
        if (something_next(r))
            return 1;
        if (omi_backoff(&turns) != OMI_BACKOFF_SLEEP && timeout_ns != 0)
            continue;
        uint64_t now_ns = omi_monotonic_ns();
        if (now_ns >= limit_ns)
            return 0;
        int64_t sleep_ns =
            limit_ns - now_ns < 10 * (uint64_t)OMI_NS_PER_S ? (int64_t)(limit_ns - now_ns) : 10 * OMI_NS_PER_S;
        /* Nobody who would ring: no control file, no right to write it, a writer that cannot see us, another host. */
        bool blind = !control->map || !control->writable || !atomic_load(&control->map->writer_registered) ||
                     !omi_reader_trusts_control(r);
        if (blind && sleep_ns > OMI_DOORBELL_BLIND_NS)
            sleep_ns = OMI_DOORBELL_BLIND_NS;
        if (!control->map || !control->writable) {
            struct timespec nap = {.tv_nsec = sleep_ns};
            nanosleep(&nap, 0);
            continue;
        }
        uint32_t rings = omi_doorbell_arm(&control->map->bell);
        if (something_next(r))
            return 1;
        omi_doorbell_sleep(&control->map->bell, rings, sleep_ns);
    }
}
