/* LogReader: a place in a log, and what can be read from there. Behind ombus.Log and Consumer("log://..."). */

#include "log.h"

/* ---- life ---- */

static int reader_init(PyObject *op, PyObject *args, PyObject *kwargs) {
    LogReader *self = (LogReader *)op;
    PyObject *dir, *timeout;
    OmLogReaderOptions options = {0};
    int raise_gaps;
    int64_t timeout_ns;
    static char *names[] = {"dir", "flags", "raise_gaps", "timeout", 0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&IpO", names, PyUnicode_FSConverter, &dir, &options.flags,
                                     &raise_gaps, &timeout))
        return -1;
    if (ompy_timeout(timeout, &timeout_ns) != 0 || self->gate.lock || ompy_gate_init(&self->gate) != 0) {
        if (!PyErr_Occurred())
            ompy_raise_detail(OM_ERR_BUS_INIT, "__init__ was called twice");
        Py_DECREF(dir);
        return -1;
    }
    OmLogReader *reader;
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    rc = om_log_open_reader(&reader, PyBytes_AsString(dir), &options);
    Py_END_ALLOW_THREADS;
    Py_DECREF(dir);
    if (rc != 0) {
        ompy_raise(rc);
        return -1;
    }
    self->reader = reader;
    self->end_seq = UINT64_MAX;
    self->timeout_ns = timeout_ns;
    self->raise_gaps = raise_gaps;
    return 0;
}

static void close_now(LogReader *self) {
    OmLogReader *reader = self->reader;
    self->reader = 0;
    om_log_reader_close(reader);
}

static PyObject *reader_close(PyObject *op, PyObject *Py_UNUSED(none)) {
    LogReader *self = (LogReader *)op;
    if (ompy_gate_occupied(&self->gate))
        self->gate.close_requested = true;
    else
        close_now(self);
    Py_RETURN_NONE;
}

void ompy_log_reader_leave(LogReader *self) {
    ompy_gate_leave(&self->gate);
    if (self->gate.close_requested)
        close_now(self);
}

static void reader_dealloc(PyObject *op) {
    LogReader *self = (LogReader *)op;
    PyTypeObject *type = Py_TYPE(op);
    om_log_reader_close(self->reader);
    Py_XDECREF(self->pending);
    ompy_gate_clear(&self->gate);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(op);
    Py_DECREF(type);
}

int ompy_log_reader_check(LogReader *self) {
    if (self->gate.busy)
        return ompy_gate_refuse(&self->gate);
    if (!self->reader) {
        ompy_raise_named("Closed", "consumer");
        return -1;
    }
    return 0;
}

int ompy_log_reader_ready(LogReader *self) {
    if (ompy_log_reader_check(self) != 0)
        return -1;
    if (!self->pending || self->pending == Py_None)
        return 0;
    PyErr_SetObject((PyObject *)Py_TYPE(self->pending), self->pending);
    Py_CLEAR(self->pending);
    return -1;
}

PyObject *ompy_log_reader_raise(const LogReader *self, int64_t rc) {
    OmLogDamage damage;
    if ((rc != OM_ERR_LOG_CORRUPT && rc != OM_ERR_LOG_SKIPPED) || !self->reader)
        return ompy_raise(rc);
    om_log_damage(self->reader, &damage);
    return ompy_raise_with(rc, "_damage", ompy_log_damage(&damage));
}

/* ---- poll, wait, iterate ---- */

PyObject *ompy_log_reader_next(LogReader *self) {
    OmLogRecord record;
    int rc = om_log_next(self->reader, &record);
    if (rc == 0)
        return 0;
    if (rc < 0)
        return ompy_log_reader_raise(self, rc);
    bool gap = self->wal_seq && record.wal_seq != self->wal_seq + 1;
    uint64_t expected = self->wal_seq + 1;
    self->wal_seq = record.wal_seq;
    self->gaps += gap;
    PyObject *object =
        ompy_record_at(record.wal_seq, record.wal_type, record.timestamp_ns, record.payload, record.payload_len);
    if (!gap || !self->raise_gaps || !object)
        return object;
    ompy_raise_detail(OM_ERR_BUS_GAP_DETECTED, "expected wal_seq %llu, got %llu", (unsigned long long)expected,
                      (unsigned long long)record.wal_seq);
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    if (error)
        PyObject_SetAttrString(error, "record", object);
    Py_DECREF(object);
    PyErr_Restore(type, error, traceback);
    return 0;
}

