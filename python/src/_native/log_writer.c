/* LogWriter: a Producer that appends to a log, and with a ring attached also publishes. */

#include "log.h"

/* ---- life ---- */

static int attach_ring(LogWriter *self, OmLogWriter *log, const OmBusStreamConfig *config) {
    OmBusStreamInfo before, after;
    if (om_bus_inspect(config->stream_name, &before, 0, 0) < 0)
        before.last_wal_seq = 0;
    int rc = om_bus_stream_create(&self->ring, config);
    if (rc != 0)
        return rc;
    if (om_bus_inspect(config->stream_name, &after, 0, 0) < 0)
        after.last_wal_seq = 0;
    self->floor_seq = before.last_wal_seq > after.last_wal_seq ? before.last_wal_seq : after.last_wal_seq;
    return om_bus_attach_log(self->ring, log);
}

static int writer_init(PyObject *op, PyObject *args, PyObject *kwargs) {
    LogWriter *self = (LogWriter *)op;
    PyObject *dir;
    OmLogWriterOptions options = {0};
    OmBusStreamConfig ring = {0};
    unsigned long long segment_bytes, max_bytes, max_age_ns, staleness_ns;
    static char *names[] = {"dir", "options", "retention", "ring", 0};
    /* ring: (name or None, capacity, slot_size, max_consumers, flags, staleness_ns) */
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&(KIIII)(KKI)(zIIIIK)", names, PyUnicode_FSConverter, &dir,
                                     &segment_bytes, &options.sync, &options.linger_records, &options.linger_ms,
                                     &options.flags, &max_bytes, &max_age_ns, &options.retention.flags,
                                     &ring.stream_name, &ring.capacity, &ring.slot_size, &ring.max_consumers,
                                     &ring.flags, &staleness_ns))
        return -1;
    if (self->gate.lock || ompy_gate_init(&self->gate) != 0) {
        if (!PyErr_Occurred())
            ompy_raise_detail(OM_ERR_BUS_INIT, "__init__ was called twice");
        Py_DECREF(dir);
        return -1;
    }
    options.segment_bytes = segment_bytes;
    options.retention.max_bytes = max_bytes;
    options.retention.max_age_ns = max_age_ns;
    ring.staleness_ns = staleness_ns;
    OmLogWriter *log;
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    rc = om_log_open_writer(&log, PyBytes_AsString(dir), &options);
    if (rc == 0 && ring.stream_name && (rc = attach_ring(self, log, &ring)) != 0)
        om_log_close(log);
    Py_END_ALLOW_THREADS;
    Py_DECREF(dir);
    if (rc != 0) {
        ompy_raise(rc);
        return -1;
    }
    self->log = log;
    self->sync_each = options.sync == OM_LOG_SYNC_EACH;
    return 0;
}

static int close_now(LogWriter *self, bool destroy) {
    OmLogWriter *log = self->log;
    OmBusStream *ring = self->ring;
    int rc;
    self->log = 0;
    self->ring = 0;
    Py_BEGIN_ALLOW_THREADS; /* it waits for the disk */
    rc = om_log_close(log);
    if (destroy)
        om_bus_stream_destroy(ring);
    else
        om_bus_stream_detach(ring);
    Py_END_ALLOW_THREADS;
    return rc;
}

static bool in_use(const LogWriter *self) {
    return ompy_gate_occupied(&self->gate) || self->waiters > 0;
}

static PyObject *close_or_request(LogWriter *self, bool destroy) {
    if (in_use(self)) {
        self->gate.close_requested = true;
        self->destroy_requested |= destroy;
        Py_RETURN_NONE;
    }
    int rc = self->log ? close_now(self, destroy) : 0;
    return rc == 0 || rc == OM_ERR_BUS_FORKED ? Py_BuildValue("") : ompy_raise(rc);
}

static PyObject *writer_close(PyObject *self, PyObject *Py_UNUSED(none)) {
    return close_or_request((LogWriter *)self, false);
}

static PyObject *writer_destroy(PyObject *self, PyObject *Py_UNUSED(none)) {
    return close_or_request((LogWriter *)self, true);
}

/** The last one out closes. Keeps an exception that is on its way. */
static void close_if_requested(LogWriter *self) {
    if (self->gate.close_requested && !in_use(self) && self->log)
        close_now(self, self->destroy_requested);
}

void ompy_log_writer_leave(LogWriter *self) {
    ompy_gate_leave(&self->gate);
    close_if_requested(self);
}

static void writer_dealloc(PyObject *op) {
    LogWriter *self = (LogWriter *)op;
    PyTypeObject *type = Py_TYPE(op);
    close_now(self, false);
    ompy_gate_clear(&self->gate);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(op);
    Py_DECREF(type);
}

