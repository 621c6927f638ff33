#include <string.h>

#include "core/clock.h"
#include "core/copy.h"
#include "core/error.h"
#include "core/process.h"
#include "log/frame.h"
#include "log/writer.h"

/*
 * The hot path. An append costs a clock read, the checksum, the copy, the release store that publishes the frame, and
 * a relaxed look at the doorbell. Everything rarer hides behind two comparisons: soft_limit (segment end, index entry,
 * prefault, open reservation, no segment yet) and sync_at.
 */

#define RELAXED memory_order_relaxed

static OMI_COLD int bad_handle(const OmLogWriter *w) {
    return w ? omi_fail(OM_ERR_BUS_FORKED, "this log writer belongs to the parent process")
             : omi_fail(OM_ERR_BUS_INIT, "no log writer given");
}

static OMI_COLD int bad_record(const OmLogWriter *w, uint64_t seq, uint8_t type, const void *payload, uint64_t len) {
    uint64_t last = atomic_load_explicit(&w->last_seq, RELAXED);
    if (type > OM_LOG_TYPE_MAX)
        return omi_fail(OM_ERR_LOG_TYPE, "wal_type 0x%02X is reserved", type);
    if (len > OM_LOG_PAYLOAD_MAX)
        return omi_fail(OM_ERR_LOG_TOO_LARGE, "payload of %llu bytes; at most %u", (unsigned long long)len,
                        OM_LOG_PAYLOAD_MAX);
    if (!payload && len)
        return omi_fail(OM_ERR_BUS_INIT, "no payload given for %llu bytes", (unsigned long long)len);
    if (seq > OM_LOG_SEQ_MAX)
        return omi_fail(OM_ERR_LOG_SEQ_LIMIT, "wal_seq %llu after %llu", (unsigned long long)seq,
                        (unsigned long long)last);
    return omi_fail(OM_ERR_LOG_SEQ_ORDER, "wal_seq %llu, but the last one is %llu", (unsigned long long)seq,
                    (unsigned long long)last);
}

static inline bool handle_ok(const OmLogWriter *w) {
    return OMI_LIKELY(w && w->forks == omi_fork_count);
}

/** The sequence to use for a record that asks for `seq`; 0 when it must be refused. */
static inline uint64_t next_seq(uint64_t last, uint64_t seq) {
    if (seq == 0)
        seq = last + 1;
    return OMI_LIKELY(seq > last && seq <= OM_LOG_SEQ_MAX) ? seq : 0;
}

/** Put one record at the writer's offset, where there is room. */
static inline void put(OmLogWriter *w, uint64_t seq, uint8_t type, uint64_t time_ns, const void *payload, uint32_t len,
                       uint64_t size) {
    uint64_t offset = atomic_load_explicit(&w->offset, RELAXED);
    uint8_t *at = w->base + offset;
    uint64_t word = omi_frame_word(type, len);
    omi_copy(at + OMI_FRAME_HEADER, payload, len);
    omi_frame_fill(at, word, seq, time_ns, payload, len);
    if (time_ns > w->max_time_ns)
        w->max_time_ns = time_ns;
    omi_frame_publish(at, word);
    atomic_store_explicit(&w->appended, atomic_load_explicit(&w->appended, RELAXED) + 1, RELAXED);
    /* The syncer reads last_seq, then offset: what it syncs then covers what it promises. */
    atomic_store_explicit(&w->offset, offset + size, memory_order_release);
    atomic_store_explicit(&w->last_seq, seq, memory_order_release);
}

static OMI_COLD void publish(OmLogWriter *w, uint64_t seq, uint8_t type, const void *payload, uint32_t len) {
    int rc = w->publish(seq, type, payload, len, w->publish_ctx);
    if (rc == OM_ERR_BUS_RECORD_TOO_LARGE)
        w->publish_skipped++;
    else if (rc < 0)
        w->publish_errors++;
}

/** What follows a record or a batch: tell the readers, and the syncer when it is time. */
static inline int finish(OmLogWriter *w, uint64_t seq) {
    atomic_store_explicit(&w->shared->last_seq, seq, memory_order_release);
    omi_doorbell_notify(&w->shared->bell);
    if (OMI_UNLIKELY(atomic_load_explicit(&w->appended, RELAXED) >= atomic_load_explicit(&w->sync_at, RELAXED)))
        return omi_writer_sync_due(w);
    return 0;
}

