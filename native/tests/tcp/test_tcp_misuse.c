/* Bad arguments, bad peers, and what the messages say. */
#include "tcp/message.h"
#include "tcp/wire.h"
#include "tcp_fixture.h"

TEST(null_arguments_are_errors) {
    OmBusTcpServer *srv = NULL;
    OmBusTcpClient *client = NULL;
    OmBusTcpAutoClient *auto_client = NULL;
    OmBusTcpServerConfig server_config = {.bind_addr = "127.0.0.1"};
    OmBusTcpClientConfig client_config = {0};
    OmBusTcpAutoClientConfig auto_config = {0};
    OmBusTcpServerStats stats;
    OmBusRecord rec = {.payload_len = 1};
    CHECK_EQ(om_bus_tcp_server_create(NULL, &server_config), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_server_create(&srv, NULL), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_server_broadcast(NULL, 1, 1, "x", 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_server_broadcast_batch(NULL, &rec, 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_server_poll_io(NULL), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_server_client_count(NULL), 0);
    CHECK_EQ(om_bus_tcp_server_port(NULL), 0);
    om_bus_tcp_server_stats(NULL, &stats);
    CHECK_EQ(stats.clients_accepted, 0);
    om_bus_tcp_server_destroy(NULL);
    CHECK_EQ(om_bus_tcp_client_connect(&client, NULL), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_client_connect(&client, &client_config), OM_ERR_BUS_INIT); /* no host */
    CHECK_EQ(om_bus_tcp_client_poll(NULL, &rec), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_client_poll_batch(NULL, &rec, 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_client_wait(NULL, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_client_wal_seq(NULL), 0);
    om_bus_tcp_client_close(NULL);
    CHECK_EQ(om_bus_tcp_auto_client_create(&auto_client, &auto_config), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_auto_client_poll(NULL, &rec), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_auto_client_wal_seq(NULL), 0);
    om_bus_tcp_auto_client_close(NULL);

    srv = server_on(0, 0, 0);
    CHECK_EQ(om_bus_tcp_server_broadcast(srv, 1, 1, NULL, 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_tcp_server_broadcast(srv, 1, 1, NULL, 0), 0);
    CHECK_EQ(om_bus_tcp_server_broadcast_batch(srv, &rec, 1), OM_ERR_BUS_INIT);
    om_bus_tcp_server_stats(srv, &stats);
    CHECK_EQ(stats.records_broadcast, 1);
    om_bus_tcp_server_destroy(srv);
}

TEST(a_port_in_use_and_a_foreign_address_are_bind_errors) {
    OmBusTcpServer *srv = server_on(0, 0, 0), *second = NULL;
    OmBusTcpServerConfig config = {.bind_addr = "127.0.0.1", .port = om_bus_tcp_server_port(srv)};
    CHECK_EQ(om_bus_tcp_server_create(&second, &config), OM_ERR_BUS_TCP_BIND);
    CHECK(second == NULL);
    CHECK_CONTAINS(om_bus_last_error(), "127.0.0.1 port");
    config = (OmBusTcpServerConfig){.bind_addr = "192.0.2.1"}; /* TEST-NET: never ours */
    CHECK_EQ(om_bus_tcp_server_create(&second, &config), OM_ERR_BUS_TCP_BIND);
    CHECK_CONTAINS(om_bus_last_error(), "192.0.2.1");
    om_bus_tcp_server_destroy(srv);
}

TEST(a_port_nobody_listens_on_is_a_connect_error) {
    RawPeer peer = raw_listen();
    raw_close(&peer);
    OmBusTcpClient *client = NULL;
    OmBusTcpClientConfig config = {.host = "127.0.0.1", .port = peer.port};
    CHECK_EQ(om_bus_tcp_client_connect(&client, &config), OM_ERR_BUS_TCP_CONNECT);
    CHECK(client == NULL);
    CHECK_CONTAINS(om_bus_last_error(), "refused");
}

TEST(a_frame_longer_than_the_send_buffer_drops_the_clients_but_not_the_server) {
    OmBusTcpServer *srv = server_on(0, 0, 64);
    OmBusTcpClient *client = client_of(srv, 0);
    char payload[100] = {0};
    OmBusRecord rec;
    CHECK_EQ(om_bus_tcp_server_broadcast(srv, 1, 1, payload, sizeof payload), 0);
    CHECK_EQ(next_result(srv, client, &rec), OM_ERR_BUS_TCP_SLOW_WARNING);
    CHECK_EQ(next_result(srv, client, &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    om_bus_tcp_client_close(client);
    client = client_of(srv, 0);
    broadcast_number(srv, 2);
    expect_number(srv, client, 2);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

/** Say `bytes` to a broadcasting server: the code of the ERROR it answers before it closes. */
static int answer_to(const void *bytes, size_t size) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *other = client_of(srv, 0);
    int fd = raw_connect(om_bus_tcp_server_port(srv));
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 2, om_bus_tcp_server_poll_io(srv));
    broadcast_number(srv, 1); /* what it was owed still comes first */
    CHECK_EQ(send(fd, bytes, size, 0), size);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 1, om_bus_tcp_server_poll_io(srv));
    uint8_t got[1024];
    ssize_t used = recv(fd, got, sizeof got, MSG_WAITALL);
    OmiWireFrame first, second;
    CHECK(used > 0 && omi_wire_decode(got, (size_t)used, sizeof got, &first) == 1);
    CHECK_EQ(first.wal_seq, 1);
    CHECK_EQ(omi_wire_decode(got + first.size, (size_t)used - first.size, sizeof got, &second), 1);
    CHECK_EQ(second.wal_type, OMI_WIRE_TYPE_CONTROL);
    CHECK_EQ(first.size + second.size, used);
    close(fd);
    expect_number(srv, other, 1);
    om_bus_tcp_client_close(other);
    om_bus_tcp_server_destroy(srv);
    return omi_message_error_code(second.payload, second.payload_len);
}

TEST(a_broadcasting_server_answers_whoever_talks_to_it_with_an_error_and_closes) {
    uint8_t hello[64];
    static const uint8_t payload[] = {OMI_MESSAGE_HELLO, OMI_MESSAGE_VERSION, 0, 0};
    size_t size = omi_wire_encode(hello, 1, OMI_WIRE_TYPE_CONTROL, payload, sizeof payload);
    CHECK_EQ(answer_to(hello, size), OM_ERR_NET_NO_HISTORY);
    CHECK_EQ(answer_to("GET / HTTP/1.1\r\n\r\n", 18), OM_ERR_NET_PROTOCOL);
    CHECK_EQ(answer_to("x", 1), OM_ERR_NET_PROTOCOL);
}

TEST(a_client_that_the_server_refuses_learns_why) {
    RawPeer peer = raw_listen();
    OmBusTcpClient *client = client_on(peer.port, 0);
    uint8_t frame[OMI_MESSAGE_ERROR_MAX];
    OmBusRecord rec;
    raw_accept(&peer);
    uint32_t size = omi_message_encode_error(frame, 0, OM_ERR_NET_AUTH_REQUIRED, "no anonymous clients");
    CHECK_EQ(send(peer.fd, frame, size, 0), size);
    CHECK_EQ(next_result(NULL, client, &rec), OM_ERR_NET_AUTH_REQUIRED);
    CHECK_CONTAINS(om_bus_last_error(), "no anonymous clients");
    om_bus_tcp_client_close(client);
    raw_close(&peer);
}

TEST(an_auto_client_reports_a_foreign_protocol_and_then_tries_again) {
    RawPeer peer = raw_listen();
    OmBusTcpAutoClient *client;
    OmBusTcpAutoClientConfig config = {
        .base = {.host = "127.0.0.1", .port = peer.port}, .retry_base_ms = 1, .retry_max_ms = 1};
    OmBusRecord rec;
    uint8_t frame[64];
    int rc = 0;
    CHECK_EQ(om_bus_tcp_auto_client_create(&client, &config), 0);
    raw_accept(&peer);
    CHECK_EQ(send(peer.fd, "SSH-2.0-", 8, 0), 8);
    WAIT_FOR((rc = om_bus_tcp_auto_client_poll(client, &rec)) != 0, short_sleep());
    CHECK_EQ(rc, OM_ERR_BUS_TCP_PROTOCOL);
    close(peer.fd);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(om_bus_tcp_auto_client_poll(client, &rec), 0);
        short_sleep();
    }
    raw_accept(&peer);
    uint32_t size = omi_wire_encode(frame, 7, 1, "x", 1);
    CHECK_EQ(send(peer.fd, frame, size, 0), size);
    WAIT_FOR((rc = om_bus_tcp_auto_client_poll(client, &rec)) != 0, short_sleep());
    CHECK_EQ(rc, 1);
    CHECK_EQ(rec.wal_seq, 7);
    om_bus_tcp_auto_client_close(client);
    raw_close(&peer);
}
