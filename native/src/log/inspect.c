#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "log/reader.h"
#include "log/recovery.h"

static void describe_segment(OmLogReader *r, size_t i, OmLogSegmentInfo *info) {
    OmiSegmentHeader header;
    OmiPlace end;
    *info = (OmLogSegmentInfo){.number = r->entries[i].number};
    if (omi_segment_read_header(&r->dir, info->number, &header, &info->file_bytes) != 0 ||
        omi_catalog_entry(r, i)->state != OMI_ENTRY_USED) {
        info->damaged = 1;
        return;
    }
    info->writer_epoch = header.use.writer_epoch;
    info->first_time_ns = header.use.first_time_ns;
    if (omi_seal_valid(&header)) {
        info->sealed = 1;
        info->records = header.seal.records;
        info->bytes = header.seal.end_offset - OMI_SEGMENT_DATA;
        info->last_seq = header.seal.last_seq;
        info->max_time_ns = header.seal.max_time_ns;
    } else if (omi_locate(r, i, OMI_BY_SEQ, UINT64_MAX, OMI_EXACT, &end) == 0) {
        info->records = end.records - header.use.records_before;
        info->bytes = end.bytes - header.use.bytes_before;
        info->last_seq = end.last_seq;
        info->max_time_ns = end.max_time_ns;
        /* Sealed a moment ago, or by a writer that was killed before it wrote the summary. */
        info->sealed = i + 1 < r->entries_count && omi_catalog_entry(r, i + 1)->state == OMI_ENTRY_USED;
    }
    info->first_seq = info->records ? header.use.base_seq : 0;
    if (!info->records)
        info->last_seq = 0;
}

int om_log_segments(const char *dir, int (*fn)(const OmLogSegmentInfo *info, void *ctx), void *ctx) {
    OmLogReader *r;
    int count = 0, stop = 0;
    if (!fn)
        return omi_fail(OM_ERR_BUS_INIT, "no function given");
    int rc = om_log_open_reader(&r, dir, 0);
    if (rc != 0)
        return rc;
    if (!omi_reader_trusts_control(r))
        rc = omi_reader_settle(r);
    ptrdiff_t last = rc == 0 ? omi_catalog_last(r) : -1;
    for (ptrdiff_t i = 0; i <= last && !stop; i++) {
        OmLogSegmentInfo info;
        describe_segment(r, (size_t)i, &info);
        count++;
        stop = fn(&info, ctx);
    }
    om_log_reader_close(r);
    return rc != 0 ? rc : count;
}

int om_log_info(const char *dir, OmLogInfo *out) {
    OmLogReader *r;
    if (!out)
        return omi_fail(OM_ERR_BUS_INIT, "no place for the description given");
    *out = (OmLogInfo){0};
    int rc = om_log_open_reader(&r, dir, 0);
    if (rc != 0)
        return rc;
    memcpy(out->id, r->log_id, OM_LOG_ID_SIZE);
    out->writer_alive = omi_log_locked(&r->dir);
    out->epoch = om_log_epoch(r);
    if (r->control.map) {
        out->created_ns = r->control.map->created_ns;
        out->writer_pid = atomic_load(&r->control.map->writer_pid);
    }
    int64_t first = om_log_first_seq(r), last = om_log_last_seq(r), durable = om_log_durable_seq(r);
    rc = first < 0 ? (int)first : last < 0 ? (int)last : durable < 0 ? (int)durable : 0;
    out->first_seq = first > 0 ? (uint64_t)first : 0;
    out->last_seq = last > 0 ? (uint64_t)last : 0;
    out->durable_seq = durable > 0 ? (uint64_t)durable : 0;
    ptrdiff_t from = omi_catalog_first(r), to = omi_catalog_last(r);
    OmiPlace end;
    if (rc == 0 && from >= 0 && (rc = omi_locate(r, (size_t)to, OMI_BY_SEQ, UINT64_MAX, OMI_EXACT, &end)) == 0) {
        out->records = end.records - r->entries[from].use.records_before;
        out->bytes = end.bytes - r->entries[from].use.bytes_before;
        out->first_time_ns = r->entries[from].use.first_time_ns;
        out->last_time_ns = end.max_time_ns;
        out->segments = (uint32_t)(to - from + 1);
        out->segment_bytes = r->entries[to].file_size;
    }
    for (size_t i = 0; i < r->entries_count; i++) {
        omi_catalog_entry(r, i);
        out->disk_bytes += r->entries[i].file_size;
    }
    om_log_reader_close(r);
    return rc;
}

/** What verify and repair share: everything but what may be changed. */
static int recover_dir(const char *path, bool repair, uint32_t flags, const OmLogVisitor *visitor, OmLogReport *out) {
    OmLogReport own;
    OmiLogDir dir;
    OmiControlFile control = {.fd = -1};
    OmiTail tail;
    int lock_fd = -1;
    int rc = omi_dir_open(&dir, path, false);
    if (rc != 0)
        return rc;
    OmiRecovery recovery = {.dir = &dir};
    if (repair)
        rc = omi_log_lock(&dir, &lock_fd);
    if (rc == 0) {
        rc = omi_control_open(&control, &dir, repair);
        if (rc == 0) {
            omi_recovery_init(&recovery, &dir, control.map);
        } else if (rc != OM_ERR_LOG_VERSION && omi_recover_id(&dir, recovery.log_id)) {
            rc = repair ? omi_control_create(&control, &dir, recovery.log_id, false) : 0;
        }
    }
    recovery.all = true;
    recovery.live = !repair && omi_log_locked(&dir);
    recovery.repair = repair;
    recovery.salvage = repair && (flags & OM_LOG_SALVAGE);
    recovery.visitor = visitor;
    recovery.report = out ? out : &own;
    *recovery.report = (OmLogReport){0};
    if (rc == 0) {
        rc = omi_recover(&recovery, &tail);
        if (rc == 0 && repair && tail.segment) {
            rc = omi_repair_sync(&recovery, tail.first_segment, &tail);
            omi_control_set_mark(&control, tail.last_seq, tail.segment, tail.offset);
            omi_control_set_mark(&control, tail.last_seq, tail.segment, tail.offset);
            atomic_store(&control.map->last_seq, tail.last_seq);
            atomic_store(&control.map->durable_seq, tail.last_seq);
            atomic_store(&control.map->newest_segment, tail.segment);
            if (rc == 0)
                rc = omi_sync_range(control.fd, (uint8_t *)control.map, 0, sizeof *control.map);
        }
    }
    omi_control_close(&control);
    if (lock_fd >= 0)
        omi_log_unlock(lock_fd);
    omi_dir_close(&dir);
    return rc;
}

int om_log_verify(const char *dir, const OmLogVisitor *visitor, OmLogReport *report) {
    return recover_dir(dir, false, 0, visitor, report);
}

int om_log_repair(const char *dir, uint32_t flags, const OmLogVisitor *visitor, OmLogReport *report) {
    if (flags & ~OM_LOG_SALVAGE)
        return omi_fail(OM_ERR_BUS_INIT, "flags 0x%x: unknown bits", flags);
    return recover_dir(dir, true, flags, visitor, report);
}
