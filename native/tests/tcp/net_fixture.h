#ifndef OMBUS_NET_FIXTURE_H
#define OMBUS_NET_FIXTURE_H

/** What the tests of the control protocol share: a log in a directory of its own, a server in a thread. */

#include <ftw.h>
#include <pthread.h>

#include "ombus/om_log.h"
#include "ombus/om_net.h"
#include "tcp_fixture.h"

static inline int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where) {
    (void)info, (void)type, (void)where;
    return remove(path);
}

static inline void remove_tree(const char *dir) {
    nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

typedef struct TestLog {
    char dir[256];
    OmLogWriter *writer;
} TestLog;

/** An empty log; segments are small, so that tests cross their borders. */
static inline void log_open(TestLog *log, uint64_t segment_bytes) {
    const char *base = getenv("TMPDIR");
    snprintf(log->dir, sizeof log->dir, "%s/%s", base ? base : "/tmp", test_unique("net"));
    OmLogWriterOptions options = {.segment_bytes = segment_bytes, .sync = OM_LOG_SYNC_NONE};
    int rc = om_log_open_writer(&log->writer, log->dir, &options);
    if (rc != 0)
        FAIL("open %s: %d %s", log->dir, rc, om_bus_last_error());
}

static inline void log_close(TestLog *log) {
    om_log_close(log->writer);
    remove_tree(log->dir);
}

/** A record whose payload can be checked from its wal_seq alone. */
static inline uint32_t payload_of(uint64_t seq, uint8_t payload[256]) {
    uint32_t len = 8 + (uint32_t)(seq * 7 % 90);
    memcpy(payload, &seq, 8);
    memset(payload + 8, (int)(seq & 0xFF), len - 8);
    return len;
}

static inline void log_append(TestLog *log, uint64_t count) {
    uint8_t payload[256];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t seq = om_log_writer_last_seq(log->writer) + 1;
        uint32_t len = payload_of(seq, payload);
        int64_t rc = om_log_append(log->writer, seq, (uint8_t)(1 + seq % 3), payload, len);
        if (rc != (int64_t)seq)
            FAIL("append %llu: %lld %s", (unsigned long long)seq, (long long)rc, om_bus_last_error());
    }
}

static inline void check_record(const OmLogRecord *rec, uint64_t seq) {
    uint8_t payload[256];
    CHECK_EQ(rec->wal_seq, seq);
    CHECK_EQ(rec->wal_type, 1 + seq % 3);
    CHECK_EQ(rec->payload_len, payload_of(seq, payload));
    CHECK(memcmp(rec->payload, payload, rec->payload_len) == 0);
}

typedef struct TestServer {
    OmNetServer *srv;
    pthread_t thread;
    int result;
    bool running;
} TestServer;

static inline void *run_server(void *context) {
    TestServer *server = context;
    server->result = om_net_server_run(server->srv);
    return NULL;
}

static inline void server_create(TestServer *server, const OmNetServerConfig *config) {
    static const OmNetServerConfig defaults;
    *server = (TestServer){0};
    int rc = om_net_server_create(&server->srv, config ? config : &defaults);
    if (rc != 0)
        FAIL("create: %d %s", rc, om_bus_last_error());
}

static inline void server_start(TestServer *server) {
    CHECK_EQ(pthread_create(&server->thread, NULL, run_server, server), 0);
    server->running = true;
}

/** A server of one log, running. */
static inline void server_of(TestServer *server, const TestLog *log, const OmNetServerConfig *config) {
    server_create(server, config);
    int rc = om_net_server_add_log(server->srv, "engine-0", log->dir);
    if (rc != 0)
        FAIL("add log: %d %s", rc, om_bus_last_error());
    server_start(server);
}

static inline void server_stop(TestServer *server) {
    if (server->running) {
        om_net_server_stop(server->srv);
        pthread_join(server->thread, NULL);
        CHECK_EQ(server->result, 0);
    }
    om_net_server_destroy(server->srv);
}

static inline uint64_t server_stat(const TestServer *server, size_t offset) {
    OmNetServerStats stats;
    om_net_server_stats(server->srv, &stats);
    return *(const uint64_t *)((const char *)&stats + offset);
}
#define SERVER_STAT(server, field) server_stat((server), offsetof(OmNetServerStats, field))

static inline int try_client(OmNetClient **client, uint16_t port, const char *secret) {
    OmNetClientConfig config = {.host = "127.0.0.1",
                                .port = port,
                                .secret = secret,
                                .secret_size = secret ? (uint32_t)strlen(secret) : 0,
                                .retry_base_ms = 1,
                                .retry_max_ms = 20};
    return om_net_client_open(client, &config);
}

static inline OmNetClient *client_to(const TestServer *server) {
    OmNetClient *client = NULL;
    int rc = try_client(&client, om_net_server_port(server->srv), NULL);
    if (rc != 0)
        FAIL("connect: %d %s", rc, om_bus_last_error());
    return client;
}

/** Patience of a test that waits for a record, in ns. */
#define PATIENCE 20000000000LL

/** The next records are exactly [from, to). */
static inline void expect_records(OmNetClient *client, uint64_t from, uint64_t to) {
    OmLogRecord recs[64];
    while (from < to) {
        int rc = om_net_client_next_batch(client, recs, to - from < 64 ? to - from : 64, PATIENCE);
        if (rc <= 0)
            FAIL("before record %llu: %d %s", (unsigned long long)from, rc, om_bus_last_error());
        for (int i = 0; i < rc; i++)
            check_record(&recs[i], from++);
    }
    CHECK_EQ(om_net_client_position(client), to);
}

#endif
