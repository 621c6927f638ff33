#ifndef OMBUS_TCP_FIXTURE_H
#define OMBUS_TCP_FIXTURE_H

/** What the TCP tests share: servers and clients on loopback, and loops that wait for an outcome but not for ever. */

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>

#include "check.h"
#include "ombus/om_bus_tcp.h"

/** Turns of a waiting loop; each sleeps 100 us, so a test that hangs fails after some ten seconds. */
enum { TURNS_MAX = 100000 };

static inline void short_sleep(void) {
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/** Run `step` until `condition` holds. */
#define WAIT_FOR(condition, step)                            \
    do {                                                     \
        int turn_ = 0;                                       \
        while (!(condition)) {                               \
            if (++turn_ > TURNS_MAX)                         \
                FAIL("waited too long for: %s", #condition); \
            step;                                            \
            if (turn_ % 16 == 0)                             \
                short_sleep();                               \
        }                                                    \
    } while (0)

static inline OmBusTcpServer *server_on(uint16_t port, uint32_t max_clients, uint32_t send_buf_size) {
    OmBusTcpServer *srv = NULL;
    OmBusTcpServerConfig config = {
        .bind_addr = "127.0.0.1", .port = port, .max_clients = max_clients, .send_buf_size = send_buf_size};
    CHECK_EQ(om_bus_tcp_server_create(&srv, &config), 0);
    CHECK(srv && om_bus_tcp_server_port(srv) != 0);
    return srv;
}

static inline OmBusTcpClient *client_on(uint16_t port, uint32_t flags) {
    OmBusTcpClient *client = NULL;
    OmBusTcpClientConfig config = {.host = "127.0.0.1", .port = port, .flags = flags};
    CHECK_EQ(om_bus_tcp_client_connect(&client, &config), 0);
    CHECK(client != NULL);
    return client;
}

/** Connect and wait until the server has accepted. */
static inline OmBusTcpClient *client_of(OmBusTcpServer *srv, uint32_t flags) {
    uint32_t before = om_bus_tcp_server_client_count(srv);
    OmBusTcpClient *client = client_on(om_bus_tcp_server_port(srv), flags);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) > before, CHECK_EQ(om_bus_tcp_server_poll_io(srv), 0));
    return client;
}

/** First result of poll() that is not 0. */
static inline int next_result(OmBusTcpServer *srv, OmBusTcpClient *client, OmBusRecord *rec) {
    int rc = 0;
    WAIT_FOR((rc = om_bus_tcp_client_poll(client, rec)) != 0, srv ? (void)om_bus_tcp_server_poll_io(srv) : (void)0);
    return rc;
}

static inline void broadcast_number(OmBusTcpServer *srv, uint64_t seq) {
    CHECK_EQ(om_bus_tcp_server_broadcast(srv, seq, 1, &seq, sizeof seq), 0);
}

/** Next result is the record that broadcast_number(seq) sent. */
static inline void expect_number(OmBusTcpServer *srv, OmBusTcpClient *client, uint64_t seq) {
    OmBusRecord rec;
    CHECK_EQ(next_result(srv, client, &rec), 1);
    CHECK_EQ(rec.wal_seq, seq);
    CHECK_EQ(rec.wal_type, 1);
    CHECK_EQ(rec.payload_len, sizeof seq);
    CHECK(memcmp(rec.payload, &seq, sizeof seq) == 0);
}

/** A server of our own that sends whatever bytes a test likes. */
typedef struct RawPeer {
    int listen_fd, fd;
    uint16_t port;
} RawPeer;

static inline RawPeer raw_listen(void) {
    RawPeer peer = {.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .fd = -1};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    CHECK_EQ(bind(peer.listen_fd, (struct sockaddr *)&address, size), 0);
    CHECK_EQ(listen(peer.listen_fd, 8), 0);
    CHECK_EQ(getsockname(peer.listen_fd, (struct sockaddr *)&address, &size), 0);
    peer.port = ntohs(address.sin_port);
    return peer;
}

static inline void raw_accept(RawPeer *peer) {
    peer->fd = accept(peer->listen_fd, NULL, NULL);
    CHECK(peer->fd >= 0);
}

static inline void raw_close(RawPeer *peer) {
    if (peer->fd >= 0)
        close(peer->fd);
    close(peer->listen_fd);
}

/** A blocking connection that speaks raw bytes to a server. */
static inline int raw_connect(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

#endif
