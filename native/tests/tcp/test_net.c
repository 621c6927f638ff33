/* Serving a log: status, replay, subscribe, many streams, slow and silent clients. */
#include "net_fixture.h"

TEST(status_tells_what_a_stream_holds) {
    TestLog log;
    TestServer server;
    OmNetStreamInfo info, infos[4];
    uint8_t id[OM_LOG_ID_SIZE];
    OmLogReader *reader;
    log_open(&log, 1 << 20);
    server_of(&server, &log, NULL);
    OmNetClient *client = client_to(&server);
    CHECK_EQ(om_net_client_status(client, NULL, 0, infos, 4), 1);
    CHECK(strcmp(infos[0].name, "engine-0") == 0);
    CHECK_EQ(infos[0].flags, OM_NET_HAS_LOG | OM_NET_DEFAULT);
    CHECK_EQ(infos[0].last_seq, 0);
    log_append(&log, 100);
    CHECK_EQ(om_log_sync(log.writer), 0);
    log_append(&log, 20);
    CHECK_EQ(om_net_client_status(client, "engine-0", 1, &info, 1), 1);
    CHECK_EQ(info.first_seq, 1);
    CHECK_EQ(info.last_seq, 120);
    CHECK_EQ(info.durable_seq, 100);
    CHECK_EQ(info.time_seq, 1);
    CHECK_EQ(om_net_client_status(client, NULL, UINT64_MAX / 2, &info, 1), 1);
    CHECK_EQ(info.time_seq, 121);
    CHECK_EQ(om_log_open_reader(&reader, log.dir, NULL), 0);
    om_log_id(reader, id);
    CHECK(memcmp(id, info.id, sizeof id) == 0);
    CHECK_EQ(info.epoch, om_log_epoch(reader));
    om_log_reader_close(reader);
    CHECK_EQ(om_net_client_status(client, "no-such", 0, &info, 1), OM_ERR_NET_NO_STREAM);
    CHECK_CONTAINS(om_bus_last_error(), "no stream \"no-such\"");
    CHECK_EQ(om_net_client_status(client, "engine-0", 0, NULL, 0), 1); /* that error left the connection usable */
    om_net_client_close(client);
    server_stop(&server);
    log_close(&log);
}

TEST(replay_gives_exactly_the_range) {
    TestLog log;
    TestServer server;
    OmLogRecord rec;
    log_open(&log, 16 << 10);
    log_append(&log, 3000); /* many segments */
    server_of(&server, &log, NULL);
    OmNetClient *client = client_to(&server);
    static const uint64_t ranges[][2] = {{1, 3001}, {1, 2}, {3000, 3001}, {700, 1900}, {1500, 1501}, {5, 5}, {9, 3}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        uint64_t from = ranges[i][0], to = ranges[i][1];
        CHECK_EQ(om_net_client_replay(client, "engine-0", from, to, NULL, 0), 0);
        if (from < to)
            expect_records(client, from, to);
        CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_END);
        CHECK_EQ(om_net_client_next(client, &rec, 0), OM_ERR_NET_END);
    }
    CHECK_EQ(om_net_client_replay(client, NULL, OM_NET_FROM_FIRST, UINT64_MAX, NULL, 0),
             0); /* the default stream, all */
    expect_records(client, 1, 3001);
    CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_END);
    CHECK_EQ(om_net_client_replay(client, NULL, 2990, 5000, NULL, 0), 0); /* ends where the log ends */
    expect_records(client, 2990, 3001);
    CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_END);
    for (int i = 0; i < 300; i++) { /* many small requests on one connection */
        uint64_t from = 1 + test_random() % 2990;
        CHECK_EQ(om_net_client_replay(client, NULL, from, from + 3, NULL, 0), 0);
        expect_records(client, from, from + 3);
        CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_END);
    }
    om_net_client_close(client);
    server_stop(&server);
    log_close(&log);
}

TEST(spans_are_whole_frames_that_cover_the_range) {
    TestLog log;
    TestServer server;
    OmNetSpan span;
    log_open(&log, 16 << 10);
    log_append(&log, 3000);
    server_of(&server, &log, NULL);
    OmNetClient *client = client_to(&server);
    CHECK_EQ(om_net_client_replay(client, NULL, 1, 3001, NULL, 0), 0);
    uint64_t next = 1;
    int rc;
    while ((rc = om_net_client_next_span(client, 10000, &span, PATIENCE)) == 1) {
        CHECK_EQ(span.first_seq, next);
        CHECK(span.size_bytes <= 10000);
        next = span.last_seq + 1;
        CHECK_EQ(span.last_seq - span.first_seq + 1, span.records);
    }
    CHECK_EQ(rc, OM_ERR_NET_END);
    CHECK_EQ(next, 3001);
    om_net_client_close(client);
    server_stop(&server);
    log_close(&log);
}

