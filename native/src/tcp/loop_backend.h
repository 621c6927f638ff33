#ifndef OMI_LOOP_BACKEND_H
#define OMI_LOOP_BACKEND_H

#include "tcp/loop.h"

/** An event as a backend reports it: which slot, and OMI_LOOP_*. */
typedef struct OmiLoopEvent {
    uint32_t slot;
    uint32_t events;
} OmiLoopEvent;

/** How readiness is asked of the kernel. Slots are small integers; `set` with a negative fd forgets the slot. */
typedef struct OmiLoopBackend {
    int (*open)(void **state);
    void (*close)(void *state);
    int (*set)(void *state, uint32_t slot, int fd_before, int fd, uint32_t interest);
    int (*wait)(void *state, OmiLoopEvent *events, int max, int64_t timeout_ns); /* count, 0 on EINTR, or an error */
} OmiLoopBackend;

extern const OmiLoopBackend omi_loop_poll;
#ifdef __linux__
extern const OmiLoopBackend omi_loop_epoll;
#endif

#endif
