/* What the ring offers beyond the seed: holding records, columns, arrays, looking from outside, bad input. */

#include <pthread.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "ring/layout.h"
#include "ring_fixture.h"

typedef struct Superseder {
    const char *name;
    OmBusEndpoint *ep;
    OmBusStream *stream;
} Superseder;

static void supersede(uint64_t head, uint64_t min_tail, void *ctx) {
    Superseder *superseder = ctx;
    OmBusRecord rec;
    CHECK_EQ(head - min_tail, 8);
    superseder->stream = make_stream(superseder->name, 8, 64, 1, 0);
    for (uint64_t i = 1; i <= 8; i++)
        CHECK_EQ(om_bus_endpoint_poll(superseder->ep, &rec), 1);
    for (uint64_t i = 1; i <= 4; i++)
        publish_u64(superseder->stream, i, 100 + i);
}

/* The example of docs/ring-format.md, byte for byte. */
TEST(a_slot_has_the_bytes_that_the_format_says) {
    static const uint8_t expected[] = {1, 0, 0, 0, 0, 0,    0,    0,    7,    0,   0,   0,   0,   0,  0,
                                       0, 3, 0, 5, 0, 0x4C, 0xBB, 0x71, 0x9A, 'h', 'e', 'l', 'l', 'o'};
    const char *name = test_unique("bytes");
    OmBusStream *stream = make_stream(name, 8, 64, 3, OM_BUS_FLAG_CRC);
    CHECK_EQ(om_bus_stream_publish(stream, 7, 3, "hello", 5), 0);
    RawRing raw = map_raw(name);
    static const uint8_t header[] = {0x53, 0x42, 0x4D, 0x4F, 1, 0, 0, 0, 64, 0, 0, 0, 8, 0, 0, 0,
                                     3,    0,    0,    0,    1, 0, 0, 0, 1,  0, 0, 0, 0, 0, 0, 0};
    CHECK(memcmp(raw.bytes, header, sizeof header) == 0);
    CHECK(memcmp(raw.bytes + 4096 + 3 * 64, expected, sizeof expected) == 0);
    unmap_raw(raw);
    om_bus_stream_destroy(stream);
}

