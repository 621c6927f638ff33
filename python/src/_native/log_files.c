/* Functions of the module: looking at a log without being its reader, retention, named consumers. */

#include "log.h"

#define U64(value) ((unsigned long long)(value))

static PyObject *info(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *dir;
    OmLogInfo i;
    int rc;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &dir))
        return 0;
    Py_BEGIN_ALLOW_THREADS;
    rc = om_log_info(PyBytes_AsString(dir), &i);
    Py_END_ALLOW_THREADS;
    Py_DECREF(dir);
    if (rc != 0)
        return ompy_raise(rc);
    return Py_BuildValue("(y#KKKKKKKKKKKIIN)", (const char *)i.id, (Py_ssize_t)sizeof i.id, U64(i.created_ns),
                         U64(i.epoch), U64(i.first_seq), U64(i.last_seq), U64(i.durable_seq), U64(i.records),
                         U64(i.bytes), U64(i.first_time_ns), U64(i.last_time_ns), U64(i.disk_bytes),
                         U64(i.segment_bytes), i.segments, i.writer_pid, PyBool_FromLong(i.writer_alive));
}

static int append_new(PyObject *list, PyObject *item) {
    int failed = !item || PyList_Append(list, item) != 0;
    Py_XDECREF(item);
    return failed;
}

static int add_segment(const OmLogSegmentInfo *s, void *list) {
    return append_new(list, Py_BuildValue("(KKKKKKKKKNN)", U64(s->number), U64(s->first_seq), U64(s->last_seq),
                                          U64(s->records), U64(s->bytes), U64(s->first_time_ns), U64(s->max_time_ns),
                                          U64(s->file_bytes), U64(s->writer_epoch), PyBool_FromLong(s->sealed),
                                          PyBool_FromLong(s->damaged)));
}

static int add_consumer(const OmLogConsumer *c, void *list) {
    return append_new(list, Py_BuildValue("(sKKi)", c->name, U64(c->wal_seq), U64(c->saved_ns), c->result));
}

static PyObject *finish_list(PyObject *list, int rc) {
    if (rc >= 0 && !PyErr_Occurred())
        return list;
    Py_DECREF(list);
    return PyErr_Occurred() ? 0 : ompy_raise(rc);
}

static PyObject *segments(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *dir, *list;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &dir))
        return 0;
    list = PyList_New(0);
    int rc = list ? om_log_segments(PyBytes_AsString(dir), add_segment, list) : 0;
    Py_DECREF(dir);
    return list ? finish_list(list, rc) : 0;
}

static PyObject *consumers(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *dir, *list;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &dir))
        return 0;
    list = PyList_New(0);
    int rc = list ? om_log_consumers(PyBytes_AsString(dir), add_consumer, list) : 0;
    Py_DECREF(dir);
    return list ? finish_list(list, rc) : 0;
}

static PyObject *consumer_load(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *dir;
    const char *name;
    uint64_t wal_seq;
    if (!PyArg_ParseTuple(args, "O&s", PyUnicode_FSConverter, &dir, &name))
        return 0;
    int rc = om_log_consumer_load(PyBytes_AsString(dir), name, &wal_seq);
    Py_DECREF(dir);
    return rc == 0 ? PyLong_FromUnsignedLongLong(wal_seq) : ompy_raise(rc);
}

static PyObject *consumer_save(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *dir;
    const char *name;
    unsigned long long wal_seq;
    int rc;
    if (!PyArg_ParseTuple(args, "O&sK", PyUnicode_FSConverter, &dir, &name, &wal_seq))
        return 0;
    Py_BEGIN_ALLOW_THREADS; /* it waits for the disk */
    rc = om_log_consumer_save(PyBytes_AsString(dir), name, wal_seq);
    Py_END_ALLOW_THREADS;
    Py_DECREF(dir);
    return rc == 0 ? Py_BuildValue("") : ompy_raise(rc);
}

static PyObject *consumer_remove(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *dir;
    const char *name;
    if (!PyArg_ParseTuple(args, "O&s", PyUnicode_FSConverter, &dir, &name))
        return 0;
    int rc = om_log_consumer_remove(PyBytes_AsString(dir), name);
    Py_DECREF(dir);
    return rc == 0 ? Py_BuildValue("") : ompy_raise(rc);
}

static PyObject *retain(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *dir;
    unsigned long long max_bytes, max_age_ns, min_seq;
    unsigned int flags;
    int rc;
    if (!PyArg_ParseTuple(args, "O&KKKI", PyUnicode_FSConverter, &dir, &max_bytes, &max_age_ns, &min_seq, &flags))
        return 0;
    OmLogRetention policy = {.max_bytes = max_bytes, .max_age_ns = max_age_ns, .min_seq = min_seq, .flags = flags};
    Py_BEGIN_ALLOW_THREADS;
    rc = om_log_retain(PyBytes_AsString(dir), &policy);
    Py_END_ALLOW_THREADS;
    Py_DECREF(dir);
    return rc >= 0 ? PyLong_FromLong(rc) : ompy_raise(rc);
}

PyMethodDef ompy_log_functions[] = {
    {"log_info", info, METH_VARARGS, "The fields of LogInfo"},
    {"log_segments", segments, METH_VARARGS, "[the fields of SegmentInfo, ...]"},
    {"log_verify", ompy_log_verify, METH_VARARGS, "(rc, text, report) of a look at every byte"},
    {"log_repair", ompy_log_repair, METH_VARARGS, "(rc, text, report) of a repair"},
    {"log_retain", retain, METH_VARARGS, "How many segments were removed"},
    {"log_consumers", consumers, METH_VARARGS, "[(name, wal_seq, saved_ns, rc), ...]"},
    {"log_consumer_load", consumer_load, METH_VARARGS, "A consumer's wal_seq"},
    {"log_consumer_save", consumer_save, METH_VARARGS, "Save a consumer's wal_seq"},
    {"log_consumer_remove", consumer_remove, METH_VARARGS, "Forget a consumer"},
    {"arrow_stream", ompy_arrow_stream, METH_VARARGS, "A capsule with an Arrow stream of a range"},
    {0},
};
