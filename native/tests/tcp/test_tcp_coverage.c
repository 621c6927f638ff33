/* The TCP lines of the seed's "missing test coverage" table, and what else a network does to frames. */
#include "tcp/wire.h"
#include "tcp_fixture.h"

/** Three frames: plain, extended, plain with the longest payload that keeps this test fast. */
static size_t three_frames(uint8_t *to) {
    uint8_t payload[300];
    memset(payload, 7, sizeof payload);
    size_t size = omi_wire_encode(to, 1, 1, "first", 5);
    size += omi_wire_encode_ext(to + size, 2, 2, 99, payload, 13);
    return size + omi_wire_encode(to + size, 3, 3, payload, sizeof payload);
}

static void expect_three(OmBusTcpClient *client) {
    static const uint16_t lengths[] = {5, 13, 300};
    for (unsigned i = 0; i < 3; i++) {
        OmBusRecord rec;
        CHECK_EQ(next_result(NULL, client, &rec), 1);
        CHECK_EQ(rec.wal_seq, i + 1);
        CHECK_EQ(rec.wal_type, i + 1);
        CHECK_EQ(rec.payload_len, lengths[i]);
        CHECK(((const uint8_t *)rec.payload)[rec.payload_len - 1] == (i == 0 ? 't' : 7));
    }
}

TEST(test_tcp_frame_split_across_recv) {
    uint8_t bytes[1024];
    size_t size = three_frames(bytes);
    RawPeer peer = raw_listen();
    for (size_t cut = 1; cut < size; cut++) {
        OmBusTcpClient *client = client_on(peer.port, 0);
        OmBusRecord rec;
        raw_accept(&peer);
        CHECK_EQ(send(peer.fd, bytes, cut, 0), cut);
        int before = 0;
        CHECK_EQ(om_bus_tcp_client_wait(client, -1), 1);
        while (om_bus_tcp_client_poll(client, &rec) == 1)
            before++;
        CHECK(before < 3);
        CHECK_EQ(send(peer.fd, bytes + cut, size - cut, 0), size - cut);
        for (; before < 3; before++) {
            CHECK_EQ(next_result(NULL, client, &rec), 1);
            CHECK_EQ(rec.wal_seq, before + 1);
        }
        om_bus_tcp_client_close(client);
        close(peer.fd);
    }
    peer.fd = -1;
    raw_close(&peer);
}

TEST(frames_that_arrive_byte_by_byte_are_whole_records) {
    uint8_t bytes[1024];
    size_t size = three_frames(bytes);
    RawPeer peer = raw_listen();
    OmBusTcpClient *client;
    /* A receive buffer smaller than any of the frames: it grows. */
    OmBusTcpClientConfig config = {.host = "127.0.0.1", .port = peer.port, .recv_buf_size = 1};
    CHECK_EQ(om_bus_tcp_client_connect(&client, &config), 0);
    raw_accept(&peer);
    size_t sent = 0;
    for (uint64_t seq = 1; seq <= 3; seq++) {
        OmBusRecord rec;
        int rc;
        while ((rc = om_bus_tcp_client_poll(client, &rec)) == 0) {
            CHECK(sent < size);
            CHECK_EQ(send(peer.fd, bytes + sent++, 1, 0), 1);
            CHECK_EQ(om_bus_tcp_client_wait(client, -1), 1);
        }
        CHECK_EQ(rc, 1);
        CHECK_EQ(rec.wal_seq, seq);
    }
    om_bus_tcp_client_close(client);
    raw_close(&peer);
}

