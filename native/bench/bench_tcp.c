/* TCP: live broadcast and lock-step round trip of the seed's server and client, beside raw loopback sockets. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "ombus/om_bus_tcp.h"

enum {
    PAYLOAD = 56,
    FRAME = 72,
    CHUNK = 64 * 1024,
    CLIENTS_MAX = 64,
    BATCH = 1024,        /* records per write */
    WINDOW = 64 * BATCH, /* records the readers may lag behind before the server waits for them */
    ROUND_TRIPS = 20000,
    ROUND_TRIPS_WARM = 2000,
};

/** Shared with the reading process. */
typedef struct Shared {
    _Atomic uint64_t slowest; /* records that every client has */
    _Atomic uint32_t port;    /* of the child's server */
} Shared;

static Shared *shared;

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

/* ---- Raw peers ---- */

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

/** Round trips of one frame's bytes between two spinning processes. */
static void raw_ping_pong(uint64_t *ns) {
    char message[FRAME] = {0};
    int here, there;
    connected_pair(&here, &there);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (int i = 0; i < ROUND_TRIPS + ROUND_TRIPS_WARM; i++) {
            spin_recv(there, message, FRAME);
            MUST(send(there, message, FRAME, 0) == FRAME);
        }
        _exit(0);
    }
    bench_pin(0);
    for (int i = -ROUND_TRIPS_WARM; i < ROUND_TRIPS; i++) {
        uint64_t start = bench_now_ns();
        MUST(send(here, message, FRAME, 0) == FRAME);
        spin_recv(here, message, FRAME);
        if (i >= 0)
            ns[i] = bench_now_ns() - start;
    }
    join(child);
    close(here);
    close(there);
}

/* ---- Ours ---- */

static OmBusTcpServer *serve(uint32_t send_buf_size) {
    OmBusTcpServer *srv;
    OmBusTcpServerConfig config = {
        .bind_addr = "127.0.0.1", .max_clients = CLIENTS_MAX, .send_buf_size = send_buf_size};
    MUST(om_bus_tcp_server_create(&srv, &config) == 0);
    return srv;
}

static OmBusTcpClient *connect_to(uint16_t port) {
    OmBusTcpClient *client;
    OmBusTcpClientConfig config = {.host = "127.0.0.1", .port = port};
    MUST(om_bus_tcp_client_connect(&client, &config) == 0);
    return client;
}

static void read_all(uint16_t port, int clients, uint64_t records) {
    OmBusTcpClient *client[CLIENTS_MAX];
    uint64_t got[CLIENTS_MAX] = {0};
    static OmBusRecord recs[BATCH];
    for (int i = 0; i < clients; i++)
        client[i] = connect_to(port);
    for (;;) {
        uint64_t slowest = UINT64_MAX;
        for (int i = 0; i < clients; i++) {
            int count = om_bus_tcp_client_poll_batch(client[i], recs, BATCH);
            MUST(count >= 0);
            if (count > 0) {
                got[i] += (uint64_t)count;
                MUST(recs[count - 1].wal_seq == got[i]);
            } else if (clients == 1)
                om_bus_tcp_client_wait(client[0], 1000000);
            slowest = got[i] < slowest ? got[i] : slowest;
        }
        atomic_store(&shared->slowest, slowest);
        if (slowest == records)
            return;
    }
}

typedef struct Live {
    int clients;
    uint64_t records;
} Live;

/** Records per second that each of the clients gets. */
static double live(void *context) {
    const Live *run = context;
    static uint8_t payloads[BATCH][PAYLOAD];
    static OmBusRecord recs[BATCH];
    OmBusTcpServer *srv = serve(WINDOW * 2 * FRAME);
    atomic_store(&shared->slowest, 0);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        read_all(om_bus_tcp_server_port(srv), run->clients, run->records);
        _exit(0);
    }
    bench_pin(0);
    while (om_bus_tcp_server_client_count(srv) < (uint32_t)run->clients)
        om_bus_tcp_server_poll_io(srv);
    uint64_t start = bench_now_ns();
    for (uint64_t seq = 0; seq < run->records; seq += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++)
            recs[i] =
                (OmBusRecord){.wal_seq = seq + i + 1, .wal_type = 1, .payload_len = PAYLOAD, .payload = payloads[i]};
        om_bus_tcp_server_broadcast_batch(srv, recs, BATCH);
        do
            om_bus_tcp_server_poll_io(srv);
        while (seq - atomic_load_explicit(&shared->slowest, memory_order_relaxed) > WINDOW &&
               seq > atomic_load_explicit(&shared->slowest, memory_order_relaxed));
    }
    while (atomic_load(&shared->slowest) < run->records)
        om_bus_tcp_server_poll_io(srv);
    uint64_t took = bench_now_ns() - start;
    join(child);
    om_bus_tcp_server_destroy(srv);
    return (double)run->records * 1e9 / (double)took;
}

