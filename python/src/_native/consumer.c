/* RingConsumer: ombus.Consumer without its address. */

#include "common.h"

/* ---- life ---- */

static int consumer_init(PyObject *op, PyObject *args, PyObject *kwargs) {
    RingConsumer *self = (RingConsumer *)op;
    const char *name;
    PyObject *index, *timeout;
    uint64_t index_value = OM_BUS_CONSUMER_ANY;
    int64_t timeout_ns;
    int ignore_gaps;
    static char *names[] = {"name", "index", "ignore_gaps", "timeout", 0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOpO", names, &name, &index, &ignore_gaps, &timeout) ||
        (index != Py_None && ompy_u64(index, "index", UINT32_MAX - 1, &index_value) != 0) ||
        ompy_timeout(timeout, &timeout_ns) != 0)
        return -1;
    if (self->gate.lock) {
        ompy_raise_detail(OM_ERR_BUS_INIT, "__init__ was called twice");
        return -1;
    }
    /* zero_copy of the library is left off: poll() would then hand out a slot that the producer may reuse while we
     * copy it. Our zero copy is om_bus_endpoint_peek_batch(), which keeps the slots. */
    OmBusEndpointConfig config = {.stream_name = name, .consumer_index = (uint32_t)index_value};
    OmBusStreamInfo info;
    OmBusEndpoint *endpoint;
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    rc = om_bus_endpoint_open(&endpoint, &config);
    if (rc == 0 && om_bus_inspect(name, &info, 0, 0) < 0)
        info.capacity = OM_BUS_DEFAULT_CAPACITY; /* the name is gone already; only bounds the size of a batch */
    Py_END_ALLOW_THREADS;
    if (rc != 0) {
        ompy_raise(rc);
        return -1;
    }
    bool late = self->gate.lock != 0; /* another thread's __init__ was faster */
    if (late)
        ompy_raise_detail(OM_ERR_BUS_INIT, "__init__ was called twice");
    if (late || ompy_gate_init(&self->gate) != 0) {
        om_bus_endpoint_close(endpoint);
        return -1;
    }
    self->endpoint = endpoint;
    self->timeout_ns = timeout_ns;
    self->ignore_gaps = ignore_gaps;
    self->capacity = info.capacity;
    self->max_payload = om_bus_endpoint_max_payload(endpoint);
    return 0;
}

static void close_now(RingConsumer *self) {
    OmBusEndpoint *endpoint = self->endpoint;
    self->endpoint = 0;
    om_bus_endpoint_close(endpoint);
}

static PyObject *consumer_close(PyObject *op, PyObject *Py_UNUSED(none)) {
    RingConsumer *self = (RingConsumer *)op;
    if (ompy_gate_occupied(&self->gate)) {
        self->gate.close_requested = true;
        Py_RETURN_NONE;
    }
    if (ompy_view_give_back(self) != 0)
        return 0;
    close_now(self);
    Py_RETURN_NONE;
}

void ompy_consumer_leave(RingConsumer *self) {
    ompy_gate_leave(&self->gate);
    if (self->gate.close_requested)
        close_now(self);
}

static void consumer_dealloc(PyObject *op) {
    RingConsumer *self = (RingConsumer *)op;
    PyTypeObject *type = Py_TYPE(op);
    om_bus_endpoint_close(self->endpoint);
    Py_XDECREF(self->pending);
    ompy_gate_clear(&self->gate);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(op);
    Py_DECREF(type);
}

int ompy_consumer_check(RingConsumer *self) {
    if (self->gate.busy)
        return ompy_gate_refuse(&self->gate);
    if (!self->endpoint) {
        ompy_raise_named("Closed", "consumer");
        return -1;
    }
    if (self->view && ompy_view_give_back(self) != 0)
        return -1;
    if (self->pending) {
        PyErr_SetObject((PyObject *)Py_TYPE(self->pending), self->pending);
        Py_CLEAR(self->pending);
        return -1;
    }
    return 0;
}

void ompy_consumer_pend(RingConsumer *self, int rc, PyObject *record) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback); /* we may be called while another exception is on its way */
    if (record)
        ompy_raise_with(rc, "record", record);
    else
        ompy_raise(rc);
    PyObject *pending_type, *pending_traceback;
    Py_CLEAR(self->pending);
    PyErr_Fetch(&pending_type, &self->pending, &pending_traceback);
    Py_XDECREF(pending_type);
    Py_XDECREF(pending_traceback);
    PyErr_Restore(type, value, traceback);
}

