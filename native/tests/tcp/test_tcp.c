/* The seed's TCP tests, under the seed's names. */
#include "tcp_fixture.h"

TEST(test_tcp_create_destroy) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    CHECK_EQ(om_bus_tcp_server_client_count(srv), 0);
    CHECK_EQ(om_bus_tcp_server_poll_io(srv), 0);
    om_bus_tcp_server_destroy(srv);

    OmBusTcpServerConfig any = {0}; /* NULL = 0.0.0.0, all defaults */
    CHECK_EQ(om_bus_tcp_server_create(&srv, &any), 0);
    CHECK(om_bus_tcp_server_port(srv) != 0);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_connect_disconnect) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    CHECK_EQ(om_bus_tcp_server_client_count(srv), 1);
    CHECK_EQ(om_bus_tcp_client_wal_seq(client), 0);
    om_bus_tcp_client_close(client);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 0, om_bus_tcp_server_poll_io(srv));
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_single_record) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    OmBusRecord rec;
    CHECK_EQ(om_bus_tcp_client_poll(client, &rec), 0);
    CHECK_EQ(om_bus_tcp_server_broadcast(srv, 42, 3, "a payload", 9), 0);
    CHECK_EQ(next_result(srv, client, &rec), 1);
    CHECK_EQ(rec.wal_seq, 42);
    CHECK_EQ(rec.wal_type, 3);
    CHECK_EQ(rec.payload_len, 9);
    CHECK(memcmp(rec.payload, "a payload", 9) == 0);
    CHECK_EQ(om_bus_tcp_client_poll(client, &rec), 0);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_batch_broadcast) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    uint64_t numbers[100];
    OmBusRecord recs[100];
    for (uint64_t i = 0; i < 100; i++) {
        numbers[i] = i + 1;
        recs[i] = (OmBusRecord){.wal_seq = i + 1, .wal_type = 1, .payload_len = 8, .payload = &numbers[i]};
    }
    for (uint64_t i = 0; i < 50; i++)
        broadcast_number(srv, i + 1);
    CHECK_EQ(om_bus_tcp_server_broadcast_batch(srv, recs + 50, 50), 0);
    for (uint64_t i = 1; i <= 100; i++)
        expect_number(srv, client, i);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_slow_client) {
    OmBusTcpServer *srv = server_on(0, 0, 256);
    OmBusTcpClient *client = client_of(srv, 0);
    for (uint64_t seq = 1; seq <= 100; seq++)
        broadcast_number(srv, seq);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 0, om_bus_tcp_server_poll_io(srv));
    OmBusRecord rec;
    int rc;
    while ((rc = next_result(NULL, client, &rec)) == 1 || rc == OM_ERR_BUS_TCP_SLOW_WARNING) {
    }
    CHECK_EQ(rc, OM_ERR_BUS_TCP_DISCONNECTED);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_gap_detection) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    OmBusRecord rec;
    broadcast_number(srv, 1);
    broadcast_number(srv, 5);
    broadcast_number(srv, 6);
    expect_number(srv, client, 1);
    CHECK_EQ(next_result(srv, client, &rec), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(rec.wal_seq, 5);
    CHECK_EQ(rec.payload_len, 8);
    CHECK_CONTAINS(om_bus_last_error(), "wal_seq 5 after 1");
    expect_number(srv, client, 6);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_multi_client) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *clients[3];
    for (int i = 0; i < 3; i++)
        clients[i] = client_of(srv, 0);
    CHECK_EQ(om_bus_tcp_server_client_count(srv), 3);
    for (uint64_t seq = 1; seq <= 50; seq++)
        broadcast_number(srv, seq);
    for (int i = 2; i >= 0; i--)
        for (uint64_t seq = 1; seq <= 50; seq++)
            expect_number(srv, clients[i], seq);
    for (int i = 0; i < 3; i++)
        om_bus_tcp_client_close(clients[i]);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_server_destroy_connected) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    OmBusRecord rec;
    om_bus_tcp_server_destroy(srv);
    CHECK_EQ(next_result(NULL, client, &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    CHECK_EQ(om_bus_tcp_client_poll(client, &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    om_bus_tcp_client_close(client);
}

TEST(test_tcp_wal_seq_tracking) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    for (uint64_t seq = 100; seq < 110; seq++) {
        broadcast_number(srv, seq);
        expect_number(srv, client, seq);
        CHECK_EQ(om_bus_tcp_client_wal_seq(client), seq);
    }
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_protocol_error) {
    RawPeer peer = raw_listen();
    OmBusTcpClient *client = client_on(peer.port, 0);
    OmBusRecord rec;
    raw_accept(&peer);
    OmBusTcpFrameHeader header = {.magic = 0xDEADBEEF, .wal_seq = 1};
    CHECK_EQ(send(peer.fd, &header, sizeof header, 0), sizeof header);
    CHECK_EQ(next_result(NULL, client, &rec), OM_ERR_BUS_TCP_PROTOCOL);
    CHECK_CONTAINS(om_bus_last_error(), "0xDEADBEEF");
    CHECK_EQ(om_bus_tcp_client_poll(client, &rec), OM_ERR_BUS_TCP_PROTOCOL);
    om_bus_tcp_client_close(client);
    raw_close(&peer);
}

TEST(test_tcp_reconnect_resume) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        broadcast_number(srv, seq);
        expect_number(srv, client, seq);
    }
    CHECK_EQ(om_bus_tcp_client_wal_seq(client), 3);
    om_bus_tcp_client_close(client);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 0, om_bus_tcp_server_poll_io(srv));
    client = client_of(srv, 0);
    for (uint64_t seq = 4; seq <= 6; seq++) {
        broadcast_number(srv, seq);
        expect_number(srv, client, seq);
    }
    CHECK_EQ(om_bus_tcp_client_wal_seq(client), 6);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_max_clients) {
    OmBusTcpServer *srv = server_on(0, 2, 0);
    OmBusTcpClient *first = client_of(srv, 0), *second = client_of(srv, 0);
    OmBusTcpClient *extra = client_on(om_bus_tcp_server_port(srv), 0);
    OmBusRecord rec;
    CHECK_EQ(next_result(srv, extra, &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    CHECK_EQ(om_bus_tcp_server_client_count(srv), 2);
    broadcast_number(srv, 1);
    expect_number(srv, first, 1);
    expect_number(srv, second, 1);
    om_bus_tcp_client_close(extra);
    om_bus_tcp_client_close(first);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 1, om_bus_tcp_server_poll_io(srv));
    extra = client_of(srv, 0); /* the place is free again */
    om_bus_tcp_client_close(extra);
    om_bus_tcp_client_close(second);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_server_stats) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpServerStats stats;
    OmBusTcpClient *first = client_of(srv, 0), *second = client_of(srv, 0);
    for (uint64_t seq = 1; seq <= 10; seq++)
        broadcast_number(srv, seq);
    expect_number(srv, first, 1);
    om_bus_tcp_server_stats(srv, &stats);
    CHECK_EQ(stats.records_broadcast, 10);
    CHECK_EQ(stats.bytes_broadcast, 80);
    CHECK_EQ(stats.clients_accepted, 2);
    CHECK_EQ(stats.clients_disconnected, 0);
    om_bus_tcp_client_close(first);
    om_bus_tcp_client_close(second);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 0, om_bus_tcp_server_poll_io(srv));
    om_bus_tcp_server_stats(srv, &stats);
    CHECK_EQ(stats.clients_disconnected, 2);
    CHECK_EQ(stats.slow_client_drops, 0);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_slow_client_stats) {
    OmBusTcpServer *srv = server_on(0, 0, 256);
    OmBusTcpServerStats stats;
    OmBusTcpClient *client = client_of(srv, 0);
    for (uint64_t seq = 1; seq <= 100; seq++)
        broadcast_number(srv, seq);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 0, om_bus_tcp_server_poll_io(srv));
    om_bus_tcp_server_stats(srv, &stats);
    CHECK_EQ(stats.slow_client_drops, 1);
    CHECK_EQ(stats.clients_disconnected, 1);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_slow_client_warning) {
    OmBusTcpServer *srv = server_on(0, 0, 256);
    OmBusTcpClient *client = client_of(srv, 0);
    OmBusRecord rec;
    char payload[60] = {0}; /* 76-byte frames: three are 228, and 24 more fit into 256 */
    for (uint64_t seq = 1; seq <= 4; seq++)
        CHECK_EQ(om_bus_tcp_server_broadcast(srv, seq, 1, payload, sizeof payload), 0);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        CHECK_EQ(next_result(srv, client, &rec), 1);
        CHECK_EQ(rec.wal_seq, seq);
    }
    CHECK_EQ(next_result(srv, client, &rec), OM_ERR_BUS_TCP_SLOW_WARNING);
    CHECK_EQ(rec.wal_type, OM_BUS_TCP_WAL_TYPE_SLOW_WARNING);
    CHECK_EQ(rec.payload_len, 8);
    uint32_t fields[2];
    memcpy(fields, rec.payload, 8);
    CHECK_EQ(fields[0], 228);
    CHECK_EQ(fields[1], 256);
    CHECK_EQ(om_bus_tcp_client_wal_seq(client), 3);
    CHECK_EQ(next_result(srv, client, &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_reorder_detection) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *strict = client_of(srv, OM_BUS_FLAG_REJECT_REORDER), *lenient = client_of(srv, 0);
    OmBusRecord rec;
    broadcast_number(srv, 5);
    broadcast_number(srv, 3);
    broadcast_number(srv, 4);
    expect_number(srv, strict, 5);
    CHECK_EQ(next_result(srv, strict, &rec), OM_ERR_BUS_REORDER_DETECTED);
    CHECK_EQ(rec.wal_seq, 3);
    expect_number(srv, strict, 4);
    expect_number(srv, lenient, 5);
    expect_number(srv, lenient, 3);
    expect_number(srv, lenient, 4);
    om_bus_tcp_client_close(strict);
    om_bus_tcp_client_close(lenient);
    om_bus_tcp_server_destroy(srv);
}