int64_t om_log_append(OmLogWriter *w, uint64_t wal_seq, uint8_t wal_type, const void *payload, uint32_t len) {
    if (OMI_UNLIKELY(!handle_ok(w)))
        return bad_handle(w);
    uint64_t seq = next_seq(atomic_load_explicit(&w->last_seq, RELAXED), wal_seq);
    if (OMI_UNLIKELY(seq == 0 || wal_type > OM_LOG_TYPE_MAX || len > OM_LOG_PAYLOAD_MAX || (!payload && len)))
        return bad_record(w, wal_seq ? wal_seq : w->last_seq + 1, wal_type, payload, len);
    uint64_t size = omi_frame_size(len), time_ns = omi_wall_ns();
    if (OMI_UNLIKELY(atomic_load_explicit(&w->offset, RELAXED) + size > w->soft_limit)) {
        int rc = omi_writer_make_room(w, size, seq, time_ns);
        if (rc != 0)
            return rc;
    }
    put(w, seq, wal_type, time_ns, payload, len, size);
    if (OMI_UNLIKELY(w->publish != 0))
        publish(w, seq, wal_type, payload, len);
    int rc = finish(w, seq);
    return OMI_LIKELY(rc == 0) ? (int64_t)seq : rc;
}

int64_t om_log_append_batch(OmLogWriter *w, const OmLogRecord *recs, size_t count) {
    if (OMI_UNLIKELY(!handle_ok(w)))
        return bad_handle(w);
    if (!recs && count)
        return omi_fail(OM_ERR_BUS_INIT, "no records given");
    uint64_t last = atomic_load_explicit(&w->last_seq, RELAXED);
    for (size_t i = 0; i < count; i++) {
        const OmLogRecord *rec = &recs[i];
        uint64_t seq = next_seq(last, rec->wal_seq);
        if (OMI_UNLIKELY(seq == 0 || rec->wal_type > OM_LOG_TYPE_MAX || rec->payload_len > OM_LOG_PAYLOAD_MAX ||
                         (!rec->payload && rec->payload_len)))
            return bad_record(w, rec->wal_seq ? rec->wal_seq : last + 1, rec->wal_type, rec->payload, rec->payload_len);
        last = seq;
    }
    uint64_t now_ns = omi_wall_ns();
    size_t done = 0;
    int rc = 0;
    for (; done < count; done++) {
        const OmLogRecord *rec = &recs[done];
        uint64_t seq = rec->wal_seq ? rec->wal_seq : atomic_load_explicit(&w->last_seq, RELAXED) + 1;
        uint64_t time_ns = rec->timestamp_ns ? rec->timestamp_ns : now_ns;
        uint64_t size = omi_frame_size(rec->payload_len);
        if (OMI_UNLIKELY(atomic_load_explicit(&w->offset, RELAXED) + size > w->soft_limit) &&
            (rc = omi_writer_make_room(w, size, seq, time_ns)) != 0)
            break;
        put(w, seq, rec->wal_type, time_ns, rec->payload, rec->payload_len, size);
        if (OMI_UNLIKELY(w->publish != 0))
            publish(w, seq, rec->wal_type, rec->payload, rec->payload_len);
    }
    if (done == 0)
        return rc;
    rc = finish(w, atomic_load_explicit(&w->last_seq, RELAXED));
    return rc == 0 ? (int64_t)done : rc;
}

