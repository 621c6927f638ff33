/**
 * RingView: records in place in the ring, for zero-copy batches. The producer cannot reuse their slots until the view
 * is given back, and it is not given back while anything looks at it: every memoryview and NumPy array made from it
 * holds an export, as with bytearray.
 */

#include "common.h"

struct RingView {
    PyObject_HEAD RingConsumer *consumer; /* NULL = given back */
    const char *base;                     /* lowest address of a payload */
    Py_ssize_t size;                      /* up to the end of the highest one */
    Py_ssize_t count;
    Py_ssize_t exports;
    PyObject *seqs, *types, *starts, *sizes; /* bytes: columns, copied; starts count from base */
};

PyObject *ompy_view_type;

/* ---- life ---- */

static int columns_new(RingView *self, const OmBusRecord *records, Py_ssize_t count) {
    self->seqs = PyBytes_FromStringAndSize(0, count * (Py_ssize_t)sizeof(uint64_t));
    self->types = PyBytes_FromStringAndSize(0, count);
    self->starts = PyBytes_FromStringAndSize(0, count * (Py_ssize_t)sizeof(uint64_t));
    self->sizes = PyBytes_FromStringAndSize(0, count * (Py_ssize_t)sizeof(uint32_t));
    if (!self->seqs || !self->types || !self->starts || !self->sizes)
        return -1;
    uint64_t *seqs = (uint64_t *)PyBytes_AsString(self->seqs), *starts = (uint64_t *)PyBytes_AsString(self->starts);
    uint8_t *types = (uint8_t *)PyBytes_AsString(self->types);
    uint32_t *sizes = (uint32_t *)PyBytes_AsString(self->sizes);
    for (Py_ssize_t i = 0; i < count; i++) {
        seqs[i] = records[i].wal_seq;
        types[i] = records[i].wal_type;
        starts[i] = (uint64_t)((const char *)records[i].payload - self->base);
        sizes[i] = records[i].payload_len;
    }
    return 0;
}

/** The memory that holds all payloads: what is peeked together lies in adjacent slots. */
static void find_span(RingView *self, const OmBusRecord *records, Py_ssize_t count) {
    const OmBusRecord *last = &records[count - 1];
    self->base = records[0].payload;
    self->size = (const char *)last->payload + last->payload_len - self->base;
}

static PyObject *view_new(RingConsumer *consumer, const OmBusRecord *records, Py_ssize_t count) {
    RingView *self = (RingView *)PyType_GenericAlloc((PyTypeObject *)ompy_view_type, 0);
    if (!self) {
        om_bus_endpoint_release(consumer->endpoint, (size_t)count);
        return 0;
    }
    self->count = count;
    self->base = "";
    if (count) {
        find_span(self, records, count);
        Py_INCREF((PyObject *)consumer);
        self->consumer = consumer;
        consumer->view = self;
    }
    if (columns_new(self, records, count) != 0)
        Py_CLEAR(self); /* gives the records back */
    return (PyObject *)self;
}

static void give_back(RingView *self) {
    RingConsumer *consumer = self->consumer;
    if (!consumer)
        return;
    self->consumer = 0;
    consumer->view = 0;
    int rc = om_bus_endpoint_release(consumer->endpoint, (size_t)self->count);
    if (rc != 0)
        ompy_consumer_pend(consumer, rc, 0);
    Py_DECREF((PyObject *)consumer);
}

int ompy_view_give_back(RingConsumer *consumer) {
    if (consumer->view && consumer->view->exports) {
        PyErr_Format(PyExc_BufferError,
                     "%zd memoryviews or arrays of the last zero-copy batch are alive: delete them first, or copy "
                     "what you want to keep",
                     consumer->view->exports);
        return -1;
    }
    if (consumer->view)
        give_back(consumer->view);
    return 0;
}

static void view_dealloc(PyObject *op) {
    RingView *self = (RingView *)op;
    PyTypeObject *type = Py_TYPE(op);
    give_back(self);
    Py_XDECREF(self->seqs);
    Py_XDECREF(self->types);
    Py_XDECREF(self->starts);
    Py_XDECREF(self->sizes);
    PyObject_Free(op);
    Py_DECREF(type);
}

PyObject *ompy_consumer_peek(PyObject *op, PyObject *max) {
    RingConsumer *self = (RingConsumer *)op;
    uint64_t limit;
    if (ompy_u64(max, "max", UINT64_MAX, &limit) != 0 || ompy_consumer_check(self) != 0)
        return 0;
    if (limit > self->capacity)
        limit = self->capacity;
    OmBusRecord *records = PyMem_Malloc((limit ? limit : 1) * sizeof *records);
    if (!records)
        return PyErr_NoMemory();
    int count = om_bus_endpoint_peek_batch(self->endpoint, records, limit);
    if (count < 0 && ompy_consumer_ignores(self, count))
        count = om_bus_endpoint_peek_batch(self->endpoint, records, limit); /* now it hands the record out */
    PyObject *view = count < 0 ? ompy_raise(count) : view_new(self, records, count);
    PyMem_Free(records);
    return view;
}

/* ---- the buffer protocol ---- */

static int view_get_buffer(PyObject *op, Py_buffer *buffer, int flags) {
    RingView *self = (RingView *)op;
    buffer->obj = 0;
    if (self->count && !self->consumer) {
        PyErr_SetString(PyExc_BufferError, "this batch was given back to the ring: its payloads are gone");
        return -1;
    }
    if (PyBuffer_FillInfo(buffer, op, (void *)self->base, self->size, 1, flags) != 0)
        return -1;
    self->exports++;
    return 0;
}

static void view_release_buffer(PyObject *op, Py_buffer *Py_UNUSED(buffer)) {
    ((RingView *)op)->exports--;
}

/* ---- what Python sees ---- */

static PyObject *view_release(PyObject *op, PyObject *Py_UNUSED(none)) {
    RingConsumer *consumer = ((RingView *)op)->consumer;
    if (!consumer)
        Py_RETURN_NONE;
    Py_INCREF((PyObject *)consumer); /* the view lets go of it */
    /* The check gives the view back and raises what came of it. */
    PyObject *result = ompy_consumer_check(consumer) == 0 ? Py_BuildValue("") : 0;
    Py_DECREF((PyObject *)consumer);
    return result;
}

static PyObject *view_released(PyObject *op, void *Py_UNUSED(closure)) {
    RingView *self = (RingView *)op;
    return PyBool_FromLong(self->count && !self->consumer);
}

static PyMemberDef members[] = {
    {"seqs", T_OBJECT_EX, offsetof(RingView, seqs), READONLY, "wal_seq, uint64"},
    {"types", T_OBJECT_EX, offsetof(RingView, types), READONLY, "wal_type, uint8"},
    {"starts", T_OBJECT_EX, offsetof(RingView, starts), READONLY, "start of each payload in this buffer, uint64"},
    {"sizes", T_OBJECT_EX, offsetof(RingView, sizes), READONLY, "size of each payload, uint32"},
    {0},
};

static PyGetSetDef properties[] = {
    {"released", view_released, 0, "Whether the records were given back.", 0},
    {0},
};

static PyMethodDef methods[] = {
    {"release", view_release, METH_NOARGS, "Give the records back to the ring."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Records in place in the ring."},
    {Py_tp_dealloc, view_dealloc},
    {Py_bf_getbuffer, view_get_buffer},
    {Py_bf_releasebuffer, view_release_buffer},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0},
};

PyType_Spec ompy_view_spec = {.name = "ombus._native.RingView",
                              .basicsize = sizeof(RingView),
                              .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              .slots = slots};
