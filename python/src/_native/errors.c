#include "common.h"

#include <stdarg.h>

/** Raise what ombus.errors.<function>(key, detail) makes; that module knows the classes and the messages. */
static PyObject *raise_made_by(const char *function, PyObject *key, PyObject *detail, const char *attribute,
                               PyObject *value) {
    /* Interned: Python's attribute cache would otherwise collect a copy of the name for every error. */
    PyObject *name = PyUnicode_InternFromString(function), *module = 0, *error = 0;
    if (name && key && detail && (value || !attribute))
        module = PyImport_ImportModule("ombus.errors");
    if (module)
        error = PyObject_CallMethodObjArgs(module, name, key, detail, NULL);
    if (error && attribute) {
        PyObject *attribute_name = PyUnicode_InternFromString(attribute);
        if (!attribute_name || PyObject_SetAttr(error, attribute_name, value) != 0)
            Py_CLEAR(error);
        Py_XDECREF(attribute_name);
    }
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(module);
    Py_XDECREF(name);
    Py_XDECREF(key);
    Py_XDECREF(detail);
    return 0;
}

static PyObject *last_error(void) {
    const char *text = om_bus_last_error();
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

PyObject *ompy_raise(int64_t rc) {
    return raise_made_by("from_code", PyLong_FromLongLong(rc), last_error(), 0, 0);
}

PyObject *ompy_raise_with(int64_t rc, const char *attribute, PyObject *value) {
    raise_made_by("from_code", PyLong_FromLongLong(rc), last_error(), attribute, value);
    Py_XDECREF(value);
    return 0;
}

PyObject *ompy_raise_detail(int rc, const char *format, ...) {
    va_list args;
    va_start(args, format);
    PyObject *detail = PyUnicode_FromFormatV(format, args);
    va_end(args);
    return raise_made_by("from_code", PyLong_FromLong(rc), detail, 0, 0);
}

PyObject *ompy_raise_named(const char *name, const char *format, ...) {
    va_list args;
    va_start(args, format);
    PyObject *detail = PyUnicode_FromFormatV(format, args);
    va_end(args);
    return raise_made_by("from_name", PyUnicode_FromString(name), detail, 0, 0);
}
