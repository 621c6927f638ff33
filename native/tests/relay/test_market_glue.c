#include "../ring/ring_fixture.h"
#include "../tcp/tcp_fixture.h"
#include "ombus/om_bus_market.h"
#include "ombus/om_bus_tcp_market.h"

static OmWalInsert insert_of(uint64_t volume) {
    return (OmWalInsert){.order_id = volume, .volume = volume};
}

TEST(ring_records_reach_a_market_worker) {
    const char *name = test_unique("market");
    OmBusStream *stream = make_stream(name, 64, 0, 2, 0);
    OmBusEndpoint *private_ep = open_endpoint(name, 0, false), *public_ep = open_endpoint(name, 1, false);
    OmMarketWorker worker = {.refuse = OM_WAL_CANCEL};
    OmMarketPublicWorker public_worker = {0};
    CHECK_EQ(om_bus_poll_worker(private_ep, &worker), 0);
    CHECK_EQ(om_bus_poll_public(public_ep, &public_worker), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        OmWalInsert insert = insert_of(i);
        CHECK_EQ(om_bus_stream_publish(stream, i, OM_WAL_INSERT, &insert, sizeof insert), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(om_bus_poll_worker(private_ep, &worker), 1);
        CHECK_EQ(om_bus_poll_public(public_ep, &public_worker), 1);
    }
    CHECK_EQ(worker.volume, 6);
    CHECK_EQ(public_worker.fed[OM_WAL_INSERT], 3);
    OmWalCancel cancel = {0};
    CHECK_EQ(om_bus_stream_publish(stream, 4, OM_WAL_CANCEL, &cancel, sizeof cancel), 0);
    CHECK_EQ(om_bus_poll_worker(private_ep, &worker), -3);
    CHECK_EQ(om_bus_poll_public(public_ep, &public_worker), 1);
    OmWalInsert insert = insert_of(100);
    CHECK_EQ(om_bus_stream_publish(stream, 9, OM_WAL_INSERT, &insert, sizeof insert), 0);
    CHECK_EQ(om_bus_poll_worker(private_ep, &worker), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(worker.volume, 6); /* not fed: what is missing must come first */
    CHECK_EQ(om_bus_endpoint_wal_seq(private_ep), 9);
    om_bus_endpoint_close(private_ep);
    om_bus_endpoint_close(public_ep);
    om_bus_stream_destroy(stream);
}

TEST(tcp_records_reach_a_market_worker) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *private_client = client_of(srv, 0), *public_client = client_of(srv, 0);
    OmMarketWorker worker = {0};
    OmMarketPublicWorker public_worker = {0};
    int rc = 0;
    CHECK_EQ(om_bus_tcp_poll_worker(private_client, &worker), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        OmWalInsert insert = insert_of(i);
        CHECK_EQ(om_bus_tcp_server_broadcast(srv, i, OM_WAL_INSERT, &insert, sizeof insert), 0);
    }
    for (int i = 0; i < 3; i++) {
        WAIT_FOR((rc = om_bus_tcp_poll_worker(private_client, &worker)) != 0, om_bus_tcp_server_poll_io(srv));
        CHECK_EQ(rc, 1);
        WAIT_FOR((rc = om_bus_tcp_poll_public(public_client, &public_worker)) != 0, om_bus_tcp_server_poll_io(srv));
        CHECK_EQ(rc, 1);
    }
    CHECK_EQ(worker.volume, 6);
    CHECK_EQ(public_worker.fed[OM_WAL_INSERT], 3);
    om_bus_tcp_server_destroy(srv);
    WAIT_FOR((rc = om_bus_tcp_poll_worker(private_client, &worker)) != 0, short_sleep());
    CHECK_EQ(rc, OM_ERR_BUS_TCP_DISCONNECTED);
    om_bus_tcp_client_close(private_client);
    om_bus_tcp_client_close(public_client);
}
