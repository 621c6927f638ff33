/* What a peer may not do: limits, malformed input, and a server that goes on serving. */
#include "net_fixture.h"
#include "tcp/message.h"

typedef struct Served {
    TestLog log;
    TestServer server;
    uint16_t port;
} Served;

static void served_open(Served *served, const OmNetServerConfig *config) {
    log_open(&served->log, 1 << 20);
    log_append(&served->log, 100);
    server_of(&served->server, &served->log, config);
    served->port = om_net_server_port(served->server.srv);
}

static void served_close(Served *served) {
    server_stop(&served->server);
    log_close(&served->log);
}

/** A new client is served as ever. */
static void check_serving(const Served *served) {
    OmNetClient *client = client_to(&served->server);
    CHECK_EQ(om_net_client_replay(client, NULL, 1, 101, NULL, 0), 0);
    expect_records(client, 1, 101);
    om_net_client_close(client);
}

/** Say `bytes`; the code of the first ERROR that comes back, 0 when the server just closes. */
static int answer_to(uint16_t port, const void *bytes, size_t size) {
    uint8_t got[4096];
    size_t used = 0;
    int fd = raw_connect(port), code = 0;
    CHECK_EQ(send(fd, bytes, size, MSG_NOSIGNAL), size);
    ssize_t n;
    while (used < sizeof got && (n = recv(fd, got + used, sizeof got - used, 0)) > 0)
        used += (size_t)n;
    OmiWireFrame frame;
    for (size_t at = 0; at < used && omi_wire_decode(got + at, used - at, sizeof got, &frame) == 1; at += frame.size)
        if (frame.wal_type == OMI_WIRE_TYPE_CONTROL && frame.payload[0] == OMI_MESSAGE_ERROR)
            code = omi_message_error_code(frame.payload, frame.payload_len);
    close(fd);
    return code;
}

static size_t control(uint8_t *to, uint8_t op, uint8_t version, size_t payload_size) {
    uint8_t payload[2000] = {op, version};
    return omi_wire_encode(to, 1, OMI_WIRE_TYPE_CONTROL, payload, (uint16_t)payload_size);
}

TEST(each_kind_of_malformed_input_has_its_error) {
    Served served;
    uint8_t bytes[4096];
    served_open(&served, NULL);
    CHECK_EQ(answer_to(served.port, "GET / HTTP/1.1\r\n\r\n", 18), OM_ERR_NET_PROTOCOL);
    CHECK_CONTAINS(om_bus_last_error(), "frame starts with");
    CHECK_EQ(answer_to(served.port, bytes, control(bytes, 1, 2, 42)), OM_ERR_NET_VERSION);
    CHECK_EQ(answer_to(served.port, bytes, control(bytes, 1, 1, 41)), OM_ERR_NET_PROTOCOL); /* too short for a HELLO */
    CHECK_EQ(answer_to(served.port, bytes, control(bytes, 1, 1, 3)), OM_ERR_NET_PROTOCOL);
    CHECK_EQ(answer_to(served.port, bytes, control(bytes, 3, 1, 42)), OM_ERR_NET_PROTOCOL); /* no HELLO first */
    CHECK_CONTAINS(om_bus_last_error(), "REPLAY where HELLO is due");
    CHECK_EQ(answer_to(served.port, bytes, control(bytes, 1, 1, 1000)), OM_ERR_NET_PROTOCOL); /* too long */
    CHECK_CONTAINS(om_bus_last_error(), "limit");
    CHECK_EQ(answer_to(served.port, bytes, omi_wire_encode(bytes, 1, 1, "record", 6)), OM_ERR_NET_PROTOCOL);
    CHECK_EQ(answer_to(served.port, bytes, omi_wire_encode_ext(bytes, 1, OMI_WIRE_TYPE_CONTROL, 0, "\1\1\0\0", 4)),
             OM_ERR_NET_PROTOCOL);
    size_t hello = control(bytes, 1, 1, 42);
    CHECK_EQ(answer_to(served.port, bytes, hello + control(bytes + hello, 99, 1, 4)), OM_ERR_NET_UNKNOWN_OP);
    CHECK_EQ(answer_to(served.port, bytes, hello + control(bytes + hello, 1, 1, 42)), OM_ERR_NET_PROTOCOL);
    CHECK_EQ(answer_to(served.port, bytes, hello + control(bytes + hello, 7, 1, 36)), OM_ERR_NET_PROTOCOL);
    uint8_t status[18] = {2, 1, [16] = 0xFF, [17] = 0xFF}; /* a name of 65535 bytes that are not there */
    size_t size = hello + omi_wire_encode(bytes + hello, 2, OMI_WIRE_TYPE_CONTROL, status, sizeof status);
    CHECK_EQ(answer_to(served.port, bytes, size), OM_ERR_NET_PROTOCOL);
    CHECK(SERVER_STAT(&served.server, protocol_errors) >= 12);
    check_serving(&served);
    served_close(&served);
}

