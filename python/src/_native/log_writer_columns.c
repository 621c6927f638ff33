/* _append_columns(): records with wal_seq, type and time of their own, as imports bring them. */

#include "log.h"

enum { PART = 4096 };

typedef struct Columns {
    Py_buffer seqs, types, times, offsets, payloads; /* uint64, uint8, uint64 (0 = now), int32[rows + 1], bytes */
    size_t rows;
} Columns;

static int get(PyObject *object, Py_buffer *buffer, size_t item, const char *what, size_t rows) {
    if (PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE) != 0)
        return -1;
    if ((size_t)buffer->len == rows * item)
        return 0;
    ompy_raise_detail(OM_ERR_BUS_INIT, "%s has %zd bytes, %zu rows need %zu", what, buffer->len, rows, rows * item);
    return -1;
}

static int check_offsets(const Columns *columns) {
    const int32_t *offsets = columns->offsets.buf;
    for (size_t i = 0; i < columns->rows; i++) {
        if (offsets[i] < 0 || offsets[i + 1] < offsets[i] || offsets[i + 1] > columns->payloads.len) {
            ompy_raise_detail(OM_ERR_BUS_INIT, "offsets of row %zu leave the payloads", i);
            return -1;
        }
    }
    return 0;
}

static int columns_get(Columns *columns, PyObject *const *arg) {
    if (PyObject_GetBuffer(arg[1], &columns->types, PyBUF_SIMPLE) != 0)
        return -1;
    columns->rows = (size_t)columns->types.len;
    if (get(arg[0], &columns->seqs, 8, "seqs", columns->rows) != 0 ||
        get(arg[2], &columns->times, 8, "times", columns->rows) != 0 ||
        get(arg[3], &columns->offsets, 4, "offsets", columns->rows + 1) != 0 ||
        PyObject_GetBuffer(arg[4], &columns->payloads, PyBUF_SIMPLE) != 0)
        return -1;
    return check_offsets(columns);
}

static void columns_clear(Columns *columns) {
    Py_buffer *all[] = {&columns->seqs, &columns->types, &columns->times, &columns->offsets, &columns->payloads};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->obj)
            PyBuffer_Release(all[i]);
}

static int64_t append_part(OmLogWriter *log, const Columns *columns, size_t from, size_t count) {
    OmLogRecord records[PART];
    const int32_t *offsets = columns->offsets.buf;
    for (size_t i = 0; i < count; i++) {
        size_t row = from + i;
        records[i] = (OmLogRecord){.wal_seq = ((const uint64_t *)columns->seqs.buf)[row],
                                   .timestamp_ns = ((const uint64_t *)columns->times.buf)[row],
                                   .payload = (const char *)columns->payloads.buf + offsets[row],
                                   .payload_len = (uint32_t)(offsets[row + 1] - offsets[row]),
                                   .wal_type = ((const uint8_t *)columns->types.buf)[row]};
    }
    return om_log_append_batch(log, records, count);
}

PyObject *ompy_log_writer_append_columns(PyObject *op, PyObject *const *args, Py_ssize_t nargs) {
    LogWriter *self = (LogWriter *)op;
    Columns columns = {0};
    PyObject *result = 0;
    if (nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "_append_columns(seqs, types, times, offsets, payloads)");
        return 0;
    }
    if (columns_get(&columns, args) == 0 && ompy_log_writer_check(self, INT64_MAX) == 0) {
        size_t done = 0;
        int64_t n = 0;
        ompy_gate_enter(&self->gate);
        while (done < columns.rows && n >= 0) {
            size_t left = columns.rows - done;
            int64_t room = ompy_log_writer_room(self, left < PART ? left : PART, INT64_MAX);
            if (room <= 0)
                break; /* with an exception */
            Py_BEGIN_ALLOW_THREADS;
            n = append_part(self->log, &columns, done, (size_t)room);
            Py_END_ALLOW_THREADS;
            done += n > 0 ? (size_t)n : 0;
            if (PyErr_CheckSignals() != 0)
                break;
        }
        ompy_log_writer_leave(self);
        if (n < 0 && !PyErr_Occurred())
            ompy_raise_with(n, "published", PyLong_FromSize_t(done));
        if (!PyErr_Occurred())
            result = PyLong_FromSize_t(done);
    }
    columns_clear(&columns);
    return result;
}
