/* RingProducer: ombus.Producer without its address. publish() is the hot path: about 40 ns above the library's own. */

#include "common.h"

/* ---- life ---- */

static int producer_init(PyObject *op, PyObject *args, PyObject *kwargs) {
    RingProducer *self = (RingProducer *)op;
    const char *name;
    unsigned int capacity, slot_size, max_consumers, flags;
    unsigned long long staleness_ns;
    static char *names[] = {"name", "capacity", "slot_size", "max_consumers", "flags", "staleness_ns", 0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sIIIIK", names, &name, &capacity, &slot_size, &max_consumers,
                                     &flags, &staleness_ns))
        return -1;
    if (self->gate.lock) {
        ompy_raise_detail(OM_ERR_BUS_INIT, "__init__ was called twice");
        return -1;
    }
    OmBusStreamConfig config = {.stream_name = name,
                                .capacity = capacity,
                                .slot_size = slot_size,
                                .max_consumers = max_consumers,
                                .flags = flags,
                                .staleness_ns = staleness_ns};
    OmBusStreamInfo before, after;
    OmBusStream *stream;
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    /* A ring of another shape is replaced by a new one, but the stream and so its wal_seq go on. */
    if (om_bus_inspect(name, &before, 0, 0) < 0)
        before.last_wal_seq = 0;
    rc = om_bus_stream_create(&stream, &config);
    if (rc == 0 && om_bus_inspect(name, &after, 0, 0) < 0)
        after.last_wal_seq = 0;
    Py_END_ALLOW_THREADS;
    if (rc != 0) {
        ompy_raise(rc);
        return -1;
    }
    bool late = self->gate.lock != 0; /* another thread's __init__ was faster */
    if (late)
        ompy_raise_detail(OM_ERR_BUS_INIT, "__init__ was called twice");
    if (late || ompy_gate_init(&self->gate) != 0) {
        om_bus_stream_detach(stream);
        return -1;
    }
    self->stream = stream;
    self->last_seq = before.last_wal_seq > after.last_wal_seq ? before.last_wal_seq : after.last_wal_seq;
    return 0;
}

static void close_now(RingProducer *self, bool destroy) {
    OmBusStream *stream = self->stream;
    self->stream = 0;
    if (destroy)
        om_bus_stream_destroy(stream);
    else
        om_bus_stream_detach(stream);
}

static PyObject *close_or_request(RingProducer *self, bool destroy) {
    if (ompy_gate_occupied(&self->gate)) {
        self->gate.close_requested = true;
        self->destroy_requested |= destroy;
    } else {
        close_now(self, destroy);
    }
    Py_RETURN_NONE;
}

static PyObject *producer_detach(PyObject *self, PyObject *Py_UNUSED(none)) {
    return close_or_request((RingProducer *)self, false);
}

static PyObject *producer_destroy(PyObject *self, PyObject *Py_UNUSED(none)) {
    return close_or_request((RingProducer *)self, true);
}

void ompy_producer_leave(RingProducer *self) {
    ompy_gate_leave(&self->gate);
    if (self->gate.close_requested)
        close_now(self, self->destroy_requested);
}

static void producer_dealloc(PyObject *op) {
    RingProducer *self = (RingProducer *)op;
    PyTypeObject *type = Py_TYPE(op);
    om_bus_stream_detach(self->stream);
    ompy_gate_clear(&self->gate);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(op);
    Py_DECREF(type);
}

int ompy_producer_check(RingProducer *self, int64_t deadline_ns) {
    if (self->gate.busy && ompy_gate_wait(&self->gate, deadline_ns) != 0)
        return -1;
    if (!self->stream) {
        ompy_raise_named("Closed", "producer");
        return -1;
    }
    return 0;
}

/* ---- publish ---- */

int ompy_producer_too_large(size_t size) {
    ompy_raise_detail(OM_ERR_BUS_RECORD_TOO_LARGE, "payload of %zu bytes, a ring's record holds at most %d", size,
                      UINT16_MAX);
    return OM_ERR_BUS_RECORD_TOO_LARGE;
}

