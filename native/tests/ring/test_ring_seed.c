/* The tests that the seed lists for the ring, under the seed's names. */

#include "ring_fixture.h"

TEST(test_bus_create_destroy) {
    const char *name = test_unique("create");
    OmBusStream *stream = make_stream(name, 0, 0, 0, 0);
    OmBusStreamInfo info;
    CHECK_EQ(om_bus_inspect(name, &info, 0, 0), 8);
    CHECK_EQ(info.capacity, 4096);
    CHECK_EQ(info.slot_size, 256);
    CHECK_EQ(info.size_bytes, 4096 + 8 * 64 + 4096 * 256);
    om_bus_stream_destroy(stream);
    CHECK_EQ(om_bus_inspect(name, &info, 0, 0), OM_ERR_BUS_SHM_OPEN);
    om_bus_stream_destroy(0);
}

TEST(test_bus_publish_poll) {
    const char *name = test_unique("poll");
    OmBusStream *stream = make_stream(name, 64, 256, 1, OM_BUS_FLAG_CRC);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 0);
    CHECK_EQ(om_bus_stream_publish(stream, 7, 3, "hello", 5), 0);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    CHECK_EQ(rec.wal_seq, 7);
    CHECK_EQ(rec.wal_type, 3);
    CHECK_EQ(rec.payload_len, 5);
    CHECK(memcmp(rec.payload, "hello", 5) == 0);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 0);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_batch) {
    const char *name = test_unique("batch");
    OmBusStream *stream = make_stream(name, 64, 256, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, true);
    OmBusRecord recs[32];
    for (uint64_t i = 1; i <= 20; i++)
        publish_u64(stream, i, i * 11);
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 8), 8);
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs + 8, 24), 12);
    for (uint64_t i = 1; i <= 20; i++) {
        CHECK_EQ(recs[i - 1].wal_seq, i);
        CHECK_EQ(payload_u64(&recs[i - 1]), i * 11);
    }
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 32), 0);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_multi_consumer) {
    const char *name = test_unique("multi");
    OmBusStream *stream = make_stream(name, 64, 256, 3, 0);
    OmBusEndpoint *eps[3];
    OmBusRecord rec;
    for (uint32_t i = 0; i < 3; i++)
        eps[i] = open_endpoint(name, i, i == 1);
    for (uint64_t i = 1; i <= 10; i++)
        publish_u64(stream, i, i);
    for (int c = 0; c < 3; c++) {
        for (uint64_t i = 1; i <= 10; i++) {
            CHECK_EQ(om_bus_endpoint_poll(eps[c], &rec), 1);
            CHECK_EQ(rec.wal_seq, i);
        }
        CHECK_EQ(om_bus_endpoint_poll(eps[c], &rec), 0);
    }
    for (int c = 0; c < 3; c++)
        om_bus_endpoint_close(eps[c]);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_backpressure) {
    const char *name = test_unique("full");
    OmBusStream *stream = make_stream(name, 16, 256, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    for (uint64_t i = 1; i <= 16; i++)
        publish_u64(stream, i, i);
    CHECK_EQ(om_bus_stream_publish_timed(stream, 17, 1, "x", 1, 0), OM_ERR_BUS_TIMEOUT);
    for (uint64_t i = 1; i <= 16; i++)
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    for (uint64_t i = 17; i <= 32; i++)
        publish_u64(stream, i, i);
    for (uint64_t i = 17; i <= 32; i++) {
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
        CHECK_EQ(rec.wal_seq, i);
    }
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_gap_detection) {
    const char *name = test_unique("gap");
    OmBusStream *stream = make_stream(name, 16, 256, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    publish_u64(stream, 1, 1);
    publish_u64(stream, 5, 5);
    publish_u64(stream, 6, 6);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(rec.wal_seq, 5);
    CHECK_EQ(payload_u64(&rec), 5);
    CHECK_CONTAINS(om_bus_last_error(), "expected wal_seq 2, got 5");
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_crc_validation) {
    const char *name = test_unique("crc");
    OmBusStream *stream = make_stream(name, 16, 256, 1, OM_BUS_FLAG_CRC);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    publish_u64(stream, 1, 1);
    publish_u64(stream, 2, 2);
    RawRing raw = map_raw(name);
    ((uint8_t *)(raw_slot(raw, 0) + 1))[3] ^= 0x40;
    unmap_raw(raw);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_CRC_MISMATCH);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1); /* reported once and skipped; no gap on top */
    CHECK_EQ(rec.wal_seq, 2);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_record_too_large) {
    const char *name = test_unique("large");
    OmBusStream *stream = make_stream(name, 16, 64, 1, 0);
    uint8_t payload[64] = {0};
    OmBusRecord recs[2] = {{1, 1, 8, payload}, {2, 1, 41, payload}};
    CHECK_EQ(om_bus_stream_publish(stream, 1, 1, payload, 41), OM_ERR_BUS_RECORD_TOO_LARGE);
    CHECK_CONTAINS(om_bus_last_error(), "41 bytes");
    CHECK_EQ(om_bus_stream_publish_batch(stream, recs, 2), OM_ERR_BUS_RECORD_TOO_LARGE);
    OmBusStreamStats stats;
    om_bus_stream_stats(stream, &stats);
    CHECK_EQ(stats.records_published, 0);
    CHECK_EQ(om_bus_stream_publish(stream, 1, 1, payload, 40), 0);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_magic_mismatch) {
    const char *name = test_unique("magic");
    OmBusStream *stream = make_stream(name, 16, 256, 1, 0);
    RawRing raw = map_raw(name);
    ((OmBusShmHeader *)raw.bytes)->magic = 0xDEADBEEF;
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_MAGIC_MISMATCH);
    CHECK_CONTAINS(om_bus_last_error(), "0xDEADBEEF");
    ((OmBusShmHeader *)raw.bytes)->magic = OM_BUS_SHM_MAGIC;
    ((OmBusShmHeader *)raw.bytes)->version = 9;
    CHECK_EQ(try_open(name, 99), OM_ERR_BUS_VERSION_MISMATCH); /* in that order: version before consumer id */
    ((OmBusShmHeader *)raw.bytes)->version = 1;
    CHECK_EQ(try_open(name, 99), OM_ERR_BUS_CONSUMER_ID);
    unmap_raw(raw);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_wal_seq_tracking) {
    const char *name = test_unique("seq");
    OmBusStream *stream = make_stream(name, 16, 256, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord recs[4];
    CHECK_EQ(om_bus_endpoint_wal_seq(ep), 0);
    for (uint64_t i = 101; i <= 105; i++)
        publish_u64(stream, i, i);
    CHECK_EQ(om_bus_endpoint_poll(ep, recs), 1);
    CHECK_EQ(om_bus_endpoint_wal_seq(ep), 101);
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 4), 4);
    CHECK_EQ(om_bus_endpoint_wal_seq(ep), 105);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_large_payload_boundary) {
    const char *name = test_unique("boundary");
    OmBusStream *stream = make_stream(name, 16, 256, 1, OM_BUS_FLAG_CRC);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    uint8_t payload[256 - 24];
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 3);
    for (uint64_t i = 1; i <= 40; i++) {
        CHECK_EQ(om_bus_stream_publish(stream, i, 1, payload, sizeof payload), 0);
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
        CHECK_EQ(rec.payload_len, sizeof payload);
        CHECK(memcmp(rec.payload, payload, sizeof payload) == 0);
    }
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_batch_publish) {
    const char *name = test_unique("pubbatch");
    OmBusStream *stream = make_stream(name, 64, 256, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    uint64_t values[10];
    OmBusRecord recs[10], rec;
    OmBusStreamStats stats;
    for (uint64_t i = 0; i < 10; i++) {
        values[i] = i * 7;
        recs[i] = (OmBusRecord){i + 1, 2, sizeof values[i], &values[i]};
    }
    CHECK_EQ(om_bus_stream_publish_batch(stream, recs, 10), 0);
    om_bus_stream_stats(stream, &stats);
    CHECK_EQ(stats.records_published, 10);
    CHECK_EQ(stats.head, 10);
    CHECK_EQ(stats.min_tail, 0);
    for (uint64_t i = 0; i < 10; i++) {
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
        CHECK_EQ(rec.wal_seq, i + 1);
        CHECK_EQ(payload_u64(&rec), i * 7);
    }
    om_bus_stream_stats(stream, &stats);
    CHECK_EQ(stats.min_tail, 10);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_cursor_persistence) {
    const char *name = test_unique("cursor");
    char path[160], missing[176];
    uint64_t loaded = 0;
    snprintf(path, sizeof path, "/tmp/%s", test_unique("cursor-file"));
    snprintf(missing, sizeof missing, "%s.missing", path);
    OmBusStream *stream = make_stream(name, 16, 256, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    for (uint64_t i = 1; i <= 5; i++)
        publish_u64(stream, i, i);
    while (om_bus_endpoint_poll(ep, &rec) == 1)
        ;
    CHECK_EQ(om_bus_endpoint_save_cursor(ep, path), 0);
    CHECK_EQ(om_bus_endpoint_load_cursor(path, &loaded), 0);
    CHECK_EQ(loaded, 5);
    /* The bytes are a format: magic, 5, CRC-32C of 5 as 8 bytes. */
    static const uint8_t expected[16] = {0x43, 0x42, 0x4D, 0x4F, 5, 0, 0, 0, 0, 0, 0, 0};
    uint8_t bytes[16];
    int fd = open(path, O_RDWR);
    CHECK_EQ(read(fd, bytes, 16), 16);
    CHECK(memcmp(bytes, expected, 12) == 0);
    for (int i = 0; i < 16; i++) { /* any flipped bit is noticed */
        uint8_t flipped = bytes[i] ^ 0x10;
        CHECK_EQ(pwrite(fd, &flipped, 1, i), 1);
        CHECK_EQ(om_bus_endpoint_load_cursor(path, &loaded), OM_ERR_BUS_CRC_MISMATCH);
        CHECK_EQ(pwrite(fd, &bytes[i], 1, i), 1);
    }
    CHECK_EQ(om_bus_endpoint_load_cursor(path, &loaded), 0);
    CHECK_EQ(ftruncate(fd, 15), 0);
    CHECK_EQ(om_bus_endpoint_load_cursor(path, &loaded), OM_ERR_BUS_SHM_OPEN);
    CHECK_EQ(om_bus_endpoint_load_cursor(missing, &loaded), OM_ERR_BUS_SHM_OPEN);
    CHECK_EQ(om_bus_endpoint_save_cursor(ep, "/nowhere/at/all"), OM_ERR_BUS_SHM_OPEN);
    close(fd);
    unlink(path);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_epoch_restart) {
    const char *name = test_unique("epoch");
    OmBusStream *first = make_stream(name, 64, 256, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    publish_u64(first, 1, 42);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    OmBusStream *second = make_stream(name, 64, 256, 1, 0);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_EPOCH_CHANGED);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 0);
    publish_u64(second, 1, 43); /* a new producer may count anew: no gap, no reorder */
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    CHECK_EQ(payload_u64(&rec), 43);
    /* The old handle is fenced off, and neither it nor its end harms the new one. */
    CHECK_EQ(om_bus_stream_publish(first, 2, 1, "x", 1), OM_ERR_BUS_EPOCH_CHANGED);
    om_bus_stream_destroy(first);
    publish_u64(second, 2, 44);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_IN_USE);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(second);
}

