#include <stdbool.h>

#include "log_testing.h"

#include "ombus/om_bus_log.h"
#include "ombus/om_bus_replay.h"
#include "ombus/om_bus_wal.h"

static OmBusStream *new_ring(const char *name) {
    OmBusStream *stream;
    OmBusStreamConfig config = {.stream_name = name, .capacity = 1024, .flags = OM_BUS_FLAG_CRC};
    OK(om_bus_stream_create(&stream, &config));
    return stream;
}

static OmBusEndpoint *new_endpoint(const char *name) {
    OmBusEndpoint *ep;
    OmBusEndpointConfig config = {.stream_name = name, .consumer_index = OM_BUS_CONSUMER_ANY};
    OK(om_bus_endpoint_open(&ep, &config));
    return ep;
}

TEST(what_is_appended_to_the_log_appears_in_the_ring) {
    const char *dir = log_dir("attached"), *name = test_unique("ring");
    OmBusStream *stream = new_ring(name);
    OmBusEndpoint *ep = new_endpoint(name);
    OmLogWriter *w = open_writer(dir, 0);
    OK(om_bus_attach_log(stream, w));
    append_to(w, 100, 200);
    OmBusRecord rec;
    for (uint64_t seq = 1; seq <= 100; seq++) {
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
        CHECK_EQ(rec.wal_seq, seq);
        CHECK_EQ(rec.wal_type, 1 + seq % 5);
        OmLogRecord same = {.wal_seq = rec.wal_seq, .payload = rec.payload, .payload_len = rec.payload_len};
        CHECK(payload_is(&same, seq, payload_len_of(seq, 200)));
    }
    /* Batches, arrays and reservations, too. */
    OmLogRecord recs[2] = {{.payload = "a", .payload_len = 1, .wal_type = 1}, {.payload = "b", .payload_len = 1}};
    CHECK_EQ(om_log_append_batch(w, recs, 2), 2);
    CHECK_EQ(om_log_append_array(w, 0, 1, "cd", 1, 1, 2), 2);
    void *payload;
    OK(om_log_reserve(w, 1, &payload));
    memcpy(payload, "e", 1);
    CHECK_EQ(om_log_commit(w, 0, 1, 1), 105);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
        CHECK_EQ(rec.wal_seq, 101 + i);
        CHECK_EQ(*(const char *)rec.payload, 'a' + i);
    }
    OK(om_bus_attach_log(0, w));
    append_to(w, 106, 200);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 0);
    OK(om_log_close(w));
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(a_record_too_large_for_the_ring_is_a_gap_there_and_in_the_log) {
    const char *dir = log_dir("too-large"), *name = test_unique("ring");
    OmBusStream *stream = new_ring(name);
    OmBusEndpoint *ep = new_endpoint(name);
    OmLogWriter *w = open_writer(dir, 0);
    OK(om_bus_attach_log(stream, w));
    static uint8_t large[70000];
    CHECK_EQ(om_log_append(w, 0, 1, "a", 1), 1);
    CHECK_EQ(om_log_append(w, 0, 1, large, 5000), 2);         /* larger than a slot */
    CHECK_EQ(om_log_append(w, 0, 1, large, sizeof large), 3); /* larger than any */
    CHECK_EQ(om_log_append(w, 0, 1, "b", 1), 4);
    OmBusRecord rec;
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(rec.wal_seq, 4);
    OmLogReader *r = open_reader(dir, 0);
    OmLogRecord recs[4];
    OK(om_log_seek_range(r, 2, 4));
    CHECK_EQ(om_log_next_batch(r, recs, 4), 2);
    CHECK_EQ(recs[1].payload_len, sizeof large);
    OmLogWriterStats stats;
    om_log_writer_stats(w, &stats);
    CHECK_EQ(stats.publish_skipped, 2);
    CHECK_EQ(stats.publish_errors, 0);
    om_log_reader_close(r);
    OK(om_log_close(w));
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

/* ---- The seed's tests of the glue to an external WAL ---- */

typedef struct Glue {
    const char *name;
    OmBusStream *stream;
    OmBusEndpoint *ep;
    OmWal wal;
} Glue;

static void glue_open(Glue *glue) {
    *glue = (Glue){.name = test_unique("wal")};
    glue->stream = new_ring(glue->name);
    glue->ep = new_endpoint(glue->name);
    om_bus_attach_wal(&glue->wal, glue->stream);
}

static void glue_close(Glue *glue) {
    om_bus_detach_wal(&glue->wal);
    om_bus_endpoint_close(glue->ep);
    om_bus_stream_destroy(glue->stream);
}

TEST(test_bus_wal_attach) {
    Glue glue;
    OmBusRecord rec;
    glue_open(&glue);
    OmWalInsert insert = {.order_id = 42, .price = 10000, .volume = 50, .vol_remain = 50, .product_id = 3};
    om_wal_write(&glue.wal, OM_WAL_INSERT, &insert, sizeof insert);
    CHECK_EQ(om_bus_endpoint_poll(glue.ep, &rec), 1);
    CHECK_EQ(rec.wal_seq, 1);
    CHECK_EQ(rec.wal_type, OM_WAL_INSERT);
    CHECK_EQ(rec.payload_len, 56);
    CHECK(memcmp(rec.payload, &insert, sizeof insert) == 0);
    om_bus_detach_wal(&glue.wal);
    om_wal_write(&glue.wal, OM_WAL_INSERT, &insert, sizeof insert);
    CHECK_EQ(om_bus_endpoint_poll(glue.ep, &rec), 0);
    glue_close(&glue);
}

TEST(test_bus_wal_match) {
    Glue glue;
    OmBusRecord rec;
    glue_open(&glue);
    OmWalInsert bid = {.order_id = 1, .price = 100, .volume = 5},
                ask = {.order_id = 2, .price = 100, .volume = 5, .flags = 1};
    OmWalMatch match = {.maker_id = 1, .taker_id = 2, .price = 100, .volume = 5};
    om_wal_write(&glue.wal, OM_WAL_INSERT, &bid, sizeof bid);
    om_wal_write(&glue.wal, OM_WAL_INSERT, &ask, sizeof ask);
    om_wal_write(&glue.wal, OM_WAL_MATCH, &match, sizeof match);
    CHECK_EQ(om_bus_endpoint_poll(glue.ep, &rec), 1);
    CHECK_EQ(om_bus_endpoint_poll(glue.ep, &rec), 1);
    CHECK_EQ(om_bus_endpoint_poll(glue.ep, &rec), 1);
    CHECK_EQ(rec.wal_type, OM_WAL_MATCH);
    CHECK_EQ(rec.payload_len, 40);
    CHECK_EQ(((const OmWalMatch *)rec.payload)->maker_id, 1);
    CHECK_EQ(((const OmWalMatch *)rec.payload)->taker_id, 2);
    glue_close(&glue);
}

TEST(test_bus_wal_cancel) {
    Glue glue;
    OmBusRecord rec;
    glue_open(&glue);
    OmWalInsert insert = {.order_id = 7, .price = 100, .volume = 5};
    OmWalCancel cancel = {.order_id = 7, .product_id = 1};
    om_wal_write(&glue.wal, OM_WAL_INSERT, &insert, sizeof insert);
    om_wal_write(&glue.wal, OM_WAL_CANCEL, &cancel, sizeof cancel);
    CHECK_EQ(om_bus_endpoint_poll(glue.ep, &rec), 1);
    CHECK_EQ(rec.wal_type, OM_WAL_INSERT);
    CHECK_EQ(om_bus_endpoint_poll(glue.ep, &rec), 1);
    CHECK_EQ(rec.wal_type, OM_WAL_CANCEL);
    CHECK_EQ(rec.payload_len, 24);
    CHECK_EQ(((const OmWalCancel *)rec.payload)->order_id, 7);
    glue_close(&glue);
}

TEST(a_gap_is_replayed_from_the_wal_file) {
    const char *path = log_dir("wal-file");
    OmWal wal = {.file = fopen(path, "wb")};
    CHECK(wal.file != 0);
    OmWalInsert insert = {.volume = 1};
    OmWalCancel cancel = {.order_id = 1};
    for (int i = 1; i <= 100; i++) {
        insert.volume = (uint64_t)i;
        if (i % 10 == 0)
            om_wal_write(&wal, OM_WAL_CANCEL, &cancel, sizeof cancel);
        else
            om_wal_write(&wal, OM_WAL_INSERT, &insert, sizeof insert);
    }
    fclose(wal.file);
    OmMarketWorker worker = {0};
    CHECK_EQ(om_bus_replay_gap(path, 11, 31, &worker), 20);
    CHECK_EQ(worker.fed[OM_WAL_INSERT], 18);
    CHECK_EQ(worker.fed[OM_WAL_CANCEL], 2);
    CHECK_EQ(worker.volume, (11 + 19) * 9 / 2 + (21 + 29) * 9 / 2);
    OmMarketPublicWorker public_worker = {0};
    CHECK_EQ(om_bus_replay_gap_public(path, 91, 0, &public_worker), 10);
    CHECK_EQ(om_bus_replay_gap(path, 200, 0, &worker), 0);
    CHECK_EQ(om_bus_replay_gap("/nowhere", 1, 0, &worker), -1);
    CHECK_EQ(om_bus_replay_gap(path, 1, 0, 0), OM_ERR_BUS_INIT);
    worker.refuse = OM_WAL_CANCEL;
    CHECK_EQ(om_bus_replay_gap(path, 1, 0, &worker), -3);
}
