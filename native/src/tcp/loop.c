#include "tcp/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/error.h"
#include "tcp/loop_backend.h"

enum { EVENTS_MAX = 64 };

struct OmiLoop {
    const OmiLoopBackend *backend;
    void *state;
    OmiWatch **watches; /* by slot; NULL = free */
    uint32_t capacity;
    uint32_t free_hint; /* no free slot below this one */
    OmiLoopEvent events[EVENTS_MAX];
    int event_next, event_count;
    OmiWatch waker;
    int wake_fd; /* write end of the pipe that `waker` watches */
};

static void drain_wakes(OmiWatch *watch, uint32_t events) {
    (void)events;
    char bytes[64];
    while (read(watch->fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes) {
    }
}

static int open_waker(OmiLoop *loop) {
    int ends[2];
    if (pipe(ends) != 0)
        return omi_fail_errno(OM_ERR_BUS_TCP_IO, "pipe");
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    loop->wake_fd = ends[1];
    int rc = omi_loop_add(loop, &loop->waker, ends[0], OMI_LOOP_READ, drain_wakes);
    if (rc != 0)
        close(ends[0]);
    return rc;
}

static const OmiLoopBackend *backend_of(OmiLoopKind kind) {
#ifdef __linux__
    return kind == OMI_LOOP_POLL ? &omi_loop_poll : &omi_loop_epoll;
#else
    return kind == OMI_LOOP_EPOLL ? NULL : &omi_loop_poll;
#endif
}

int omi_loop_create(OmiLoop **out, OmiLoopKind kind) {
    const OmiLoopBackend *backend = backend_of(kind);
    if (!backend)
        return omi_fail(OM_ERR_BUS_TCP_IO, "no such event loop on this system");
    OmiLoop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "event loop");
    loop->wake_fd = loop->waker.fd = -1;
    loop->backend = backend;
    int rc = backend->open(&loop->state);
    if (rc != 0) {
        free(loop);
        return rc;
    }
    rc = open_waker(loop);
    if (rc != 0) {
        omi_loop_destroy(loop);
        return rc;
    }
    *out = loop;
    return 0;
}

void omi_loop_destroy(OmiLoop *loop) {
    if (!loop)
        return;
    int fd = loop->waker.fd;
    omi_loop_remove(loop, &loop->waker);
    if (fd >= 0)
        close(fd);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    loop->backend->close(loop->state);
    free(loop->watches);
    free(loop);
}

static int find_slot(OmiLoop *loop) {
    while (loop->free_hint < loop->capacity && loop->watches[loop->free_hint])
        loop->free_hint++;
    if (loop->free_hint == loop->capacity) {
        uint32_t capacity = loop->capacity ? loop->capacity * 2 : 64;
        OmiWatch **watches = realloc(loop->watches, capacity * sizeof(OmiWatch *));
        if (!watches)
            return omi_fail(OM_ERR_BUS_NO_MEMORY, "event loop with %u descriptors", capacity);
        for (uint32_t i = loop->capacity; i < capacity; i++)
            watches[i] = NULL;
        loop->watches = watches;
        loop->capacity = capacity;
    }
    return 0;
}

int omi_loop_add(OmiLoop *loop, OmiWatch *watch, int fd, uint32_t interest, OmiWatchFn fn) {
    watch->fd = -1;
    int rc = find_slot(loop);
    if (rc == 0)
        rc = loop->backend->set(loop->state, loop->free_hint, -1, fd, interest);
    if (rc != 0)
        return rc;
    *watch = (OmiWatch){.fd = fd, .interest = interest, .slot = loop->free_hint, .fn = fn};
    loop->watches[loop->free_hint] = watch;
    return 0;
}

int omi_loop_set_interest(OmiLoop *loop, OmiWatch *watch, uint32_t interest) {
    if (watch->interest == interest)
        return 0;
    int rc = loop->backend->set(loop->state, watch->slot, watch->fd, watch->fd, interest);
    if (rc == 0)
        watch->interest = interest;
    return rc;
}

void omi_loop_remove(OmiLoop *loop, OmiWatch *watch) {
    if (watch->fd < 0)
        return;
    loop->backend->set(loop->state, watch->slot, watch->fd, -1, 0);
    loop->watches[watch->slot] = NULL;
    if (watch->slot < loop->free_hint)
        loop->free_hint = watch->slot;
    /* The slot may be taken again before this round ends: what was fetched for the old fd must not reach the new. */
    for (int i = loop->event_next; i < loop->event_count; i++)
        if (loop->events[i].slot == watch->slot)
            loop->events[i].events = 0;
    watch->fd = -1;
}

int omi_loop_run(OmiLoop *loop, int64_t timeout_ns) {
    int count = loop->backend->wait(loop->state, loop->events, EVENTS_MAX, timeout_ns);
    if (count <= 0)
        return count;
    loop->event_count = count;
    for (loop->event_next = 0; loop->event_next < loop->event_count;) {
        OmiLoopEvent event = loop->events[loop->event_next++];
        OmiWatch *watch = loop->watches[event.slot];
        if (event.events && watch)
            watch->fn(watch, event.events);
    }
    loop->event_next = loop->event_count = 0;
    return count;
}

void omi_loop_wake(OmiLoop *loop) {
    int saved = errno; /* signal handlers must keep it */
    ssize_t written = write(loop->wake_fd, "", 1);
    (void)written; /* a full pipe wakes as well */
    errno = saved;
}
