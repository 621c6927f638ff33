#ifndef OMPY_COMMON_H
#define OMPY_COMMON_H

/**
 * The extension `ombus._native`: libombus as Python sees it. Only what must be fast or must touch memory is in C;
 * names, addresses and batches as people use them are Python (ombus/).
 *
 * Only the limited API of Python 3.11 is used, so that one build serves every later Python.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>
#include <structmember.h> /* after Python.h, which it needs */

#include "ombus/om_bus.h"

#define OMPY_FASTCALL(function) ((PyCFunction)(void (*)(void))(function))

enum {
    OMPY_SLICE_NS = 100 * 1000 * 1000, /* longest sleep without a look at signals: Ctrl-C works within it */
    OMPY_LARGE_BYTES = 256 * 1024      /* from here on a copy takes long enough to give other threads the GIL */
};

/* ---- errors.c: result codes become exceptions of ombus.errors ---- */

/** Raise the exception of `rc` with this thread's last-error text. Returns NULL. */
PyObject *ompy_raise(int64_t rc);

/** The same with an attribute set on the exception. Takes over the reference to `value` (NULL: an error is set). */
PyObject *ompy_raise_with(int64_t rc, const char *attribute, PyObject *value);

/** As ompy_raise() with a text of our own instead of the library's (as PyUnicode_FromFormat()). */
PyObject *ompy_raise_detail(int rc, const char *format, ...);

/** Raise the class `name` of ombus.errors that has no code of its own, such as "Closed". Returns NULL. */
PyObject *ompy_raise_named(const char *name, const char *format, ...);

/* ---- args.c: arguments of METH_FASTCALL | METH_KEYWORDS functions ---- */

/** Sort the arguments into out[] (NULL = not given) by names[], a NULL-terminated list. 0, or -1 with TypeError. */
int ompy_args(const char *function, const char *const *names, Py_ssize_t required, PyObject *const *args,
              Py_ssize_t nargs, PyObject *kwnames, PyObject **out);

/** A Python int within 0..max; -1 with InvalidArgument naming `what`. */
int ompy_u64(PyObject *value, const char *what, uint64_t max, uint64_t *out);

/** Seconds as nanoseconds; None or NULL = for ever (-1). */
int ompy_timeout(PyObject *value, int64_t *timeout_ns);

/** Nanoseconds of one slice of a wait until deadline_ns; 0 when it has passed. */
int64_t ompy_slice_ns(int64_t deadline_ns);

/** When a wait of timeout_ns from now ends; INT64_MAX = never. */
int64_t ompy_deadline_ns(int64_t timeout_ns);

/** One payload: bytes, or anything else that has a buffer. */
typedef struct Payload {
    const char *data;
    Py_ssize_t size;
    Py_buffer view;
    bool has_view;
} Payload;

static inline int ompy_payload_get(Payload *payload, PyObject *object) {
    payload->has_view = !PyBytes_CheckExact(object);
    if (!payload->has_view)
        return PyBytes_AsStringAndSize(object, (char **)&payload->data, &payload->size);
    if (PyObject_GetBuffer(object, &payload->view, PyBUF_SIMPLE) != 0)
        return -1;
    payload->data = payload->view.buf;
    payload->size = payload->view.len;
    return 0;
}

static inline void ompy_payload_release(Payload *payload) {
    if (payload->has_view)
        PyBuffer_Release(&payload->view);
}

/* ---- items.c: arguments of publish_batch() ---- */

typedef struct Piece {
    const void *data;
    size_t size;
} Piece;

/** Many payloads: equal items at a stride in one buffer, or pieces that point into objects. */
typedef struct Items {
    size_t count;
    /* one buffer */
    Py_buffer buffer;
    size_t item_size;
    size_t stride;
    /* a sequence */
    PyObject *objects; /* tuple: keeps them alive while the GIL is released; NULL = one buffer */
    Piece *pieces;
    Py_buffer *views; /* of objects that are not bytes */
    size_t view_count;
} Items;

/** 0, or -1 with an error set; to be cleared in either case. */
int ompy_items_get(Items *items, PyObject *object, PyObject *itemsize);
void ompy_items_clear(Items *items);

/** Size of the largest payload in bytes. */
size_t ompy_items_largest(const Items *items);

/* ---- gate.c: one thread at a time in a handle, also while the GIL is released ---- */

/**
 * Whoever holds the GIL may use a handle unless `busy`: then another call has released the GIL in the middle of using
 * it. So the common case costs one load and no lock.
 */