int64_t om_log_append_array(OmLogWriter *w, uint64_t first_seq, uint8_t wal_type, const void *items, uint32_t item_size,
                            size_t stride, size_t count) {
    if (OMI_UNLIKELY(!handle_ok(w)))
        return bad_handle(w);
    uint64_t seq = next_seq(atomic_load_explicit(&w->last_seq, RELAXED), first_seq);
    if (OMI_UNLIKELY(seq == 0 || wal_type > OM_LOG_TYPE_MAX || item_size > OM_LOG_PAYLOAD_MAX ||
                     (!items && item_size && count)))
        return bad_record(w, first_seq ? first_seq : w->last_seq + 1, wal_type, items, item_size);
    if (count > OM_LOG_SEQ_MAX - seq + 1)
        return bad_record(w, OM_LOG_SEQ_MAX + 1, wal_type, items, item_size);
    uint64_t now_ns = omi_wall_ns(), size = omi_frame_size(item_size);
    const uint8_t *item = items;
    size_t done = 0;
    int rc = 0;
    for (; done < count; done++, item += stride) {
        if (OMI_UNLIKELY(atomic_load_explicit(&w->offset, RELAXED) + size > w->soft_limit) &&
            (rc = omi_writer_make_room(w, size, seq + done, now_ns)) != 0)
            break;
        put(w, seq + done, wal_type, now_ns, item, item_size, size);
        if (OMI_UNLIKELY(w->publish != 0))
            publish(w, seq + done, wal_type, item, item_size);
    }
    if (done == 0)
        return rc;
    rc = finish(w, seq + done - 1);
    return rc == 0 ? (int64_t)done : rc;
}

int om_log_reserve(OmLogWriter *w, uint32_t len, void **payload) {
    if (OMI_UNLIKELY(!handle_ok(w)))
        return bad_handle(w);
    if (!payload || len > OM_LOG_PAYLOAD_MAX)
        return bad_record(w, 1, 0, payload, payload ? len : (uint64_t)len + 1);
    uint64_t seq = next_seq(w->last_seq, 0), size = omi_frame_size(len);
    if (seq == 0)
        return bad_record(w, w->last_seq + 1, 0, payload, 0);
    if (w->offset + size > w->soft_limit) {
        /* The wal_seq and time in the segment's header or index entry are those of a record that comes now. */
        int rc = omi_writer_make_room(w, size, seq, omi_wall_ns());
        if (rc != 0)
            return rc;
    }
    w->reserved = true;
    w->reserved_len = len;
    w->soft_limit = 0;
    *payload = w->base + w->offset + OMI_FRAME_HEADER;
    return 0;
}

int64_t om_log_commit(OmLogWriter *w, uint64_t wal_seq, uint8_t wal_type, uint32_t len) {
    if (OMI_UNLIKELY(!handle_ok(w)))
        return bad_handle(w);
    if (!w->reserved || len > w->reserved_len)
        return omi_fail(OM_ERR_LOG_STATE,
                        w->reserved ? "%u bytes were reserved, %u are too many" : "nothing is reserved",
                        w->reserved_len, len);
    uint64_t seq = next_seq(w->last_seq, wal_seq);
    uint8_t *payload = w->base + w->offset + OMI_FRAME_HEADER;
    if (seq == 0 || wal_type > OM_LOG_TYPE_MAX)
        return bad_record(w, wal_seq ? wal_seq : w->last_seq + 1, wal_type, payload, len);
    memset(payload + len, 0, omi_frame_size(w->reserved_len) - OMI_FRAME_HEADER - len);
    w->reserved = false;
    omi_writer_set_limit(w);
    uint64_t time_ns = omi_wall_ns(), word = omi_frame_word(wal_type, len);
    uint8_t *at = payload - OMI_FRAME_HEADER;
    omi_frame_fill(at, word, seq, time_ns, payload, len);
    if (time_ns > w->max_time_ns)
        w->max_time_ns = time_ns;
    omi_frame_publish(at, word);
    w->appended++;
    w->offset += omi_frame_size(len);
    w->last_seq = seq;
    if (w->publish)
        publish(w, seq, wal_type, payload, len);
    int rc = finish(w, seq);
    return rc == 0 ? (int64_t)seq : rc;
}

int om_log_abort(OmLogWriter *w) {
    if (OMI_UNLIKELY(!handle_ok(w)))
        return bad_handle(w);
    if (!w->reserved)
        return omi_fail(OM_ERR_LOG_STATE, "nothing is reserved");
    memset(w->base + w->offset + OMI_FRAME_HEADER, 0, omi_frame_size(w->reserved_len) - OMI_FRAME_HEADER);
    w->reserved = false;
    omi_writer_set_limit(w);
    return 0;
}
