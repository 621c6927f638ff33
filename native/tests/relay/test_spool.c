/** A ring drained into a log: everything, exactly once, and what was lost is written down. */

#include <time.h>

#include "log/log_testing.h"
#include "ombus/om_bus.h"
#include "ombus/om_spool.h"
#include "ring/ring_fixture.h"

enum { PAYLOAD_MAX = 100 };

static void publish(OmBusStream *stream, uint64_t from, uint64_t to) {
    uint8_t payload[PAYLOAD_MAX];
    for (uint64_t seq = from; seq <= to; seq++) {
        uint32_t len = payload_len_of(seq, PAYLOAD_MAX);
        fill_payload(payload, seq, len);
        CHECK_EQ(om_bus_stream_publish(stream, seq, (uint8_t)(1 + seq % 5), payload, (uint16_t)len), 0);
    }
}

static OmSpool *start(const char *ring, const char *dir) {
    OmSpool *spool;
    OmSpoolOptions options = {.log = {.segment_bytes = 1 << 16, .sync = OM_LOG_SYNC_NONE}};
    OK(om_spool_start(&spool, ring, dir, &options));
    return spool;
}

static uint64_t last_of(const char *dir, uint64_t from) {
    OmLogReader *r = open_reader(dir, 0);
    uint64_t last = read_all(r, from, PAYLOAD_MAX);
    om_log_reader_close(r);
    return last;
}

static const char *losses_of(const char *dir) {
    static char text[512];
    FILE *file = fopen(file_of(dir, OM_SPOOL_LOSSES_FILE), "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = 0;
    if (file)
        fclose(file);
    return text;
}

/** Until the spool has seen wal_seq, or has ended. */
static int wait_for(OmSpool *spool, uint64_t seq) {
    OmSpoolStatus status;
    int rc = 0;
    for (int i = 0; i < 5000; i++) {
        rc = om_spool_status(spool, &status);
        if (rc != 0 || status.last_seq >= seq)
            return rc;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, 0);
    }
    FAIL("the spool stands at %llu", (unsigned long long)status.last_seq);
}

TEST(all_that_is_published_is_in_the_log) {
    const char *ring = test_unique("spool"), *dir = log_dir("spool");
    OmBusStream *stream = make_stream(ring, 64, 256, 2, 0);
    OmSpool *spool = start(ring, dir);
    publish(stream, 1, 20000);
    OmSpoolStatus status;
    CHECK_EQ(wait_for(spool, 20000), 0);
    CHECK_EQ(om_spool_status(spool, &status), 0);
    CHECK_EQ(status.records, 20000);
    CHECK_EQ(status.losses, 0);
    CHECK_EQ(om_spool_stop(spool), 0);
    CHECK_EQ(last_of(dir, 1), 20000);
    om_bus_stream_destroy(stream);
}

TEST(what_was_published_before_the_stop_is_spooled) {
    for (int round = 0; round < 20; round++) {
        const char *ring = test_unique("spool"), *dir = log_dir("spool");
        OmBusStream *stream = make_stream(ring, 4096, 256, 2, 0);
        OmSpool *spool = start(ring, dir);
        publish(stream, 1, 1000);
        CHECK_EQ(om_spool_stop(spool), 0);
        CHECK_EQ(last_of(dir, 1), 1000);
        om_bus_stream_destroy(stream);
    }
}

TEST(the_producers_own_gap_is_no_loss) {
    const char *ring = test_unique("spool"), *dir = log_dir("spool");
    OmBusStream *stream = make_stream(ring, 64, 256, 2, 0);
    OmSpool *spool = start(ring, dir);
    publish(stream, 1, 5);
    publish(stream, 100, 105);
    CHECK_EQ(wait_for(spool, 105), 0);
    OK(om_spool_stop(spool));
    CHECK_EQ(strlen(losses_of(dir)), 0);
    om_bus_stream_destroy(stream);
}