TEST(ten_thousand_fuzzed_exchanges_leave_the_server_serving) {
    Served served;
    OmNetServerConfig config = {.accepts_per_s = 1000000, .idle_timeout_ms = 2000};
    uint8_t bytes[2048];
    served_open(&served, &config);
    for (int round = 0; round < 10000; round++) {
        size_t size = control(bytes, OMI_MESSAGE_HELLO, 1, 42);
        for (uint64_t more = test_random() % 4; more > 0; more--)
            size += control(bytes + size, (uint8_t)(test_random() % 9), 1, 4 + test_random() % 60);
        for (uint64_t flips = test_random() % 6; flips > 0; flips--)
            bytes[test_random() % size] = (uint8_t)test_random();
        int fd = raw_connect(served.port);
        size_t cut = test_random() % 4 ? size : test_random() % size;
        (void)!send(fd, bytes, cut, MSG_NOSIGNAL);
        if (test_random() % 8 == 0) {
            uint8_t got[256];
            (void)!recv(fd, got, sizeof got, MSG_DONTWAIT);
        }
        close(fd);
        if (round % 1000 == 0)
            check_serving(&served);
    }
    check_serving(&served);
    WAIT_FOR(SERVER_STAT(&served.server, connections) == 0, short_sleep());
    CHECK_EQ(SERVER_STAT(&served.server, transfers), 0);
    served_close(&served);
}

TEST(a_connection_too_many_is_refused_with_a_reason) {
    Served served;
    OmNetServerConfig config = {.max_connections = 3};
    OmNetClient *clients[3], *extra;
    served_open(&served, &config);
    for (int i = 0; i < 3; i++)
        clients[i] = client_to(&served.server);
    CHECK_EQ(try_client(&extra, served.port, NULL), OM_ERR_NET_LIMIT);
    CHECK_EQ(SERVER_STAT(&served.server, connections_refused), 1);
    om_net_client_close(clients[1]);
    WAIT_FOR(SERVER_STAT(&served.server, connections) == 2, short_sleep());
    clients[1] = client_to(&served.server);
    for (int i = 0; i < 3; i++)
        om_net_client_close(clients[i]);
    served_close(&served);
}

TEST(handshakes_that_are_never_finished_make_room_for_new_ones) {
    Served served;
    OmNetServerConfig config = {.secret = "s", .secret_size = 1, .max_handshakes = 4};
    OmNetClient *client;
    int half_open[20];
    served_open(&served, &config);
    for (int i = 0; i < 20; i++)
        half_open[i] = raw_connect(served.port);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(try_client(&client, served.port, "s"), 0);
        om_net_client_close(client);
    }
    CHECK(SERVER_STAT(&served.server, connections) <= 5);
    for (int i = 0; i < 20; i++)
        close(half_open[i]);
    served_close(&served);
}

TEST(an_idle_connection_is_closed_and_the_client_connects_again) {
    Served served;
    OmNetServerConfig config = {.idle_timeout_ms = 30};
    served_open(&served, &config);
    OmNetClient *client = client_to(&served.server);
    CHECK_EQ(om_net_client_status(client, NULL, 0, NULL, 0), 1);
    WAIT_FOR(SERVER_STAT(&served.server, connections) == 0, short_sleep());
    CHECK_EQ(SERVER_STAT(&served.server, timeouts), 1);
    CHECK_EQ(om_net_client_replay(client, NULL, 1, 101, NULL, 0), 0);
    expect_records(client, 1, 101);
    om_net_client_close(client);
    served_close(&served);
}

TEST(a_subscriber_at_the_live_end_is_not_idle) {
    Served served;
    OmNetServerConfig config = {.idle_timeout_ms = 20};
    served_open(&served, &config);
    OmNetClient *client = client_to(&served.server);
    CHECK_EQ(om_net_client_subscribe(client, NULL, 101, NULL, 0), 0);
    for (int i = 0; i < 500; i++)
        short_sleep();
    log_append(&served.log, 1);
    expect_records(client, 101, 102);
    om_net_client_close(client);
    served_close(&served);
}