static PyObject *reader_poll(PyObject *op, PyObject *Py_UNUSED(none)) {
    LogReader *self = (LogReader *)op;
    if (ompy_log_reader_ready(self) != 0)
        return 0;
    PyObject *record = ompy_log_reader_next(self);
    if (!record && !PyErr_Occurred())
        Py_RETURN_NONE;
    return record;
}

/** 1 = poll() has something to say, 0 = timeout, -1 = a Python error is set. */
static int wait_for_record(LogReader *self, int64_t timeout_ns) {
    int rc = om_log_wait(self->reader, 0);
    if (rc == 0 && timeout_ns != 0) {
        int64_t deadline_ns = ompy_deadline_ns(timeout_ns);
        ompy_gate_enter(&self->gate);
        int64_t slice_ns = ompy_slice_ns(deadline_ns);
        while (rc == 0 && slice_ns > 0) {
            Py_BEGIN_ALLOW_THREADS;
            rc = om_log_wait(self->reader, slice_ns);
            Py_END_ALLOW_THREADS;
            if (PyErr_CheckSignals() != 0)
                break;
            if (self->gate.close_requested) {
                ompy_raise_named("Closed", "consumer: close() was called while another call waited");
                break;
            }
            slice_ns = ompy_slice_ns(deadline_ns);
        }
        ompy_log_reader_leave(self);
    }
    if (PyErr_Occurred())
        return -1;
    if (rc < 0)
        ompy_log_reader_raise(self, rc);
    return rc < 0 ? -1 : rc;
}

static PyObject *reader_wait(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"timeout", 0};
    LogReader *self = (LogReader *)op;
    PyObject *arg[1];
    int64_t timeout_ns;
    if (ompy_args("wait", names, 0, args, nargs, kwnames, arg) != 0 || ompy_timeout(arg[0], &timeout_ns) != 0 ||
        ompy_log_reader_check(self) != 0)
        return 0;
    int ready = self->pending && self->pending != Py_None ? 1 : wait_for_record(self, timeout_ns);
    return ready < 0 ? 0 : PyBool_FromLong(ready);
}

static PyObject *reader_next(PyObject *op) {
    LogReader *self = (LogReader *)op;
    if (ompy_log_reader_ready(self) != 0)
        return 0;
    for (;;) {
        PyObject *record = ompy_log_reader_next(self);
        if (record || PyErr_Occurred() || om_log_position(self->reader) >= self->end_seq ||
            wait_for_record(self, self->timeout_ns) != 1)
            return record;
    }
}

/* ---- places ---- */

int ompy_log_reader_back_to(LogReader *self, uint64_t seq) {
    return om_log_seek_range(self->reader, seq, self->end_seq);
}

/** After a seek the next record is the first one: whatever lies before it is no gap. */
static PyObject *moved(LogReader *self, int rc) {
    self->wal_seq = 0;
    return rc == 0 ? PyLong_FromUnsignedLongLong(om_log_position(self->reader)) : ompy_log_reader_raise(self, rc);
}

static PyObject *reader_seek(PyObject *op, PyObject *args) {
    LogReader *self = (LogReader *)op;
    PyObject *from, *to = 0;
    uint64_t from_seq, to_seq = UINT64_MAX;
    if (!PyArg_ParseTuple(args, "O|O:seek", &from, &to) || ompy_u64(from, "seq", UINT64_MAX, &from_seq) != 0 ||
        (to && to != Py_None && ompy_u64(to, "end", UINT64_MAX, &to_seq) != 0) || ompy_log_reader_check(self) != 0)
        return 0;
    self->end_seq = to_seq;
    return moved(self, om_log_seek_range(self->reader, from_seq, to_seq));
}

