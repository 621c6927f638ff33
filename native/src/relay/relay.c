#include "ombus/om_bus_relay.h"

#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hint.h"

enum {
    BATCH_MAX =
        1024, /* records between two rounds of network I/O: some 70 KB of usual records, a good size of a write */
    BATCH_BYTES = 256 * 1024,
    IDLE_SPINS = 100,
    PAYLOAD_MAX = UINT16_MAX,
};

_Static_assert(sizeof(OmBusRelayConfig) == 40, "layout in the formats document");
_Static_assert(sizeof(OmBusRelayStats) == 8 * (6 + 32 + 17), "layout in the formats document");
_Static_assert((int)BATCH_BYTES > (int)PAYLOAD_MAX, "a batch holds the longest payload");

/** Records copied out of the ring, so that the producer may overwrite its slots while we still send them. */
typedef struct Batch {
    uint64_t wal_seqs[BATCH_MAX];
    uint32_t offsets[BATCH_MAX + 1];
    uint8_t wal_types[BATCH_MAX];
    OmBusRecord recs[BATCH_MAX];
    uint8_t payloads[BATCH_BYTES];
} Batch;

static unsigned log2_bucket(uint64_t value, unsigned buckets) {
    unsigned bucket = value ? 63U - (unsigned)__builtin_clzll(value) : 0;
    return bucket < buckets ? bucket : buckets - 1;
}

void om_bus_relay_stats_reset(OmBusRelayStats *stats) {
    if (stats)
        *stats = (OmBusRelayStats){0};
}

uint64_t om_bus_relay_stats_loop_ns_percentile(const OmBusRelayStats *stats, uint32_t percentile) {
    if (!stats || stats->non_empty_loops == 0)
        return 0;
    if (percentile > 100)
        percentile = 100;
    uint64_t wanted = (stats->non_empty_loops * percentile + 99) / 100, seen = 0;
    for (unsigned i = 0; i < 32; i++) {
        seen += stats->loop_ns_hist[i];
        if (seen >= wanted && seen > 0) {
            uint64_t bound = (uint64_t)2 << i;
            return bound < stats->loop_ns_max ? bound : stats->loop_ns_max;
        }
    }
    return stats->loop_ns_max;
}

static void count_loop(OmBusRelayStats *stats, uint32_t records, uint64_t ns) {
    stats->non_empty_loops++;
    stats->records_relayed += records;
    stats->loop_ns_total += ns;
    if (ns > stats->loop_ns_max)
        stats->loop_ns_max = ns;
    stats->loop_ns_hist[log2_bucket(ns, 32)]++;
    stats->batch_hist[log2_bucket(records, 17)]++;
}

/** Next records of the ring: how many, or an error that ends the relay. */
static int read_batch(OmBusEndpoint *ep, Batch *batch) {
    int count = om_bus_endpoint_poll_columns(ep, BATCH_MAX, batch->wal_seqs, batch->wal_types, batch->offsets,
                                             batch->payloads, sizeof batch->payloads);
    switch (count) {
    case OM_ERR_BUS_GAP_DETECTED:
    case OM_ERR_BUS_REORDER_DETECTED:
        count = 1; /* delivered in row 0; every client judges the sequence for itself */
        break;
    case OM_ERR_BUS_CRC_MISMATCH:
    case OM_ERR_BUS_CONSUMER_STALE:
        return 0; /* skipped by the ring; a gap for the clients */
    }
    for (int i = 0; i < count; i++)
        batch->recs[i] = (OmBusRecord){
            .wal_seq = batch->wal_seqs[i],
            .wal_type = batch->wal_types[i],
            .payload_len = (uint16_t)(batch->offsets[i + 1] - batch->offsets[i]),
            .payload = batch->payloads + batch->offsets[i],
        };
    return count;
}

static bool is_running(const OmBusRelayConfig *config) {
    return !config->running || __atomic_load_n(config->running, __ATOMIC_RELAXED);
}

/** Spin a little, since records come in bursts; then sleep, since somebody else may need this core. */
static void idle(uint32_t *idle_turns, uint32_t poll_us) {
    if ((*idle_turns)++ < IDLE_SPINS) {
        omi_cpu_relax();
        return;
    }
    nanosleep(&(struct timespec){.tv_sec = poll_us / 1000000, .tv_nsec = poll_us % 1000000 * OMI_NS_PER_US}, NULL);
}

static int relay(const OmBusRelayConfig *config, OmBusRelayStats *stats, Batch *batch) {
    uint32_t poll_us = config->poll_us ? config->poll_us : OM_BUS_RELAY_DEFAULT_POLL_US, idle_turns = 0;
    while (is_running(config)) {
        uint64_t start_ns = config->stats ? omi_monotonic_ns() : 0;
        int count = read_batch(config->ep, batch);
        if (count < 0)
            return count;
        int rc = om_bus_tcp_server_broadcast_batch(config->srv, batch->recs, (uint32_t)count);
        if (rc == 0)
            rc = om_bus_tcp_server_poll_io(config->srv);
        if (rc < 0)
            return rc;
        stats->loops++;
        if (count > 0) {
            count_loop(stats, (uint32_t)count, config->stats ? omi_monotonic_ns() - start_ns : 0);
            idle_turns = 0;
        } else {
            stats->idle_loops++;
            idle(&idle_turns, poll_us);
        }
    }
    return 0;
}

int om_bus_relay_run(const OmBusRelayConfig *config) {
    if (!config || !config->ep || !config->srv)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_relay_run without %s",
                        config ? "an endpoint or a server" : "a config");
    Batch *batch = malloc(sizeof *batch);
    if (!batch)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "relay");
    OmBusRelayStats unwanted = {0};
    int rc = relay(config, config->stats ? config->stats : &unwanted, batch);
    om_bus_tcp_server_poll_io(config->srv);
    free(batch);
    return rc;
}