TEST(connections_beyond_the_rate_wait_but_are_served) {
    Served served;
    OmNetServerConfig config = {.accepts_per_s = 100};
    OmNetClient *client;
    served_open(&served, &config);
    for (int i = 0; i < 40; i++) { /* 11 at once, the rest at 100 a second */
        CHECK_EQ(try_client(&client, served.port, NULL), 0);
        om_net_client_close(client);
    }
    CHECK_EQ(SERVER_STAT(&served.server, connections_refused), 0);
    served_close(&served);
}

TEST(a_client_that_never_reads_its_answers_is_no_longer_heard) {
    Served served;
    uint8_t bytes[64];
    served_open(&served, NULL);
    int fd = raw_connect(served.port);
    size_t size = control(bytes, OMI_MESSAGE_HELLO, 1, 42);
    CHECK_EQ(send(fd, bytes, size, 0), size);
    WAIT_FOR(SERVER_STAT(&served.server, requests) == 1, short_sleep());
    size = control(bytes, OMI_MESSAGE_STATUS, 1, 18);
    uint64_t sent = 1, heard, before = UINT64_MAX;
    for (int i = 0; i < 5000000; i++, sent++) /* until the server has stopped to listen and the socket is full */
        if (send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size)
            break;
    WAIT_FOR((heard = SERVER_STAT(&served.server, requests)) == before, {
        before = heard;
        for (int i = 0; i < 100; i++)
            short_sleep();
    });
    CHECK(heard < sent);
    CHECK_EQ(SERVER_STAT(&served.server, connections), 1);
    check_serving(&served);
    close(fd);
    served_close(&served);
}

TEST(pipelined_requests_are_answered_in_order) {
    Served served;
    uint8_t bytes[1024];
    served_open(&served, NULL);
    int fd = raw_connect(served.port);
    size_t size = control(bytes, OMI_MESSAGE_HELLO, 1, 42);
    for (uint64_t i = 0; i < 5; i++) {
        OmiRangeRequest range = {
            .header = omi_message_header(OMI_MESSAGE_REPLAY), .from = 1 + 10 * i, .to = 11 + 10 * i};
        size += omi_message_encode(bytes + size, 10 + i, &range, sizeof range, NULL, 0);
    }
    CHECK_EQ(send(fd, bytes, size, 0), size);
    uint64_t next = 1;
    int ends = 0;
    static uint8_t got[65536];
    size_t used = 0;
    while (ends < 5) {
        ssize_t n = recv(fd, got + used, sizeof got - used, 0);
        CHECK(n > 0);
        used += (size_t)n;
        OmiWireFrame frame;
        size_t at = 0;
        while (at < used && omi_wire_decode(got + at, used - at, sizeof got, &frame) == 1) {
            if (frame.wal_type < OMI_WIRE_TYPE_CONTROL)
                CHECK_EQ(frame.wal_seq, next++);
            else if (frame.wal_type == OMI_WIRE_TYPE_CONTROL && frame.payload[0] == OMI_MESSAGE_END)
                CHECK_EQ(frame.wal_seq, 10 + ends++);
            at += frame.size;
        }
        memmove(got, got + at, used - at);
        used -= at;
    }
    CHECK_EQ(next, 51);
    close(fd);
    served_close(&served);
}

TEST(arguments_are_checked) {
    OmNetServer *srv = NULL;
    OmNetClient *client = NULL;
    OmNetClientConfig client_config = {0};
    OmNetServerConfig config = {.max_connections = 1000000};
    OmNetServerStats stats;
    CHECK_EQ(om_net_server_create(NULL, &config), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_server_create(&srv, &config), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_server_add_log(NULL, "x", "y"), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_server_add_ring(NULL, "x", "y", 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_server_run(NULL), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_server_step(NULL, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_server_port(NULL), 0);
    om_net_server_stop(NULL);
    om_net_server_stats(NULL, &stats);
    CHECK_EQ(stats.connections, 0);
    om_net_server_destroy(NULL);
    CHECK_EQ(om_net_client_open(&client, &client_config), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_client_status(NULL, NULL, 0, NULL, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_client_replay(NULL, NULL, 0, 0, NULL, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_client_next(NULL, NULL, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_client_next_span(NULL, 0, NULL, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_client_position(NULL), 0);
    om_net_client_close(NULL);
    config = (OmNetServerConfig){0};
    CHECK_EQ(om_net_server_create(&srv, &config), 0);
    CHECK_EQ(om_net_server_add_log(srv, "", "/tmp"), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_server_add_ring(srv, "ring", test_unique("nothing"), 0), OM_ERR_BUS_SHM_OPEN);
    om_net_server_destroy(srv);
}
