#include "common.h"

#include <unistd.h>

int ompy_gate_init(Gate *gate) {
    gate->lock = PyThread_allocate_lock();
    if (!gate->lock)
        PyErr_NoMemory();
    return gate->lock ? 0 : -1;
}

void ompy_gate_clear(Gate *gate) {
    if (gate->lock)
        PyThread_free_lock(gate->lock);
    gate->lock = 0;
}

bool ompy_gate_occupied(const Gate *gate) {
    return gate->busy && gate->pid == getpid();
}

int ompy_gate_refuse(const Gate *gate) {
    if (gate->pid != getpid())
        ompy_raise_detail(OM_ERR_BUS_FORKED, "a thread of the parent process was using it during fork()");
    else if (gate->owner == PyThread_get_thread_ident())
        ompy_raise_named("HandleBusy", "called from a signal handler that interrupted it");
    else
        ompy_raise_named("HandleBusy", "another thread waits in it");
    return -1;
}

int ompy_gate_wait(Gate *gate, int64_t deadline_ns) {
    while (gate->busy) {
        if (gate->pid != getpid() || gate->owner == PyThread_get_thread_ident())
            return ompy_gate_refuse(gate);
        int64_t slice_ns = ompy_slice_ns(deadline_ns);
        if (slice_ns == 0) {
            ompy_raise_detail(OM_ERR_BUS_TIMEOUT, "another thread was waiting to publish all that time");
            return -1;
        }
        Py_BEGIN_ALLOW_THREADS;
        /* Only to sleep until the holder is out: the GIL, not this lock, protects the handle. */
        if (PyThread_acquire_lock_timed(gate->lock, slice_ns / 1000 + 1, 0) == PY_LOCK_ACQUIRED)
            PyThread_release_lock(gate->lock);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals() != 0)
            return -1;
    }
    return 0;
}

void ompy_gate_enter(Gate *gate) {
    gate->owner = PyThread_get_thread_ident();
    gate->pid = getpid();
    gate->busy = true;
    PyThread_acquire_lock(gate->lock, WAIT_LOCK); /* a waiter holds it for an instant only, and without the GIL */
}

void ompy_gate_leave(Gate *gate) {
    gate->busy = false;
    PyThread_release_lock(gate->lock);
}