TEST(peeked_records_stay_until_released) {
    const char *name = test_unique("peek");
    OmBusStream *stream = make_stream(name, 8, 64, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord recs[8], rec;
    for (uint64_t i = 1; i <= 8; i++)
        publish_u64(stream, i, i);
    CHECK_EQ(om_bus_endpoint_peek_batch(ep, recs, 8), 8);
    CHECK_EQ(om_bus_stream_publish_timed(stream, 9, 1, "x", 1, 0), OM_ERR_BUS_TIMEOUT);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_INIT);
    CHECK_CONTAINS(om_bus_last_error(), "8 peeked records are not released");
    CHECK_EQ(om_bus_endpoint_release(ep, 9), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_endpoint_release(ep, 3), 0);
    CHECK_EQ(om_bus_endpoint_wal_seq(ep), 3);
    for (uint64_t i = 9; i <= 11; i++)
        publish_u64(stream, i, i);
    for (uint64_t i = 4; i <= 8; i++)
        CHECK_EQ(payload_u64(&recs[i - 1]), i);
    CHECK_EQ(om_bus_endpoint_release(ep, 5), 0);
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 8), 3);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(peek_reports_a_gap_once_and_then_delivers_the_record) {
    const char *name = test_unique("peekgap");
    OmBusStream *stream = make_stream(name, 8, 64, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord recs[8];
    publish_u64(stream, 1, 1);
    publish_u64(stream, 5, 5);
    CHECK_EQ(om_bus_endpoint_peek_batch(ep, recs, 8), 1);
    CHECK_EQ(om_bus_endpoint_release(ep, 1), 0);
    CHECK_EQ(om_bus_endpoint_peek_batch(ep, recs, 8), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(om_bus_endpoint_peek_batch(ep, recs, 8), 1);
    CHECK_EQ(recs[0].wal_seq, 5);
    CHECK_EQ(om_bus_endpoint_release(ep, 1), 0);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(release_says_when_the_producer_passed_a_holder_over) {
    const char *name = test_unique("peekstale");
    OmBusStream *stream;
    OmBusStreamConfig config = {
        .stream_name = name, .capacity = 8, .max_consumers = 1, .staleness_ns = 5 * OMI_NS_PER_MS};
    CHECK_EQ(om_bus_stream_create(&stream, &config), 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord recs[8];
    publish_u64(stream, 1, 1);
    CHECK_EQ(om_bus_endpoint_peek_batch(ep, recs, 8), 1);
    for (uint64_t i = 2; i <= 20; i++)
        publish_u64(stream, i, i);
    CHECK_EQ(om_bus_endpoint_release(ep, 1), OM_ERR_BUS_CONSUMER_STALE);
    publish_u64(stream, 21, 21);
    CHECK_EQ(om_bus_endpoint_peek_batch(ep, recs, 8), 1);
    CHECK_EQ(recs[0].wal_seq, 21);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(columns_carry_payloads_of_different_sizes) {
    const char *name = test_unique("columns");
    OmBusStream *stream = make_stream(name, 64, 128, 1, OM_BUS_FLAG_CRC);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    uint64_t seqs[64];
    uint8_t types[64], payload[100], out[400];
    uint32_t offsets[65];
    for (int i = 0; i < 100; i++)
        payload[i] = (uint8_t)i;
    for (uint64_t i = 1; i <= 20; i++)
        CHECK_EQ(om_bus_stream_publish(stream, i, (uint8_t)(i % 7), payload, (uint16_t)(i * 5)), 0);
    uint64_t next = 1;
    for (int n; (n = om_bus_endpoint_poll_columns(ep, 64, seqs, types, offsets, out, sizeof out)) != 0;) {
        CHECK(n > 0);
        for (int i = 0; i < n; i++, next++) {
            CHECK_EQ(seqs[i], next);
            CHECK_EQ(types[i], next % 7);
            CHECK_EQ(offsets[i + 1] - offsets[i], next * 5);
            CHECK(memcmp(out + offsets[i], payload, next * 5) == 0);
        }
    }
    CHECK_EQ(next, 21);
    CHECK_EQ(om_bus_stream_publish(stream, 30, 1, payload, 10), 0);
    CHECK_EQ(om_bus_endpoint_poll_columns(ep, 64, seqs, types, offsets, out, 9), OM_ERR_BUS_INIT); /* too small: kept */
    CHECK_EQ(om_bus_endpoint_poll_columns(ep, 64, seqs, types, offsets, out, 10), OM_ERR_BUS_GAP_DETECTED);
    CHECK_EQ(seqs[0], 30);
    CHECK_EQ(offsets[1], 10);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(an_array_is_published_as_far_as_there_is_room_in_time) {
    const char *name = test_unique("array");
    OmBusStream *stream = make_stream(name, 16, 64, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    struct {
        uint64_t value, skipped;
    } items[20];
    OmBusRecord recs[16];
    for (uint64_t i = 0; i < 20; i++)
        items[i].value = i;
    CHECK_EQ(om_bus_stream_publish_array(stream, 100, 3, items, 8, sizeof items[0], 20, 0), 16);
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 16), 16);
    for (uint64_t i = 0; i < 16; i++) {
        CHECK_EQ(recs[i].wal_seq, 100 + i);
        CHECK_EQ(payload_u64(&recs[i]), i);
    }
    CHECK_EQ(om_bus_stream_publish_array(stream, 116, 3, items + 16, 8, sizeof items[0], 4, OMI_NS_PER_MS), 4);
    CHECK_EQ(om_bus_stream_publish_array(stream, 1, 3, items, 41, 41, 2, 0), OM_ERR_BUS_RECORD_TOO_LARGE);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(a_batch_larger_than_the_ring_is_published_as_far_as_there_is_room) {
    const char *name = test_unique("bigbatch");
    OmBusStream *stream = make_stream(name, 8, 64, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord recs[20];
    for (uint64_t i = 0; i < 20; i++)
        recs[i] = (OmBusRecord){i + 1, 1, 4, "abcd"};
    CHECK_EQ(om_bus_stream_publish_batch_timed(stream, recs, 20, OMI_NS_PER_MS), 8);
    om_bus_endpoint_close(ep);
    CHECK_EQ(om_bus_stream_publish_batch(stream, recs + 8, 12), 0); /* nobody there: nobody to wait for */
    om_bus_stream_destroy(stream);
}

TEST(unopened_slots_and_idle_consumers_never_block_or_go_stale) {
    const char *name = test_unique("idle");
    OmBusStream *stream;
    OmBusStreamConfig config = {.stream_name = name, .capacity = 8, .max_consumers = 8, .staleness_ns = OMI_NS_PER_MS};
    CHECK_EQ(om_bus_stream_create(&stream, &config), 0);
    for (uint64_t i = 1; i <= 100; i++) /* no consumer at all */
        publish_u64(stream, i, i);
    OmBusEndpoint *ep = open_endpoint(name, 5, false); /* the other seven stay unopened */
    OmBusRecord rec;
    for (uint64_t i = 101; i <= 110; i++) {
        usleep(3000); /* idle for longer than staleness_ns, then read: still in place */
        publish_u64(stream, i, i);
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    }
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(a_version_1_consumer_without_a_claim_is_waited_for) {
    const char *name = test_unique("foreign");
    OmBusStream *stream = make_stream(name, 8, 64, 2, 0);
    RawRing raw = map_raw(name);
    OmBusConsumerTail *tail = (OmBusConsumerTail *)(raw.bytes + 4096);
    atomic_store(&tail->last_poll_ns, omi_monotonic_ns()); /* what the original library does when it opens */
    for (uint64_t i = 1; i <= 8; i++)
        publish_u64(stream, i, i);
    CHECK_EQ(om_bus_stream_publish_timed(stream, 9, 1, "x", 1, 0), OM_ERR_BUS_TIMEOUT);
    OmBusStreamInfo info;
    OmBusConsumerInfo consumer;
    CHECK_EQ(om_bus_inspect(name, &info, &consumer, 1), 2);
    CHECK_EQ(consumer.state, OM_BUS_CONSUMER_FOREIGN);
    CHECK_EQ(consumer.lag, 8);
    atomic_store(&tail->tail, 4);
    publish_u64(stream, 9, 9);
    unmap_raw(raw);
    om_bus_stream_destroy(stream);
}

TEST(a_version_1_ring_without_our_extension_can_be_read) {
    const char *name = test_unique("pure");
    OmBusStream *stream = make_stream(name, 8, 64, 2, 0);
    RawRing raw = map_raw(name);
    ((OmiRingExtension *)(raw.bytes + OMI_RING_EXTENSION_OFFSET))->magic = 0;
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    publish_u64(stream, 1, 1);
    CHECK_EQ(om_bus_endpoint_wait(ep, OMI_NS_PER_S), 1);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    CHECK_EQ(om_bus_endpoint_wait(ep, 3 * OMI_NS_PER_MS), 0);
    atomic_fetch_add(&((OmBusShmHeader *)raw.bytes)->producer_epoch, 1);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_EPOCH_CHANGED);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 0);
    om_bus_endpoint_close(ep);
    unmap_raw(raw);
    om_bus_stream_destroy(stream);
}

TEST(an_unread_rest_is_delivered_before_the_epoch_changes) {
    const char *name = test_unique("rest");
    OmBusStream *stream = make_stream(name, 16, 64, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord recs[16];
    for (uint64_t i = 1; i <= 5; i++)
        publish_u64(stream, i, i);
    om_bus_stream_detach(stream);
    stream = make_stream(name, 16, 64, 1, 0);
    publish_u64(stream, 1, 11);
    for (uint64_t i = 1; i <= 5;) {
        int n = om_bus_endpoint_poll_batch(ep, recs, 16);
        CHECK(n > 0);
        for (int k = 0; k < n; k++, i++)
            CHECK_EQ(payload_u64(&recs[k]), i);
    }
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 16), OM_ERR_BUS_EPOCH_CHANGED);
    CHECK_EQ(om_bus_endpoint_poll_batch(ep, recs, 16), 1);
    CHECK_EQ(payload_u64(&recs[0]), 11);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

/* Another shape, or checksums switched: the old ring is read to its end by its own rules, then the new one. */
TEST(a_ring_of_another_shape_takes_the_name) {
    const char *name = test_unique("shape");
    OmBusStream *stream = make_stream(name, 16, 64, 1, OM_BUS_FLAG_CRC);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    OmBusRecord rec;
    for (uint32_t round = 1; round <= 4; round++) {
        publish_u64(stream, round, round);
        om_bus_stream_detach(stream);
        stream = make_stream(name, 16 << (round % 2), 64, 1, round & 2 ? OM_BUS_FLAG_CRC : 0);
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_RING_GONE);
        om_bus_endpoint_close(ep);
        ep = open_endpoint(name, 0, false);
    }
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(stream);
}

TEST(a_handle_superseded_while_it_waits_publishes_nothing) {
    const char *name = test_unique("superseded");
    OmBusStream *first = make_stream(name, 8, 64, 1, 0);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    Superseder superseder = {.name = name, .ep = ep};
    OmBusStreamConfig config = {.stream_name = name,
                                .capacity = 8,
                                .slot_size = 64,
                                .max_consumers = 1,
                                .backpressure_cb = supersede,
                                .backpressure_ctx = &superseder};
    om_bus_stream_detach(first);
    CHECK_EQ(om_bus_stream_create(&first, &config), 0);
    OmBusRecord rec;
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_EPOCH_CHANGED);
    for (uint64_t i = 1; i <= 8; i++)
        publish_u64(first, i, i);
    /* Full: waits, and while it does the callback takes the ring over, drains it and publishes. */
    CHECK_EQ(om_bus_stream_publish(first, 9, 1, "old", 3), OM_ERR_BUS_EPOCH_CHANGED);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_EPOCH_CHANGED);
    for (uint64_t i = 1; i <= 4; i++) {
        CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
        CHECK_EQ(payload_u64(&rec), 100 + i);
    }
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 0);
    om_bus_stream_destroy(first);
    om_bus_endpoint_close(ep);
    om_bus_stream_destroy(superseder.stream);
}

static void *save_cursors(void *path) {
    uint64_t failures = 0, seq;
    for (uint64_t i = 1; i <= 100; i++) {
        failures += om_bus_cursor_save(path, i) != 0;
        failures += om_bus_endpoint_load_cursor(path, &seq) != 0;
    }
    return (void *)failures;
}

TEST(threads_may_save_the_same_cursor) {
    char path[160];
    pthread_t threads[3];
    snprintf(path, sizeof path, "/tmp/%s", test_unique("cursors"));
    CHECK_EQ(om_bus_cursor_save(path, 1), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], 0, save_cursors, path), 0);
    for (int i = 0; i < 3; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        CHECK(failures == 0);
    }
    unlink(path);
}

