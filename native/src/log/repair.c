#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "log/frame.h"
#include "log/recovery.h"

/** SEGMENT.seg.cut-OFFSET-TIME, remembered for the report. */
static const char *side_name(OmiRecovery *recovery, uint64_t number, uint64_t offset) {
    char *name = recovery->report->side_file;
    snprintf(name, sizeof recovery->report->side_file, "%010" PRIu64 OMI_SEGMENT_SUFFIX ".cut-%010" PRIu64 "-%" PRIu64,
             number, offset, omi_wall_ns());
    return name;
}

/** Copy [from, to) of a segment into a side file, durably, before anything is changed: a crash then only repeats. */
static int save(OmiRecovery *recovery, const OmiSegment *segment, uint64_t from, uint64_t to) {
    const char *name = side_name(recovery, segment->number, from);
    int fd = openat(recovery->dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return omi_fail_errno(OM_ERR_LOG_OPEN, "cannot create '%s/%s'", recovery->dir->path, name);
    int rc = 0;
    while (from < to && rc == 0) {
        ssize_t size = write(fd, segment->base + from, to - from);
        if (size <= 0)
            rc = omi_fail_errno(OM_ERR_LOG_DISK_FULL, "cannot save what is cut in '%s/%s'", recovery->dir->path, name);
        else
            from += (uint64_t)size;
    }
    if (rc == 0)
        rc = omi_sync_file(fd);
    close(fd);
    return rc == 0 ? omi_sync_dir(recovery->dir) : rc;
}

int omi_repair_cut(OmiRecovery *recovery, OmiSegment *segment, uint64_t offset) {
    uint64_t end = omi_frame_data_end(segment->base, offset, segment->size);
    if (end == offset)
        return 0;
    int rc = save(recovery, segment, offset, end);
    if (rc != 0)
        return rc;
    memset(segment->base + offset, 0, end - offset);
    return omi_sync_range(segment->fd, segment->base, offset, end);
}

int omi_repair_pad(OmiRecovery *recovery, OmiSegment *segment, uint64_t offset, uint64_t end) {
    int rc = save(recovery, segment, offset, end);
    if (rc != 0)
        return rc;
    omi_frame_put_padding(segment->base + offset, 0, 0, end - offset);
    return omi_sync_range(segment->fd, segment->base, offset, end);
}

int omi_repair_seal(OmiRecovery *recovery, OmiSegment *segment, uint64_t offset, uint64_t last_seq, uint64_t time_ns) {
    int rc = omi_repair_cut(recovery, segment, offset);
    if (rc != 0)
        return rc;
    if (offset + OMI_FRAME_HEADER > segment->size)
        return omi_fail(OM_ERR_LOG_CORRUPT,
                        "segment %010" PRIu64 " was cut short: restore it from a copy, or move it away",
                        segment->number);
    omi_frame_put_padding(segment->base + offset, last_seq + 1, time_ns, OMI_FRAME_HEADER);
    return omi_sync_range(segment->fd, segment->base, offset, offset + OMI_FRAME_HEADER);
}

int omi_repair_header(OmiRecovery *recovery, OmiSegment *segment, const OmiTail *before) {
    OmiFrameView view;
    OmiSegmentHeader *header = omi_segment_header(segment);
    uint64_t first = OMI_SEGMENT_DATA;
    if (omi_frame_check(segment->base, first, segment->size, before->last_seq, true, &view) != OMI_FRAME_RECORD) {
        first = omi_frame_resync(segment->base, first, segment->size, before->last_seq, 0);
        if (omi_frame_check(segment->base, first, segment->size, before->last_seq, true, &view) != OMI_FRAME_RECORD)
            return OM_ERR_LOG_CORRUPT;
    }
    int rc = save(recovery, segment, 0, OMI_SEGMENT_DATA);
    if (rc != 0)
        return rc;
    if (!omi_ident_valid(header, segment->number)) {
        OmiSegmentIdent ident = {.magic = OMI_SEGMENT_MAGIC,
                                 .version = OMI_LOG_VERSION,
                                 .number = segment->number,
                                 .created_ns = omi_wall_ns(),
                                 .size_bytes = segment->size,
                                 .index_bytes = 64 << 10};
        memcpy(ident.log_id, recovery->log_id, OM_LOG_ID_SIZE);
        omi_ident_write(header, &ident);
    }
    OmiSegmentUse use = {.base_seq = view.seq,
                         .prev_seq = before->last_seq,
                         .prev_max_time_ns = before->max_time_ns,
                         .records_before = before->records,
                         .bytes_before = before->bytes,
                         .first_time_ns = view.time_ns};
    omi_use_write(header, &use);
    memset(&header->seal, 0, sizeof header->seal);
    return omi_sync_range(segment->fd, segment->base, 0, OMI_SEGMENT_DATA);
}

int omi_repair_move(OmiRecovery *recovery, uint64_t number) {
    char name[OMI_FILE_NAME_SIZE];
    const char *side = side_name(recovery, number, 0);
    omi_file_name(name, number, OMI_SEGMENT_SUFFIX);
    if (renameat(recovery->dir->fd, name, recovery->dir->fd, side) != 0)
        return omi_fail_errno(OM_ERR_LOG_OPEN, "cannot move '%s/%s' to %s", recovery->dir->path, name, side);
    omi_file_name(name, number, OMI_INDEX_SUFFIX);
    unlinkat(recovery->dir->fd, name, 0);
    return omi_sync_dir(recovery->dir);
}

int omi_repair_fill(OmiRecovery *recovery, uint64_t number, OmiTail *tail) {
    OmiSegment *segment;
    int rc =
        omi_segment_create(&segment, recovery->dir, recovery->log_id, number, OMI_SEGMENT_DATA + OMI_PAGE, 64 << 10);
    if (rc != 0)
        return rc;
    OmiSegmentUse use = {.base_seq = tail->last_seq + 1,
                         .prev_seq = tail->last_seq,
                         .prev_max_time_ns = tail->max_time_ns,
                         .records_before = tail->records,
                         .bytes_before = tail->bytes};
    omi_use_write(omi_segment_header(segment), &use);
    omi_frame_put_padding(segment->base + OMI_SEGMENT_DATA, tail->last_seq + 1, tail->max_time_ns, OMI_FRAME_HEADER);
    tail->segment = number;
    tail->offset = OMI_SEGMENT_DATA;
    tail->sealed = true;
    tail->segment_records = 0;
    rc = omi_repair_summary(segment, tail);
    if (rc == 0)
        rc = omi_sync_file(segment->fd);
    omi_segment_unref(segment);
    return rc == 0 ? omi_sync_dir(recovery->dir) : rc;
}

int omi_repair_index(OmiRecovery *recovery, OmiSegment *segment) {
    OmiIndex index;
    int rc = omi_index_rewrite(&index, recovery->dir, omi_segment_header(segment), segment->size);
    if (rc == 0)
        omi_index_close(&index);
    return rc;
}

int omi_repair_summary(OmiSegment *segment, const OmiTail *tail) {
    OmiSegmentHeader *header = omi_segment_header(segment);
    OmiSegmentSeal seal = {.end_offset = tail->offset,
                           .last_seq = tail->last_seq,
                           .records = tail->segment_records,
                           .max_time_ns = tail->max_time_ns,
                           .sealed_ns = header->seal.sealed_ns};
    if (omi_seal_valid(header) && header->seal.end_offset == seal.end_offset &&
        header->seal.last_seq == seal.last_seq && header->seal.records == seal.records &&
        header->seal.max_time_ns == seal.max_time_ns)
        return 0;
    seal.sealed_ns = omi_wall_ns();
    omi_seal_write(header, &seal);
    return omi_sync_range(segment->fd, segment->base, 0, OMI_SEGMENT_DATA);
}

int omi_repair_sync(OmiRecovery *recovery, uint64_t from, const OmiTail *tail) {
    for (uint64_t number = from; number && number <= tail->segment; number++) {
        char name[OMI_FILE_NAME_SIZE];
        omi_file_name(name, number, OMI_SEGMENT_SUFFIX);
        int fd = openat(recovery->dir->fd, name, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            continue; /* pruned meanwhile */
        int rc = omi_sync_file(fd);
        close(fd);
        if (rc != 0)
            return rc;
    }
    return omi_sync_dir(recovery->dir);
}