TEST(a_subscription_goes_from_history_to_live_without_gap_or_double) {
    TestLog log;
    TestServer server;
    OmLogRecord rec;
    log_open(&log, 64 << 10);
    log_append(&log, 500);
    server_of(&server, &log, NULL);
    OmNetClient *client = client_to(&server);
    CHECK_EQ(om_net_client_subscribe(client, "engine-0", 401, NULL, 0), 0);
    expect_records(client, 401, 501);
    CHECK_EQ(om_net_client_next(client, &rec, 1000000), 0); /* at the live end */
    uint64_t next = 501;
    for (int i = 0; i < 200; i++) {
        uint64_t count = 1 + test_random() % 40;
        log_append(&log, count);
        if (test_random() % 2) {
            expect_records(client, next, 501 + om_log_writer_last_seq(log.writer) - 500);
            next = om_log_writer_last_seq(log.writer) + 1;
        }
    }
    expect_records(client, next, om_log_writer_last_seq(log.writer) + 1);
    CHECK_EQ(om_net_client_status(client, NULL, 0, NULL, 0), OM_ERR_NET_BUSY);
    om_net_client_close(client);
    client = client_to(&server);
    CHECK_EQ(om_net_client_subscribe(client, NULL, OM_NET_FROM_LIVE, NULL, 0), 0);
    next = om_net_client_position(client);
    CHECK_EQ(next, om_log_writer_last_seq(log.writer) + 1);
    log_append(&log, 3);
    expect_records(client, next, next + 3);
    om_net_client_close(client);
    WAIT_FOR(SERVER_STAT(&server, connections) == 0, short_sleep());
    CHECK_EQ(SERVER_STAT(&server, transfers), 0);
    server_stop(&server);
    log_close(&log);
}

typedef struct Appender {
    TestLog *log;
    uint64_t count;
} Appender;

static void *append_slowly(void *context) {
    Appender *appender = context;
    for (uint64_t done = 0; done < appender->count; done += 100) {
        log_append(appender->log, 100);
        short_sleep();
    }
    return NULL;
}