TEST(records_between_two_spools_are_a_loss) {
    const char *ring = test_unique("spool"), *dir = log_dir("spool");
    OmBusStream *stream = make_stream(ring, 64, 256, 2, 0);
    OmSpool *spool = start(ring, dir);
    publish(stream, 1, 10);
    CHECK_EQ(wait_for(spool, 10), 0);
    OK(om_spool_stop(spool));
    spool = start(ring, dir); /* nothing went by in between: no loss */
    publish(stream, 11, 15);
    CHECK_EQ(wait_for(spool, 15), 0);
    OK(om_spool_stop(spool));
    CHECK_EQ(strlen(losses_of(dir)), 0);
    publish(stream, 16, 20);
    spool = start(ring, dir);
    publish(stream, 21, 30);
    CHECK_EQ(wait_for(spool, 30), 0);
    OmSpoolStatus status;
    OK(om_spool_status(spool, &status));
    CHECK_EQ(status.losses, 1);
    CHECK_EQ(status.lost_seqs, 5);
    OK(om_spool_stop(spool));
    CHECK_CONTAINS(losses_of(dir), "16 21 no spool ran\n");
    om_bus_stream_destroy(stream);
}

TEST(a_producer_that_starts_over_stops_the_spool) {
    const char *ring = test_unique("spool"), *dir = log_dir("spool");
    OmBusStream *stream = make_stream(ring, 64, 256, 2, 0);
    OmSpool *spool = start(ring, dir);
    publish(stream, 1, 10);
    CHECK_EQ(wait_for(spool, 10), 0);
    om_bus_stream_detach(stream);
    stream = make_stream(ring, 64, 256, 2, 0);
    publish(stream, 1, 3);
    CHECK_EQ(wait_for(spool, 11), OM_ERR_SPOOL_RESET);
    CHECK_CONTAINS(om_bus_last_error(), "wal_seq 1 after 10");
    OK(om_spool_stop(spool));
    CHECK_EQ(last_of(dir, 1), 10);
    om_bus_stream_destroy(stream);
}

TEST(a_producer_that_goes_on_is_followed) {
    const char *ring = test_unique("spool"), *dir = log_dir("spool");
    OmBusStream *stream = make_stream(ring, 64, 256, 2, 0);
    OmSpool *spool = start(ring, dir);
    publish(stream, 1, 10);
    om_bus_stream_detach(stream);
    stream = make_stream(ring, 64, 256, 2, 0);
    publish(stream, 11, 200);
    CHECK_EQ(wait_for(spool, 200), 0);
    OK(om_spool_stop(spool));
    CHECK_EQ(last_of(dir, 1), 200);
    CHECK_EQ(strlen(losses_of(dir)), 0);
    om_bus_stream_destroy(stream);
}

TEST(a_ring_of_another_shape_or_a_new_one_is_followed) {
    for (int destroy = 0; destroy < 2; destroy++) {
        const char *ring = test_unique("spool"), *dir = log_dir("spool");
        OmBusStream *stream = make_stream(ring, 64, 256, 2, 0);
        OmSpool *spool = start(ring, dir);
        publish(stream, 1, 10);
        CHECK_EQ(wait_for(spool, 10), 0);
        if (destroy)
            om_bus_stream_destroy(stream);
        else
            om_bus_stream_detach(stream);
        stream = make_stream(ring, 128, 1 << 16, 2, 0);
        OmSpoolStatus status = {0};
        for (int i = 0; i < 5000 && status.reopened == 0; i++) {
            OK(om_spool_status(spool, &status));
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, 0);
        }
        CHECK_EQ(status.reopened, 1);
        publish(stream, 11, 100);
        CHECK_EQ(wait_for(spool, 100), 0);
        OK(om_spool_stop(spool));
        CHECK_EQ(last_of(dir, 1), 100);
        om_bus_stream_destroy(stream);
    }
}

TEST(bad_arguments_and_missing_rings_are_refused) {
    OmSpool *spool;
    const char *dir = log_dir("spool");
    OmSpoolOptions many = {.batch_records = UINT32_MAX};
    CHECK_EQ(om_spool_start(0, "x", dir, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_spool_start(&spool, 0, dir, 0), OM_ERR_BUS_INIT);
    CHECK_EQ(om_spool_start(&spool, "x", dir, &many), OM_ERR_BUS_INIT);
    CHECK_EQ(om_spool_start(&spool, "no-such-ring-of-a-test", dir, 0), OM_ERR_BUS_SHM_OPEN);
    CHECK(!spool);
    CHECK_EQ(om_spool_status(0, 0), OM_ERR_BUS_INIT);
    OK(om_spool_stop(0));
}
