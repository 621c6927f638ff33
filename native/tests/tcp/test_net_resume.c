/* Lost connections: a proxy that cuts at any byte, servers that stop and come back. */
#include "net_fixture.h"

/**
 * Stands between client and server and cuts the connection after a random number of bytes, `cuts` times; then it lets
 * everything through.
 */
typedef struct Proxy {
    RawPeer front;
    uint16_t server_port;
    int cuts;
    _Atomic int connections;
    uint64_t seed, bytes_max;
    pthread_t thread;
} Proxy;

static uint64_t proxy_random(Proxy *proxy) { /* its own: test_random() belongs to the test's thread */
    proxy->seed = proxy->seed * 6364136223846793005U + 1442695040888963407U;
    return proxy->seed >> 33;
}

/** Copy until `budget` bytes came from the server or somebody closed. */
static void carry(int client_fd, int server_fd, int64_t budget) {
    struct pollfd fds[2] = {{.fd = client_fd, .events = POLLIN}, {.fd = server_fd, .events = POLLIN}};
    char bytes[4096];
    while (budget > 0 && poll(fds, 2, -1) > 0) {
        if (fds[0].revents) {
            ssize_t n = recv(client_fd, bytes, sizeof bytes, 0);
            if (n <= 0 || send(server_fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
                return;
        }
        if (fds[1].revents) {
            ssize_t n = recv(server_fd, bytes, (int64_t)sizeof bytes < budget ? sizeof bytes : (size_t)budget, 0);
            if (n <= 0 || send(client_fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
                return;
            budget -= n;
        }
    }
}

static void *run_proxy(void *context) {
    Proxy *proxy = context;
    for (int i = 0;; i++) {
        int client_fd = accept(proxy->front.listen_fd, NULL, NULL);
        if (client_fd < 0)
            return NULL; /* stopped */
        proxy->connections = i + 1;
        int server_fd = raw_connect(proxy->server_port);
        carry(client_fd, server_fd,
              i < proxy->cuts ? (int64_t)(1 + proxy_random(proxy) % proxy->bytes_max) : INT64_MAX);
        close(client_fd);
        close(server_fd);
    }
}

static void proxy_start(Proxy *proxy, uint16_t server_port, int cuts, uint64_t bytes_max) {
    *proxy = (Proxy){
        .front = raw_listen(), .server_port = server_port, .cuts = cuts, .seed = test_random(), .bytes_max = bytes_max};
    CHECK_EQ(pthread_create(&proxy->thread, NULL, run_proxy, proxy), 0);
}

static void proxy_stop(Proxy *proxy) {
    shutdown(proxy->front.listen_fd, SHUT_RDWR); /* makes accept() fail */
    pthread_join(proxy->thread, NULL);
    raw_close(&proxy->front);
}

static OmNetClient *resuming_client(uint16_t port) {
    OmNetClient *client = NULL;
    OmNetClientConfig config = {
        .host = "127.0.0.1", .port = port, .reconnect_ms = 20000, .retry_base_ms = 1, .retry_max_ms = 2};
    int rc = OM_ERR_BUS_TCP_DISCONNECTED;
    for (int i = 0; i < 10000 && rc != 0; i++) /* the proxy may cut the very first handshake */
        rc = om_net_client_open(&client, &config);
    CHECK_EQ(rc, 0);
    return client;
}

TEST(a_subscription_cut_a_thousand_times_loses_and_doubles_nothing) {
    enum { CUTS = 1000 };
    TestLog log;
    TestServer server;
    Proxy proxy;
    OmNetServerConfig config = {.accepts_per_s = 1000000};
    OmLogRecord recs[64];
    log_open(&log, 64 << 10);
    log_append(&log, 1000);
    server_of(&server, &log, &config);
    proxy_start(&proxy, om_net_server_port(server.srv), CUTS, 4000);
    OmNetClient *client = resuming_client(proxy.front.port);
    int rc = OM_ERR_BUS_TCP_DISCONNECTED;
    for (int i = 0; i < 10000 && rc == OM_ERR_BUS_TCP_DISCONNECTED; i++)
        rc = om_net_client_subscribe(client, NULL, 1, NULL, 0);
    CHECK_EQ(rc, 0);
    /* Append as fast as it reads, until the proxy has made all its cuts. */
    uint64_t next = 1;
    while (proxy.connections <= CUTS || next <= om_log_writer_last_seq(log.writer)) {
        if (next + 100 > om_log_writer_last_seq(log.writer) && proxy.connections <= CUTS)
            log_append(&log, 200);
        rc = om_net_client_next_batch(client, recs, 64, PATIENCE);
        if (rc <= 0)
            FAIL("at %llu: %d %s", (unsigned long long)next, rc, om_bus_last_error());
        for (int i = 0; i < rc; i++)
            check_record(&recs[i], next++);
    }
    CHECK(om_net_client_reconnects(client) > CUTS / 2); /* the others hit a handshake */
    om_net_client_close(client);
    proxy_stop(&proxy);
    server_stop(&server);
    log_close(&log);
}

TEST(a_replay_is_resumed_in_the_middle_of_its_range) {
    TestLog log;
    TestServer server;
    Proxy proxy;
    OmNetServerConfig config = {.accepts_per_s = 1000000};
    OmLogRecord rec;
    log_open(&log, 1 << 20);
    log_append(&log, 20000);
    server_of(&server, &log, &config);
    proxy_start(&proxy, om_net_server_port(server.srv), 20, 100000);
    OmNetClient *client = resuming_client(proxy.front.port);
    int rc = OM_ERR_BUS_TCP_DISCONNECTED;
    for (int i = 0; i < 100 && rc == OM_ERR_BUS_TCP_DISCONNECTED; i++)
        rc = om_net_client_replay(client, NULL, 100, 19900, NULL, 0);
    CHECK_EQ(rc, 0);
    expect_records(client, 100, 19900);
    CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_END);
    CHECK(om_net_client_reconnects(client) > 0);
    om_net_client_close(client);
    proxy_stop(&proxy);
    server_stop(&server);
    log_close(&log);
}

TEST(a_client_outlives_a_server_restart) {
    TestLog log;
    TestServer server;
    OmLogRecord rec;
    log_open(&log, 64 << 10);
    log_append(&log, 100);
    server_of(&server, &log, NULL);
    uint16_t port = om_net_server_port(server.srv);
    OmNetClient *client = resuming_client(port);
    CHECK_EQ(om_net_client_subscribe(client, NULL, 1, NULL, 0), 0);
    expect_records(client, 1, 101);
    server_stop(&server);
    CHECK_EQ(om_net_client_next(client, &rec, 10000000), 0); /* nobody there: the timeout is kept */
    log_append(&log, 50);
    OmNetServerConfig config = {.port = port};
    server_of(&server, &log, &config);
    expect_records(client, 101, 151);
    CHECK_EQ(om_net_client_reconnects(client), 1);
    om_net_client_close(client);
    server_stop(&server);
    log_close(&log);
}

TEST(without_reconnecting_a_stopping_server_is_an_error_that_says_so) {
    TestLog log;
    TestServer server;
    OmLogRecord rec;
    log_open(&log, 64 << 10);
    log_append(&log, 10);
    server_of(&server, &log, NULL);
    OmNetClient *client = client_to(&server);
    CHECK_EQ(om_net_client_subscribe(client, NULL, 1, NULL, 0), 0);
    expect_records(client, 1, 11);
    server_stop(&server);
    CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_SHUTDOWN);
    CHECK_EQ(om_net_client_position(client), 11);
    om_net_client_close(client);
    log_close(&log);
}

TEST(another_log_under_the_same_name_is_noticed_on_resume) {
    TestLog log, other;
    TestServer server;
    OmLogRecord rec;
    log_open(&log, 64 << 10);
    log_append(&log, 100);
    server_of(&server, &log, NULL);
    uint16_t port = om_net_server_port(server.srv);
    OmNetClient *client = resuming_client(port);
    CHECK_EQ(om_net_client_subscribe(client, NULL, 1, NULL, 0), 0);
    expect_records(client, 1, 101);
    server_stop(&server);
    log_open(&other, 64 << 10);
    log_append(&other, 500);
    OmNetServerConfig config = {.port = port};
    server_of(&server, &other, &config);
    CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_IDENTITY);
    om_net_client_close(client);
    server_stop(&server);
    log_close(&log);
    log_close(&other);
}

TEST(a_client_gives_up_in_bounded_time_and_names_the_reason) {
    TestLog log;
    TestServer server;
    OmLogRecord rec;
    log_open(&log, 64 << 10);
    log_append(&log, 10);
    server_of(&server, &log, NULL);
    OmNetClient *client;
    OmNetClientConfig config = {.host = "127.0.0.1",
                                .port = om_net_server_port(server.srv),
                                .reconnect_ms = 50,
                                .retry_base_ms = 1,
                                .retry_max_ms = 5};
    CHECK_EQ(om_net_client_open(&client, &config), 0);
    CHECK_EQ(om_net_client_subscribe(client, NULL, 1, NULL, 0), 0);
    expect_records(client, 1, 11);
    server_stop(&server);
    CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_BUS_TCP_CONNECT);
    CHECK_CONTAINS(om_bus_last_error(), "127.0.0.1");
    CHECK_EQ(om_net_client_next(client, &rec, 0), OM_ERR_NET_END);
    om_net_client_close(client);
    log_close(&log);
}

TEST(a_server_that_does_not_answer_is_a_timeout) {
    RawPeer peer = raw_listen();
    OmNetClient *client;
    OmNetClientConfig config = {.host = "127.0.0.1", .port = peer.port, .timeout_ms = 30};
    CHECK_EQ(om_net_client_open(&client, &config), OM_ERR_NET_TIMEOUT);
    CHECK_CONTAINS(om_bus_last_error(), "no answer to HELLO");
    raw_close(&peer);
}

static void *drive(void *srv) {
    for (int i = 0; i < TURNS_MAX; i++) {
        OmBusTcpServerStats stats;
        om_bus_tcp_server_wait_io(srv, 1000000);
        om_bus_tcp_server_stats(srv, &stats);
        if (stats.clients_disconnected > 0)
            break;
    }
    return NULL;
}

TEST(a_server_that_only_broadcasts_says_so) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmNetClient *client = NULL;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, drive, srv), 0);
    CHECK_EQ(try_client(&client, om_bus_tcp_server_port(srv), NULL), OM_ERR_NET_NO_HISTORY);
    pthread_join(thread, NULL);
    om_bus_tcp_server_destroy(srv);
}
