#include "log/reader.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/process.h"

/** The control file if it can be used, and the identity from it or from a segment. */
static int identify(OmLogReader *r) {
    int rc = omi_control_open(&r->control, &r->dir, false);
    if (rc == 0) {
        memcpy(r->log_id, r->control.map->log_id, OM_LOG_ID_SIZE);
        return 0;
    }
    if (rc == OM_ERR_LOG_VERSION)
        return rc;
    if (omi_recover_id(&r->dir, r->log_id))
        return 0; /* without it we read what is there, and look for more by polling */
    return rc == OM_ERR_LOG_NOT_FOUND ? omi_fail(rc, "there is no log in '%s'", r->dir.path) : rc;
}

int om_log_open_reader(OmLogReader **out, const char *dir, const OmLogReaderOptions *options) {
    if (!out)
        return omi_fail(OM_ERR_BUS_INIT, "no place for the log reader given");
    *out = 0;
    uint32_t flags = options ? options->flags : 0, mapped = options ? options->mapped_segments_max : 0;
    if (flags & ~(OM_LOG_NO_CRC | OM_LOG_SKIP_CORRUPT | OM_LOG_DURABLE_ONLY))
        return omi_fail(OM_ERR_BUS_INIT, "flags 0x%x: unknown bits", flags);
    OmLogReader *r = calloc(1, sizeof *r);
    if (!r)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    r->control.fd = r->dir.fd = -1;
    r->check_crc = !(flags & OM_LOG_NO_CRC);
    r->skip_corrupt = flags & OM_LOG_SKIP_CORRUPT;
    r->durable_only = flags & OM_LOG_DURABLE_ONLY;
    r->mapped_max = mapped == 0 ? OMI_MAPPED_DEFAULT : mapped < OMI_MAPPED_MAX ? mapped : OMI_MAPPED_MAX;
    r->position = 1;
    r->end_seq = UINT64_MAX;
    r->stop_seq = r->durable_only ? 0 : UINT64_MAX;
    omi_boot_id(r->boot_id);
    omi_process_watch_forks();
    r->forks = omi_fork_count;
    int rc = omi_dir_open(&r->dir, dir, false);
    if (rc == 0)
        rc = identify(r);
    if (rc == 0)
        rc = omi_catalog_refresh(r);
    if (rc != 0) {
        om_log_reader_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

void om_log_reader_close(OmLogReader *r) {
    if (!r)
        return;
    omi_segment_unref(r->current);
    for (uint32_t i = 0; i < r->mapped_count; i++)
        omi_segment_unref(r->mapped[i]);
    omi_control_close(&r->control);
    omi_dir_close(&r->dir);
    free(r->entries);
    free(r);
}

/** wal_seq of the first record of a segment in use; 0 = it has none yet. */
static uint64_t first_record(OmLogReader *r, const OmiEntry *entry) {
    OmiFrame frame;
    char name[OMI_FILE_NAME_SIZE];
    omi_file_name(name, entry->number, OMI_SEGMENT_SUFFIX);
    int fd = openat(r->dir.fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? pread(fd, &frame, sizeof frame, OMI_SEGMENT_DATA) : 0;
    if (fd >= 0)
        close(fd);
    if (size != (ssize_t)sizeof frame || frame.word == 0)
        return 0;
    /* Anything but a record (padding over a salvaged place, damage): the header's lower bound is the best we know. */
    bool record = (frame.word & OMI_FRAME_WORD_FIXED_MASK) == OMI_FRAME_WORD_FIXED &&
                  (uint8_t)(frame.word >> 32) != OMI_TYPE_PADDING && frame.wal_seq >= entry->use.base_seq;
    return record ? frame.wal_seq : entry->use.base_seq;
}

int64_t om_log_first_seq(OmLogReader *r) {
    int rc = omi_reader_check_handle(r);
    if (rc == 0)
        rc = omi_catalog_refresh(r);
    if (rc == 0 && !omi_reader_trusts_control(r))
        rc = omi_reader_settle(r);
    if (rc != 0)
        return rc;
    ptrdiff_t i = omi_catalog_first(r);
    uint64_t seq = i < 0 ? 0 : first_record(r, &r->entries[i]);
    int64_t visible = omi_reader_visible_seq(r);
    return visible < 0 ? visible : seq <= (uint64_t)visible ? (int64_t)seq : 0;
}

int64_t om_log_last_seq(OmLogReader *r) {
    int rc = omi_reader_check_handle(r);
    return rc != 0 ? rc : omi_reader_visible_seq(r);
}

int64_t om_log_durable_seq(OmLogReader *r) {
    int rc = omi_reader_check_handle(r);
    if (rc != 0)
        return rc;
    if (omi_reader_trusts_control(r))
        return (int64_t)omi_reader_marked_seq(r);
    rc = omi_reader_settle(r); /* another boot: what is there came from the disk */
    return rc != 0 ? rc : (int64_t)r->end.last_seq;
}

void om_log_id(const OmLogReader *r, uint8_t id[OM_LOG_ID_SIZE]) {
    if (r && id)
        memcpy(id, r->log_id, OM_LOG_ID_SIZE);
}

uint64_t om_log_epoch(const OmLogReader *r) {
    return r && r->control.map ? atomic_load_explicit(&r->control.map->writer_epoch, memory_order_acquire) : 0;
}

/** Stand at a place (NULL: where the log will begin) and forget ranges. */
static int stand(OmLogReader *r, const OmiPlace *place, uint64_t position) {
    r->end_seq = UINT64_MAX;
    r->stop_seq = r->durable_only ? 0 : UINT64_MAX;
    r->position = position;
    return place ? omi_reader_stand(r, place) : 0;
}

int om_log_seek(OmLogReader *r, uint64_t seq) {
    OmiPlace place;
    int rc = omi_reader_check_handle(r);
    if (rc != 0)
        return rc;
    if (seq == 0)
        seq = 1;
    rc = omi_locate_seq(r, seq, &place);
    if (rc != 0 && rc != OM_ERR_LOG_NOT_FOUND)
        return rc;
    const OmiEntry *entry = rc == 0 ? &r->entries[omi_catalog_find(r, place.segment)] : 0;
    bool before_first = entry && seq <= entry->use.prev_seq;
    if (!entry || (before_first && entry != &r->entries[0])) {
        /* The log is empty, or segments before its first usable one are damaged: the next call finds out. */
        omi_segment_unref(r->current);
        r->current = 0;
        stand(r, 0, seq);
        return 0;
    }
    rc = stand(r, &place, seq);
    return rc != 0 || !before_first
               ? rc
               : omi_fail(OM_ERR_LOG_PRUNED, "'%s': wal_seq %" PRIu64 " to %" PRIu64 " were pruned", r->dir.path, seq,
                          entry->use.prev_seq);
}

int om_log_seek_range(OmLogReader *r, uint64_t from, uint64_t to) {
    int rc = om_log_seek(r, from);
    if (rc == 0 || rc == OM_ERR_LOG_PRUNED) {
        r->end_seq = to;
        if (!r->durable_only)
            r->stop_seq = to;
    }
    return rc;
}

int om_log_seek_time(OmLogReader *r, uint64_t time_ns) {
    OmiPlace place;
    int rc = omi_reader_check_handle(r);
    if (rc == 0)
        rc = omi_catalog_update(r);
    for (int again = 0; rc == 0; again++) {
        if (!omi_reader_trusts_control(r) && (rc = omi_reader_settle(r)) != 0)
            return rc;
        /* The last segment before whose start the clock had not yet reached the time. */
        ptrdiff_t i = omi_catalog_floor(r, OMI_ENTRY_TIME, time_ns ? time_ns - 1 : 0);
        if (i < 0)
            return om_log_seek(r, 1);
        rc = omi_locate(r, (size_t)i, OMI_BY_TIME, time_ns, OMI_EXACT, &place);
        if (rc != OM_ERR_LOG_NOT_FOUND || again)
            break;
        rc = omi_catalog_refresh(r);
    }
    return rc != 0 ? rc : stand(r, &place, place.last_seq + 1);
}

int om_log_seek_end(OmLogReader *r) {
    int64_t last = om_log_last_seq(r);
    if (last < 0)
        return (int)last;
    int rc = om_log_seek(r, (uint64_t)last + 1);
    return rc == OM_ERR_LOG_PRUNED ? 0 : rc;
}

uint64_t om_log_position(const OmLogReader *r) {
    return r ? r->position : 0;
}

void om_log_damage(const OmLogReader *r, OmLogDamage *out) {
    if (out)
        *out = r ? r->damage : (OmLogDamage){0};
}

void om_log_reader_stats(const OmLogReader *r, OmLogReaderStats *out) {
    if (out)
        *out = r ? r->stats : (OmLogReaderStats){0};
}

/* A hold is the segment itself with one more reference. */
OmLogHold *om_log_hold(OmLogReader *r) {
    if (!r || !r->current)
        return 0;
    omi_segment_ref(r->current);
    return (OmLogHold *)r->current;
}

void om_log_hold_release(OmLogHold *hold) {
    omi_segment_unref((OmiSegment *)hold);
}