int ompy_log_writer_check(LogWriter *self, int64_t deadline_ns) {
    if (self->gate.busy && ompy_gate_wait(&self->gate, deadline_ns) != 0)
        return -1;
    if (!self->log || self->gate.close_requested) {
        ompy_raise_named("Closed", "producer");
        return -1;
    }
    return 0;
}

/* ---- append ---- */

int64_t ompy_log_writer_room(LogWriter *self, uint64_t wanted, int64_t deadline_ns) {
    if (!self->ring)
        return (int64_t)wanted;
    for (;;) {
        int64_t slice_ns = ompy_slice_ns(deadline_ns), room;
        Py_BEGIN_ALLOW_THREADS;
        room = om_bus_stream_wait_room(self->ring, wanted, slice_ns);
        Py_END_ALLOW_THREADS;
        if (room > 0)
            return room;
        if (room != OM_ERR_BUS_TIMEOUT) /* a ring that is lost never stops the log; the library counts it */
            return (int64_t)wanted;
        if (slice_ns == 0)
            return room;
        if (PyErr_CheckSignals() != 0)
            return 0;
        if (self->gate.close_requested) {
            ompy_raise_named("Closed", "producer: close() was called while it waited for room in the ring");
            return 0;
        }
    }
}

/** Where the call may block: without the GIL. */
static int64_t append_waiting(LogWriter *self, uint64_t seq, uint8_t type, const Payload *payload,
                              int64_t deadline_ns) {
    ompy_gate_enter(&self->gate);
    int64_t rc = ompy_log_writer_room(self, 1, deadline_ns);
    if (rc > 0) {
        Py_BEGIN_ALLOW_THREADS;
        rc = om_log_append(self->log, seq, type, payload->data, (uint32_t)payload->size);
        Py_END_ALLOW_THREADS;
    }
    ompy_log_writer_leave(self);
    return rc;
}

/** arg[] is payload, type, seq. The wal_seq, or an error (or 0); a Python error may be set instead of its own. */
static inline int64_t append(LogWriter *self, PyObject *const *arg, int64_t timeout_ns) {
    uint64_t type = 1, seq = 0;
    bool is_given = arg[2] && arg[2] != Py_None;
    Payload payload;
    if ((arg[1] && ompy_u64(arg[1], "type", UINT8_MAX, &type) != 0) ||
        (is_given && ompy_u64(arg[2], "seq", UINT64_MAX, &seq) != 0) || ompy_payload_get(&payload, arg[0]) != 0)
        return 0;
    /* Only now: the above may have run Python code. From here to the append nothing does. */
    int64_t rc = 0, deadline_ns = -1;
    if (self->gate.busy || !self->log || self->gate.close_requested)
        deadline_ns = ompy_deadline_ns(timeout_ns);
    if (deadline_ns >= 0 && ompy_log_writer_check(self, deadline_ns) != 0) {
        rc = 0;
    } else if (is_given && seq == 0) {
        ompy_raise_detail(OM_ERR_LOG_SEQ_ORDER, "wal_seq 0: the first one of a log is 1");
    } else if (payload.size > (Py_ssize_t)OM_LOG_PAYLOAD_MAX) {
        ompy_raise_detail(OM_ERR_LOG_TOO_LARGE, "payload of %zd bytes", payload.size);
    } else {
        if (!is_given)
            seq = ompy_log_writer_next(self);
        bool full = self->ring && om_bus_stream_wait_room(self->ring, 1, 0) == OM_ERR_BUS_TIMEOUT;
        if (full && timeout_ns == 0)
            rc = OM_ERR_BUS_TIMEOUT;
        else if (full || self->sync_each || payload.size >= OMPY_LARGE_BYTES)
            rc = append_waiting(self, seq, (uint8_t)type, &payload,
                                deadline_ns >= 0 ? deadline_ns : ompy_deadline_ns(timeout_ns));
        else
            rc = om_log_append(self->log, seq, (uint8_t)type, payload.data, (uint32_t)payload.size);
    }
    ompy_payload_release(&payload);
    return rc;
}

static PyObject *result_of(int64_t rc) {
    if (rc > 0 && !PyErr_Occurred())
        return PyLong_FromLongLong(rc);
    return PyErr_Occurred() ? 0 : ompy_raise(rc);
}

