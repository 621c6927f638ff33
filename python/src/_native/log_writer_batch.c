/* publish_batch() of a log: many records in one call, without Python work per record. */

#include "log.h"

enum { PART_BYTES = 16 * 1024 * 1024 }; /* appended between two looks at signals */

/** As the library takes them: for a sequence all records, for an array nothing. */
static OmLogRecord *records_of(const Items *items, uint64_t first_seq, uint8_t type) {
    OmLogRecord *records = PyMem_Calloc(items->count ? items->count : 1, sizeof *records);
    if (!records)
        PyErr_NoMemory();
    for (size_t i = 0; records && i < items->count; i++)
        records[i] = (OmLogRecord){.wal_seq = first_seq ? first_seq + i : 0,
                                   .payload = items->pieces[i].data,
                                   .payload_len = (uint32_t)items->pieces[i].size,
                                   .wal_type = type};
    return records;
}

/** How many of the records from `done` on make a part; at least one. */
static size_t part_of(const Items *items, size_t done) {
    size_t left = items->count - done, n = 0, bytes = 0;
    if (!items->objects) {
        n = PART_BYTES / (items->item_size + OM_LOG_FRAME_HEADER_SIZE) + 1;
        return n < left ? n : left;
    }
    while (n < left && bytes < PART_BYTES)
        bytes += items->pieces[done + n++].size + OM_LOG_FRAME_HEADER_SIZE;
    return n;
}

static int64_t append_part(LogWriter *self, const Items *items, const OmLogRecord *records, size_t done, size_t count,
                           uint64_t first_seq, uint8_t type) {
    if (records)
        return om_log_append_batch(self->log, records + done, count);
    return om_log_append_array(self->log, first_seq ? first_seq + done : 0, type,
                               (const char *)items->buffer.buf + done * items->stride, (uint32_t)items->item_size,
                               items->stride, count);
}

/** Append all, waiting as long as allowed. 0 or an error; a Python error may be set. *done counts what went in. */
static int64_t append_all(LogWriter *self, const Items *items, const OmLogRecord *records, uint64_t first_seq,
                          uint8_t type, int64_t deadline_ns, size_t *done) {
    int64_t n = 0;
    ompy_gate_enter(&self->gate);
    while (*done < items->count) {
        int64_t room = ompy_log_writer_room(self, part_of(items, *done), deadline_ns);
        if (room <= 0) {
            n = room;
            break;
        }
        uint64_t last_before = om_log_writer_last_seq(self->log);
        Py_BEGIN_ALLOW_THREADS;
        n = append_part(self, items, records, *done, (size_t)room, first_seq, type);
        Py_END_ALLOW_THREADS;
        if (n < 0) { /* sync="each": appended, but the sync failed */
            *done += n == OM_ERR_LOG_IO && om_log_writer_last_seq(self->log) > last_before ? (size_t)room : 0;
            break;
        }
        *done += (size_t)n;
        if (*done == items->count || PyErr_CheckSignals() != 0)
            break;
        if (self->gate.close_requested) {
            ompy_raise_named("Closed", "producer: close() was called while publish_batch() went on");
            break;
        }
    }
    ompy_log_writer_leave(self);
    return n < 0 ? n : 0;
}

static int check_sizes(const Items *items) {
    size_t largest = ompy_items_largest(items);
    if (largest <= OM_LOG_PAYLOAD_MAX)
        return 0;
    ompy_raise_detail(OM_ERR_LOG_TOO_LARGE, "payload of %zu bytes", largest);
    return -1;
}

/** Before the first is appended: whether there are numbers for all. */
static int check_seqs(const LogWriter *self, const Items *items, uint64_t first_seq) {
    uint64_t first = first_seq ? first_seq : om_log_writer_last_seq(self->log) + 1;
    if (items->count == 0 || (first <= OM_LOG_SEQ_MAX && items->count - 1 <= OM_LOG_SEQ_MAX - first))
        return 0;
    ompy_raise_detail(OM_ERR_LOG_SEQ_LIMIT, "%zu records from wal_seq %llu on", items->count,
                      (unsigned long long)first);
    return -1;
}

PyObject *ompy_log_writer_publish_batch(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"items", "type", "seq", "timeout", "itemsize", 0};
    LogWriter *self = (LogWriter *)op;
    PyObject *arg[5], *result = 0;
    int64_t timeout_ns;
    uint64_t type = 1, first_seq = 0;
    Items items = {0};
    OmLogRecord *records = 0;
    if (ompy_args("publish_batch", names, 1, args, nargs, kwnames, arg) != 0 || ompy_timeout(arg[3], &timeout_ns) != 0)
        return 0;
    int64_t deadline_ns = ompy_deadline_ns(timeout_ns);
    bool is_given = arg[2] && arg[2] != Py_None;
    if ((arg[1] && ompy_u64(arg[1], "type", UINT8_MAX, &type) != 0) ||
        (is_given && ompy_u64(arg[2], "seq", UINT64_MAX, &first_seq) != 0))
        return 0;
    if (is_given && first_seq == 0)
        return ompy_raise_detail(OM_ERR_LOG_SEQ_ORDER, "wal_seq 0: the first one of a log is 1");
    int rc = ompy_items_get(&items, arg[0], arg[4]);
    if (rc == 0)
        rc = check_sizes(&items);
    /* Only now: the above may have run Python code. From here to the appending nothing does. */
    if (rc == 0)
        rc = ompy_log_writer_check(self, deadline_ns);
    if (rc == 0 && !is_given)
        first_seq = ompy_log_writer_next(self);
    if (rc == 0)
        rc = check_seqs(self, &items, first_seq);
    if (rc == 0 && items.objects && !(records = records_of(&items, first_seq, (uint8_t)type)))
        rc = -1;
    if (rc == 0) {
        size_t done = 0;
        uint64_t last_seq = om_log_writer_last_seq(self->log);
        int64_t error = append_all(self, &items, records, first_seq, (uint8_t)type, deadline_ns, &done);
        if (done)
            last_seq = (first_seq ? first_seq : last_seq + 1) + done - 1;
        if (error < 0 && !PyErr_Occurred())
            ompy_raise_with(error, "published", PyLong_FromSize_t(done));
        if (!PyErr_Occurred())
            result = PyLong_FromUnsignedLongLong(last_seq);
    }
    PyMem_Free(records);
    ompy_items_clear(&items);
    return result;
}
