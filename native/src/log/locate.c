#include "core/error.h"
#include "log/reader.h"

/** The segment's index, from its file or built from its frames. */
static int ready_index(OmLogReader *r, OmiSegment *segment, const OmiEntry *entry, bool build) {
    const OmiSegmentHeader *header = omi_segment_header(segment);
    uint64_t epoch = om_log_epoch(r);
    if (segment->index_ready && segment->index.map && segment->index_epoch != epoch && !build) {
        omi_index_close(&segment->index); /* a new writer may have replaced the file */
        segment->index_ready = false;
    }
    if (!segment->index_ready && !build && omi_index_open(&segment->index, &r->dir, &header->ident) == 0) {
        segment->index_ready = true;
        segment->index_epoch = epoch;
        return 0;
    }
    if (segment->index_ready && segment->index.map && !build)
        return 0;
    if (!segment->index_ready || segment->index.map) {
        omi_index_close(&segment->index);
        segment->index_ready = true;
        r->stats.indexes_rebuilt++;
    }
    uint32_t index_bytes = header->ident.index_bytes ? header->ident.index_bytes : 64U << 10;
    return omi_index_build(&segment->index, segment->base, segment->size, index_bytes, entry->use.prev_seq,
                           entry->use.prev_max_time_ns);
}

/** Whether the index leads behind the end of a log that was torn. */
static bool beyond_end(const OmLogReader *r, const OmiEntry *entry, uint64_t offset) {
    return r->settled && !omi_reader_trusts_control(r) && entry->number == r->end.segment && offset > r->end.offset;
}

static int floor_entry(OmLogReader *r, OmiSegment *segment, const OmiEntry *entry, OmiIndexKey key, uint64_t value,
                       const OmiIndexEntry **out) {
    for (int build = 0;; build++) {
        bool valid;
        int rc = ready_index(r, segment, entry, build);
        if (rc != 0)
            return rc;
        *out = omi_index_floor(&segment->index, key, value, &valid);
        if (!*out || build)
            return 0;
        uint64_t offset = (*out)->offset;
        if (valid && offset >= OMI_SEGMENT_DATA && offset % OM_LOG_FRAME_ALIGN == 0 && offset < segment->size &&
            !beyond_end(r, entry, offset))
            return 0;
    }
}

static bool reached(const OmiPlace *place, const OmiEntry *entry, const OmiFrameView *view, OmiIndexKey key,
                    uint64_t value) {
    switch (key) {
    case OMI_BY_SEQ:
        return view->seq >= value;
    case OMI_BY_OFFSET:
        return place->offset >= value;
    case OMI_BY_ORDINAL:
        return place->records - entry->use.records_before >= value;
    default:
        return view->time_ns >= value || place->max_time_ns >= value;
    }
}

int omi_locate(OmLogReader *r, size_t i, OmiIndexKey key, uint64_t value, OmiExactness exactness, OmiPlace *out) {
    OmiSegment *segment;
    const OmiEntry *entry = &r->entries[i];
    const OmiIndexEntry *start;
    int rc = omi_reader_map(r, entry->number, &segment);
    if (rc != 0)
        return rc;
    /* From an entry before the place, so that the walk meets the record in front of it and last_seq is exact. For times
     * it must be so anyway: an entry's time is that of the records before it. */
    rc = floor_entry(r, segment, entry, key, value ? value - 1 : 0, &start);
    if (rc != 0)
        return rc;
    *out = (OmiPlace){.segment = entry->number,
                      .offset = OMI_SEGMENT_DATA,
                      .last_seq = entry->use.prev_seq,
                      .records = entry->use.records_before,
                      .max_time_ns = entry->use.prev_max_time_ns};
    if (start && omi_index_key(start, key) < value) {
        out->offset = start->offset;
        out->last_seq = omi_index_key(start, OMI_BY_SEQ) - 1;
        out->records += start->ordinal;
        out->max_time_ns = start->max_time_ns;
    }
    while (exactness == OMI_EXACT) {
        OmiFrameView view;
        OmiFrameState state =
            omi_frame_check(segment->base, out->offset, segment->size, out->last_seq, r->check_crc, &view);
        if (state == OMI_FRAME_RECORD) {
            if (reached(out, entry, &view, key, value))
                break;
            out->last_seq = view.seq;
            out->records++;
            if (view.time_ns > out->max_time_ns)
                out->max_time_ns = view.time_ns;
        } else if (state != OMI_FRAME_PADDING) {
            break;
        }
        out->offset += view.size;
    }
    out->bytes = entry->use.bytes_before + (out->offset - OMI_SEGMENT_DATA);
    return 0;
}

int omi_locate_seq(OmLogReader *r, uint64_t seq, OmiPlace *out) {
    int rc = omi_catalog_update(r);
    for (int again = 0; rc == 0; again++) {
        if (!omi_reader_trusts_control(r) && (rc = omi_reader_settle(r)) != 0)
            break;
        ptrdiff_t i = omi_catalog_floor(r, OMI_ENTRY_SEQ, seq);
        if (i < 0)
            return OM_ERR_LOG_NOT_FOUND;
        rc = omi_locate(r, (size_t)i, OMI_BY_SEQ, seq, OMI_EXACT, out);
        if (rc != OM_ERR_LOG_NOT_FOUND || again) /* pruned meanwhile: look what is there now */
            break;
        rc = omi_catalog_refresh(r);
    }
    return rc;
}
