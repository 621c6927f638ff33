/* Verify and repair: the library walks the log without the GIL and calls back for damage and progress. */

#include "log.h"

PyObject *ompy_log_damage(const OmLogDamage *damage) {
    return Py_BuildValue("(IIKKKKK)", damage->kind, damage->records, (unsigned long long)damage->segment,
                         (unsigned long long)damage->offset, (unsigned long long)damage->size_bytes,
                         (unsigned long long)damage->lost_first_seq, (unsigned long long)damage->lost_last_seq);
}

PyObject *ompy_log_report(const OmLogReport *report) {
    PyObject *side_file = PyUnicode_DecodeFSDefault(report->side_file);
    return Py_BuildValue("(KKKKKKKKKKN)", (unsigned long long)report->segments, (unsigned long long)report->records,
                         (unsigned long long)report->bytes, (unsigned long long)report->first_seq,
                         (unsigned long long)report->last_seq, (unsigned long long)report->damages,
                         (unsigned long long)report->damaged_bytes, (unsigned long long)report->tail_bytes,
                         (unsigned long long)report->tail_records, (unsigned long long)report->indexes_wrong,
                         side_file);
}

typedef struct Visit {
    PyObject *on_damage;   /* (damage tuple, text); NULL = none */
    PyObject *on_progress; /* (done_bytes, total_bytes); NULL = none */
    PyThreadState *thread; /* NULL while we hold the GIL */
} Visit;

static void damage(const OmLogDamage *found, const char *text, void *ctx) {
    Visit *visit = ctx;
    PyEval_RestoreThread(visit->thread);
    if (visit->on_damage && !PyErr_Occurred()) {
        PyObject *detail =
            PyUnicode_DecodeUTF8(text ? text : "", (Py_ssize_t)strlen(text ? text : ""), "backslashreplace");
        PyObject *tuple = ompy_log_damage(found);
        PyObject *result = detail && tuple ? PyObject_CallFunctionObjArgs(visit->on_damage, tuple, detail, NULL) : 0;
        Py_XDECREF(result);
        Py_XDECREF(tuple);
        Py_XDECREF(detail);
    }
    visit->thread = PyEval_SaveThread();
}

static int progress(uint64_t done_bytes, uint64_t total_bytes, void *ctx) {
    Visit *visit = ctx;
    PyEval_RestoreThread(visit->thread);
    if (!PyErr_Occurred() && PyErr_CheckSignals() == 0 && visit->on_progress) {
        PyObject *result = PyObject_CallFunction(visit->on_progress, "KK", (unsigned long long)done_bytes,
                                                 (unsigned long long)total_bytes);
        Py_XDECREF(result);
    }
    int stop = PyErr_Occurred() != 0;
    visit->thread = PyEval_SaveThread();
    return stop;
}

/** (rc, error text, report): a damaged log is a result here, not an exception. */
static PyObject *run(PyObject *args, bool repair) {
    PyObject *dir, *on_damage, *on_progress;
    unsigned int flags = 0;
    if (!PyArg_ParseTuple(args, "O&OOI", PyUnicode_FSConverter, &dir, &on_damage, &on_progress, &flags))
        return 0;
    Visit visit = {.on_damage = on_damage == Py_None ? 0 : on_damage,
                   .on_progress = on_progress == Py_None ? 0 : on_progress};
    OmLogVisitor visitor = {.damage = damage, .progress = progress, .ctx = &visit};
    OmLogReport report;
    memset(&report, 0, sizeof report);
    const char *path = PyBytes_AsString(dir);
    visit.thread = PyEval_SaveThread();
    int rc = repair ? om_log_repair(path, flags, &visitor, &report) : om_log_verify(path, &visitor, &report);
    PyEval_RestoreThread(visit.thread);
    Py_DECREF(dir);
    if (PyErr_Occurred())
        return 0;
    if (rc != 0 && rc != OM_ERR_LOG_CORRUPT)
        return ompy_raise(rc);
    const char *text = rc == 0 ? "" : om_bus_last_error();
    PyObject *detail = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    return Py_BuildValue("iNN", rc, detail, ompy_log_report(&report));
}

PyObject *ompy_log_verify(PyObject *Py_UNUSED(module), PyObject *args) {
    return run(args, false);
}

PyObject *ompy_log_repair(PyObject *Py_UNUSED(module), PyObject *args) {
    return run(args, true);
}
