#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/error.h"
#include "log/reader.h"

int omi_catalog_refresh(OmLogReader *r) {
    uint64_t *numbers;
    size_t count;
    int rc = omi_dir_segments(&r->dir, &numbers, &count);
    if (rc != 0)
        return rc;
    uint64_t pruned = r->control.map ? omi_control_pruned(r->control.map) : 0;
    size_t gone = 0;
    while (gone < count && numbers[gone] <= pruned)
        gone++;
    memmove(numbers, numbers + gone, (count -= gone) * sizeof *numbers);
    OmiEntry *entries = calloc(count + 1, sizeof *entries);
    if (!entries) {
        free(numbers);
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    }
    for (size_t i = 0, old = 0; i < count; i++) {
        while (old < r->entries_count && r->entries[old].number < numbers[i])
            old++;
        if (old < r->entries_count && r->entries[old].number == numbers[i])
            entries[i] = r->entries[old];
        entries[i].number = numbers[i];
    }
    free(numbers);
    free(r->entries);
    r->entries = entries;
    r->entries_count = count;
    return 0;
}

int omi_catalog_update(OmLogReader *r) {
    if (omi_reader_trusts_control(r)) {
        uint64_t newest = atomic_load_explicit(&r->control.map->newest_segment, memory_order_acquire);
        size_t i = omi_catalog_find(r, newest);
        if (newest != 0 && i < r->entries_count && r->entries[i].number == newest &&
            r->entries[0].number > omi_control_pruned(r->control.map))
            return 0;
    }
    return omi_catalog_refresh(r);
}

OmiEntry *omi_catalog_entry(OmLogReader *r, size_t i) {
    OmiEntry *entry = &r->entries[i];
    OmiSegmentHeader header;
    if (entry->state == OMI_ENTRY_USED)
        return entry;
    if (omi_segment_read_header(&r->dir, entry->number, &header, &entry->file_size) != 0 ||
        !omi_ident_valid(&header, entry->number) || memcmp(header.ident.log_id, r->log_id, OM_LOG_ID_SIZE) != 0) {
        entry->state = OMI_ENTRY_BAD;
    } else if (omi_use_valid(&header)) {
        entry->state = OMI_ENTRY_USED;
        entry->use = header.use;
    } else {
        entry->state = OMI_ENTRY_UNUSED;
    }
    return entry;
}