static PyObject *reader_seek_time(PyObject *op, PyObject *time) {
    LogReader *self = (LogReader *)op;
    uint64_t time_ns;
    if (ompy_u64(time, "time_ns", UINT64_MAX, &time_ns) != 0 || ompy_log_reader_check(self) != 0)
        return 0;
    self->end_seq = UINT64_MAX;
    return moved(self, om_log_seek_time(self->reader, time_ns));
}

static PyObject *reader_seek_end(PyObject *op, PyObject *Py_UNUSED(none)) {
    LogReader *self = (LogReader *)op;
    if (ompy_log_reader_check(self) != 0)
        return 0;
    self->end_seq = UINT64_MAX;
    return moved(self, om_log_seek_end(self->reader));
}

static PyObject *reader_range_stats(PyObject *op, PyObject *args) {
    LogReader *self = (LogReader *)op;
    unsigned long long from, to;
    OmLogRange range;
    if (!PyArg_ParseTuple(args, "KK:_range_stats", &from, &to) || ompy_log_reader_check(self) != 0)
        return 0;
    int rc = om_log_range_stats(self->reader, from, to, &range);
    if (rc != 0)
        return ompy_log_reader_raise(self, rc);
    return Py_BuildValue("KK", (unsigned long long)range.records, (unsigned long long)range.bytes);
}

/* ---- what it knows ---- */

static PyObject *seq_or_error(PyObject *op, int64_t (*get)(OmLogReader *)) {
    LogReader *self = (LogReader *)op;
    if (ompy_log_reader_check(self) != 0)
        return 0;
    int64_t seq = get(self->reader);
    return seq < 0 ? ompy_log_reader_raise(self, seq) : PyLong_FromLongLong(seq);
}

static PyObject *reader_first_seq(PyObject *op, void *Py_UNUSED(closure)) {
    return seq_or_error(op, om_log_first_seq);
}

static PyObject *reader_last_seq(PyObject *op, void *Py_UNUSED(closure)) {
    return seq_or_error(op, om_log_last_seq);
}

static PyObject *reader_durable_seq(PyObject *op, void *Py_UNUSED(closure)) {
    return seq_or_error(op, om_log_durable_seq);
}

static PyObject *reader_position(PyObject *op, void *Py_UNUSED(closure)) {
    OmLogReader *reader = ((LogReader *)op)->reader;
    return reader ? PyLong_FromUnsignedLongLong(om_log_position(reader)) : ompy_raise_named("Closed", "consumer");
}

static PyObject *reader_id(PyObject *op, void *Py_UNUSED(closure)) {
    OmLogReader *reader = ((LogReader *)op)->reader;
    uint8_t id[OM_LOG_ID_SIZE];
    if (!reader)
        return ompy_raise_named("Closed", "consumer");
    om_log_id(reader, id);
    return PyBytes_FromStringAndSize((const char *)id, sizeof id);
}

static PyObject *reader_epoch(PyObject *op, void *Py_UNUSED(closure)) {
    OmLogReader *reader = ((LogReader *)op)->reader;
    return reader ? PyLong_FromUnsignedLongLong(om_log_epoch(reader)) : ompy_raise_named("Closed", "consumer");
}

static PyObject *reader_closed(PyObject *op, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(!((LogReader *)op)->reader);
}

static PyObject *reader_get_timeout(PyObject *op, void *Py_UNUSED(closure)) {
    int64_t timeout_ns = ((LogReader *)op)->timeout_ns;
    return timeout_ns < 0 ? Py_BuildValue("") : PyFloat_FromDouble((double)timeout_ns / 1e9);
}

static int reader_set_timeout(PyObject *op, PyObject *value, void *Py_UNUSED(closure)) {
    return ompy_timeout(value, &((LogReader *)op)->timeout_ns);
}