int ompy_producer_first_seq(const RingProducer *self, const uint64_t *given, uint64_t count, uint64_t *out) {
    *out = given ? *given : self->last_seq + 1;
    if (count <= 1 ? given || self->last_seq != UINT64_MAX : *out != 0 && count - 1 <= UINT64_MAX - *out)
        return 0;
    ompy_raise_detail(OM_ERR_BUS_INIT, "wal_seq ends at %llu: no room for %llu records from %llu on",
                      (unsigned long long)UINT64_MAX, (unsigned long long)count, (unsigned long long)*out);
    return -1;
}

/** The ring is full: wait without the GIL, in slices, so that signals and close() get through. */
static int publish_waiting(RingProducer *self, uint64_t seq, uint8_t type, const Payload *payload,
                           int64_t deadline_ns) {
    int rc;
    ompy_gate_enter(&self->gate);
    do {
        int64_t slice_ns = ompy_slice_ns(deadline_ns);
        Py_BEGIN_ALLOW_THREADS;
        rc = om_bus_stream_publish_timed(self->stream, seq, type, payload->data, (uint16_t)payload->size, slice_ns);
        Py_END_ALLOW_THREADS;
        if (rc != OM_ERR_BUS_TIMEOUT || slice_ns == 0)
            break;
        if (PyErr_CheckSignals() != 0)
            break;
        if (self->gate.close_requested)
            ompy_raise_named("Closed", "producer: close() was called while publish() waited");
    } while (!PyErr_Occurred());
    ompy_producer_leave(self);
    return rc;
}

/** Publish at once or wait for room. 0, or an error; a Python error may be set instead of its own. */
static inline int publish_payload(RingProducer *self, uint64_t seq, uint8_t type, const Payload *payload,
                                  int64_t timeout_ns, int64_t deadline_ns) {
    if (payload->size > UINT16_MAX)
        return ompy_producer_too_large((size_t)payload->size);
    int rc = om_bus_stream_publish_timed(self->stream, seq, type, payload->data, (uint16_t)payload->size, 0);
    if (rc == OM_ERR_BUS_TIMEOUT && timeout_ns != 0)
        rc = publish_waiting(self, seq, type, payload, deadline_ns >= 0 ? deadline_ns : ompy_deadline_ns(timeout_ns));
    return rc;
}

/** arg[] is payload, type, seq. 0 with *seq set, or an error; a Python error may be set instead of its own. */
static inline int publish(RingProducer *self, PyObject *const *arg, int64_t timeout_ns, uint64_t *seq) {
    int64_t deadline_ns = -1; /* not read from the clock unless we wait */
    uint64_t type = 1, given;
    bool is_given = arg[2] && arg[2] != Py_None;
    Payload payload;
    if ((arg[1] && ompy_u64(arg[1], "type", UINT8_MAX, &type) != 0) ||
        (is_given && ompy_u64(arg[2], "seq", UINT64_MAX, &given) != 0) || ompy_payload_get(&payload, arg[0]) != 0)
        return OM_ERR_BUS_INIT;
    /* Only now: the above may have run Python code. From here to the publishing nothing does. */
    int rc = OM_ERR_BUS_INIT;
    if (self->gate.busy || !self->stream)
        deadline_ns = ompy_deadline_ns(timeout_ns);
    if ((deadline_ns < 0 || ompy_producer_check(self, deadline_ns) == 0) &&
        ompy_producer_first_seq(self, is_given ? &given : 0, 1, seq) == 0)
        rc = publish_payload(self, *seq, (uint8_t)type, &payload, timeout_ns, deadline_ns);
    ompy_payload_release(&payload);
    if (rc == 0)
        self->last_seq = *seq;
    return rc;
}

static PyObject *producer_publish(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"payload", "type", "seq", "timeout", 0};
    RingProducer *self = (RingProducer *)op;
    PyObject *arg[4] = {0};
    int64_t timeout_ns = OM_BUS_FOREVER;
    if (nargs == 1 && !kwnames)
        arg[0] = args[0];
    else if (ompy_args("publish", names, 1, args, nargs, kwnames, arg) != 0 || ompy_timeout(arg[3], &timeout_ns) != 0)
        return 0;
    uint64_t seq;
    int rc = publish(self, arg, timeout_ns, &seq);
    if (rc == 0)
        return PyLong_FromUnsignedLongLong(seq);
    return PyErr_Occurred() ? 0 : ompy_raise(rc);
}