TEST(test_bus_stale_consumer) {
    const char *name = test_unique("stale");
    OmBusStream *stream;
    OmBusStreamConfig config = {.stream_name = name, .capacity = 16, .max_consumers = 2, .staleness_ns = 20000000};
    CHECK_EQ(om_bus_stream_create(&stream, &config), 0);
    OmBusEndpoint *live = open_endpoint(name, 0, false), *stale = open_endpoint(name, 1, false);
    OmBusRecord rec;
    for (uint64_t i = 1; i <= 40; i++) { /* would block for ever at 17 if the stale one counted */
        publish_u64(stream, i, i);
        CHECK_EQ(om_bus_endpoint_poll(live, &rec), 1);
    }
    CHECK_EQ(om_bus_endpoint_poll(stale, &rec), OM_ERR_BUS_CONSUMER_STALE);
    CHECK_CONTAINS(om_bus_last_error(), "missed 40 records after wal_seq 0");
    CHECK_EQ(om_bus_endpoint_missed(stale), 40);
    CHECK_EQ(om_bus_endpoint_poll(stale, &rec), 0);
    publish_u64(stream, 41, 41); /* it has its place back */
    CHECK_EQ(om_bus_endpoint_poll(stale, &rec), 1);
    CHECK_EQ(rec.wal_seq, 41);
    om_bus_endpoint_close(live);
    om_bus_endpoint_close(stale);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_reorder_detection) {
    const char *name = test_unique("reorder");
    OmBusStream *stream = make_stream(name, 16, 256, 1, OM_BUS_FLAG_REJECT_REORDER);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    publish_u64(stream, 1, 1);
    publish_u64(stream, 5, 5);
    publish_u64(stream, 3, 3);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_REORDER_DETECTED);
    CHECK_EQ(rec.wal_seq, 3);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

