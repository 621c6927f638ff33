#include "common.h"

#include <math.h>
#include <time.h>

static Py_ssize_t index_of(PyObject *name, const char *const *names) {
    for (Py_ssize_t i = 0; names[i]; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return i;
    return -1;
}

int ompy_args(const char *function, const char *const *names, Py_ssize_t required, PyObject *const *args,
              Py_ssize_t nargs, PyObject *kwnames, PyObject **out) {
    Py_ssize_t count = 0;
    while (names[count])
        out[count++] = 0;
    if (nargs > count) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", function, count, nargs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
        out[i] = args[i];
    Py_ssize_t keywords = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t i = 0; i < keywords; i++) {
        PyObject *name = PyTuple_GetItem(kwnames, i);
        Py_ssize_t at = index_of(name, names);
        if (at < 0 || out[at]) {
            PyErr_Format(PyExc_TypeError, at < 0 ? "%s() has no argument '%U'" : "%s() got '%U' twice", function, name);
            return -1;
        }
        out[at] = args[nargs + i];
    }
    for (Py_ssize_t i = 0; i < required; i++) {
        if (!out[i]) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", function, names[i]);
            return -1;
        }
    }
    return 0;
}

int ompy_u64(PyObject *value, const char *what, uint64_t max, uint64_t *out) {
    PyObject *number = PyNumber_Index(value); /* also NumPy integers; a float is a TypeError */
    if (!number)
        return -1;
    *out = PyLong_AsUnsignedLongLong(number);
    int bad = *out == (uint64_t)-1 && PyErr_Occurred();
    if (bad || *out > max) {
        PyErr_Clear();
        ompy_raise_detail(OM_ERR_BUS_INIT, "%s is %S, allowed are 0 to %llu", what, number, (unsigned long long)max);
        Py_DECREF(number);
        return -1;
    }
    Py_DECREF(number);
    return 0;
}

int ompy_timeout(PyObject *value, int64_t *timeout_ns) {
    if (!value || value == Py_None) {
        *timeout_ns = OM_BUS_FOREVER;
        return 0;
    }
    double seconds = PyFloat_AsDouble(value);
    if (seconds == -1.0 && PyErr_Occurred())
        return -1;
    if (!(seconds >= 0)) { /* also NaN */
        ompy_raise_detail(OM_ERR_BUS_INIT, "timeout is %R, allowed are seconds from 0 on, or None to wait for ever",
                          value);
        return -1;
    }
    *timeout_ns = seconds < 9e9 ? (int64_t)(seconds * 1e9) : OM_BUS_FOREVER;
    return 0;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t ompy_deadline_ns(int64_t timeout_ns) {
    return timeout_ns < 0 ? INT64_MAX : timeout_ns == 0 ? 0 : now_ns() + timeout_ns;
}

int64_t ompy_slice_ns(int64_t deadline_ns) {
    if (deadline_ns == INT64_MAX)
        return OMPY_SLICE_NS;
    int64_t left_ns = deadline_ns == 0 ? 0 : deadline_ns - now_ns();
    return left_ns < 0 ? 0 : left_ns < OMPY_SLICE_NS ? left_ns : OMPY_SLICE_NS;
}
