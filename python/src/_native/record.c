#include "common.h"

/**
 * ombus.Record: what poll() and iteration hand out, once per record, so it is as small as it can be. Anything but
 * making one and reading its fields goes through the tuple (seq, type, payload).
 */
typedef struct Record {
    PyObject_HEAD uint64_t seq;
    uint64_t timestamp_ns; /* 0 = not known: rings carry none. No part of what a record is equal to. */
    PyObject *payload;
    uint8_t type;
} Record;

PyObject *ompy_record_type;

static PyObject *new_record(uint64_t seq, uint8_t type, uint64_t timestamp_ns, PyObject *payload) {
    Record *self = payload ? (Record *)PyType_GenericAlloc((PyTypeObject *)ompy_record_type, 0) : 0;
    if (!self) {
        Py_XDECREF(payload);
        return 0;
    }
    self->seq = seq;
    self->timestamp_ns = timestamp_ns;
    self->type = type;
    self->payload = payload;
    return (PyObject *)self;
}

PyObject *ompy_record(uint64_t seq, uint8_t type, const void *payload, size_t size) {
    return new_record(seq, type, 0, PyBytes_FromStringAndSize(payload, (Py_ssize_t)size));
}

PyObject *ompy_record_at(uint64_t seq, uint8_t type, uint64_t timestamp_ns, const void *payload, size_t size) {
    return new_record(seq, type, timestamp_ns, PyBytes_FromStringAndSize(payload, (Py_ssize_t)size));
}

static PyObject *record_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs) {
    static char *names[] = {"seq", "type", "payload", "timestamp_ns", 0};
    PyObject *seq, *wal_type, *payload, *timestamp_ns = 0;
    uint64_t seq_value, type_value, time_value = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOS|O:Record", names, &seq, &wal_type, &payload, &timestamp_ns) ||
        ompy_u64(seq, "seq", UINT64_MAX, &seq_value) != 0 || ompy_u64(wal_type, "type", UINT8_MAX, &type_value) != 0 ||
        (timestamp_ns && ompy_u64(timestamp_ns, "timestamp_ns", UINT64_MAX, &time_value) != 0))
        return 0;
    Py_INCREF(payload);
    return new_record(seq_value, (uint8_t)type_value, time_value, payload);
}

static void record_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    Py_XDECREF(((Record *)op)->payload);
    PyObject_Free(op);
    Py_DECREF(type);
}

static PyObject *as_tuple(PyObject *op) {
    Record *self = (Record *)op;
    return Py_BuildValue("(KbO)", (unsigned long long)self->seq, self->type, self->payload);
}

static PyObject *record_repr(PyObject *op) {
    Record *self = (Record *)op;
    if (self->timestamp_ns)
        return PyUnicode_FromFormat("Record(seq=%llu, type=%d, payload=%R, timestamp_ns=%llu)",
                                    (unsigned long long)self->seq, self->type, self->payload,
                                    (unsigned long long)self->timestamp_ns);
    return PyUnicode_FromFormat("Record(seq=%llu, type=%d, payload=%R)", (unsigned long long)self->seq, self->type,
                                self->payload);
}

static PyObject *record_iter(PyObject *op) {
    PyObject *tuple = as_tuple(op);
    PyObject *iterator = tuple ? PyObject_GetIter(tuple) : 0;
    Py_XDECREF(tuple);
    return iterator;
}

static Py_hash_t record_hash(PyObject *op) {
    PyObject *tuple = as_tuple(op);
    Py_hash_t hash = tuple ? PyObject_Hash(tuple) : -1;
    Py_XDECREF(tuple);
    return hash;
}

static PyObject *record_compare(PyObject *op, PyObject *other, int operation) {
    if (!PyObject_TypeCheck(other, (PyTypeObject *)ompy_record_type))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *left = as_tuple(op), *right = as_tuple(other);
    PyObject *result = left && right ? PyObject_RichCompare(left, right, operation) : 0;
    Py_XDECREF(left);
    Py_XDECREF(right);
    return result;
}

static PyObject *record_reduce(PyObject *op, PyObject *Py_UNUSED(none)) {
    Record *self = (Record *)op;
    return Py_BuildValue("O(KbOK)", ompy_record_type, (unsigned long long)self->seq, self->type, self->payload,
                         (unsigned long long)self->timestamp_ns);
}

static PyMemberDef members[] = {
    {"seq", T_ULONGLONG, offsetof(Record, seq), READONLY, "The record's wal_seq."},
    {"type", T_UBYTE, offsetof(Record, type), READONLY, "The record's wal_type, 0 to 255."},
    {"payload", T_OBJECT_EX, offsetof(Record, payload), READONLY, "The record's bytes, a copy of its own."},
    {"timestamp_ns", T_ULONGLONG, offsetof(Record, timestamp_ns), READONLY,
     "When it was appended to a log, in nanoseconds since 1970 UTC; 0 when that is not known, as from a ring."},
    {0},
};

static PyMethodDef methods[] = {
    {"__reduce__", record_reduce, METH_NOARGS, 0},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Record(seq, type, payload, timestamp_ns=0)\n--\n\n"
                "One record of a stream; unpacks as, and is equal by, (seq, type, payload)."},
    {Py_tp_new, record_new},
    {Py_tp_dealloc, record_dealloc},
    {Py_tp_repr, record_repr},
    {Py_tp_iter, record_iter},
    {Py_tp_hash, record_hash},
    {Py_tp_richcompare, record_compare},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0},
};

PyType_Spec ompy_record_spec = {
    .name = "ombus.Record", .basicsize = sizeof(Record), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
