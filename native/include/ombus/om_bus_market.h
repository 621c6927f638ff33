#ifndef OM_BUS_MARKET_H
#define OM_BUS_MARKET_H

/**
 * @file om_bus_market.h
 * @brief Header-only glue: records of a ring into a market worker. Needs the application's own openmarket/om_market.h.
 *
 * Each call takes one record: 1 = processed, 0 = none there, negative = an error of the ring or of the worker.
 * OM_ERR_BUS_GAP_DETECTED and OM_ERR_BUS_REORDER_DETECTED: the record was taken but NOT fed, since what is missing must
 * come first: replay from behind the last record up to and with om_bus_endpoint_wal_seq(), then go on.
 */

#include "om_bus.h"
#include "openmarket/om_market.h"

/** Next record to a private worker. */
static inline int om_bus_poll_worker(OmBusEndpoint *ep, OmMarketWorker *w) {
    OmBusRecord rec;
    int rc = om_bus_endpoint_poll(ep, &rec);
    if (rc != 1)
        return rc;
    rc = om_market_worker_process(w, (OmWalType)rec.wal_type, rec.payload);
    return rc < 0 ? rc : 1;
}

/** Next record to a public worker. */
static inline int om_bus_poll_public(OmBusEndpoint *ep, OmMarketPublicWorker *w) {
    OmBusRecord rec;
    int rc = om_bus_endpoint_poll(ep, &rec);
    if (rc != 1)
        return rc;
    rc = om_market_public_process(w, (OmWalType)rec.wal_type, rec.payload);
    return rc < 0 ? rc : 1;
}

#endif