/* ---- the seed's "missing coverage" table ---- */

TEST(test_bus_producer_restart_with_unlink) {
    const char *name = test_unique("unlinked");
    OmBusStream *first = make_stream(name, 16, 256, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    publish_u64(first, 1, 1);
    om_bus_stream_destroy(first); /* removes the object */
    OmBusStream *second = make_stream(name, 16, 256, 1, 0);
    publish_u64(second, 2, 2);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1); /* the old one is read to its end */
    CHECK_EQ(om_bus_endpoint_wait(ep, 0), 1);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_RING_GONE);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_RING_GONE); /* until it is reopened */
    om_bus_endpoint_close(ep);
    ep = open_endpoint(name, 0, false);
    publish_u64(second, 3, 3);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    CHECK_EQ(rec.wal_seq, 3);
    CHECK_EQ(om_bus_unlink(name), 0); /* from outside: the same */
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_RING_GONE);
    CHECK_EQ(om_bus_stream_publish(second, 4, 1, "x", 1), OM_ERR_BUS_RING_GONE);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(second);
}

TEST(test_bus_batch_poll_crc) {
    const char *name = test_unique("batchcrc");
    OmBusStream *stream = make_stream(name, 64, 256, 1, OM_BUS_FLAG_CRC);
    OmBusEndpoint *ep = open_endpoint(name, 0, true);
    OmBusRecord recs[16];
    for (uint64_t i = 1; i <= 12; i++)
        publish_u64(stream, i, i);
    RawRing raw = map_raw(name);
    ((uint8_t *)(raw_slot(raw, 8) + 1))[0] ^= 0xFF;
    unmap_raw(raw);
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 16), 8); /* stops before it */
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 16), OM_ERR_BUS_CRC_MISMATCH);
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 16), 3);
    CHECK_EQ(recs[0].wal_seq, 10);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_multiple_gaps) {
    const char *name = test_unique("gaps");
    OmBusStream *stream = make_stream(name, 64, 256, 2, 0);
    OmBusEndpoint *single = open_endpoint(name, 0, false), *batch = open_endpoint(name, 1, false);
    static const uint64_t seqs[] = {1, 5, 20, 100};
    OmBusRecord recs[8];
    for (int i = 0; i < 4; i++)
        publish_u64(stream, seqs[i], 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(om_bus_endpoint_poll(single, recs), i ? OM_ERR_BUS_GAP_DETECTED : 1);
        CHECK_EQ(recs[0].wal_seq, seqs[i]);
        CHECK_EQ(om_bus_endpoint_poll_batch(batch, recs, 8), i ? OM_ERR_BUS_GAP_DETECTED : 1);
        CHECK_EQ(recs[0].wal_seq, seqs[i]);
    }
    CHECK_EQ(om_bus_endpoint_poll(single, recs), 0);
    CHECK_EQ(om_bus_endpoint_poll_batch(batch, recs, 8), 0);
    om_bus_endpoint_close(single);
    om_bus_endpoint_close(batch);
    om_bus_stream_destroy(stream);
}

TEST(test_bus_ring_wrap) {
    const char *name = test_unique("wrap");
    OmBusStream *stream = make_stream(name, 16, 64, 1, 0);
    RawRing raw = map_raw(name);
    /* As if 2^64 - 40 records had passed: positions run over the end of their 64 bits. */
    atomic_store(&((OmBusShmHeader *)raw.bytes)->head, UINT64_MAX - 40);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    for (uint64_t i = 1; i <= 100; i++) {
        publish_u64(stream, i, i * 7);
        if (i % 16 == 5) { /* now and then a full ring */
            for (uint64_t j = 1; j < 16; j++)
                publish_u64(stream, i + j, (i + j) * 7);
            CHECK_EQ(om_bus_stream_publish_timed(stream, 0, 1, "x", 1, 0), OM_ERR_BUS_TIMEOUT);
            for (uint64_t j = 0; j < 15; j++)
                CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
            i += 15;
        }
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
        CHECK_EQ(rec.wal_seq, i);
        CHECK_EQ(payload_u64(&rec), i * 7);
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 0);
    }
    CHECK(atomic_load(&((OmBusShmHeader *)raw.bytes)->head) < 100);
    unmap_raw(raw);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}