static PyObject *writer_publish(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"payload", "type", "seq", "timeout", 0};
    PyObject *arg[4] = {0};
    int64_t timeout_ns = OM_BUS_FOREVER;
    if (nargs == 1 && !kwnames)
        arg[0] = args[0];
    else if (ompy_args("publish", names, 1, args, nargs, kwnames, arg) != 0 || ompy_timeout(arg[3], &timeout_ns) != 0)
        return 0;
    return result_of(append((LogWriter *)op, arg, timeout_ns));
}

static PyObject *writer_try_publish(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"payload", "type", "seq", 0};
    LogWriter *self = (LogWriter *)op;
    PyObject *arg[3];
    if (ompy_args("try_publish", names, 1, args, nargs, kwnames, arg) != 0)
        return 0;
    if (self->ring && ompy_gate_occupied(&self->gate)) /* another thread waits for room, so there is none */
        Py_RETURN_NONE;
    int64_t rc = append(self, arg, 0);
    if (rc == OM_ERR_BUS_TIMEOUT && !PyErr_Occurred())
        Py_RETURN_NONE;
    return result_of(rc);
}

/* ---- durability: beside appends of other threads ---- */

/** Run in slices until done, a signal's exception, or close(). 0, or an error; a Python error may be set. */
static int wait_durable(LogWriter *self, uint64_t seq, int64_t deadline_ns) {
    int rc;
    self->waiters++;
    for (;;) {
        int64_t slice_ns = ompy_slice_ns(deadline_ns);
        Py_BEGIN_ALLOW_THREADS;
        rc = om_log_wait_durable(self->log, seq, slice_ns);
        Py_END_ALLOW_THREADS;
        if (rc != OM_ERR_LOG_TIMEOUT || slice_ns == 0 || PyErr_CheckSignals() != 0)
            break;
        if (self->gate.close_requested) {
            ompy_raise_named("Closed", "producer: close() was called while wait_durable() waited");
            break;
        }
    }
    self->waiters--;
    close_if_requested(self);
    return rc;
}

static PyObject *writer_wait_durable(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"seq", "timeout", 0};
    LogWriter *self = (LogWriter *)op;
    PyObject *arg[2];
    int64_t timeout_ns;
    uint64_t seq = 0;
    if (ompy_args("wait_durable", names, 0, args, nargs, kwnames, arg) != 0 || ompy_timeout(arg[1], &timeout_ns) != 0 ||
        (arg[0] && arg[0] != Py_None && ompy_u64(arg[0], "seq", UINT64_MAX, &seq) != 0))
        return 0;
    if (!self->log || self->gate.close_requested)
        return ompy_raise_named("Closed", "producer");
    if (!arg[0] || arg[0] == Py_None)
        seq = om_log_writer_last_seq(self->log);
    int rc = wait_durable(self, seq, ompy_deadline_ns(timeout_ns));
    if (PyErr_Occurred())
        return 0;
    return rc == 0 ? Py_BuildValue("") : ompy_raise(rc);
}

static PyObject *writer_sync(PyObject *op, PyObject *Py_UNUSED(none)) {
    LogWriter *self = (LogWriter *)op;
    int rc;
    if (!self->log || self->gate.close_requested)
        return ompy_raise_named("Closed", "producer");
    self->waiters++;
    Py_BEGIN_ALLOW_THREADS;
    rc = om_log_sync(self->log);
    Py_END_ALLOW_THREADS;
    self->waiters--;
    if (rc != 0)
        ompy_raise(rc);
    close_if_requested(self);
    return rc == 0 ? Py_BuildValue("") : 0;
}

/* ---- what it knows ---- */

static PyObject *writer_counters(PyObject *op, PyObject *Py_UNUSED(none)) {
    LogWriter *self = (LogWriter *)op;
    if (!self->log)
        return ompy_raise_named("Closed", "producer");
    OmLogWriterStats log;
    OmBusStreamStats ring;
    om_log_writer_stats(self->log, &log);
    om_bus_stream_stats(self->ring, &ring);
    return Py_BuildValue("(KKKKKKKKKKKKK)", (unsigned long long)log.records, (unsigned long long)ring.head,
                         (unsigned long long)ring.min_tail, (unsigned long long)om_log_writer_last_seq(self->log),
                         (unsigned long long)om_log_writer_durable_seq(self->log), (unsigned long long)log.bytes,
                         (unsigned long long)log.rotations, (unsigned long long)log.rotation_waits,
                         (unsigned long long)log.syncs, (unsigned long long)log.sync_errors,
                         (unsigned long long)log.segments_pruned, (unsigned long long)log.publish_skipped,
                         (unsigned long long)log.publish_errors);
}

