#ifndef OM_BUS_RELAY_H
#define OM_BUS_RELAY_H

/**
 * @file om_bus_relay.h
 * @brief The relay: everything a ring publishes goes to a TCP server's clients, in a loop of the caller's thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "om_bus.h"
#include "om_bus_tcp.h"

OM_BEGIN_DECLS

#define OM_BUS_RELAY_DEFAULT_POLL_US 10U

/** Histograms count powers of two: entry i holds values in [2^i, 2^(i+1)), the last one also everything above. */
typedef struct OmBusRelayStats {
    uint64_t loops;
    uint64_t non_empty_loops;
    uint64_t records_relayed;
    uint64_t idle_loops;
    uint64_t loop_ns_total; /* of non-empty loops, as are the two below */
    uint64_t loop_ns_max;
    uint64_t loop_ns_hist[32];
    uint64_t batch_hist[17]; /* records per non-empty loop */
} OmBusRelayStats;

typedef struct OmBusRelayConfig {
    OmBusEndpoint *ep;
    OmBusTcpServer *srv;
    volatile bool *running; /* the relay ends when this becomes false; NULL = it runs for ever */
    uint32_t poll_us;       /* sleep between looks at an idle ring (10) */
    OmBusRelayStats *stats; /* filled while running; may be NULL */
} OmBusRelayConfig;

/**
 * Relay until *running is false. Returns 0 then, after a last flush, or an error of the ring. Gaps, reordered records
 * and damage that the ring reports for single records do not end the relay: clients see them as gaps in wal_seq. It
 * ends with OM_ERR_BUS_EPOCH_CHANGED when the producer restarted (call again to go on) and with OM_ERR_BUS_RING_GONE
 * when the ring was removed (reopen the endpoint first). Not for an endpoint or a server that another thread uses.
 */
int om_bus_relay_run(const OmBusRelayConfig *config);

/** Set all counters to zero. */
void om_bus_relay_stats_reset(OmBusRelayStats *stats);

/** Upper bound in ns of the duration that `percentile` percent (1 to 100) of the non-empty loops stayed below; 0 =
 * none. */
uint64_t om_bus_relay_stats_loop_ns_percentile(const OmBusRelayStats *stats, uint32_t percentile);

OM_END_DECLS

#endif
