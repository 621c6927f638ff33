#include "tcp/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#ifdef __linux__
#include <sys/sendfile.h>
#endif
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"

#ifdef MSG_NOSIGNAL
enum { SEND_FLAGS = MSG_NOSIGNAL };
#else
enum { SEND_FLAGS = 0 };
#endif

enum { KEEPALIVE_IDLE_S = 30, KEEPALIVE_INTERVAL_S = 10, KEEPALIVE_COUNT = 3 };

static void set_option(int fd, int level, int name, int value) {
    /* None of these is worth failing for: without them a connection is slower or a dead peer is noticed later. */
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

static void set_common(int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void set_stream_options(int fd) {
    set_common(fd);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
#else
    set_option(fd, IPPROTO_TCP, TCP_KEEPALIVE, KEEPALIVE_IDLE_S);
#endif
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
#ifdef SO_NOSIGPIPE
    set_option(fd, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
}

static int resolve(const char *host, uint16_t port, int flags, int error, struct addrinfo **out) {
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    int rc = getaddrinfo(host, service, &hints, out);
    return rc == 0 ? 0 : omi_fail(error, "host \"%s\": %s", host, gai_strerror(rc));
}

int omi_socket_listen(const char *host, uint16_t port, int backlog, uint16_t *port_out) {
    struct addrinfo *found;
    int rc = resolve(host, port, AI_PASSIVE, OM_ERR_BUS_TCP_BIND, &found);
    if (rc != 0)
        return rc;
    int fd = -1;
    for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM, 0);
        if (fd < 0)
            continue;
        set_common(fd);
        set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* a restarted server gets its port back at once */
        if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, backlog) != 0) {
            int saved = errno;
            close(fd);
            errno = saved;
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0)
        return omi_fail_errno(OM_ERR_BUS_TCP_BIND, "%s port %u", host, port);
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    getsockname(fd, (struct sockaddr *)&bound, &size);
    *port_out = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                  : ((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

int omi_socket_accept(int listen_fd, char *peer, size_t peer_size) {
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    int fd;
    do {
        fd = accept(listen_fd, (struct sockaddr *)&from, &size);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0)
        return -1;
    set_stream_options(fd);
    if (peer) {
        char host[64] = "?", service[8] = "?";
        (void)getnameinfo((struct sockaddr *)&from, size, host, sizeof host, service, sizeof service,
                          NI_NUMERICHOST | NI_NUMERICSERV);
        snprintf(peer, peer_size, "%s:%s", host, service);
    }
    return fd;
}

int omi_socket_connect_start(const char *host, uint16_t port, uint32_t attempt, uint32_t *addresses) {
    struct addrinfo *found;
    uint32_t count = 0;
    int rc = resolve(host, port, 0, OM_ERR_BUS_TCP_CONNECT, &found);
    if (rc != 0)
        return rc;
    for (struct addrinfo *at = found; at; at = at->ai_next)
        count++;
    struct addrinfo *chosen = found;
    for (uint32_t skip = attempt % count; skip > 0; skip--)
        chosen = chosen->ai_next;
    if (addresses)
        *addresses = count;
    int fd = socket(chosen->ai_family, SOCK_STREAM, 0);
    if (fd >= 0) {
        set_stream_options(fd);
        if (connect(fd, chosen->ai_addr, chosen->ai_addrlen) != 0 && errno != EINPROGRESS) {
            int saved = errno;
            close(fd);
            errno = saved;
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd >= 0 ? fd : omi_fail_errno(OM_ERR_BUS_TCP_CONNECT, "%s port %u", host, port);
}

int omi_socket_connect(const char *host, uint16_t port, int64_t timeout_ns) {
    uint64_t deadline = omi_deadline_ns(timeout_ns);
    uint32_t addresses = 1;
    int rc = OM_ERR_BUS_TCP_CONNECT;
    for (uint32_t attempt = 0; attempt < addresses; attempt++) {
        int fd = rc = omi_socket_connect_start(host, port, attempt, &addresses);
        if (fd < 0)
            continue;
        uint64_t now = omi_monotonic_ns();
        int64_t left = timeout_ns < 0 ? -1 : now < deadline ? (int64_t)(deadline - now) : 0;
        rc = omi_socket_connected(fd, left);
        if (rc > 0)
            return fd;
        close(fd);
        rc = rc == 0 ? omi_fail(OM_ERR_BUS_TCP_CONNECT, "%s port %u: no answer in time", host, port)
                     : omi_fail_errno(OM_ERR_BUS_TCP_CONNECT, "%s port %u", host, port);
    }
    return rc;
}

int omi_socket_wait(int fd, bool writable, int64_t timeout_ns) {
    uint64_t deadline = omi_deadline_ns(timeout_ns);
    for (;;) {
        uint64_t now = timeout_ns > 0 ? omi_monotonic_ns() : 0;
        int64_t left = timeout_ns <= 0 ? timeout_ns : now < deadline ? (int64_t)(deadline - now) : 0;
        struct pollfd polled = {.fd = fd, .events = writable ? POLLOUT : POLLIN};
#ifdef __linux__
        struct timespec limit = {.tv_sec = left / OMI_NS_PER_S, .tv_nsec = left % OMI_NS_PER_S};
        int ready = ppoll(&polled, 1, left < 0 ? NULL : &limit, NULL);
#else
        int64_t ms = left < 0 ? -1 : (left + OMI_NS_PER_MS - 1) / OMI_NS_PER_MS;
        int ready = poll(&polled, 1, ms > INT32_MAX ? INT32_MAX : (int)ms);
#endif
        if (ready >= 0)
            return ready > 0;
        if (errno != EINTR)
            return omi_fail_errno(OM_ERR_BUS_TCP_IO, "poll of fd %d", fd);
    }
}

int omi_socket_connected(int fd, int64_t timeout_ns) {
    int rc = omi_socket_wait(fd, true, timeout_ns);
    if (rc <= 0)
        return rc;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error == 0)
        return 1;
    errno = error;
    return omi_fail_errno(OM_ERR_BUS_TCP_CONNECT, "connect");
}

ssize_t omi_socket_send(int fd, const void *data, size_t size) {
    for (;;) {
        ssize_t sent = send(fd, data, size, SEND_FLAGS);
        if (sent >= 0)
            return sent;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

/* Below this a copy is cheaper than handing pages over. */
enum { SENDFILE_BYTES_MIN = 16 * 1024 };

#ifdef __linux__
/**
 * sendfile() that never raises SIGPIPE. It knows no MSG_NOSIGNAL, and a library must not change how the process treats
 * signals: so the signal is blocked in this thread, and taken back where it was raised (it goes to the thread that
 * wrote).
 */
static ssize_t sendfile_quietly(int fd, int file_fd, off_t offset, size_t size) {
    sigset_t pipe_only, before;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t sent = sendfile(fd, file_fd, &offset, size);
    int saved = errno;
    if (sent < 0 && saved == EPIPE && !sigismember(&before, SIGPIPE))
        sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return sent;
}
#endif

ssize_t omi_socket_send_file(int fd, int file_fd, uint64_t offset, const void *data, size_t size) {
#ifdef __linux__
    if (size >= SENDFILE_BYTES_MIN && file_fd >= 0) {
        ssize_t sent = sendfile_quietly(fd, file_fd, (off_t)offset, size);
        if (sent > 0)
            return sent;
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (sent < 0 && errno != EINVAL && errno != ENOSYS)
            return -1;
        /* A file system without sendfile, or a file that ends early: the mapping still has the bytes. */
    }
#else
    (void)file_fd;
    (void)offset;
#endif
    return omi_socket_send(fd, data, size);
}

ssize_t omi_socket_recv(int fd, void *data, size_t size) {
    for (;;) {
        ssize_t got = recv(fd, data, size, 0);
        if (got > 0)
            return got;
        if (got == 0)
            return -1;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

void omi_socket_close_gently(int fd) {
    char scratch[4096];
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 16 && recv(fd, scratch, sizeof scratch, MSG_DONTWAIT) > 0; i++) {
    }
    close(fd);
}
