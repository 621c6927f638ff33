/* Many records copied out of the log in one call: as columns, or as one array of equal payloads. */

#include "log.h"

enum {
    ROWS_MAX = 64 * 1024,               /* of one batch */
    BATCH_BYTES_MAX = 64 * 1024 * 1024, /* of its payloads, but at least one record */
    FILL_ROWS = 512,
};

/* ---- columns ---- */

/** How many records to ask for: what has lately made a batch of BATCH_BYTES_MAX. */
static size_t rows_to_ask(const LogReader *self, uint64_t max) {
    uint64_t rows = BATCH_BYTES_MAX / (self->average_len + OM_LOG_FRAME_HEADER_SIZE) + 1;
    rows = rows < ROWS_MAX ? rows : ROWS_MAX;
    return rows < max ? rows : max;
}

/** How many of the records are handed out: not too many bytes, and up to the first gap if that is to be reported. */
static size_t rows_to_take(LogReader *self, const OmLogRecord *records, size_t count, size_t *bytes) {
    uint64_t last_seq = self->wal_seq;
    size_t row = 0;
    *bytes = 0;
    for (; row < count; row++) {
        bool gap = last_seq && records[row].wal_seq != last_seq + 1;
        if (row && *bytes + records[row].payload_len > BATCH_BYTES_MAX)
            break;
        if (gap && self->raise_gaps)
            break; /* left for poll(), which reports it together with its record */
        self->gaps += gap;
        *bytes += records[row].payload_len;
        last_seq = records[row].wal_seq;
    }
    if (row)
        self->average_len = (uint32_t)(*bytes / row);
    return row;
}

static void copy_columns(const OmLogRecord *records, size_t rows, uint64_t *seqs, uint8_t *types, uint64_t *times,
                         uint32_t *offsets, char *payloads) {
    uint32_t offset = 0;
    for (size_t i = 0; i < rows; i++) {
        const OmLogRecord *record = &records[i];
        seqs[i] = record->wal_seq;
        types[i] = record->wal_type;
        times[i] = record->timestamp_ns;
        offsets[i] = offset;
        memcpy(payloads + offset, record->payload, record->payload_len);
        offset += record->payload_len;
    }
    offsets[rows] = offset;
}

static PyObject *new_column(size_t size) {
    return PyByteArray_FromStringAndSize(0, (Py_ssize_t)size);
}

static PyObject *columns_of(LogReader *self, const OmLogRecord *records, size_t rows, size_t bytes) {
    PyObject *seqs = new_column(rows * 8), *types = new_column(rows), *times = new_column(rows * 8);
    PyObject *offsets = new_column((rows + 1) * 4), *payloads = new_column(bytes), *result = 0;
    if (seqs && types && times && offsets && payloads) {
        char *data[] = {PyByteArray_AsString(seqs), PyByteArray_AsString(types), PyByteArray_AsString(times),
                        PyByteArray_AsString(offsets), PyByteArray_AsString(payloads)};
        PyThreadState *thread = bytes >= OMPY_LARGE_BYTES ? PyEval_SaveThread() : 0; /* the caller is in the gate */
        copy_columns(records, rows, (uint64_t *)data[0], (uint8_t *)data[1], (uint64_t *)data[2], (uint32_t *)data[3],
                     data[4]);
        if (thread)
            PyEval_RestoreThread(thread);
        result = PyTuple_Pack(5, seqs, types, times, offsets, payloads);
    }
    if (result && rows)
        self->wal_seq = records[rows - 1].wal_seq;
    Py_XDECREF(seqs);
    Py_XDECREF(types);
    Py_XDECREF(times);
    Py_XDECREF(offsets);
    Py_XDECREF(payloads);
    return result;
}