TEST(clients_that_join_while_records_are_appended_all_see_each_once) {
    enum { CLIENTS = 8, RECORDS = 20000 };
    TestLog log;
    TestServer server;
    pthread_t thread;
    OmNetClient *clients[CLIENTS];
    Appender appender = {&log, RECORDS};
    log_open(&log, 64 << 10);
    server_of(&server, &log, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, append_slowly, &appender), 0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_to(&server);
        CHECK_EQ(om_net_client_subscribe(clients[i], NULL, 1, NULL, 0), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        expect_records(clients[i], 1, RECORDS + 1);
    pthread_join(thread, NULL);
    for (int i = 0; i < CLIENTS; i++)
        om_net_client_close(clients[i]);
    server_stop(&server);
    log_close(&log);
}

TEST(a_slow_subscriber_is_never_cut_and_slows_nobody) {
    TestLog log;
    TestServer server;
    log_open(&log, 8 << 20);
    server_of(&server, &log, NULL);
    OmNetClient *slow = client_to(&server), *quick = client_to(&server);
    CHECK_EQ(om_net_client_subscribe(slow, NULL, 1, NULL, 0), 0);
    CHECK_EQ(om_net_client_subscribe(quick, NULL, 1, NULL, 0), 0);
    enum { RECORDS = 200000 }; /* some 16 MB: more than sockets buffer */
    for (uint64_t done = 0; done < RECORDS; done += 1000) {
        log_append(&log, 1000);
        expect_records(quick, done + 1, done + 1001);
    }
    expect_records(slow, 1, RECORDS + 1); /* had read nothing until now */
    CHECK_EQ(SERVER_STAT(&server, slow_client_drops), 0);
    om_net_client_close(slow);
    om_net_client_close(quick);
    server_stop(&server);
    log_close(&log);
}

TEST(a_silent_client_gets_the_seeds_live_stream) {
    TestLog log;
    TestServer server;
    uint8_t payload[256];
    log_open(&log, 64 << 10);
    log_append(&log, 10);
    server_of(&server, &log, NULL);
    OmBusTcpClient *silent = client_on(om_net_server_port(server.srv), OM_BUS_FLAG_REJECT_REORDER);
    WAIT_FOR(SERVER_STAT(&server, connections) == 1, short_sleep());
    log_append(&log, 500);
    for (uint64_t seq = 11; seq <= 510; seq++) {
        OmBusRecord rec;
        CHECK_EQ(next_result(NULL, silent, &rec), 1);
        CHECK_EQ(rec.wal_seq, seq);
        CHECK_EQ(rec.wal_type, 1 + seq % 3);
        CHECK_EQ(rec.payload_len, payload_of(seq, payload));
        CHECK(memcmp(rec.payload, payload, rec.payload_len) == 0);
    }
    om_bus_tcp_client_close(silent);
    server_stop(&server);
    log_close(&log);
}

TEST(a_slow_silent_client_is_warned_and_cut) {
    TestLog log;
    TestServer server;
    OmNetServerConfig config = {.send_buf_size = 64 << 10};
    log_open(&log, 8 << 20);
    server_of(&server, &log, &config);
    OmBusTcpClient *silent = client_on(om_net_server_port(server.srv), 0);
    WAIT_FOR(SERVER_STAT(&server, connections) == 1, short_sleep());
    for (int i = 0; i < 2000 && SERVER_STAT(&server, slow_client_drops) == 0; i++) {
        log_append(&log, 1000);
        short_sleep();
    }
    CHECK_EQ(SERVER_STAT(&server, slow_client_drops), 1);
    OmBusRecord rec;
    int rc;
    uint64_t next = 0;
    while ((rc = next_result(NULL, silent, &rec)) == 1) {
        CHECK(next == 0 || rec.wal_seq == next + 1);
        next = rec.wal_seq;
    }
    CHECK_EQ(rc, OM_ERR_BUS_TCP_SLOW_WARNING);
    CHECK_EQ(next_result(NULL, silent, &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    om_bus_tcp_client_close(silent);
    server_stop(&server);
    log_close(&log);
}

TEST(a_client_may_start_to_talk_while_live_frames_come) {
    TestLog log;
    TestServer server;
    pthread_t thread;
    Appender appender = {&log, 100000};
    log_open(&log, 1 << 20);
    log_append(&log, 100);
    server_of(&server, &log, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, append_slowly, &appender), 0);
    for (int i = 0; i < 100; i++) {
        OmNetClient *client = client_to(&server);
        if (i % 2)
            short_sleep();
        CHECK_EQ(om_net_client_replay(client, NULL, 1, 101, NULL, 0), 0);
        expect_records(client, 1, 101);
        om_net_client_close(client);
    }
    pthread_join(thread, NULL);
    server_stop(&server);
    log_close(&log);
}

TEST(several_streams_share_a_port) {
    TestLog logs[3];
    TestServer server;
    OmNetStreamInfo infos[4];
    OmLogRecord rec;
    server_create(&server, NULL);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "engine-%d", i);
        log_open(&logs[i], 64 << 10);
        log_append(&logs[i], 10 * (uint64_t)(i + 1));
        CHECK_EQ(om_net_server_add_log(server.srv, name, logs[i].dir), 0);
    }
    CHECK_EQ(om_net_server_add_log(server.srv, "engine-1", logs[0].dir), OM_ERR_BUS_INIT);
    CHECK_CONTAINS(om_bus_last_error(), "two streams called");
    CHECK_EQ(om_net_server_add_log(server.srv, "a/b", logs[0].dir), OM_ERR_BUS_INIT);
    CHECK_EQ(om_net_server_add_log(server.srv, "none", "/nonexistent"), OM_ERR_LOG_NOT_FOUND);
    server_start(&server);
    OmNetClient *client = client_to(&server);
    CHECK_EQ(om_net_client_status(client, NULL, 0, infos, 4), 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(infos[i].last_seq, 10 * (i + 1));
        CHECK_EQ(infos[i].flags & OM_NET_DEFAULT, i == 0 ? OM_NET_DEFAULT : 0);
        CHECK_EQ(om_net_client_replay(client, infos[i].name, 1, UINT64_MAX, infos[i].id, 0), 0);
        expect_records(client, 1, infos[i].last_seq + 1);
        CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_END);
    }
    CHECK_EQ(om_net_client_replay(client, "engine-1", 1, 5, infos[0].id, 0), OM_ERR_NET_IDENTITY);
    CHECK_EQ(om_net_client_replay(client, "engine-1", 1, 5, NULL, 0), 0); /* still usable */
    expect_records(client, 1, 5);
    om_net_client_close(client);
    server_stop(&server);
    for (int i = 0; i < 3; i++)
        log_close(&logs[i]);
}

