#ifndef TEST_OM_MARKET_H
#define TEST_OM_MARKET_H

/** A stand-in for the host application's header: workers that add up what they are given. */

#include <stdint.h>
#include <string.h>

typedef enum OmWalType { OM_WAL_INSERT = 1, OM_WAL_CANCEL = 2, OM_WAL_MATCH = 3 } OmWalType;

typedef struct OmMarketWorker {
    uint64_t sum;
    int records;
} OmMarketWorker;

typedef struct OmMarketPublicWorker {
    uint64_t sum;
    int records;
} OmMarketPublicWorker;

static inline int om_market_worker_process(OmMarketWorker *w, OmWalType type, const void *data) {
    uint64_t value;
    memcpy(&value, data, sizeof value);
    w->sum += value;
    w->records++;
    return type == OM_WAL_CANCEL ? -5 : 0;
}

static inline int om_market_public_process(OmMarketPublicWorker *w, OmWalType type, const void *data) {
    uint64_t value;
    memcpy(&value, data, sizeof value);
    w->sum += 2 * value;
    w->records++;
    return type == OM_WAL_CANCEL ? -6 : 0;
}

#endif