static void spin_record(OmBusTcpClient *client, OmBusRecord *rec) {
    int rc;
    while ((rc = om_bus_tcp_client_poll(client, rec)) == 0) {
    }
    MUST(rc == 1);
}

/** A record to the other process and its answer back: two servers, two clients, both sides spinning. */
static void round_trips(uint64_t *ns) {
    OmBusTcpServer *srv = serve(0);
    OmBusRecord rec;
    char payload[PAYLOAD] = {0};
    atomic_store(&shared->port, 0);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        OmBusTcpServer *answers = serve(0);
        OmBusTcpClient *client = connect_to(om_bus_tcp_server_port(srv));
        atomic_store(&shared->port, om_bus_tcp_server_port(answers));
        while (om_bus_tcp_server_client_count(answers) == 0)
            om_bus_tcp_server_poll_io(answers);
        for (int i = 0; i < ROUND_TRIPS + ROUND_TRIPS_WARM; i++) {
            spin_record(client, &rec);
            om_bus_tcp_server_broadcast(answers, rec.wal_seq, 1, rec.payload, rec.payload_len);
            om_bus_tcp_server_poll_io(answers);
        }
        _exit(0);
    }
    bench_pin(0);
    while (atomic_load(&shared->port) == 0 || om_bus_tcp_server_client_count(srv) == 0)
        om_bus_tcp_server_poll_io(srv);
    OmBusTcpClient *client = connect_to((uint16_t)atomic_load(&shared->port));
    uint64_t seq = 0;
    for (int i = -ROUND_TRIPS_WARM; i < ROUND_TRIPS; i++) {
        uint64_t start = bench_now_ns();
        om_bus_tcp_server_broadcast(srv, ++seq, 1, payload, PAYLOAD);
        om_bus_tcp_server_poll_io(srv);
        spin_record(client, &rec);
        if (i >= 0)
            ns[i] = bench_now_ns() - start;
    }
    join(child);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

int main(int argc, char **argv) {
    static uint64_t raw_ns[ROUND_TRIPS], our_ns[ROUND_TRIPS];
    static const struct {
        const char *name;
        Live run;
        const char *goal;
    } lives[] = {
        {"tcp_live_1_client", {1, 6000 * BATCH}, ">= 5 M/s"},
        {"tcp_live_8_clients", {8, 1000 * BATCH}, NULL},
        {"tcp_live_64_clients", {64, 125 * BATCH}, NULL},
    };
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(shared != MAP_FAILED);
    bench_begin(argc, argv, "TCP on loopback, 56-byte records");
    double raw = bench_median(raw_stream, NULL, 3);
    bench_figure("tcp_raw_stream", raw / 1e9, "GB/s", 0, NULL, NULL);
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        Live run = lives[i].run;
        double rate = bench_median(live, &run, 3);
        /* What raw writes of 64 KB would carry, shared by the clients. */
        bench_figure(lives[i].name, rate / 1e6, "M rec/s", raw / FRAME / run.clients / 1e6, "raw loopback writes",
                     lives[i].goal);
    }
    raw_ping_pong(raw_ns);
    round_trips(our_ns);
    bench_figure("tcp_round_trip_p50", (double)bench_quantile(our_ns, ROUND_TRIPS, 0.5) / 1e3, "us",
                 (double)bench_quantile(raw_ns, ROUND_TRIPS, 0.5) / 1e3, "raw ping-pong", "<= 1.3 x");
    bench_figure("tcp_round_trip_p99", (double)bench_quantile(our_ns, ROUND_TRIPS, 0.99) / 1e3, "us",
                 (double)bench_quantile(raw_ns, ROUND_TRIPS, 0.99) / 1e3, "raw ping-pong", NULL);
    bench_end();
    return 0;
}