bool ompy_consumer_ignores(RingConsumer *self, int rc) {
    if (rc != OM_ERR_BUS_GAP_DETECTED)
        return false;
    self->gaps++;
    return self->ignore_gaps;
}

/* ---- poll, wait, iterate ---- */

/** The next record; NULL with an error set, or NULL without one when there is none. */
static PyObject *next_record(RingConsumer *self) {
    OmBusRecord record;
    int rc = om_bus_endpoint_poll(self->endpoint, &record);
    if (rc == 0)
        return 0;
    if (rc == 1 || ompy_consumer_ignores(self, rc))
        return ompy_record(record.wal_seq, record.wal_type, record.payload, record.payload_len);
    if (ompy_is_delivered(rc))
        return ompy_raise_with(rc, "record",
                               ompy_record(record.wal_seq, record.wal_type, record.payload, record.payload_len));
    return ompy_raise(rc);
}

static PyObject *consumer_poll(PyObject *op, PyObject *Py_UNUSED(none)) {
    RingConsumer *self = (RingConsumer *)op;
    if (ompy_consumer_check(self) != 0)
        return 0;
    PyObject *record = next_record(self);
    if (!record && !PyErr_Occurred())
        Py_RETURN_NONE;
    return record;
}

/** 1 = poll() has something to say, 0 = timeout, -1 = a Python error is set. */
static int wait_for_record(RingConsumer *self, int64_t timeout_ns) {
    int rc = om_bus_endpoint_wait(self->endpoint, 0);
    if (rc == 0 && timeout_ns != 0) {
        int64_t deadline_ns = ompy_deadline_ns(timeout_ns);
        ompy_gate_enter(&self->gate);
        int64_t slice_ns = ompy_slice_ns(deadline_ns);
        while (rc == 0 && slice_ns > 0) {
            Py_BEGIN_ALLOW_THREADS;
            rc = om_bus_endpoint_wait(self->endpoint, slice_ns);
            Py_END_ALLOW_THREADS;
            if (PyErr_CheckSignals() != 0)
                break;
            if (self->gate.close_requested) {
                ompy_raise_named("Closed", "consumer: close() was called while another call waited");
                break;
            }
            slice_ns = ompy_slice_ns(deadline_ns);
        }
        ompy_consumer_leave(self);
    }
    if (PyErr_Occurred())
        return -1;
    if (rc < 0)
        ompy_raise(rc);
    return rc < 0 ? -1 : rc;
}

static PyObject *consumer_wait(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"timeout", 0};
    RingConsumer *self = (RingConsumer *)op;
    PyObject *arg[1];
    int64_t timeout_ns;
    if (ompy_args("wait", names, 0, args, nargs, kwnames, arg) != 0 || ompy_timeout(arg[0], &timeout_ns) != 0 ||
        ompy_consumer_check(self) != 0)
        return 0;
    int ready = wait_for_record(self, timeout_ns);
    return ready < 0 ? 0 : PyBool_FromLong(ready);
}

static PyObject *consumer_next(PyObject *op) {
    RingConsumer *self = (RingConsumer *)op;
    if (ompy_consumer_check(self) != 0)
        return 0;
    for (;;) {
        PyObject *record = next_record(self);
        if (record || PyErr_Occurred() || wait_for_record(self, self->timeout_ns) != 1)
            return record;
    }
}

/* ---- cursor ---- */

static PyObject *consumer_save_cursor(PyObject *op, PyObject *path) {
    RingConsumer *self = (RingConsumer *)op;
    PyObject *encoded;
    if (!PyUnicode_FSConverter(path, &encoded))
        return 0;
    PyObject *result = 0;
    if (!self->endpoint) {
        ompy_raise_named("Closed", "consumer");
    } else {
        int rc;
        uint64_t wal_seq = om_bus_endpoint_wal_seq(self->endpoint);
        const char *file = PyBytes_AsString(encoded);
        Py_BEGIN_ALLOW_THREADS; /* it waits for the disk; the handle is not needed for that */
        rc = om_bus_cursor_save(file, wal_seq);
        Py_END_ALLOW_THREADS;
        result = rc == 0 ? Py_BuildValue("") : ompy_raise(rc);
    }
    Py_DECREF(encoded);
    return result;
}