static int auto_result(OmBusTcpServer *srv, OmBusTcpAutoClient *client, OmBusRecord *rec) {
    int rc = 0;
    WAIT_FOR((rc = om_bus_tcp_auto_client_poll(client, rec)) != 0,
             srv ? (void)om_bus_tcp_server_poll_io(srv) : (void)0);
    return rc;
}

TEST(test_tcp_auto_reconnect) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    uint16_t port = om_bus_tcp_server_port(srv);
    OmBusTcpAutoClient *client;
    OmBusTcpAutoClientConfig config = {
        .base = {.host = "127.0.0.1", .port = port}, .retry_base_ms = 1, .retry_max_ms = 8};
    OmBusRecord rec;
    CHECK_EQ(om_bus_tcp_auto_client_create(&client, &config), 0);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 1, om_bus_tcp_server_poll_io(srv));
    broadcast_number(srv, 1);
    CHECK_EQ(auto_result(srv, client, &rec), 1);
    CHECK_EQ(rec.wal_seq, 1);

    om_bus_tcp_server_destroy(srv);
    for (int i = 0; i < 50; i++) { /* poll through several failed attempts */
        CHECK_EQ(om_bus_tcp_auto_client_poll(client, &rec), 0);
        short_sleep();
    }
    CHECK_EQ(om_bus_tcp_auto_client_wal_seq(client), 1);

    srv = server_on(port, 0, 0);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 1, {
        CHECK_EQ(om_bus_tcp_auto_client_poll(client, &rec), 0);
        om_bus_tcp_server_poll_io(srv);
    });
    broadcast_number(srv, 2);
    CHECK_EQ(auto_result(srv, client, &rec), 1); /* no gap: the sequence goes on over the new connection */
    CHECK_EQ(rec.wal_seq, 2);
    broadcast_number(srv, 9);
    CHECK_EQ(auto_result(srv, client, &rec), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(om_bus_tcp_auto_client_wal_seq(client), 9);
    om_bus_tcp_auto_client_close(client);
    om_bus_tcp_server_destroy(srv);

    config.max_retries = 3; /* nobody listens there any more */
    CHECK_EQ(om_bus_tcp_auto_client_create(&client, &config), 0);
    CHECK_EQ(auto_result(NULL, client, &rec), OM_ERR_BUS_TCP_CONNECT);
    CHECK_CONTAINS(om_bus_last_error(), "gave up after 3 retries");
    CHECK_EQ(om_bus_tcp_auto_client_poll(client, &rec), OM_ERR_BUS_TCP_CONNECT);
    om_bus_tcp_auto_client_close(client);
}