static int find_ring(const OmBusStreamInfo *info, void *ctx) {
    const char **wanted = ctx;
    if (strcmp(info->name + 1, *wanted) == 0) {
        *wanted = 0;
        return 1;
    }
    return 0;
}

TEST(rings_can_be_listed_inspected_and_removed_from_outside) {
    const char *name = test_unique("inspect");
    OmBusStream *stream = make_stream(name, 16, 64, 2, OM_BUS_FLAG_CRC);
    OmBusEndpoint *ep = open_endpoint(name, 1, false);
    OmBusStreamInfo info;
    OmBusConsumerInfo consumers[2];
    publish_u64(stream, 41, 1);
    publish_u64(stream, 42, 1);
    CHECK_EQ(om_bus_inspect(name, &info, consumers, 2), 2);
    CHECK_EQ(info.head, 2);
    CHECK_EQ(info.last_wal_seq, 42);
    CHECK_EQ(info.flags, OM_BUS_FLAG_CRC);
    CHECK_EQ(info.producer_pid, getpid());
    CHECK_EQ(info.producer_alive, 1);
    CHECK_EQ(consumers[0].state, OM_BUS_CONSUMER_FREE);
    CHECK_EQ(consumers[1].state, OM_BUS_CONSUMER_CLAIMED);
    CHECK_EQ(consumers[1].lag, 2);
    const char *wanted = name;
    CHECK(om_bus_list(find_ring, &wanted) >= 1);
    CHECK(wanted == 0);
    om_bus_endpoint_close(ep);
    om_bus_stream_detach(stream);
    CHECK_EQ(om_bus_inspect(name, &info, 0, 0), 2);
    CHECK_EQ(info.producer_alive, 0);
    CHECK_EQ(om_bus_unlink(name), 0);
    CHECK_EQ(om_bus_unlink(name), OM_ERR_BUS_SHM_OPEN);
}

