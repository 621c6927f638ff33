/* publish_batch(): many records in one call, without Python work per record. */

#include "common.h"

/** The records of a sequence; NULL for an array, or with an error set. */
static OmBusRecord *records_of(const Items *items, uint64_t first_seq, uint8_t type) {
    if (!items->objects)
        return 0;
    OmBusRecord *records = PyMem_Malloc((items->count ? items->count : 1) * sizeof *records);
    if (!records)
        PyErr_NoMemory();
    for (size_t i = 0; records && i < items->count; i++)
        records[i] = (OmBusRecord){.wal_seq = first_seq + i,
                                   .wal_type = type,
                                   .payload = items->pieces[i].data,
                                   .payload_len = (uint16_t)items->pieces[i].size};
    return records;
}

typedef struct Batch {
    Items items;
    OmBusRecord *records; /* NULL = an array */
} Batch;

/** Publish what is left after the first `done`; how many that were, or an error. */
static int64_t publish_rest(OmBusStream *stream, const Batch *batch, size_t done, uint64_t first_seq, uint8_t type,
                            int64_t timeout_ns) {
    size_t left = batch->items.count - done;
    if (batch->items.objects)
        return om_bus_stream_publish_batch_timed(stream, batch->records + done, left < INT32_MAX ? left : INT32_MAX,
                                                 timeout_ns);
    return om_bus_stream_publish_array(stream, first_seq + done, type,
                                       (const char *)batch->items.buffer.buf + done * batch->items.stride,
                                       (uint16_t)batch->items.item_size, batch->items.stride, left, timeout_ns);
}

/** Publish all, waiting as long as allowed. How many were published, or an error; a Python error may be set, too. */
static int64_t publish_all(RingProducer *self, const Batch *batch, uint64_t first_seq, uint8_t type,
                           int64_t deadline_ns) {
    size_t done = 0;
    bool large = batch->items.objects || batch->items.count > OMPY_LARGE_BYTES / (batch->items.item_size + 1);
    if (!large) { /* small: as a rule it fits, and is done before another thread could use the GIL */
        int64_t n = publish_rest(self->stream, batch, 0, first_seq, type, 0);
        if (n < 0 || (size_t)n == batch->items.count)
            return n;
        done = (size_t)n;
    }
    ompy_gate_enter(&self->gate);
    int64_t n = 0;
    while (done < batch->items.count) {
        int64_t slice_ns = ompy_slice_ns(deadline_ns);
        Py_BEGIN_ALLOW_THREADS;
        n = publish_rest(self->stream, batch, done, first_seq, type, slice_ns);
        Py_END_ALLOW_THREADS;
        if (n < 0)
            break;
        done += (size_t)n;
        if (done == batch->items.count || PyErr_CheckSignals() != 0)
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
    int rc = ompy_items_get(&batch.items, arg[0], arg[4]);
    size_t largest = rc == 0 ? ompy_items_largest(&batch.items) : 0;
    if (largest > UINT16_MAX)
        rc = ompy_producer_too_large(largest);
    /* Only now: the above may have run Python code. From here to the publishing nothing does. */
    if (rc == 0 && ompy_producer_check(self, deadline_ns) == 0 &&
        ompy_producer_first_seq(self, is_given ? &given : 0, batch.items.count, &first_seq) == 0 &&
        ((batch.records = records_of(&batch.items, first_seq, (uint8_t)type)) || !batch.items.objects)) {
        int64_t done = publish_all(self, &batch, first_seq, (uint8_t)type, deadline_ns);
        if (done > 0)
            self->last_seq = first_seq + (uint64_t)done - 1;
        if (done < 0)
            ompy_raise(done);
        else if ((size_t)done < batch.items.count && !PyErr_Occurred())
            ompy_raise_with(OM_ERR_BUS_TIMEOUT, "published", PyLong_FromLongLong(done));
        else if (!PyErr_Occurred())
            result = PyLong_FromUnsignedLongLong(self->last_seq);
    }
    PyMem_Free(batch.records);
    ompy_items_clear(&batch.items);
    return result;
}
