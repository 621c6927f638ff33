/* publish_batch(): many records in one call, without Python work per record. */

#include "common.h"

/** What is to be published: equal items at a stride in one buffer, or records that point into objects. */
typedef struct Batch {
    size_t count;
    /* one buffer */
    Py_buffer buffer;
    size_t item_size;
    size_t stride;
    /* a sequence */
    PyObject *objects;    /* tuple: keeps them alive while the GIL is released; NULL = one buffer */
    OmBusRecord *records; /* wal_seq and wal_type are set later */
    Py_buffer *views;     /* of objects that are not bytes */
    size_t view_count;
} Batch;

static int fail(const char *text) {
    ompy_raise_detail(OM_ERR_BUS_INIT, "%s", text);
    return -1;
}

/** A row is a record: whatever lies below the first dimension must lie together, the rows need not. */
static int rows_of(Batch *batch) {
    const Py_buffer *buffer = &batch->buffer;
    if (buffer->ndim == 0)
        return fail("publish_batch() needs an array of at least one dimension: use publish() for one record");
    Py_ssize_t size = buffer->itemsize;
    for (int i = buffer->ndim - 1; i > 0; i--) {
        if (buffer->shape[i] > 1 && buffer->strides[i] != size)
            return fail("the rows of the array are not contiguous: pass numpy.ascontiguousarray(array)");
        size *= buffer->shape[i];
    }
    if (buffer->strides[0] < 0 && buffer->shape[0] > 1)
        return fail("the array runs backward: pass numpy.ascontiguousarray(array)");
    if (buffer->ndim == 1 && size == 1)
        return fail("every byte would become a record: say how long a record is with itemsize=");
    batch->count = (size_t)buffer->shape[0];
    batch->item_size = (size_t)size;
    batch->stride = (size_t)buffer->strides[0];
    return 0;
}

static int pieces_of(Batch *batch, PyObject *itemsize) {
    uint64_t size;
    if (ompy_u64(itemsize, "itemsize", PY_SSIZE_T_MAX, &size) != 0)
        return -1;
    if (!PyBuffer_IsContiguous(&batch->buffer, 'C'))
        return fail("itemsize= needs a contiguous buffer");
    if (size == 0 || (uint64_t)batch->buffer.len % size != 0) {
        ompy_raise_detail(OM_ERR_BUS_INIT, "%zd bytes are not a multiple of itemsize %llu", batch->buffer.len,
                          (unsigned long long)size);
        return -1;
    }
    batch->count = (uint64_t)batch->buffer.len / size;
    batch->item_size = batch->stride = size;
    return 0;
}

static int from_buffer(Batch *batch, PyObject *items, PyObject *itemsize) {
    /* Without PyBUF_FORMAT: NumPy then also gives types that the buffer protocol cannot describe (datetime64). */
    if (PyObject_GetBuffer(items, &batch->buffer, PyBUF_STRIDED_RO) != 0)
        return -1;
    int rc = itemsize && itemsize != Py_None ? pieces_of(batch, itemsize) : rows_of(batch);
    if (rc == 0 && batch->count && batch->item_size > UINT16_MAX)
        rc = ompy_producer_too_large(batch->item_size);
    return rc;
}

static int add_object(Batch *batch, size_t at, PyObject *object) {
    OmBusRecord *record = &batch->records[at];
    char *data;
    Py_ssize_t size;
    if (PyBytes_CheckExact(object)) {
        if (PyBytes_AsStringAndSize(object, &data, &size) != 0)
            return -1;
    } else {
        if (!batch->views && !(batch->views = PyMem_Calloc(batch->count, sizeof *batch->views))) {
            PyErr_NoMemory();
            return -1;
        }
        Py_buffer *view = &batch->views[batch->view_count];
        if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) != 0)
            return -1;
        batch->view_count++;
        data = view->buf;
        size = view->len;
    }
    if (size > UINT16_MAX)
        return ompy_producer_too_large((size_t)size);
    record->payload = data;
    record->payload_len = (uint16_t)size;
    return 0;
}

static int from_sequence(Batch *batch, PyObject *items) {
    batch->objects = PySequence_Tuple(items);
    if (!batch->objects)
        return -1;
    batch->count = (size_t)PyTuple_Size(batch->objects);
    batch->records = PyMem_Calloc(batch->count, sizeof *batch->records);
    if (!batch->records && batch->count) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < batch->count; i++)
        if (add_object(batch, i, PyTuple_GetItem(batch->objects, (Py_ssize_t)i)) != 0)
            return -1;
    return 0;
}

