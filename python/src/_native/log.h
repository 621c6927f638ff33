#ifndef OMPY_LOG_H
#define OMPY_LOG_H

/** The log as Python sees it: types and functions of log_*.c and arrow_stream.c. */

#include "common.h"
#include "ombus/om_bus_log.h"
#include "ombus/om_log.h"

/* ---- log_writer.c, log_writer_batch.c, log_writer_columns.c ---- */

typedef struct LogWriter {
    PyObject_HEAD OmLogWriter *log; /* NULL = closed */
    OmBusStream *ring;              /* what is appended is also published here; NULL = no ring */
    uint64_t floor_seq;             /* the ring's last wal_seq when it was ahead of the log: numbers go on after it */
    Gate gate;
    Py_ssize_t waiters; /* threads in sync() and wait_durable(), which run beside appends */
    bool sync_each;
    bool destroy_requested; /* with gate.close_requested: also remove the ring's name */
} LogWriter;

extern PyType_Spec ompy_log_writer_spec;

/** The handle may be used now. -1 with an error set: Closed, Timeout at deadline_ns and others. */
int ompy_log_writer_check(LogWriter *self, int64_t deadline_ns);

/** Leave the gate, and close the handle if somebody asked for it meanwhile. */
void ompy_log_writer_leave(LogWriter *self);

/**
 * Inside the gate: wait until the ring has room for some of `wanted` records. Returns how many; `wanted` without a
 * ring; 0 with an error set: Closed, a signal's exception; or OM_ERR_BUS_TIMEOUT.
 */
int64_t ompy_log_writer_room(LogWriter *self, uint64_t wanted, int64_t deadline_ns);

/** wal_seq to pass on for a record without one: 0 = the log decides. */
static inline uint64_t ompy_log_writer_next(const LogWriter *self) {
    return self->floor_seq > om_log_writer_last_seq(self->log) ? self->floor_seq + 1 : 0;
}

PyObject *ompy_log_writer_append_columns(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *ompy_log_writer_publish_batch(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* ---- log_reader.c, log_columns.c ---- */

typedef struct LogReader {
    PyObject_HEAD OmLogReader *reader; /* NULL = closed */
    int64_t timeout_ns;
    uint64_t wal_seq; /* of the last record read; 0 before the first */
    uint64_t end_seq; /* hand out only what is below */
    uint64_t gaps;
    uint32_t average_len; /* of recent payloads: how many records make a batch of reasonable size */
    bool raise_gaps;
    PyObject *pending; /* exception that the next poll raises, once */
    Gate gate;
} LogReader;

extern PyType_Spec ompy_log_reader_spec;

/** The handle may be used now. -1 with an error set. */
int ompy_log_reader_check(LogReader *self);

/** The same before reading: a pending exception is raised. */
int ompy_log_reader_ready(LogReader *self);

/** Leave the gate, and close the handle if somebody asked for it meanwhile. */
void ompy_log_reader_leave(LogReader *self);

/** Raise rc; an error about damage carries where it is. Returns NULL. */
PyObject *ompy_log_reader_raise(const LogReader *self, int64_t rc);

/** The next record; NULL with an error set, or NULL without one when there is none. */
PyObject *ompy_log_reader_next(LogReader *self);

/** Stand again in front of a record that was handed out by the library but not to the user. 0 or an error. */
int ompy_log_reader_back_to(LogReader *self, uint64_t seq);

PyObject *ompy_log_reader_columns(PyObject *self, PyObject *max);
PyObject *ompy_log_reader_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

/* ---- arrow_stream.c, log_files.c, log_repair.c: functions of the module ---- */

PyObject *ompy_arrow_stream(PyObject *module, PyObject *args);
extern PyMethodDef ompy_log_functions[];
PyObject *ompy_log_verify(PyObject *module, PyObject *args);
PyObject *ompy_log_repair(PyObject *module, PyObject *args);
PyObject *ompy_log_report(const OmLogReport *report);

/** (kind, records, segment, offset, size_bytes, lost_first_seq, lost_last_seq) */
PyObject *ompy_log_damage(const OmLogDamage *damage);

#endif