/* ---- what it knows; words only, so another thread may look while one waits ---- */

static PyObject *u64_or_closed(PyObject *op, uint64_t (*get)(const OmBusEndpoint *)) {
    OmBusEndpoint *endpoint = ((RingConsumer *)op)->endpoint;
    return endpoint ? PyLong_FromUnsignedLongLong(get(endpoint)) : ompy_raise_named("Closed", "consumer");
}

static PyObject *consumer_wal_seq(PyObject *op, void *Py_UNUSED(closure)) {
    return u64_or_closed(op, om_bus_endpoint_wal_seq);
}

static PyObject *consumer_missed(PyObject *op, void *Py_UNUSED(closure)) {
    return u64_or_closed(op, om_bus_endpoint_missed);
}

static uint64_t index_u64(const OmBusEndpoint *endpoint) {
    return om_bus_endpoint_index(endpoint);
}

static PyObject *consumer_index(PyObject *op, void *Py_UNUSED(closure)) {
    return u64_or_closed(op, index_u64);
}

static PyObject *consumer_closed(PyObject *op, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(!((RingConsumer *)op)->endpoint);
}

static PyObject *consumer_get_timeout(PyObject *op, void *Py_UNUSED(closure)) {
    int64_t timeout_ns = ((RingConsumer *)op)->timeout_ns;
    return timeout_ns < 0 ? Py_BuildValue("") : PyFloat_FromDouble((double)timeout_ns / 1e9);
}

static int consumer_set_timeout(PyObject *op, PyObject *value, void *Py_UNUSED(closure)) {
    return ompy_timeout(value, &((RingConsumer *)op)->timeout_ns);
}

static PyMemberDef members[] = {
    {"gaps", T_ULONGLONG, offsetof(RingConsumer, gaps), READONLY, "Gaps in wal_seq seen so far."},
    {"max_payload", T_UINT, offsetof(RingConsumer, max_payload), READONLY, "Longest payload of this ring, in bytes."},
    {0},
};

static PyGetSetDef properties[] = {
    {"wal_seq", consumer_wal_seq, 0, "wal_seq of the last record read; 0 before the first.", 0},
    {"missed", consumer_missed, 0, "Records lost in all ConsumerStale so far.", 0},
    {"index", consumer_index, 0, "The consumer slot in use.", 0},
    {"closed", consumer_closed, 0, "Whether close() was called.", 0},
    {"timeout", consumer_get_timeout, consumer_set_timeout,
     "Seconds that iteration waits for a record before it ends; None = for ever.", 0},
    {0},
};

/* clang-format off */
static PyMethodDef methods[] = {
    {"poll", consumer_poll, METH_NOARGS,
     "poll($self)\n--\n\nThe next record, or None when there is none yet. Never waits."},
    {"wait", OMPY_FASTCALL(consumer_wait), METH_FASTCALL | METH_KEYWORDS,
     "wait($self, timeout=None)\n--\n\n"
     "Sleep until there is something to poll: True, or False after `timeout` seconds (None: for ever). Uses no CPU."},
    {"save_cursor", consumer_save_cursor, METH_O,
     "save_cursor($self, path)\n--\n\n"
     "Write wal_seq to a small file, atomically and durably; Consumer.load_cursor() reads it."},
    {"close", consumer_close, METH_NOARGS,
     "close($self)\n--\n\n"
     "Free the consumer slot. BufferError while a view of a zero-copy batch is alive. From another thread: a call that\n"
     "waits ends with Closed."},
    {"_poll_columns", ompy_consumer_poll_columns, METH_O, "(seqs, types, offsets, payloads) as bytearrays"},
    {"_peek", ompy_consumer_peek, METH_O, "RingView of up to max records"},
    {0},
};
/* clang-format on */

static PyType_Slot slots[] = {
    {Py_tp_doc, "A consumer's side of a ring."},
    {Py_tp_init, consumer_init},
    {Py_tp_dealloc, consumer_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, consumer_next},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {0},
};

PyType_Spec ompy_consumer_spec = {.name = "ombus._native.RingConsumer",
                                  .basicsize = sizeof(RingConsumer),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                  .slots = slots};
