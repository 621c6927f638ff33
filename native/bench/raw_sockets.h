#ifndef OMBUS_BENCH_RAW_SOCKETS_H
#define OMBUS_BENCH_RAW_SOCKETS_H

/** The peers of the TCP benchmark: what plain sockets do on loopback between two processes, one on each core. */

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { FRAME = 72, CHUNK = 64 * 1024, ROUND_TRIPS = 20000, ROUND_TRIPS_WARM = 2000 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

#define MUST(condition)      \
    do {                     \
        if (!(condition))    \
            die(#condition); \
    } while (0)

static void join(pid_t child) {
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void connected_pair(int *server_fd, int *client_fd) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    MUST(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
    MUST(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    *client_fd = socket(AF_INET, SOCK_STREAM, 0);
    MUST(connect(*client_fd, (struct sockaddr *)&address, size) == 0);
    *server_fd = accept(listener, NULL, NULL);
    setsockopt(*client_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(*server_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    close(listener);
}

/** Bytes per second through one loopback connection in 64 KB writes. */
static double raw_stream(void *unused) {
    (void)unused;
    enum { CHUNKS = 16000 };
    static char chunk[4 * CHUNK];
    int out, in;
    connected_pair(&out, &in);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (uint64_t got = 0; got < (uint64_t)CHUNKS * CHUNK;) {
            ssize_t n = recv(in, chunk, sizeof chunk, 0);
            MUST(n > 0);
            got += (uint64_t)n;
        }
        _exit(0);
    }
    bench_pin(0);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < CHUNKS; i++)
        for (size_t sent = 0; sent < CHUNK;) {
            ssize_t n = send(out, chunk + sent, CHUNK - sent, 0);
            MUST(n > 0);
            sent += (size_t)n;
        }
    join(child);
    uint64_t took = bench_now_ns() - start;
    close(out);
    close(in);
    return (double)CHUNKS * CHUNK * 1e9 / (double)took;
}

static void spin_recv(int fd, char *to, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t n = recv(fd, to + got, size - got, MSG_DONTWAIT);
        if (n > 0)
            got += (size_t)n;
    }
}

/**
 * Round trips of one frame's bytes between two spinning processes, the answer on the same connection or on a second
 * one. The second case costs more for anybody: no answer carries the acknowledgement along.
 */
static void raw_ping_pong(uint64_t *ns, int connections) {
    char message[FRAME] = {0};
    int here, there;
    connected_pair(&here, &there);
    int answer_in = here, answer_out = there;
    if (connections == 2)
        connected_pair(&answer_out, &answer_in);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (int i = 0; i < ROUND_TRIPS + ROUND_TRIPS_WARM; i++) {
            spin_recv(there, message, FRAME);
            MUST(send(answer_out, message, FRAME, 0) == FRAME);
        }
        _exit(0);
    }
    bench_pin(0);
    for (int i = -ROUND_TRIPS_WARM; i < ROUND_TRIPS; i++) {
        uint64_t start = bench_now_ns();
        MUST(send(here, message, FRAME, 0) == FRAME);
        spin_recv(answer_in, message, FRAME);
        if (i >= 0)
            ns[i] = bench_now_ns() - start;
    }
    join(child);
    close(here);
    close(there);
    if (connections == 2) {
        close(answer_in);
        close(answer_out);
    }
}

/** Bytes per second of sendfile() of as many bytes, of any file that is in memory. */
static double raw_sendfile(void *context) {
    uint64_t total = *(const uint64_t *)context;
    static char chunk[1 << 20];
    int out, in, file = memfd_create("bench", 0);
    MUST(file >= 0 && ftruncate(file, 64 << 20) == 0);
    for (int i = 0; i < 64; i++)
        MUST(write(file, chunk, sizeof chunk) == sizeof chunk);
    connected_pair(&out, &in);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (uint64_t sent = 0; sent < total;) {
            off_t at = (off_t)(sent % (63 << 20));
            ssize_t n = sendfile(out, file, &at, total - sent < sizeof chunk ? total - sent : sizeof chunk);
            MUST(n > 0);
            sent += (uint64_t)n;
        }
        _exit(0);
    }
    bench_pin(0);
    uint64_t start = bench_now_ns();
    for (uint64_t got = 0; got < total;) {
        ssize_t n = recv(in, chunk, sizeof chunk, 0);
        MUST(n > 0);
        got += (uint64_t)n;
    }
    uint64_t took = bench_now_ns() - start;
    join(child);
    close(out);
    close(in);
    close(file);
    return (double)total * 1e9 / (double)took;
}

/** As status_round_trips(), raw: both sides block in recv(). */
static void raw_blocking_ping_pong(uint64_t *ns) {
    char message[FRAME] = {0};
    int here, there;
    connected_pair(&here, &there);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (int i = 0; i < ROUND_TRIPS + ROUND_TRIPS_WARM; i++)
            MUST(recv(there, message, FRAME, MSG_WAITALL) == FRAME && send(there, message, FRAME, 0) == FRAME);
        _exit(0);
    }
    bench_pin(0);
    for (int i = -ROUND_TRIPS_WARM; i < ROUND_TRIPS; i++) {
        uint64_t start = bench_now_ns();
        MUST(send(here, message, FRAME, 0) == FRAME && recv(here, message, FRAME, MSG_WAITALL) == FRAME);
        if (i >= 0)
            ns[i] = bench_now_ns() - start;
    }
    join(child);
    close(here);
    close(there);
}

#endif
