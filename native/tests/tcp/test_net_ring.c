/* Serving a ring without a log: live only, for silent and for asking clients. */
#include "../ring/ring_fixture.h"
#include "net_fixture.h"

typedef struct Ringed {
    char name[128];
    OmBusStream *stream;
    TestServer server;
    uint64_t next;
} Ringed;

static void ringed_open(Ringed *ringed, const OmNetServerConfig *config) {
    snprintf(ringed->name, sizeof ringed->name, "%s", test_unique("netring"));
    ringed->stream = make_stream(ringed->name, 4096, 256, 4, OM_BUS_FLAG_CRC);
    ringed->next = 1;
    server_create(&ringed->server, config);
    CHECK_EQ(om_net_server_add_ring(ringed->server.srv, "ring", ringed->name, OM_BUS_CONSUMER_ANY), 0);
    server_start(&ringed->server);
}

static void ringed_close(Ringed *ringed) {
    server_stop(&ringed->server);
    om_bus_stream_destroy(ringed->stream);
}

static void ringed_publish(Ringed *ringed, int count) {
    uint8_t payload[256];
    for (int i = 0; i < count; i++, ringed->next++)
        CHECK_EQ(om_bus_stream_publish(ringed->stream, ringed->next, (uint8_t)(1 + ringed->next % 3), payload,
                                       (uint16_t)payload_of(ringed->next, payload)),
                 0);
}

TEST(a_ring_is_served_live_to_silent_and_asking_clients) {
    Ringed ringed;
    OmNetStreamInfo info;
    OmBusRecord rec;
    ringed_open(&ringed, NULL);
    ringed_publish(&ringed, 10);
    OmBusTcpClient *silent = client_on(om_net_server_port(ringed.server.srv), 0);
    OmNetClient *asking = client_to(&ringed.server);
    CHECK_EQ(om_net_client_status(asking, "ring", 0, &info, 1), 1);
    CHECK_EQ(info.flags, OM_NET_DEFAULT);
    CHECK_EQ(info.last_seq, 10);
    CHECK(info.epoch != 0);
    CHECK_EQ(om_net_client_replay(asking, "ring", 1, 5, NULL, 0), OM_ERR_NET_NO_HISTORY);
    CHECK_EQ(om_net_client_subscribe(asking, "ring", 1, NULL, 0), OM_ERR_NET_NO_HISTORY);
    CHECK_EQ(om_net_client_subscribe(asking, "ring", OM_NET_FROM_LIVE, NULL, 0), 0);
    CHECK_EQ(om_net_client_position(asking), 11);
    WAIT_FOR(SERVER_STAT(&ringed.server, connections) == 2, short_sleep());
    ringed_publish(&ringed, 2000);
    expect_records(asking, 11, 2011);
    for (uint64_t seq = 11; seq < 2011; seq++) {
        CHECK_EQ(next_result(NULL, silent, &rec), 1);
        CHECK_EQ(rec.wal_seq, seq);
    }
    om_net_client_close(asking);
    om_bus_tcp_client_close(silent);
    ringed_close(&ringed);
}

TEST(without_clients_the_server_does_not_hold_the_producer_up) {
    Ringed ringed;
    ringed_open(&ringed, NULL);
    for (int round = 0; round < 3; round++) {
        OmNetClient *client = client_to(&ringed.server);
        CHECK_EQ(om_net_client_subscribe(client, NULL, OM_NET_FROM_LIVE, NULL, 0), 0);
        uint64_t from = ringed.next;
        ringed_publish(&ringed, 100);
        expect_records(client, from, from + 100);
        om_net_client_close(client);
        WAIT_FOR(SERVER_STAT(&ringed.server, connections) == 0, short_sleep());
        ringed_publish(&ringed, 20000); /* several times the ring */
    }
    ringed_close(&ringed);
}

TEST(a_producer_restart_is_survived) {
    Ringed ringed;
    ringed_open(&ringed, NULL);
    OmNetClient *client = client_to(&ringed.server);
    CHECK_EQ(om_net_client_subscribe(client, NULL, OM_NET_FROM_LIVE, NULL, 0), 0);
    ringed_publish(&ringed, 10);
    expect_records(client, 1, 11);
    om_bus_stream_destroy(ringed.stream);
    ringed.stream = make_stream(ringed.name, 1024, 128, 4, 0); /* another shape: the server must attach anew */
    OmLogRecord rec;
    int rc = 0;
    WAIT_FOR(rc != 0, {
        ringed_publish(&ringed, 1);
        rc = om_net_client_next(client, &rec, 1000000);
    });
    CHECK_EQ(rc, 1);
    CHECK(rec.wal_seq >= 11);
    om_net_client_close(client);
    ringed_close(&ringed);
}

TEST(a_slow_client_of_a_ring_is_warned_and_cut) {
    Ringed ringed;
    OmNetServerConfig config = {.send_buf_size = 16 << 10};
    ringed_open(&ringed, &config);
    OmNetClient *client = client_to(&ringed.server);
    CHECK_EQ(om_net_client_subscribe(client, NULL, OM_NET_FROM_LIVE, NULL, 0), 0);
    for (int i = 0; i < 5000 && SERVER_STAT(&ringed.server, slow_client_drops) == 0; i++)
        ringed_publish(&ringed, 1000);
    CHECK_EQ(SERVER_STAT(&ringed.server, slow_client_drops), 1);
    OmLogRecord rec;
    int rc;
    uint64_t next = 1;
    while ((rc = om_net_client_next(client, &rec, PATIENCE)) == 1)
        CHECK_EQ(rec.wal_seq, next++);
    CHECK_EQ(rc, OM_ERR_BUS_TCP_DISCONNECTED);
    om_net_client_close(client);
    ringed_close(&ringed);
}
