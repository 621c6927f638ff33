#ifndef OMI_LOOP_H
#define OMI_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The event loop of everything in the library that listens: level-triggered readiness of file descriptors, on epoll
 * where there is one and poll() elsewhere. One thread runs it; only omi_loop_wake() may be called from others.
 *
 * A watched fd is an OmiWatch inside its owner's struct: the loop allocates nothing per fd. A watch may be removed (and
 * its owner freed) from any callback, also another watch's: events already fetched for it are dropped.
 */
enum { OMI_LOOP_READ = 1, OMI_LOOP_WRITE = 2, OMI_LOOP_HANGUP = 4 };

typedef struct OmiWatch OmiWatch;

/** `events` is what became true: OMI_LOOP_*. HANGUP (error or both directions closed) comes unasked. */
typedef void (*OmiWatchFn)(OmiWatch *watch, uint32_t events);

struct OmiWatch {
    int fd;
    uint32_t interest; /* OMI_LOOP_READ | OMI_LOOP_WRITE */
    uint32_t slot;     /* the loop's own index */
    OmiWatchFn fn;
};

typedef struct OmiLoop OmiLoop;

typedef enum OmiLoopKind { OMI_LOOP_BEST, OMI_LOOP_EPOLL, OMI_LOOP_POLL } OmiLoopKind;

/** OM_ERR_BUS_TCP_IO when the kernel refuses, or the kind does not exist here. */
int omi_loop_create(OmiLoop **out, OmiLoopKind kind);
void omi_loop_destroy(OmiLoop *loop);

/** Watch `fd`. The watch must stay where it is until omi_loop_remove(). */
int omi_loop_add(OmiLoop *loop, OmiWatch *watch, int fd, uint32_t interest, OmiWatchFn fn);

/** Change what is watched; free of charge when nothing changes. */
int omi_loop_set_interest(OmiLoop *loop, OmiWatch *watch, uint32_t interest);

/** Stop watching; before close(fd). Harmless when it is not watched. */
void omi_loop_remove(OmiLoop *loop, OmiWatch *watch);

/** Sleep up to timeout_ns (< 0: no limit) until something is ready, and call back. Returns how many events, or an
 * error. */
int omi_loop_run(OmiLoop *loop, int64_t timeout_ns);

/** Make the omi_loop_run() under way, or the next, return at once. From any thread, also from a signal handler. */
void omi_loop_wake(OmiLoop *loop);

#endif