static PyObject *writer_repair_report(PyObject *op, PyObject *Py_UNUSED(none)) {
    LogWriter *self = (LogWriter *)op;
    if (!self->log)
        return ompy_raise_named("Closed", "producer");
    OmLogReport report;
    om_log_writer_repair_report(self->log, &report);
    return ompy_log_report(&report);
}

static PyObject *writer_closed(PyObject *op, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(!((LogWriter *)op)->log);
}

static PyObject *seq_or_closed(PyObject *op, uint64_t (*get)(const OmLogWriter *)) {
    OmLogWriter *log = ((LogWriter *)op)->log;
    return log ? PyLong_FromUnsignedLongLong(get(log)) : ompy_raise_named("Closed", "producer");
}

static PyObject *writer_last_seq(PyObject *op, void *Py_UNUSED(closure)) {
    return seq_or_closed(op, om_log_writer_last_seq);
}

static PyObject *writer_durable_seq(PyObject *op, void *Py_UNUSED(closure)) {
    return seq_or_closed(op, om_log_writer_durable_seq);
}

/* clang-format off */
static PyMethodDef methods[] = {
    {"publish", OMPY_FASTCALL(writer_publish), METH_FASTCALL | METH_KEYWORDS,
     "publish($self, payload, type=1, seq=None, timeout=None)\n--\n\n"
     "Append one record and return its wal_seq. Readers see it at once; it survives this process from then on.\n\n"
     "payload is anything bytes-like, up to 64 MiB; seq None means the one after the last. With a ring attached it\n"
     "waits while the ring is full, at most `timeout` seconds (None: for ever), then raises Timeout and has appended\n"
     "nothing.\n\n"
     "    >>> producer.publish(b'hello')\n"
     "    1\n"},
    {"try_publish", OMPY_FASTCALL(writer_try_publish), METH_FASTCALL | METH_KEYWORDS,
     "try_publish($self, payload, type=1, seq=None)\n--\n\n"
     "As publish(), but return None at once when an attached ring is full."},
    {"publish_batch", OMPY_FASTCALL(ompy_log_writer_publish_batch), METH_FASTCALL | METH_KEYWORDS,
     "publish_batch($self, items, type=1, seq=None, timeout=None, itemsize=None)\n--\n\n"
     "Append many records under consecutive wal_seq, the first being `seq`, and return the last one's wal_seq.\n\n"
     "items is a NumPy array (one record per row, structured or plain), another buffer with an item size, bytes cut\n"
     "into pieces of `itemsize`, or a list of bytes-like objects. Where it ends early (LogDiskFull, Timeout), the\n"
     "error's `published` says how many records are in the log.\n\n"
     "    >>> producer.publish_batch(np.arange(1000, dtype='<u8'))\n"
     "    1000\n"},
    {"sync", writer_sync, METH_NOARGS,
     "sync($self)\n--\n\nPut everything appended so far on disk. Also while other threads publish."},
    {"wait_durable", OMPY_FASTCALL(writer_wait_durable), METH_FASTCALL | METH_KEYWORDS,
     "wait_durable($self, seq=None, timeout=None)\n--\n\n"
     "Wait until everything up to `seq` (None: the last record) is on disk; several waiters share one sync.\n"
     "DurabilityTimeout after `timeout` seconds (None: for ever). Also while other threads publish.\n\n"
     "    >>> producer.wait_durable(producer.publish(b'paid'))\n"},
    {"_append_columns", OMPY_FASTCALL(ompy_log_writer_append_columns), METH_FASTCALL,
     "(seqs, types, times, offsets, payloads) as buffers: append rows as they are; returns how many"},
    {"_close", writer_close, METH_NOARGS, "Sync and close the handle."},
    {"_destroy", writer_destroy, METH_NOARGS, "The same, and remove the ring's name."},
    {"_counters", writer_counters, METH_NOARGS, "The fields of LogProducerStats"},
    {"_repair_report", writer_repair_report, METH_NOARGS, "The fields of LogReport"},
    {0},
};
/* clang-format on */

static PyGetSetDef properties[] = {
    {"closed", writer_closed, 0, "Whether close() was called.", 0},
    {"last_seq", writer_last_seq, 0, "wal_seq of the last record of the log; 0 when there is none.", 0},
    {"durable_seq", writer_durable_seq, 0, "Everything up to this wal_seq is on disk.", 0},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The writer of a log."}, {Py_tp_init, writer_init},
    {Py_tp_dealloc, writer_dealloc},     {Py_tp_methods, methods},
    {Py_tp_getset, properties},          {0},
};

PyType_Spec ompy_log_writer_spec = {.name = "ombus._native.LogWriter",
                                    .basicsize = sizeof(LogWriter),
                                    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                    .slots = slots};
