#ifdef __linux__
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "tcp/loop_backend.h"

static int epoll_open(void **state) {
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return omi_fail_errno(OM_ERR_BUS_TCP_IO, "epoll_create1");
    *state = (void *)(intptr_t)fd;
    return 0;
}

static void epoll_close(void *state) {
    close((int)(intptr_t)state);
}

static int epoll_set(void *state, uint32_t slot, int fd_before, int fd, uint32_t interest) {
    struct epoll_event event = {
        .events = (interest & OMI_LOOP_READ ? EPOLLIN | EPOLLRDHUP : 0U) | (interest & OMI_LOOP_WRITE ? EPOLLOUT : 0U),
        .data.u32 = slot,
    };
    int op = fd < 0 ? EPOLL_CTL_DEL : fd_before < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl((int)(intptr_t)state, op, fd < 0 ? fd_before : fd, &event) != 0)
        return omi_fail_errno(OM_ERR_BUS_TCP_IO, "epoll_ctl of fd %d", fd < 0 ? fd_before : fd);
    return 0;
}

/** Milliseconds, rounded up: rounding down would turn a short sleep into a spin. */
static int timeout_ms(int64_t timeout_ns) {
    if (timeout_ns < 0)
        return -1;
    int64_t ms = (timeout_ns + OMI_NS_PER_MS - 1) / OMI_NS_PER_MS;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static int epoll_wait_ns(int fd, struct epoll_event *events, int max, int64_t timeout_ns) {
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 35)
    static bool missing; /* the kernel is older than 5.11 */
    if (timeout_ns > 0 && !__atomic_load_n(&missing, __ATOMIC_RELAXED)) {
        struct timespec limit = {.tv_sec = timeout_ns / OMI_NS_PER_S, .tv_nsec = timeout_ns % OMI_NS_PER_S};
        int count = epoll_pwait2(fd, events, max, &limit, NULL);
        if (count >= 0 || errno != ENOSYS)
            return count;
        __atomic_store_n(&missing, true, __ATOMIC_RELAXED);
    }
#endif
#endif
    return epoll_wait(fd, events, max, timeout_ms(timeout_ns));
}

static int epoll_wait_events(void *state, OmiLoopEvent *events, int max, int64_t timeout_ns) {
    struct epoll_event ready[64];
    int count = epoll_wait_ns((int)(intptr_t)state, ready, max < 64 ? max : 64, timeout_ns);
    if (count < 0)
        return errno == EINTR ? 0 : omi_fail_errno(OM_ERR_BUS_TCP_IO, "epoll_wait");
    for (int i = 0; i < count; i++)
        events[i] = (OmiLoopEvent){
            .slot = ready[i].data.u32,
            .events = (ready[i].events & (EPOLLIN | EPOLLRDHUP) ? (uint32_t)OMI_LOOP_READ : 0U) |
                      (ready[i].events & EPOLLOUT ? (uint32_t)OMI_LOOP_WRITE : 0U) |
                      (ready[i].events & (EPOLLHUP | EPOLLERR) ? (uint32_t)OMI_LOOP_HANGUP : 0U),
        };
    return count;
}

const OmiLoopBackend omi_loop_epoll = {epoll_open, epoll_close, epoll_set, epoll_wait_events};
#endif
