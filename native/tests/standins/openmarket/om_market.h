#ifndef OPENMARKET_OM_MARKET_H
#define OPENMARKET_OM_MARKET_H

/** A stand-in for OpenMarket's own header: workers that count what they are fed, and refuse a type when told to. */

#include "openmatch/om_wal.h"

typedef struct OmMarketWorker {
    uint64_t fed[8];
    uint64_t volume;
    int refuse; /* this type is an error */
} OmMarketWorker;

typedef struct OmMarketPublicWorker {
    uint64_t fed[8];
} OmMarketPublicWorker;

static inline int om_market_worker_process(OmMarketWorker *worker, OmWalType type, const void *data) {
    if (worker->refuse == (int)type)
        return -3;
    worker->fed[type & 7]++;
    if (type == OM_WAL_INSERT)
        worker->volume += ((const OmWalInsert *)data)->volume;
    return 0;
}

static inline int om_market_public_process(OmMarketPublicWorker *worker, OmWalType type, const void *data) {
    (void)data;
    worker->fed[type & 7]++;
    return 0;
}

#endif