TEST(removed_records_are_an_error_unless_loss_is_allowed) {
    TestLog log;
    TestServer server;
    OmLogRecord rec;
    log_open(&log, 16 << 10);
    log_append(&log, 3000);
    OmLogRetention policy = {.max_bytes = 64 << 10};
    CHECK(om_log_retain(log.dir, &policy) > 0);
    server_of(&server, &log, NULL);
    OmNetClient *client = client_to(&server);
    OmNetStreamInfo info;
    CHECK_EQ(om_net_client_status(client, NULL, 0, &info, 1), 1);
    CHECK(info.first_seq > 1);
    CHECK_EQ(om_net_client_replay(client, NULL, 1, 3001, NULL, 0), OM_ERR_NET_RANGE);
    CHECK_CONTAINS(om_bus_last_error(), "the first one left is");
    CHECK_EQ(om_net_client_replay(client, NULL, 1, 3001, NULL, OM_NET_ALLOW_LOSS), 0);
    CHECK_EQ(om_net_client_position(client), info.first_seq);
    expect_records(client, info.first_seq, 3001);
    CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_END);
    CHECK_EQ(om_net_client_subscribe(client, NULL, OM_NET_FROM_FIRST, NULL, 0), 0);
    expect_records(client, info.first_seq, 3001);
    om_net_client_close(client);
    server_stop(&server);
    log_close(&log);
}

TEST(a_durable_subscription_waits_for_the_disk) {
    TestLog log;
    TestServer server;
    OmLogRecord rec;
    log_open(&log, 1 << 20);
    log_append(&log, 10);
    CHECK_EQ(om_log_sync(log.writer), 0);
    log_append(&log, 10);
    server_of(&server, &log, NULL);
    OmNetClient *client = client_to(&server);
    CHECK_EQ(om_net_client_replay(client, NULL, 1, 100, NULL, OM_NET_DURABLE_ONLY), 0);
    expect_records(client, 1, 11);
    CHECK_EQ(om_net_client_next(client, &rec, PATIENCE), OM_ERR_NET_END);
    CHECK_EQ(om_net_client_subscribe(client, NULL, 1, NULL, OM_NET_DURABLE_ONLY), 0);
    expect_records(client, 1, 11);
    CHECK_EQ(om_net_client_next(client, &rec, 20000000), 0);
    CHECK_EQ(om_log_sync(log.writer), 0);
    expect_records(client, 11, 21);
    om_net_client_close(client);
    server_stop(&server);
    log_close(&log);
}

static int collect(const OmNetConnectionInfo *info, void *context) {
    OmNetConnectionInfo *out = context;
    CHECK_CONTAINS(info->peer, "127.0.0.1:");
    CHECK_CONTAINS(info->agent, "ombus");
    CHECK(strcmp(info->stream, "engine-0") == 0);
    *out = *info;
    return 0;
}

TEST(connections_can_be_listed_with_their_lag) {
    TestLog log;
    TestServer server;
    OmNetConnectionInfo info;
    log_open(&log, 1 << 20);
    log_append(&log, 10);
    server_of(&server, &log, NULL);
    OmNetClient *client = client_to(&server);
    CHECK_EQ(om_net_client_subscribe(client, NULL, 1, NULL, 0), 0);
    expect_records(client, 1, 11);
    om_net_server_stop(server.srv); /* the listing belongs to the serving thread */
    pthread_join(server.thread, NULL);
    server.running = false;
    log_append(&log, 5);
    CHECK_EQ(om_net_server_connections(server.srv, collect, &info), 1);
    CHECK_EQ(info.next_seq, 11);
    CHECK_EQ(info.lag, 5);
    CHECK(info.bytes_sent > 0);
    om_net_client_close(client);
    server_stop(&server);
    log_close(&log);
}