typedef struct Gate {
    PyThread_type_lock lock; /* held while busy */
    unsigned long owner;     /* thread that is inside */
    int pid;                 /* process that is inside */
    bool busy;
    bool close_requested; /* close() came while busy: who is inside closes when it leaves */
} Gate;

int ompy_gate_init(Gate *gate);
void ompy_gate_clear(Gate *gate);

/** To be called when busy: wait until nobody is inside. -1 with an error set: Timeout at deadline_ns and others. */
int ompy_gate_wait(Gate *gate, int64_t deadline_ns);

/** To be called when busy, where waiting would be wrong: raise HandleBusy. Returns -1. */
int ompy_gate_refuse(const Gate *gate);

/** Whether somebody is inside who will come out again: a forked child inherits `busy` without the thread. */
bool ompy_gate_occupied(const Gate *gate);

/** Around Py_BEGIN_ALLOW_THREADS ... Py_END_ALLOW_THREADS. */
void ompy_gate_enter(Gate *gate);
void ompy_gate_leave(Gate *gate);

/* ---- the types ---- */

typedef struct RingView RingView;

typedef struct RingProducer {
    PyObject_HEAD OmBusStream *stream; /* NULL = closed */
    uint64_t last_seq;
    Gate gate;
    bool destroy_requested; /* with gate.close_requested: also remove the name */
} RingProducer;

typedef struct RingConsumer {
    PyObject_HEAD OmBusEndpoint *endpoint; /* NULL = closed */
    RingView *view; /* the zero-copy batch handed out and not yet given back; borrowed: it holds us */
    int64_t timeout_ns;
    uint64_t gaps;
    uint32_t capacity;
    uint32_t max_payload;
    PyObject *pending; /* exception met where none could be raised; the next call raises it */
    bool ignore_gaps;
    Gate gate;
} RingConsumer;

/* producer.c, producer_batch.c */
extern PyType_Spec ompy_producer_spec;

/** The handle may be used now. -1 with an error set: Closed, Timeout at deadline_ns and others. */
int ompy_producer_check(RingProducer *self, int64_t deadline_ns);

/** wal_seq of the first of `count` records: `given`, or last + 1 for NULL. Runs no Python code unless it fails. */
int ompy_producer_first_seq(const RingProducer *self, const uint64_t *given, uint64_t count, uint64_t *out);

/** Leave the gate, and close the handle if somebody asked for it meanwhile. */
void ompy_producer_leave(RingProducer *self);
PyObject *ompy_producer_publish_batch(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/** RecordTooLarge for what no ring can carry, and so the library's uint16_t neither. Returns the code. */
int ompy_producer_too_large(size_t size);

/* consumer.c, consumer_batch.c */
extern PyType_Spec ompy_consumer_spec;

/** The handle may be used now; the outstanding view is given back. -1 with an error set. */
int ompy_consumer_check(RingConsumer *self);

/** Leave the gate, and close the handle if somebody asked for it meanwhile. */
void ompy_consumer_leave(RingConsumer *self);

/** Keep the exception of rc for the next call. Takes over the reference to `record` (may be NULL). */
void ompy_consumer_pend(RingConsumer *self, int rc, PyObject *record);

/** Whether the library hands out a record together with this error. */
static inline bool ompy_is_delivered(int64_t rc) {
    return rc == OM_ERR_BUS_GAP_DETECTED || rc == OM_ERR_BUS_REORDER_DETECTED;
}

/** Whether rc, which is an error, is to be passed over: a gap that the user wants ignored. It is counted. */
bool ompy_consumer_ignores(RingConsumer *self, int rc);

PyObject *ompy_consumer_poll_columns(PyObject *self, PyObject *max);

/* record.c */
extern PyType_Spec ompy_record_spec;
extern PyObject *ompy_record_type;
PyObject *ompy_record(uint64_t seq, uint8_t type, const void *payload, size_t size);

/** With the time of its append; 0 = not known. */
PyObject *ompy_record_at(uint64_t seq, uint8_t type, uint64_t timestamp_ns, const void *payload, size_t size);

/* view.c */
extern PyType_Spec ompy_view_spec;
extern PyObject *ompy_view_type;
PyObject *ompy_consumer_peek(PyObject *self, PyObject *max);

/**
 * Give back the consumer's outstanding view, if any. -1 with BufferError while something still looks at it. What the
 * library has to say to it becomes the pending exception.
 */
int ompy_view_give_back(RingConsumer *self);

/* rings.c */
extern PyMethodDef ompy_ring_functions[];

#endif
