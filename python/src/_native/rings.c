/* Functions of the module: looking at rings, cursor files, errors and the library itself. */

#include "common.h"

#include <dlfcn.h>

/* ---- rings ---- */

static PyObject *info_tuple(const OmBusStreamInfo *info) {
    /* Anybody may give an object any bytes as its name: one odd name must not hide the others. */
    PyObject *name = PyUnicode_DecodeFSDefault(info->name);
    return Py_BuildValue("(NKIIIIKKKKIN)", name, (unsigned long long)info->size_bytes, info->slot_size, info->capacity,
                         info->max_consumers, info->flags, (unsigned long long)info->head,
                         (unsigned long long)info->min_tail, (unsigned long long)info->producer_epoch,
                         (unsigned long long)info->last_wal_seq, info->producer_pid,
                         PyBool_FromLong(info->producer_alive));
}

static PyObject *consumer_tuple(const OmBusConsumerInfo *info) {
    return Py_BuildValue("(IIIKKK)", info->index, info->state, info->pid, (unsigned long long)info->tail,
                         (unsigned long long)info->wal_seq, (unsigned long long)info->lag);
}

static PyObject *consumer_list(const OmBusConsumerInfo *consumers, Py_ssize_t count) {
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *tuple = consumer_tuple(&consumers[i]);
        if (!tuple || PyList_SetItem(list, i, tuple) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *inspect(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *name;
    OmBusStreamInfo info;
    if (!PyArg_ParseTuple(args, "s", &name))
        return 0;
    OmBusConsumerInfo *consumers = PyMem_Calloc(OM_BUS_MAX_CONSUMERS_LIMIT, sizeof *consumers);
    if (!consumers)
        return PyErr_NoMemory();
    int count = om_bus_inspect(name, &info, consumers, OM_BUS_MAX_CONSUMERS_LIMIT);
    PyObject *result =
        count < 0 ? ompy_raise(count) : Py_BuildValue("(NN)", info_tuple(&info), consumer_list(consumers, count));
    PyMem_Free(consumers);
    return result;
}

static int append_info(const OmBusStreamInfo *info, void *list) {
    PyObject *tuple = info_tuple(info);
    int failed = !tuple || PyList_Append(list, tuple) != 0;
    Py_XDECREF(tuple);
    return failed;
}

static PyObject *list_rings(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    PyObject *list = PyList_New(0);
    if (!list)
        return 0;
    int rc = om_bus_list(append_info, list);
    if (rc >= 0 && !PyErr_Occurred())
        return list;
    Py_DECREF(list);
    return PyErr_Occurred() ? 0 : ompy_raise(rc);
}

static PyObject *unlink_ring(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name))
        return 0;
    int rc = om_bus_unlink(name);
    return rc == 0 ? Py_BuildValue("") : ompy_raise(rc);
}

/* ---- cursor files ---- */

static PyObject *load_cursor(PyObject *Py_UNUSED(module), PyObject *path) {
    PyObject *encoded;
    uint64_t wal_seq;
    if (!PyUnicode_FSConverter(path, &encoded))
        return 0;
    int rc = om_bus_endpoint_load_cursor(PyBytes_AsString(encoded), &wal_seq);
    Py_DECREF(encoded);
    return rc == 0 ? PyLong_FromUnsignedLongLong(wal_seq) : ompy_raise(rc);
}

static PyObject *save_cursor(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *encoded;
    unsigned long long wal_seq;
    int rc;
    if (!PyArg_ParseTuple(args, "O&K", PyUnicode_FSConverter, &encoded, &wal_seq))
        return 0;
    Py_BEGIN_ALLOW_THREADS; /* it waits for the disk */
    rc = om_bus_cursor_save(PyBytes_AsString(encoded), wal_seq);
    Py_END_ALLOW_THREADS;
    Py_DECREF(encoded);
    return rc == 0 ? Py_BuildValue("") : ompy_raise(rc);
}

/* ---- errors and the library ---- */

static PyObject *error_string(PyObject *Py_UNUSED(module), PyObject *args) {
    int code;
    return PyArg_ParseTuple(args, "i", &code) ? PyUnicode_FromString(om_bus_error_string(code)) : 0;
}

static PyObject *error_codes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    PyObject *codes = PyDict_New();
#define ADD(name, code, text)                                         \
    if (codes) {                                                      \
        PyObject *value = PyLong_FromLong(code);                      \
        if (!value || PyDict_SetItemString(codes, #name, value) != 0) \
            Py_CLEAR(codes);                                          \
        Py_XDECREF(value);                                            \
    }
    OM_BUS_ERRORS(ADD)
#undef ADD
    return codes;
}

static PyObject *library_version(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return PyUnicode_FromString(om_bus_version());
}

static PyObject *library_path(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    Dl_info info;
    union { /* ISO C knows no cast from a function to an object pointer */
        const char *(*function)(void);
        void *object;
    } symbol = {.function = om_bus_version};
    if (!dladdr(symbol.object, &info) || !info.dli_fname) {
        PyErr_SetString(PyExc_RuntimeError, "the dynamic linker does not say where libombus was loaded from");
        return 0;
    }
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

PyMethodDef ompy_ring_functions[] = {
    {"inspect", inspect, METH_VARARGS, "((name, size_bytes, ...), [(index, state, ...), ...]) of a ring"},
    {"list_rings", list_rings, METH_NOARGS, "The first part of inspect() for every ring on this host"},
    {"unlink", unlink_ring, METH_VARARGS, "Remove a ring's name"},
    {"load_cursor", load_cursor, METH_O, "The wal_seq in a cursor file"},
    {"save_cursor", save_cursor, METH_VARARGS, "Write a wal_seq to a cursor file"},
    {"error_string", error_string, METH_VARARGS, "Text of a result code"},
    {"error_codes", error_codes, METH_NOARGS, "{name: code} of every error in om_bus_error.h"},
    {"library_version", library_version, METH_NOARGS, "Version of the loaded libombus"},
    {"library_path", library_path, METH_NOARGS, "File of the loaded libombus"},
    {0},
};
