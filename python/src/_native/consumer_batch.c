/* _poll_columns(): many records copied out of the ring in one call, into buffers that belong to the batch alone. */

#include "common.h"

enum { PAYLOAD_BYTES_MAX = 64 * 1024 * 1024 }; /* of one batch, however large the ring is */

typedef struct Columns {
    /* bytearrays, because the limited API can shorten them after they were filled; nobody else has seen them then */
    PyObject *seqs, *types, *offsets, *payloads;
} Columns;

static PyObject *new_column(size_t size) {
    return PyByteArray_FromStringAndSize(0, (Py_ssize_t)size);
}

static int columns_new(Columns *columns, size_t rows, size_t payload_bytes) {
    columns->seqs = new_column(rows * sizeof(uint64_t));
    columns->types = new_column(rows);
    columns->offsets = new_column((rows + 1) * sizeof(uint32_t));
    columns->payloads = new_column(payload_bytes);
    return columns->seqs && columns->types && columns->offsets && columns->payloads ? 0 : -1;
}

static void columns_clear(Columns *columns) {
    Py_CLEAR(columns->seqs);
    Py_CLEAR(columns->types);
    Py_CLEAR(columns->offsets);
    Py_CLEAR(columns->payloads);
}

/** Cut the columns to what was filled. */
static PyObject *columns_finish(Columns *columns, size_t rows) {
    uint32_t used = rows ? ((uint32_t *)PyByteArray_AsString(columns->offsets))[rows] : 0;
    if (!rows)
        memset(PyByteArray_AsString(columns->offsets), 0, sizeof(uint32_t));
    if (PyByteArray_Resize(columns->seqs, (Py_ssize_t)(rows * sizeof(uint64_t))) != 0 ||
        PyByteArray_Resize(columns->types, (Py_ssize_t)rows) != 0 ||
        PyByteArray_Resize(columns->offsets, (Py_ssize_t)((rows + 1) * sizeof(uint32_t))) != 0 ||
        PyByteArray_Resize(columns->payloads, (Py_ssize_t)used) != 0)
        return 0;
    return PyTuple_Pack(4, columns->seqs, columns->types, columns->offsets, columns->payloads);
}

/** Fill rows from `row` on; how many, or an error. */
static int fill(RingConsumer *self, Columns *columns, size_t row, size_t rows, size_t payload_bytes) {
    uint64_t *seqs = (uint64_t *)PyByteArray_AsString(columns->seqs) + row;
    uint8_t *types = (uint8_t *)PyByteArray_AsString(columns->types) + row;
    uint32_t *offsets = (uint32_t *)PyByteArray_AsString(columns->offsets) + row;
    uint32_t start = row ? *offsets : 0;
    char *payloads = PyByteArray_AsString(columns->payloads) + start;
    size_t room = payload_bytes - start;
    PyThreadState *thread = 0;
    if (room >= OMPY_LARGE_BYTES) {
        ompy_gate_enter(&self->gate);
        thread = PyEval_SaveThread();
    }
    int rc = om_bus_endpoint_poll_columns(self->endpoint, rows - row, seqs, types, offsets, payloads, room);
    if (thread) {
        PyEval_RestoreThread(thread);
        ompy_consumer_leave(self);
    }
    int filled = ompy_is_delivered(rc) ? 1 : rc;
    for (int i = 0; start && i <= filled; i++) /* the library counts from the start of this call's payloads */
        offsets[i] += start;
    return rc;
}

static PyObject *record_of(const Columns *columns, size_t row) {
    const uint32_t *offsets = (uint32_t *)PyByteArray_AsString(columns->offsets) + row;
    uint64_t seq = ((uint64_t *)PyByteArray_AsString(columns->seqs))[row];
    uint8_t type = ((uint8_t *)PyByteArray_AsString(columns->types))[row];
    return ompy_record(seq, type, PyByteArray_AsString(columns->payloads) + offsets[0], offsets[1] - offsets[0]);
}

/** Poll until the batch is full or nothing is left; an ignored gap ends a call of the library, but not the batch. */
static int64_t fill_all(RingConsumer *self, Columns *columns, size_t rows, size_t payload_bytes) {
    size_t row = 0;
    bool ignored = true;
    while (ignored && row < rows && self->endpoint) {
        if (row && ((uint32_t *)PyByteArray_AsString(columns->offsets))[row] > payload_bytes - self->max_payload)
            break; /* the next payload might not fit, which would be an error of its own */
        int rc = fill(self, columns, row, rows, payload_bytes);
        ignored = rc < 0 && ompy_consumer_ignores(self, rc);
        if (rc < 0 && !ignored && row == 0)
            return rc;
        if (rc < 0 && !ignored) { /* first what we have */
            ompy_consumer_pend(self, rc, ompy_is_delivered(rc) ? record_of(columns, row) : 0);
            break;
        }
        row += ignored ? 1 : (size_t)rc;
    }
    return (int64_t)row;
}

PyObject *ompy_consumer_poll_columns(PyObject *op, PyObject *max) {
    RingConsumer *self = (RingConsumer *)op;
    Columns columns = {0};
    uint64_t rows;
    if (ompy_u64(max, "max", UINT64_MAX, &rows) != 0 || ompy_consumer_check(self) != 0)
        return 0;
    int ready = om_bus_endpoint_wait(self->endpoint, 0);
    if (ready < 0)
        return ompy_raise(ready);
    if (rows > self->capacity) /* a ring never holds more */
        rows = self->capacity;
    if (!ready)
        rows = 0;
    uint64_t payload_bytes = rows * self->max_payload;
    if (payload_bytes > PAYLOAD_BYTES_MAX)
        payload_bytes = self->max_payload > PAYLOAD_BYTES_MAX ? self->max_payload : PAYLOAD_BYTES_MAX;
    PyObject *result = 0;
    if (columns_new(&columns, rows, payload_bytes) == 0) {
        int64_t filled = fill_all(self, &columns, rows, payload_bytes);
        if (filled >= 0)
            result = columns_finish(&columns, (size_t)filled);
        else if (ompy_is_delivered(filled))
            ompy_raise_with(filled, "record", record_of(&columns, 0));
        else
            ompy_raise(filled);
    }
    columns_clear(&columns);
    return result;
}