static void batch_clear(Batch *batch) {
    while (batch->view_count)
        PyBuffer_Release(&batch->views[--batch->view_count]);
    PyMem_Free(batch->views);
    PyMem_Free(batch->records);
    Py_XDECREF(batch->objects);
    if (batch->buffer.obj)
        PyBuffer_Release(&batch->buffer);
}

static void number_records(Batch *batch, uint64_t first_seq, uint8_t type) {
    for (size_t i = 0; batch->objects && i < batch->count; i++) {
        batch->records[i].wal_seq = first_seq + i;
        batch->records[i].wal_type = type;
    }
}

/** Publish what is left after the first `done`; how many that were, or an error. */
static int64_t publish_rest(OmBusStream *stream, const Batch *batch, size_t done, uint64_t first_seq, uint8_t type,
                            int64_t timeout_ns) {
    size_t left = batch->count - done;
    if (batch->objects)
        return om_bus_stream_publish_batch_timed(stream, batch->records + done, left < INT32_MAX ? left : INT32_MAX,
                                                 timeout_ns);
    return om_bus_stream_publish_array(stream, first_seq + done, type,
                                       (const char *)batch->buffer.buf + done * batch->stride,
                                       (uint16_t)batch->item_size, batch->stride, left, timeout_ns);
}

/** Publish all, waiting as long as allowed. How many were published, or an error; a Python error may be set, too. */
static int64_t publish_all(RingProducer *self, const Batch *batch, uint64_t first_seq, uint8_t type,
                           int64_t deadline_ns) {
    size_t done = 0;
    bool large = batch->objects || batch->count > OMPY_LARGE_BYTES / (batch->item_size + 1);
    if (!large) { /* small: as a rule it fits, and is done before another thread could use the GIL */
        int64_t n = publish_rest(self->stream, batch, 0, first_seq, type, 0);
        if (n < 0 || (size_t)n == batch->count)
            return n;
        done = (size_t)n;
    }
    ompy_gate_enter(&self->gate);
    int64_t n = 0;
    while (done < batch->count) {
        int64_t slice_ns = ompy_slice_ns(deadline_ns);
        Py_BEGIN_ALLOW_THREADS;
        n = publish_rest(self->stream, batch, done, first_seq, type, slice_ns);
        Py_END_ALLOW_THREADS;
        if (n < 0)
            break;
        done += (size_t)n;
        if (done == batch->count || PyErr_CheckSignals() != 0)
            break;
        if (self->gate.close_requested) {
            ompy_raise_named("Closed", "producer: close() was called while publish_batch() waited");
            break;
        }
        if (slice_ns == 0)
            break;
    }
    ompy_producer_leave(self);
    if (n < 0 && done == 0)
        return n;
    if (n < 0)
        ompy_raise(n);
    return (int64_t)done;
}

PyObject *ompy_producer_publish_batch(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"items", "type", "seq", "timeout", "itemsize", 0};
    RingProducer *self = (RingProducer *)op;
    PyObject *arg[5], *result = 0;
    int64_t timeout_ns;
    uint64_t type = 1, given, first_seq;
    Batch batch = {0};
    if (ompy_args("publish_batch", names, 1, args, nargs, kwnames, arg) != 0 || ompy_timeout(arg[3], &timeout_ns) != 0)
        return 0;
    int64_t deadline_ns = ompy_deadline_ns(timeout_ns);
    bool is_given = arg[2] && arg[2] != Py_None;
    if ((arg[1] && ompy_u64(arg[1], "type", UINT8_MAX, &type) != 0) ||
        (is_given && ompy_u64(arg[2], "seq", UINT64_MAX, &given) != 0))
        return 0;
    int rc = PyObject_CheckBuffer(arg[0]) ? from_buffer(&batch, arg[0], arg[4]) : from_sequence(&batch, arg[0]);
    /* Only now: the above may have run Python code. From here to the publishing nothing does. */
    if (rc == 0 && ompy_producer_check(self, deadline_ns) == 0 &&
        ompy_producer_first_seq(self, is_given ? &given : 0, batch.count, &first_seq) == 0) {
        number_records(&batch, first_seq, (uint8_t)type);
        int64_t done = publish_all(self, &batch, first_seq, (uint8_t)type, deadline_ns);
        if (done > 0)
            self->last_seq = first_seq + (uint64_t)done - 1;
        if (done < 0)
            ompy_raise(done);
        else if ((size_t)done < batch.count && !PyErr_Occurred())
            ompy_raise_with(OM_ERR_BUS_TIMEOUT, "published", PyLong_FromLongLong(done));
        else if (!PyErr_Occurred())
            result = PyLong_FromUnsignedLongLong(self->last_seq);
    }
    batch_clear(&batch);
    return result;
}
