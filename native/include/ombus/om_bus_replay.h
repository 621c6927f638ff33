#ifndef OM_BUS_REPLAY_H
#define OM_BUS_REPLAY_H

/**
 * @file om_bus_replay.h
 * @brief Glue, header only: fill a gap that a bus consumer met by replaying an OpenMatch WAL file into its worker.
 *
 * Needs the host application's openmatch/om_wal.h and openmarket/om_market.h.
 */

#include <stddef.h>
#include <stdint.h>

#include "om_bus_error.h"
#include "openmarket/om_market.h"
#include "openmatch/om_wal.h"

/** Feeds one record to a worker; negative = error. */
typedef int (*OmBusReplayFeed_)(void *worker, OmWalType type, const void *data);

static inline int _om_bus_replay_private(void *worker, OmWalType type, const void *data) {
    return om_market_worker_process((OmMarketWorker *)worker, type, data);
}

static inline int _om_bus_replay_public(void *worker, OmWalType type, const void *data) {
    return om_market_public_process((OmMarketPublicWorker *)worker, type, data);
}

static inline int64_t _om_bus_replay(const char *wal_path, uint64_t from_seq, uint64_t to_seq, void *worker,
                                     OmBusReplayFeed_ feed) {
    OmWalReplay replay;
    OmWalType type;
    void *data;
    uint64_t seq;
    size_t len;
    int64_t fed = 0;
    int rc;
    if (!wal_path || !worker)
        return OM_ERR_BUS_INIT;
    if ((rc = om_wal_replay_init(&replay, wal_path)) < 0)
        return rc;
    while ((rc = om_wal_replay_next(&replay, &type, &data, &seq, &len)) == 1) {
        if (seq < from_seq)
            continue;
        if (to_seq != 0 && seq >= to_seq)
            break;
        if ((rc = feed(worker, type, data)) < 0)
            break;
        fed++;
    }
    om_wal_replay_close(&replay);
    return rc < 0 ? rc : fed;
}

/**
 * Feed the records with from_seq <= seq < to_seq (0 = to the end) of the WAL file to a private worker.
 * Returns how many it fed, or the error of the WAL or the worker that stopped it.
 */
static inline int64_t om_bus_replay_gap(const char *wal_path, uint64_t from_seq, uint64_t to_seq,
                                        OmMarketWorker *worker) {
    return _om_bus_replay(wal_path, from_seq, to_seq, worker, _om_bus_replay_private);
}

/** The same for a public worker. */
static inline int64_t om_bus_replay_gap_public(const char *wal_path, uint64_t from_seq, uint64_t to_seq,
                                               OmMarketPublicWorker *worker) {
    return _om_bus_replay(wal_path, from_seq, to_seq, worker, _om_bus_replay_public);
}

#endif
