#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "tcp/loop_backend.h"

/** fds[slot]; a slot without interest has fd -1, which poll() ignores. */
typedef struct PollState {
    struct pollfd *fds;
    uint32_t count;
} PollState;

static int poll_open(void **state) {
    *state = calloc(1, sizeof(PollState));
    return *state ? 0 : omi_fail(OM_ERR_BUS_NO_MEMORY, "event loop");
}

static void poll_close(void *state) {
    free(((PollState *)state)->fds);
    free(state);
}

static int poll_set(void *state, uint32_t slot, int fd_before, int fd, uint32_t interest) {
    (void)fd_before;
    PollState *poll_state = state;
    if (slot >= poll_state->count) {
        uint32_t count = slot + 64;
        struct pollfd *fds = realloc(poll_state->fds, count * sizeof *fds);
        if (!fds)
            return omi_fail(OM_ERR_BUS_NO_MEMORY, "event loop with %u descriptors", count);
        for (uint32_t i = poll_state->count; i < count; i++)
            fds[i] = (struct pollfd){.fd = -1};
        poll_state->fds = fds;
        poll_state->count = count;
    }
    poll_state->fds[slot] = (struct pollfd){
        .fd = fd,
        .events = (short)((interest & OMI_LOOP_READ ? POLLIN : 0) | (interest & OMI_LOOP_WRITE ? POLLOUT : 0)),
    };
    return 0;
}

static int poll_wait(void *state, OmiLoopEvent *events, int max, int64_t timeout_ns) {
    PollState *poll_state = state;
    int64_t ms = timeout_ns < 0 ? -1 : (timeout_ns + OMI_NS_PER_MS - 1) / OMI_NS_PER_MS;
    int ready = poll(poll_state->fds, poll_state->count, ms > INT32_MAX ? INT32_MAX : (int)ms);
    if (ready < 0)
        return errno == EINTR ? 0 : omi_fail_errno(OM_ERR_BUS_TCP_IO, "poll");
    int count = 0;
    for (uint32_t slot = 0; slot < poll_state->count && ready > 0 && count < max; slot++) {
        short got = poll_state->fds[slot].revents;
        if (!got)
            continue;
        ready--;
        events[count++] = (OmiLoopEvent){
            .slot = slot,
            .events = (got & POLLIN ? (uint32_t)OMI_LOOP_READ : 0U) | (got & POLLOUT ? (uint32_t)OMI_LOOP_WRITE : 0U) |
                      (got & (POLLHUP | POLLERR | POLLNVAL) ? (uint32_t)OMI_LOOP_HANGUP : 0U),
        };
    }
    return count;
}

const OmiLoopBackend omi_loop_poll = {poll_open, poll_close, poll_set, poll_wait};