/** NULL without an error set and with *gap_first: a gap is to be reported before anything else. */
static PyObject *read_columns(LogReader *self, OmLogRecord *records, size_t ask, bool *gap_first) {
    int count = 0;
    size_t bytes = 0;
    Py_BEGIN_ALLOW_THREADS; /* it may read from the disk */
    if (ask)
        count = om_log_next_batch(self->reader, records, ask);
    Py_END_ALLOW_THREADS;
    if (count < 0)
        return ompy_log_reader_raise(self, count);
    size_t rows = rows_to_take(self, records, (size_t)count, &bytes);
    *gap_first = count && rows == 0;
    PyObject *result = *gap_first ? 0 : columns_of(self, records, rows, bytes);
    if (count && (rows < (size_t)count || !result)) {
        int rc = ompy_log_reader_back_to(self, records[result ? rows : 0].wal_seq);
        if (rc != 0 && (result || *gap_first)) {
            Py_CLEAR(result);
            ompy_log_reader_raise(self, rc);
        }
    }
    return result;
}

PyObject *ompy_log_reader_columns(PyObject *op, PyObject *max) {
    LogReader *self = (LogReader *)op;
    uint64_t limit;
    if (ompy_u64(max, "max", UINT64_MAX, &limit) != 0 || ompy_log_reader_ready(self) != 0)
        return 0;
    size_t ask = om_log_wait(self->reader, 0) == 0 ? 0 : rows_to_ask(self, limit);
    OmLogRecord *records = PyMem_Malloc((ask ? ask : 1) * sizeof *records);
    if (!records)
        return PyErr_NoMemory();
    bool gap_first = false;
    ompy_gate_enter(&self->gate);
    PyObject *result = read_columns(self, records, ask, &gap_first);
    ompy_log_reader_leave(self);
    PyMem_Free(records);
    if (gap_first && !PyErr_Occurred() && ompy_log_reader_check(self) == 0)
        result = ompy_log_reader_next(self); /* raises it together with its record */
    return result;
}

/* ---- an array ---- */

typedef struct Fill {
    char *to;
    size_t size; /* of each payload */
    size_t rows, rows_max;
    int rc;          /* of the library */
    OmLogRecord odd; /* the first record of another size; wal_seq 0 = none */
} Fill;

static void fill(OmLogReader *reader, Fill *f) {
    OmLogRecord records[FILL_ROWS];
    while (f->rows < f->rows_max) {
        size_t left = f->rows_max - f->rows;
        int count;
        do {
            count = om_log_next_batch(reader, records, left < FILL_ROWS ? left : FILL_ROWS);
        } while (count == OM_ERR_LOG_SKIPPED); /* the user asked for that with skip_corrupt */
        if (count <= 0) {
            f->rc = count;
            return;
        }
        for (int i = 0; i < count; i++) {
            if (records[i].payload_len != f->size) {
                f->odd = records[i];
                return;
            }
            memcpy(f->to, records[i].payload, f->size);
            f->to += f->size;
        }
        f->rows += (size_t)count;
    }
}

/** _fill(buffer, size) -> (rows, odd_seq, odd_size): payloads of the next records, which must all have that size. */
PyObject *ompy_log_reader_fill(PyObject *op, PyObject *const *args, Py_ssize_t nargs) {
    LogReader *self = (LogReader *)op;
    uint64_t size;
    Py_buffer buffer;
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "_fill(buffer, size)");
        return 0;
    }
    if (ompy_u64(args[1], "size", OM_LOG_PAYLOAD_MAX, &size) != 0 ||
        PyObject_GetBuffer(args[0], &buffer, PyBUF_CONTIG) != 0)
        return 0;
    PyObject *result = 0;
    if (size == 0 || buffer.len % (Py_ssize_t)size != 0) {
        ompy_raise_detail(OM_ERR_BUS_INIT, "%zd bytes are not a multiple of %llu", buffer.len,
                          (unsigned long long)size);
    } else if (ompy_log_reader_check(self) == 0) {
        Fill f = {.to = buffer.buf, .size = size, .rows_max = (size_t)buffer.len / size};
        ompy_gate_enter(&self->gate);
        Py_BEGIN_ALLOW_THREADS;
        fill(self->reader, &f);
        Py_END_ALLOW_THREADS;
        if (f.rc < 0)
            ompy_log_reader_raise(self, f.rc);
        else
            result = Py_BuildValue("nKI", (Py_ssize_t)f.rows, (unsigned long long)f.odd.wal_seq, f.odd.payload_len);
        ompy_log_reader_leave(self);
    }
    PyBuffer_Release(&buffer);
    return result;
}
