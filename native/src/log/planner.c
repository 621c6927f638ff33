#include "core/error.h"
#include "log/reader.h"

/* All of this is arithmetic on places: a place knows how many records and bytes of the log lie before it. */

/** Places of [from, *to); 1 = there are records, 0 = there are none. */
static int range_places(OmLogReader *r, uint64_t from, uint64_t *to, OmiPlace *first, OmiPlace *end) {
    int rc = omi_reader_check_handle(r);
    if (rc != 0)
        return rc;
    if (*to == 0) {
        int64_t last = omi_reader_visible_seq(r);
        if (last < 0)
            return (int)last;
        *to = (uint64_t)last + 1;
    }
    if (from == 0)
        from = 1;
    if (from >= *to)
        return 0;
    rc = omi_locate_seq(r, from, first);
    if (rc == 0)
        rc = omi_locate_seq(r, *to, end);
    if (rc == OM_ERR_LOG_NOT_FOUND)
        return 0;
    return rc != 0 ? rc : end->records > first->records;
}

/** The place where the count of records or bytes reaches `value`. */
static int place_at(OmLogReader *r, OmiEntryKey what, uint64_t value, OmiExactness exactness, OmiPlace *out) {
    ptrdiff_t i = omi_catalog_floor(r, what, value);
    if (i < 0)
        return OM_ERR_LOG_NOT_FOUND;
    const OmLogReader *reader = r;
    const OmiSegmentUse *use = &reader->entries[i].use;
    if (what == OMI_ENTRY_RECORDS)
        return omi_locate(r, (size_t)i, OMI_BY_ORDINAL, value - use->records_before, exactness, out);
    return omi_locate(r, (size_t)i, OMI_BY_OFFSET, value - use->bytes_before + OMI_SEGMENT_DATA, exactness, out);
}

int om_log_range_stats(OmLogReader *r, uint64_t from, uint64_t to, OmLogRange *out) {
    OmiPlace first, end;
    if (!out)
        return omi_fail(OM_ERR_BUS_INIT, "no place for the range given");
    int rc = range_places(r, from, &to, &first, &end);
    if (rc < 0)
        return rc;
    *out = (OmLogRange){.from_seq = from, .to_seq = to > from ? to : from};
    if (rc == 1) {
        out->records = end.records - first.records;
        out->bytes = end.bytes - first.bytes;
    }
    return 0;
}

int om_log_plan(OmLogReader *r, uint64_t from, uint64_t to, uint32_t n, OmLogRange *out) {
    enum { INDEX_BYTES = 64 << 10 };
    OmiPlace first, end;
    if (!out || n == 0)
        return omi_fail(OM_ERR_BUS_INIT, "no place for ranges given");
    int rc = range_places(r, from, &to, &first, &end);
    if (rc < 0 || from >= to)
        return rc < 0 ? rc : 0;
    if (rc == 0) {
        out[0] = (OmLogRange){.from_seq = from, .to_seq = to};
        return 1;
    }
    uint64_t total = end.bytes - first.bytes;
    OmiExactness exactness = total / n >= 4 * INDEX_BYTES ? OMI_NEARBY : OMI_EXACT;
    OmiPlace last = first;
    uint64_t last_seq = from;
    uint32_t count = 0;
    for (uint32_t k = 1; k <= n; k++) {
        OmiPlace cut = end;
        uint64_t cut_seq = to;
        if (k < n) {
            rc = place_at(r, OMI_ENTRY_BYTES, first.bytes + (uint64_t)((unsigned __int128)total * k / n), exactness,
                          &cut);
            if (rc != 0)
                return rc;
            cut_seq = cut.last_seq + 1;
            if (cut_seq <= last_seq || cut_seq >= to || cut.records <= last.records || cut.records >= end.records)
                continue;
        }
        out[count++] = (OmLogRange){.from_seq = last_seq,
                                    .to_seq = cut_seq,
                                    .bytes = cut.bytes - last.bytes,
                                    .records = cut.records - last.records};
        last = cut;
        last_seq = cut_seq;
    }
    return (int)count;
}

int om_log_limit(OmLogReader *r, uint64_t from, uint64_t to, uint64_t max_records, uint64_t max_bytes, uint64_t *end) {
    OmiPlace first, last, cut;
    if (!end)
        return omi_fail(OM_ERR_BUS_INIT, "no place for the end given");
    int rc = range_places(r, from, &to, &first, &last);
    if (rc < 0)
        return rc;
    *end = to > from ? to : from;
    if (rc == 0)
        return 0;
    if (max_records && last.records - first.records > max_records) {
        rc = place_at(r, OMI_ENTRY_RECORDS, first.records + max_records, OMI_EXACT, &cut);
        if (rc != 0)
            return rc;
        if (cut.last_seq + 1 < *end)
            *end = cut.last_seq + 1;
    }
    if (max_bytes && last.bytes - first.bytes > max_bytes) {
        rc = place_at(r, OMI_ENTRY_BYTES, first.bytes + max_bytes, OMI_EXACT, &cut);
        if (rc != 0)
            return rc;
        if (cut.last_seq + 1 < *end)
            *end = cut.last_seq + 1;
    }
    return 0;
}