static int create(const char *name, uint32_t capacity, uint32_t slot_size, uint32_t consumers) {
    OmBusStream *stream;
    OmBusStreamConfig config = {
        .stream_name = name, .capacity = capacity, .slot_size = slot_size, .max_consumers = consumers};
    int rc = om_bus_stream_create(&stream, &config);
    if (rc == 0)
        om_bus_stream_destroy(stream);
    return rc;
}

TEST(bad_arguments_are_refused_by_name) {
    const char *name = test_unique("bad");
    OmBusStream *stream;
    OmBusEndpoint *ep;
    OmBusRecord rec;
    uint64_t seq;
    CHECK_EQ(om_bus_stream_create(0, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_stream_create(&stream, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_endpoint_open(&ep, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_stream_publish(0, 1, 1, "x", 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_stream_publish_batch(0, 0, 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_endpoint_poll(0, &rec), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_endpoint_poll_batch(0, &rec, 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_endpoint_wait(0, 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_endpoint_save_cursor(0, "x"), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_endpoint_load_cursor(0, &seq), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_inspect(0, 0, 0, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(create(0, 0, 0, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(create("", 0, 0, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(create("a/b", 0, 0, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(create("..", 0, 0, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(create("0123456789012345678901234567890123456789012345678901234567890123456789", 0, 0, 0),
             OM_ERR_BUS_INIT);
    CHECK_CONTAINS(om_bus_last_error(), "bad stream name");
    CHECK_EQ(create(name, 1000, 0, 0), OM_ERR_BUS_NOT_POW2);
    CHECK_CONTAINS(om_bus_last_error(), "1000");
    CHECK_EQ(create(name, 16, 24, 0), OM_ERR_BUS_INIT);
    CHECK_CONTAINS(om_bus_last_error(), "at least 25");
    CHECK_EQ(create(name, 16, 25, 0), 0);
    CHECK_EQ(create(name, 16, 64, 1000000), OM_ERR_BUS_INIT);
    CHECK_EQ(create(name, 1U << 31, 0xFFFFFFFF, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_SHM_OPEN);
    CHECK_CONTAINS(om_bus_last_error(), "No such file");
    stream = make_stream(name, 16, 64, 2, 0);
    CHECK_EQ(om_bus_stream_publish(stream, 1, 1, 0, 1), OM_ERR_BUS_INIT);
    CHECK_EQ(om_bus_stream_publish(stream, 1, 1, 0, 0), 0); /* an empty record is a record */
    CHECK_EQ(try_open(name, 2), OM_ERR_BUS_CONSUMER_ID);
    CHECK_CONTAINS(om_bus_last_error(), "has 2 consumer slots, asked for index 2");
    om_bus_stream_destroy(stream);
}

TEST(a_full_shared_memory_is_an_error_and_not_a_signal) {
    const char *name = test_unique("nospace");
    /* A tebibyte is more than /dev/shm has. */
    CHECK_EQ(create(name, 1U << 24, 65536, 1), OM_ERR_BUS_SHM_CREATE);
    CHECK_CONTAINS(om_bus_last_error(), "cannot reserve");
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_SHM_OPEN); /* nothing is left behind */
}

TEST(objects_that_are_not_rings_are_left_alone) {
    char path[160];
    const char *name = test_unique("notaring");
    snprintf(path, sizeof path, "/dev/shm/%s", name);
    FILE *file = fopen(path, "w");
    CHECK(file != 0);
    for (int i = 0; i < 1000; i++)
        fputs("something", file);
    fclose(file);
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_MAGIC_MISMATCH);
    CHECK_EQ(create(name, 0, 0, 0), OM_ERR_BUS_MAGIC_MISMATCH);
    CHECK_EQ(om_bus_unlink(name), OM_ERR_BUS_MAGIC_MISMATCH);
    CHECK_EQ(access(path, F_OK), 0);
    CHECK_EQ(truncate(path, 100), 0);
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_SHM_MAP);
    CHECK_CONTAINS(om_bus_last_error(), "too small");
    CHECK_EQ(create(name, 0, 0, 0), OM_ERR_BUS_MAGIC_MISMATCH); /* a small one is not ours either */
    CHECK_EQ(access(path, F_OK), 0);
    unlink(path);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_MAGIC_MISMATCH); /* and does not wait for somebody to write into it */
    unlink(path);
}

TEST(a_ring_of_another_user_is_refused) {
    if (geteuid() != 0) {
        printf("        (needs root to become another user: not run)\n");
        return;
    }
    const char *name = test_unique("private");
    OmBusStream *stream = make_stream(name, 16, 64, 1, 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setuid(65534) != 0)
            _exit(9);
        int rc = try_open(name, 0);
        _exit(rc == OM_ERR_BUS_SHM_OPEN && strstr(om_bus_last_error(), "Permission denied") ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    om_bus_stream_destroy(stream);
}

TEST(every_code_has_a_name_and_a_text) {
    for (int code = -800; code >= -829; code--) {
        CHECK(om_bus_error_name(code) != 0);
        CHECK(strlen(om_bus_error_string(code)) > 10);
        CHECK(strcmp(om_bus_error_string(code), "unknown error") != 0);
    }
    CHECK(om_bus_error_name(-1) == 0);
    CHECK(strcmp(om_bus_error_string(-1), "unknown error") == 0);
    CHECK(strcmp(om_bus_error_string(0), "ok") == 0);
}