static PyObject *producer_try_publish(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"payload", "type", "seq", 0};
    RingProducer *self = (RingProducer *)op;
    PyObject *arg[3];
    if (ompy_args("try_publish", names, 1, args, nargs, kwnames, arg) != 0)
        return 0;
    if (ompy_gate_occupied(&self->gate)) /* another thread waits for room, so there is none */
        Py_RETURN_NONE;
    uint64_t seq;
    int rc = publish(self, arg, 0, &seq);
    if (rc == 0)
        return PyLong_FromUnsignedLongLong(seq);
    if (PyErr_Occurred())
        return 0;
    if (rc == OM_ERR_BUS_TIMEOUT)
        Py_RETURN_NONE;
    return ompy_raise(rc);
}

/* ---- what it knows ---- */

/** Reads words only, so another thread may look while one waits in publish(). */
static PyObject *producer_counters(PyObject *op, PyObject *Py_UNUSED(none)) {
    RingProducer *self = (RingProducer *)op;
    if (!self->stream)
        return ompy_raise_named("Closed", "producer");
    OmBusStreamStats stats;
    om_bus_stream_stats(self->stream, &stats);
    return Py_BuildValue("KKKK", (unsigned long long)stats.records_published, (unsigned long long)stats.head,
                         (unsigned long long)stats.min_tail, (unsigned long long)self->last_seq);
}

static PyObject *producer_closed(PyObject *op, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(!((RingProducer *)op)->stream);
}

static PyObject *producer_last_seq(PyObject *op, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(((RingProducer *)op)->last_seq);
}

/* clang-format off */
static PyMethodDef methods[] = {
    {"publish", OMPY_FASTCALL(producer_publish), METH_FASTCALL | METH_KEYWORDS,
     "publish($self, payload, type=1, seq=None, timeout=None)\n--\n\n"
     "Publish one record and return its wal_seq.\n\n"
     "payload is anything bytes-like; seq None means the one after the last. Waits while the ring is full, at most\n"
     "`timeout` seconds (None: for ever), then raises Timeout and has published nothing.\n\n"
     "    >>> producer.publish(b'hello')\n"
     "    1\n"},
    {"try_publish", OMPY_FASTCALL(producer_try_publish), METH_FASTCALL | METH_KEYWORDS,
     "try_publish($self, payload, type=1, seq=None)\n--\n\n"
     "As publish(), but return None at once when the ring is full."},
    {"publish_batch", OMPY_FASTCALL(ompy_producer_publish_batch), METH_FASTCALL | METH_KEYWORDS,
     "publish_batch($self, items, type=1, seq=None, timeout=None, itemsize=None)\n--\n\n"
     "Publish many records under consecutive wal_seq, the first being `seq`, and return the last one's wal_seq.\n\n"
     "items is a NumPy array (one record per row, structured or plain), another buffer with an item size, bytes cut\n"
     "into pieces of `itemsize`, or a list of bytes-like objects. Waits for room as it goes; a Timeout or a\n"
     "KeyboardInterrupt leaves the first records published (Timeout.published says how many, last_seq where it is).\n\n"
     "    >>> producer.publish_batch(np.arange(1000, dtype='<u8'))\n"
     "    1000\n"},
    {"_detach", producer_detach, METH_NOARGS, "Close the handle, leave the ring."},
    {"_destroy", producer_destroy, METH_NOARGS, "Close the handle, remove the ring's name."},
    {"_counters", producer_counters, METH_NOARGS, "(records_published, head, min_tail, last_seq)"},
    {0},
};
/* clang-format on */

static PyGetSetDef properties[] = {
    {"closed", producer_closed, 0, "Whether close() or destroy() was called.", 0},
    {"last_seq", producer_last_seq, 0, "wal_seq of the last record published; 0 when there is none.", 0},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The producer's side of a ring."},
    {Py_tp_init, producer_init},
    {Py_tp_dealloc, producer_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0},
};

PyType_Spec ompy_producer_spec = {.name = "ombus._native.RingProducer",
                                  .basicsize = sizeof(RingProducer),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                  .slots = slots};
