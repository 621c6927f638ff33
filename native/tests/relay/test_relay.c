#include <pthread.h>

#include "../ring/ring_fixture.h"
#include "../tcp/tcp_fixture.h"
#include "ombus/om_bus_relay.h"

typedef struct Relay {
    OmBusRelayConfig config;
    bool running;
    int result;
    pthread_t thread;
} Relay;

static void *run_relay(void *context) {
    Relay *relay = context;
    relay->result = om_bus_relay_run(&relay->config);
    return NULL;
}

static void start_relay(Relay *relay) {
    relay->running = true;
    relay->config.running = &relay->running;
    CHECK_EQ(pthread_create(&relay->thread, NULL, run_relay, relay), 0);
}

static int stop_relay(Relay *relay) {
    __atomic_store_n(&relay->running, false, __ATOMIC_RELAXED);
    pthread_join(relay->thread, NULL);
    return relay->result;
}

TEST(test_bus_relay) {
    const char *name = test_unique("relay");
    OmBusStream *stream = make_stream(name, 1024, 0, 1, OM_BUS_FLAG_CRC);
    OmBusTcpServer *srv = server_on(0, 0, 4 << 20);
    OmBusTcpClient *client = client_of(srv, 0);
    OmBusRelayStats stats;
    om_bus_relay_stats_reset(&stats);
    Relay relay = {.config = {.ep = open_endpoint(name, 0, false), .srv = srv, .stats = &stats}};
    start_relay(&relay);
    enum { RECORDS = 20000 };
    uint64_t next = 1, got = 0;
    while (got < RECORDS) {
        for (int i = 0; i < 100 && next <= RECORDS; i++, next++)
            CHECK_EQ(om_bus_stream_publish(stream, next, (uint8_t)(1 + next % 3), &next, sizeof next), 0);
        OmBusRecord rec;
        int rc = om_bus_tcp_client_wait(client, 10000000);
        while (rc >= 0 && (rc = om_bus_tcp_client_poll(client, &rec)) == 1) {
            got++;
            CHECK_EQ(rec.wal_seq, got);
            CHECK_EQ(rec.wal_type, 1 + got % 3);
            CHECK_EQ(rec.payload_len, 8);
            CHECK(memcmp(rec.payload, &got, 8) == 0);
        }
        CHECK_EQ(rc, 0);
    }
    CHECK_EQ(stop_relay(&relay), 0);
    CHECK_EQ(stats.records_relayed, RECORDS);
    CHECK_EQ(stats.loops, stats.non_empty_loops + stats.idle_loops);
    uint64_t loops = 0, batches = 0;
    for (int i = 0; i < 32; i++)
        loops += stats.loop_ns_hist[i];
    for (int i = 0; i < 17; i++)
        batches += stats.batch_hist[i];
    CHECK_EQ(loops, stats.non_empty_loops);
    CHECK_EQ(batches, stats.non_empty_loops);
    CHECK(om_bus_relay_stats_loop_ns_percentile(&stats, 50) <= om_bus_relay_stats_loop_ns_percentile(&stats, 99));
    CHECK_EQ(om_bus_relay_stats_loop_ns_percentile(&stats, 100), stats.loop_ns_max);
    om_bus_endpoint_close(relay.config.ep);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
    om_bus_stream_destroy(stream);
}

TEST(a_gap_in_the_ring_is_relayed_as_a_gap) {
    const char *name = test_unique("relaygap");
    OmBusStream *stream = make_stream(name, 64, 0, 1, 0);
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    Relay relay = {.config = {.ep = open_endpoint(name, 0, false), .srv = srv, .poll_us = 100}};
    OmBusRecord rec;
    for (uint64_t seq = 1; seq <= 7; seq += 3)
        CHECK_EQ(om_bus_stream_publish(stream, seq, 1, &seq, sizeof seq), 0);
    start_relay(&relay);
    CHECK_EQ(next_result(NULL, client, &rec), 1);
    CHECK_EQ(next_result(NULL, client, &rec), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(rec.wal_seq, 4);
    CHECK_EQ(next_result(NULL, client, &rec), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(rec.wal_seq, 7);
    CHECK_EQ(stop_relay(&relay), 0);
    om_bus_endpoint_close(relay.config.ep);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
    om_bus_stream_destroy(stream);
}

TEST(a_producer_restart_ends_the_relay_and_a_second_run_goes_on) {
    const char *name = test_unique("relayepoch");
    OmBusStream *stream = make_stream(name, 64, 0, 1, 0);
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    Relay relay = {.config = {.ep = open_endpoint(name, 0, false), .srv = srv}};
    uint64_t seq = 1;
    CHECK_EQ(om_bus_stream_publish(stream, seq, 1, &seq, sizeof seq), 0);
    start_relay(&relay);
    expect_number(NULL, client, 1);
    om_bus_stream_detach(stream);
    stream = make_stream(name, 64, 0, 1, 0);
    pthread_join(relay.thread, NULL);
    CHECK_EQ(relay.result, OM_ERR_BUS_EPOCH_CHANGED);
    start_relay(&relay);
    seq = 2;
    CHECK_EQ(om_bus_stream_publish(stream, seq, 1, &seq, sizeof seq), 0);
    expect_number(NULL, client, 2);
    CHECK_EQ(stop_relay(&relay), 0);
    om_bus_endpoint_close(relay.config.ep);
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
    om_bus_stream_destroy(stream);
}

TEST(relay_arguments_are_checked) {
    OmBusRelayConfig config = {0};
    CHECK_EQ(om_bus_relay_run(NULL), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_relay_run(&config), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_relay_stats_loop_ns_percentile(NULL, 50), 0);
    om_bus_relay_stats_reset(NULL);
}

TEST(percentiles_are_upper_bounds_of_the_histogram) {
    OmBusRelayStats stats = {.non_empty_loops = 100, .loop_ns_max = 5000};
    stats.loop_ns_hist[7] = 90;  /* 128 to 255 */
    stats.loop_ns_hist[12] = 10; /* 4096 to 8191 */
    CHECK_EQ(om_bus_relay_stats_loop_ns_percentile(&stats, 50), 256);
    CHECK_EQ(om_bus_relay_stats_loop_ns_percentile(&stats, 90), 256);
    CHECK_EQ(om_bus_relay_stats_loop_ns_percentile(&stats, 91), 5000);
    CHECK_EQ(om_bus_relay_stats_loop_ns_percentile(&stats, 1000), 5000);
}