size_t omi_catalog_find(const OmLogReader *r, uint64_t number) {
    size_t low = 0, high = r->entries_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->entries[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/** What lies behind a torn place is not part of the log. */
static bool beyond_end(const OmLogReader *r, const OmiEntry *entry) {
    return r->settled && !omi_reader_trusts_control(r) && entry->number > r->end.segment;
}

ptrdiff_t omi_catalog_first(OmLogReader *r) {
    for (size_t i = 0; i < r->entries_count; i++)
        if (omi_catalog_entry(r, i)->state == OMI_ENTRY_USED)
            return beyond_end(r, &r->entries[i]) ? -1 : (ptrdiff_t)i;
    return -1;
}

ptrdiff_t omi_catalog_last(OmLogReader *r) {
    for (size_t i = r->entries_count; i > 0; i--)
        if (omi_catalog_entry(r, i - 1)->state == OMI_ENTRY_USED && !beyond_end(r, &r->entries[i - 1]))
            return (ptrdiff_t)i - 1;
    return -1;
}

static uint64_t entry_key(const OmiEntry *entry, OmiEntryKey key) {
    switch (key) {
    case OMI_ENTRY_SEQ:
        return entry->use.prev_seq + 1; /* not base_seq: a seq in a gap belongs to the segment that follows the gap */
    case OMI_ENTRY_RECORDS:
        return entry->use.records_before;
    case OMI_ENTRY_BYTES:
        return entry->use.bytes_before;
    default:
        return entry->use.prev_max_time_ns;
    }
}

ptrdiff_t omi_catalog_floor(OmLogReader *r, OmiEntryKey key, uint64_t value) {
    ptrdiff_t low = omi_catalog_first(r), high = omi_catalog_last(r);
    if (low < 0 || high < 0)
        return -1;
    while (low < high) { /* the answer is in [low, high]; both are in use */
        ptrdiff_t middle = low + (high - low + 1) / 2, probe = middle;
        while (probe > low && omi_catalog_entry(r, (size_t)probe)->state != OMI_ENTRY_USED)
            probe--; /* a damaged header says nothing: ask its neighbour */
        if (probe == low) {
            probe = middle;
            while (probe < high && omi_catalog_entry(r, (size_t)probe)->state != OMI_ENTRY_USED)
                probe++;
        }
        if (entry_key(&r->entries[probe], key) <= value) {
            low = probe;
        } else {
            high = probe - 1;
            while (high > low && omi_catalog_entry(r, (size_t)high)->state != OMI_ENTRY_USED)
                high--;
        }
    }
    return low;
}

int omi_reader_map(OmLogReader *r, uint64_t number, OmiSegment **out) {
    for (uint32_t i = 0; i < r->mapped_count; i++)
        if (r->mapped[i]->number == number) {
            OmiSegment *segment = r->mapped[i];
            memmove(&r->mapped[1], &r->mapped[0], i * sizeof r->mapped[0]);
            r->mapped[0] = segment;
            *out = segment;
            return 0;
        }
    OmiSegment *segment;
    int rc = omi_segment_map(&segment, &r->dir, number, false);
    if (rc != 0)
        return rc;
    madvise(segment->base, segment->size, MADV_SEQUENTIAL);
    r->stats.segments_mapped++;
    if (r->mapped_count == r->mapped_max)
        omi_segment_unref(r->mapped[--r->mapped_count]);
    memmove(&r->mapped[1], &r->mapped[0], r->mapped_count * sizeof r->mapped[0]);
    r->mapped[0] = segment;
    r->mapped_count++;
    *out = segment;
    return 0;
}

bool omi_reader_trusts_control(const OmLogReader *r) {
    return r->control.map && omi_control_same_boot(r->control.map, r->boot_id);
}

/** Without its checksum, which is looked at only when this says yes: it is asked at every poll of the live end. */
static bool mark_beyond(const OmiDurableMark *mark, uint64_t segment, uint64_t offset) {
    return mark->segment > segment || (mark->segment == segment && mark->offset > offset);
}

bool omi_reader_before_mark(const OmLogReader *r, uint64_t segment, uint64_t offset) {
    const OmiControl *control = r->control.map;
    OmiDurableMark mark;
    if (!control || !(mark_beyond(&control->mark0, segment, offset) || mark_beyond(&control->mark1, segment, offset)))
        return false;
    return omi_control_mark(control, &mark) && mark_beyond(&mark, segment, offset);
}

bool omi_reader_has_later(OmLogReader *r, uint64_t number, bool sealed) {
    if (!sealed && omi_reader_trusts_control(r)) /* polled at the live end; a sealed one is followed soon or never */
        return atomic_load_explicit(&r->control.map->newest_segment, memory_order_acquire) > number;
    if (omi_reader_before_mark(r, number + 1, 0))
        return true;
    OmiSegmentHeader header;
    if (omi_segment_read_header(&r->dir, number + 1, &header, 0) == 0 && omi_ident_valid(&header, number + 1))
        return omi_use_valid(&header);
    if (omi_catalog_refresh(r) != 0)
        return false;
    for (size_t i = omi_catalog_find(r, number + 1); i < r->entries_count; i++)
        if (omi_catalog_entry(r, i)->state == OMI_ENTRY_USED)
            return true;
    return false;
}

/** From where a settling walk starts: the durable mark, or the start of the last segment. */
static int settle_start(OmLogReader *r) {
    OmiDurableMark mark;
    int rc = omi_catalog_refresh(r);
    if (rc != 0)
        return rc;
    r->end = (OmiPlace){0};
    if (r->control.map && omi_control_mark(r->control.map, &mark) && mark.segment != 0) {
        size_t i = omi_catalog_find(r, mark.segment);
        if (i < r->entries_count && r->entries[i].number == mark.segment &&
            omi_catalog_entry(r, i)->state == OMI_ENTRY_USED && mark.offset >= OMI_SEGMENT_DATA) {
            /* The mark may lag behind its own offset by records that came while it was taken: look at them. */
            rc = omi_locate(r, i, OMI_BY_OFFSET, mark.offset, OMI_EXACT, &r->end);
            if (rc == 0 && r->end.offset != mark.offset) /* damage before it: not our concern here */
                r->end = (OmiPlace){.segment = mark.segment, .offset = mark.offset, .last_seq = mark.seq};
            return rc;
        }
    }
    /* A mark of nothing leaves the whole log open, from its very first segment; without a mark only the last one is. */
    bool from_start = r->control.map && omi_control_mark(r->control.map, &mark) && mark.segment == 0;
    ptrdiff_t i = from_start ? 0 : omi_catalog_last(r);
    if (from_start && (r->entries_count == 0 || r->entries[0].number != omi_control_pruned(r->control.map) + 1 ||
                       omi_catalog_entry(r, 0)->state != OMI_ENTRY_USED))
        i = -1;
    if (i >= 0)
        r->end = (OmiPlace){
            .segment = r->entries[i].number, .offset = OMI_SEGMENT_DATA, .last_seq = r->entries[i].use.prev_seq};
    return 0;
}

int omi_reader_settle(OmLogReader *r) {
    if (!r->settled || r->end.segment == 0) {
        r->settled = false;
        int rc = settle_start(r);
        if (rc != 0)
            return rc;
        r->settled = true;
    }
    while (r->end.segment != 0) {
        OmiSegment *segment;
        OmiFrameView view;
        int rc = omi_reader_map(r, r->end.segment, &segment);
        if (rc != 0)
            return rc == OM_ERR_LOG_NOT_FOUND ? 0 : rc;
        OmiFrameState state;
        while ((state = omi_frame_check(segment->base, r->end.offset, segment->size, r->end.last_seq, true, &view)) ==
                   OMI_FRAME_RECORD ||
               state == OMI_FRAME_PADDING) {
            if (state == OMI_FRAME_RECORD)
                r->end.last_seq = view.seq;
            r->end.offset += view.size;
        }
        OmiSegmentHeader header;
        uint64_t next = r->end.segment + 1;
        if (state != OMI_FRAME_SEAL || omi_segment_read_header(&r->dir, next, &header, 0) != 0 ||
            !omi_ident_valid(&header, next) || memcmp(header.ident.log_id, r->log_id, OM_LOG_ID_SIZE) != 0 ||
            !omi_use_valid(&header))
            return 0;
        r->end.segment = next;
        r->end.offset = OMI_SEGMENT_DATA;
        if (header.use.prev_seq > r->end.last_seq)
            r->end.last_seq = header.use.prev_seq;
    }
    return 0;
}

uint64_t omi_reader_marked_seq(const OmLogReader *r) {
    OmiDurableMark mark;
    return r->control.map && omi_control_mark(r->control.map, &mark) ? mark.seq : 0;
}

int64_t omi_reader_visible_seq(OmLogReader *r) {
    bool trusted = omi_reader_trusts_control(r);
    if (r->durable_only && trusted)
        return (int64_t)omi_reader_marked_seq(r);
    if (trusted && omi_log_locked(&r->dir))
        return (int64_t)atomic_load_explicit(&r->control.map->last_seq, memory_order_acquire);
    int rc = omi_reader_settle(r);
    return rc != 0 ? rc : (int64_t)r->end.last_seq;
}