static PyObject *reader_counters(PyObject *op, PyObject *Py_UNUSED(none)) {
    OmLogReader *reader = ((LogReader *)op)->reader;
    OmLogReaderStats stats;
    if (!reader)
        return ompy_raise_named("Closed", "consumer");
    om_log_reader_stats(reader, &stats);
    return Py_BuildValue("(KKKKKK)", (unsigned long long)stats.records, (unsigned long long)stats.bytes,
                         (unsigned long long)stats.segments_mapped, (unsigned long long)stats.damages_skipped,
                         (unsigned long long)stats.damaged_bytes_skipped, (unsigned long long)stats.indexes_rebuilt);
}

static PyMemberDef members[] = {
    {"gaps", T_ULONGLONG, offsetof(LogReader, gaps), READONLY, "Gaps in wal_seq seen so far."},
    {"wal_seq", T_ULONGLONG, offsetof(LogReader, wal_seq), READONLY,
     "wal_seq of the last record read; 0 before the first and after a seek."},
    {"_pending", T_OBJECT, offsetof(LogReader, pending), 0, "Exception that the next poll raises"},
    {0},
};

static PyGetSetDef properties[] = {
    {"first_seq", reader_first_seq, 0, "First wal_seq that is still there; 0 = the log is empty.", 0},
    {"last_seq", reader_last_seq, 0, "Last wal_seq; 0 = the log is empty.", 0},
    {"durable_seq", reader_durable_seq, 0, "Everything up to this wal_seq is on disk.", 0},
    {"position", reader_position, 0, "Records below this wal_seq have been read or passed over.", 0},
    {"id", reader_id, 0, "The log's random identity, 16 bytes: a log that was created anew has another one.", 0},
    {"epoch", reader_epoch, 0, "How often the log has been opened for writing.", 0},
    {"closed", reader_closed, 0, "Whether close() was called.", 0},
    {"timeout", reader_get_timeout, reader_set_timeout,
     "Seconds that iteration waits for a record before it ends; None = for ever.", 0},
    {0},
};

/* clang-format off */
static PyMethodDef methods[] = {
    {"poll", reader_poll, METH_NOARGS,
     "poll($self)\n--\n\nThe next record, or None when there is none yet. Never waits."},
    {"wait", OMPY_FASTCALL(reader_wait), METH_FASTCALL | METH_KEYWORDS,
     "wait($self, timeout=None)\n--\n\n"
     "Sleep until there is something to poll: True, or False after `timeout` seconds (None: for ever). Uses no CPU."},
    {"seek", reader_seek, METH_VARARGS,
     "seek($self, seq, end=None)\n--\n\n"
     "Stand at the first record with wal_seq >= seq and, with `end`, read only what is below that. Returns the position.\n"
     "LogPruned when retention has removed records from seq on; the position is then the first one left."},
    {"seek_time", reader_seek_time, METH_O,
     "seek_time($self, time_ns)\n--\n\nStand at the first record at which the clock had reached time_ns."},
    {"seek_end", reader_seek_end, METH_NOARGS, "seek_end($self)\n--\n\nStand behind the last record."},
    {"close", reader_close, METH_NOARGS,
     "close($self)\n--\n\nStop reading. From another thread: a call that waits ends with Closed."},
    {"_poll_columns", ompy_log_reader_columns, METH_O, "(seqs, types, times, offsets, payloads) as bytearrays"},
    {"_fill", OMPY_FASTCALL(ompy_log_reader_fill), METH_FASTCALL, "Copy payloads into an array"},
    {"_range_stats", reader_range_stats, METH_VARARGS, "(records, frame bytes) of [from, to)"},
    {"_counters", reader_counters, METH_NOARGS, "The fields of OmLogReaderStats"},
    {0},
};
/* clang-format on */

static PyType_Slot slots[] = {
    {Py_tp_doc, "A place in a log."}, {Py_tp_init, reader_init},     {Py_tp_dealloc, reader_dealloc},
    {Py_tp_iter, PyObject_SelfIter},  {Py_tp_iternext, reader_next}, {Py_tp_methods, methods},
    {Py_tp_members, members},         {Py_tp_getset, properties},    {0},
};

PyType_Spec ompy_log_reader_spec = {.name = "ombus._native.LogReader",
                                    .basicsize = sizeof(LogReader),
                                    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                    .slots = slots};
