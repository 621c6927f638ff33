/* Shared memory is written by others: whatever they write, we answer with codes. Run under ASan and UBSan by
 * `make test`; a stray index would end this program. */

#include "core/clock.h"
#include "ring/layout.h"
#include "ring_fixture.h"

static void corrupt(RawRing raw, size_t from, size_t to, int flips) {
    for (int i = 0; i < flips; i++) {
        size_t at = from + test_random() % (to - from);
        raw.bytes[at] =
            (test_random() & 1) ? (uint8_t)test_random() : (uint8_t)(raw.bytes[at] ^ (1 << (test_random() % 8)));
    }
}

static void check_code(int64_t rc) {
    if (rc < 0 && !om_bus_error_name((int)rc))
        FAIL("result %lld is no code of ours", (long long)rc);
}

/** Use every call of a consumer that may touch what was corrupted. */
static void exercise_endpoint(OmBusEndpoint *ep) {
    OmBusRecord recs[8];
    uint64_t seqs[8], sum = 0;
    uint8_t types[8], payloads[256];
    uint32_t offsets[9];
    for (int i = 0; i < 3; i++) {
        int n = om_bus_endpoint_poll(ep, recs);
        check_code(n);
        if (n == 1)
            for (int k = 0; k < recs[0].payload_len; k++)
                sum += ((const uint8_t *)recs[0].payload)[k];
        n = om_bus_endpoint_poll_batch(ep, recs, 8);
        check_code(n);
        for (int r = 0; r < n; r++)
            for (int k = 0; k < recs[r].payload_len; k++)
                sum += ((const uint8_t *)recs[r].payload)[k];
        check_code(om_bus_endpoint_poll_columns(ep, 8, seqs, types, offsets, payloads, sizeof payloads));
        n = om_bus_endpoint_peek_batch(ep, recs, 8);
        check_code(n);
        if (n > 0)
            check_code(om_bus_endpoint_release(ep, (size_t)n));
    }
    check_code(om_bus_endpoint_wait(ep, 0));
    check_code((int)(sum & 1));
}

static void exercise_stream(OmBusStream *stream) {
    for (uint64_t i = 1; i < 6; i++)
        check_code(om_bus_stream_publish_timed(stream, i, 1, "payload", 7, 0));
    OmBusStreamStats stats;
    om_bus_stream_stats(stream, &stats);
}

/* 10 000 rings with corrupted headers, tails and slots; half of them corrupted before we attach, half after. */
TEST(ten_thousand_corrupted_rings_give_codes_and_never_a_crash) {
    enum { CASES = 10000 };
    int attached = 0, refused = 0;
    const char *name = test_unique("hostile");
    for (int i = 0; i < CASES; i++) {
        OmBusStream *stream = make_stream(name, 16, 64, 2, i % 3 ? OM_BUS_FLAG_CRC : 0);
        OmBusEndpoint *early = open_endpoint(name, 0, i % 5 == 0);
        RawRing raw = map_raw(name);
        for (uint64_t seq = 1; seq <= test_random() % 16; seq++)
            publish_u64(stream, seq, seq);
        int flips = 1 + (int)(test_random() % 12);
        switch (i % 4) {
        case 0: /* the shape and the positions */
            corrupt(raw, 0, 112, flips);
            break;
        case 1: /* our additions: epoch, retired, doorbells */
            corrupt(raw, OMI_RING_EXTENSION_OFFSET, OMI_RING_EXTENSION_OFFSET + sizeof(OmiRingExtension), flips);
            break;
        case 2: /* consumer tails and claims */
            corrupt(raw, 4096, 4096 + 2 * 64, flips);
            break;
        default: /* slots */
            corrupt(raw, 4096 + 2 * 64, raw.size, flips * 10);
        }
        OmBusEndpoint *late;
        OmBusEndpointConfig config = {.stream_name = name, .consumer_index = OM_BUS_CONSUMER_ANY};
        int rc = om_bus_endpoint_open(&late, &config);
        check_code(rc);
        if (rc == 0) {
            attached++;
            exercise_endpoint(late);
        } else {
            refused++;
        }
        exercise_endpoint(early);
        exercise_stream(stream);
        exercise_endpoint(early);
        OmBusStreamInfo info;
        OmBusConsumerInfo consumers[2];
        check_code(om_bus_inspect(name, &info, consumers, 2));
        if (rc == 0)
            om_bus_endpoint_close(late);
        om_bus_endpoint_close(early);
        om_bus_stream_destroy(stream);
        unmap_raw(raw);
        char path[160];
        snprintf(path, sizeof path, "/dev/shm/%s", name);
        unlink(path); /* destroy() rightly leaves a ring alone that no longer looks like its own */
    }
    /* The harness bites: both outcomes must occur, or it corrupts nothing that matters. */
    CHECK(attached > CASES / 10);
    CHECK(refused > CASES / 50);
}

TEST(an_object_cut_to_any_length_is_refused_or_whole) {
    const char *name = test_unique("cut");
    char path[160];
    snprintf(path, sizeof path, "/dev/shm/%s", name);
    om_bus_stream_detach(make_stream(name, 16, 64, 2, 0));
    static uint8_t bytes[4096 + 2 * 64 + 16 * 64];
    FILE *file = fopen(path, "r");
    CHECK(file && fread(bytes, 1, sizeof bytes, file) == sizeof bytes);
    fclose(file);
    for (size_t size = 0; size <= sizeof bytes; size += size < 4000 || size > 4090 ? 61 : 1) {
        file = fopen(path, "w");
        CHECK(file && fwrite(bytes, 1, size, file) == size);
        fclose(file);
        int rc = try_open(name, 0);
        CHECK(rc == OM_ERR_BUS_SHM_MAP || rc == OM_ERR_BUS_CORRUPT);
    }
    /* A producer that finds the wreck of a ring makes a new one. */
    OmBusStream *stream = make_stream(name, 16, 64, 2, 0);
    CHECK_EQ(try_open(name, 0), 0);
    om_bus_stream_destroy(stream);
}

TEST(a_shape_that_lies_about_its_size_is_refused) {
    const char *name = test_unique("lie");
    OmBusStream *stream = make_stream(name, 16, 64, 2, 0);
    RawRing raw = map_raw(name);
    OmBusShmHeader *h = (OmBusShmHeader *)raw.bytes, good = *h;
    static const struct {
        uint32_t capacity, slot_size, consumers;
    } lies[] = {{32, 64, 2},          {16, 72, 2},       {16, 64, 2000},    {0, 64, 2},
                {15, 64, 2},          {16, 0, 2},        {16, 24, 2},       {16, 65, 2},
                {16, 64, UINT32_MAX}, {1U << 31, 64, 2}, {16, 1U << 31, 2}, {1U << 31, 0xFFFFFFF8U, 2}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        h->capacity = lies[i].capacity;
        h->slot_size = lies[i].slot_size;
        h->max_consumers = lies[i].consumers;
        CHECK_EQ(try_open(name, 0), OM_ERR_BUS_CORRUPT);
    }
    h->capacity = good.capacity;
    h->slot_size = good.slot_size;
    h->max_consumers = good.max_consumers;
    CHECK_EQ(try_open(name, 0), 0);
    unmap_raw(raw);
    om_bus_stream_destroy(stream);
}