TEST(a_client_gets_all_frames_sent_before_the_peer_closed) {
    uint8_t bytes[1024];
    size_t size = three_frames(bytes);
    RawPeer peer = raw_listen();
    OmBusTcpClient *client = client_on(peer.port, 0);
    OmBusRecord rec;
    raw_accept(&peer);
    CHECK_EQ(send(peer.fd, bytes, size, 0), size);
    CHECK_EQ(send(peer.fd, bytes, 10, 0), 10); /* and the start of one more */
    close(peer.fd);
    peer.fd = -1;
    expect_three(client);
    CHECK_EQ(next_result(NULL, client, &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    CHECK_CONTAINS(om_bus_last_error(), "in the middle of a frame");
    om_bus_tcp_client_close(client);
    raw_close(&peer);
}

TEST(test_tcp_max_clients_exhaustion) {
    OmBusTcpServer *srv = server_on(0, 0, 0); /* the default: 64 */
    OmBusTcpClient *clients[65];
    OmBusRecord rec;
    for (int i = 0; i < 64; i++)
        clients[i] = client_of(srv, 0);
    clients[64] = client_on(om_bus_tcp_server_port(srv), 0);
    CHECK_EQ(next_result(srv, clients[64], &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    CHECK_EQ(om_bus_tcp_server_client_count(srv), 64);
    broadcast_number(srv, 1);
    for (int i = 0; i < 64; i++)
        expect_number(srv, clients[i], 1);
    for (int i = 0; i < 65; i++)
        om_bus_tcp_client_close(clients[i]);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_multiple_sequential_gaps) {
    OmBusTcpServer *srv = server_on(0, 0, 0);
    OmBusTcpClient *client = client_of(srv, 0);
    static const uint64_t seqs[] = {1, 5, 20, 100};
    OmBusRecord rec;
    for (int i = 0; i < 4; i++)
        broadcast_number(srv, seqs[i]);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(next_result(srv, client, &rec), i == 0 ? 1 : OM_ERR_BUS_GAP_DETECTED);
        CHECK_EQ(rec.wal_seq, seqs[i]);
    }
    om_bus_tcp_client_close(client);
    om_bus_tcp_server_destroy(srv);
}

typedef struct Reader {
    OmBusTcpClient *client;
    uint64_t next;
} Reader;

/** Read what is there; every record must be the next one. */
static void read_available(Reader *reader) {
    OmBusRecord recs[128];
    int count;
    while ((count = om_bus_tcp_client_poll_batch(reader->client, recs, 128)) > 0)
        for (int i = 0; i < count; i++) {
            CHECK_EQ(recs[i].wal_seq, reader->next);
            CHECK(memcmp(recs[i].payload, &reader->next, 8) == 0);
            reader->next++;
        }
    CHECK_EQ(count, 0);
}

static void broadcast_to_readers(OmBusTcpServer *srv, Reader *readers, int reader_count, uint64_t record_count) {
    for (uint64_t seq = 1; seq <= record_count; seq++) {
        broadcast_number(srv, seq);
        if (seq % 500 == 0 || seq == record_count) {
            CHECK_EQ(om_bus_tcp_server_poll_io(srv), 0);
            for (int i = 0; i < reader_count; i++)
                read_available(&readers[i]);
        }
    }
    for (int i = 0; i < reader_count; i++)
        WAIT_FOR(readers[i].next == record_count + 1, {
            CHECK_EQ(om_bus_tcp_server_poll_io(srv), 0);
            read_available(&readers[i]);
        });
}

TEST(sixty_four_clients_each_get_ten_thousand_records) {
    OmBusTcpServer *srv = server_on(0, 64, 0);
    Reader readers[64];
    for (int i = 0; i < 64; i++)
        readers[i] = (Reader){.client = client_of(srv, 0), .next = 1};
    broadcast_to_readers(srv, readers, 64, 10000);
    OmBusTcpServerStats stats;
    om_bus_tcp_server_stats(srv, &stats);
    CHECK_EQ(stats.slow_client_drops, 0);
    CHECK_EQ(stats.records_broadcast, 10000);
    for (int i = 0; i < 64; i++)
        om_bus_tcp_client_close(readers[i].client);
    om_bus_tcp_server_destroy(srv);
}

TEST(test_tcp_server_under_load) { /* 56 clients, one of which never reads: it is dropped, nobody else notices */
    OmBusTcpServer *srv = server_on(0, 64, 256 * 1024);
    Reader readers[55];
    for (int i = 0; i < 55; i++)
        readers[i] = (Reader){.client = client_of(srv, 0), .next = 1};
    int stuck = raw_connect(om_bus_tcp_server_port(srv));
    int small = 1; /* rounded up by the kernel */
    setsockopt(stuck, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 56, om_bus_tcp_server_poll_io(srv));
    broadcast_to_readers(srv, readers, 55, 10000);
    /* Loopback buffers megabytes for the stuck one; go on until its lag shows, reading along with the others. */
    uint64_t next = 10001;
    OmBusTcpServerStats stats = {0};
    static uint8_t big[60000];
    for (int i = 0; i < 2000 && stats.slow_client_drops == 0; i++, next++) {
        CHECK_EQ(om_bus_tcp_server_broadcast(srv, next, 1, big, sizeof big), 0);
        CHECK_EQ(om_bus_tcp_server_poll_io(srv), 0);
        for (int k = 0; k < 55; k++) {
            OmBusRecord rec;
            CHECK_EQ(next_result(srv, readers[k].client, &rec), 1);
            CHECK_EQ(rec.wal_seq, next);
        }
        om_bus_tcp_server_stats(srv, &stats);
    }
    CHECK_EQ(stats.slow_client_drops, 1);
    WAIT_FOR(om_bus_tcp_server_client_count(srv) == 55, om_bus_tcp_server_poll_io(srv));
    close(stuck);
    for (int i = 0; i < 55; i++)
        om_bus_tcp_client_close(readers[i].client);
    om_bus_tcp_server_destroy(srv);
}
