#ifndef OM_BUS_WAL_H
#define OM_BUS_WAL_H

/**
 * @file om_bus_wal.h
 * @brief Glue, header only: every record that an OpenMatch WAL has written is published to a ring.
 *
 * Needs the host application's openmatch/om_wal.h; libombus and libopenmatch do not link to each other.
 */

#include <stdint.h>

#include "om_bus.h"
#include "openmatch/om_wal.h"

static inline void _om_bus_wal_cb(uint64_t seq, uint8_t type, const void *data, uint16_t len, void *ctx) {
    /* The record is in the WAL whatever the ring says: one that the ring refuses (too large for a slot) shows there as
     * a gap, which its consumers fill by replay (om_bus_replay.h). */
    (void)om_bus_stream_publish((OmBusStream *)ctx, seq, type, data, len);
}

/** Publish what `wal` writes from now on to `stream`, which must outlive it or be detached first. */
static inline void om_bus_attach_wal(OmWal *wal, OmBusStream *stream) {
    om_wal_set_post_write(wal, stream ? _om_bus_wal_cb : 0, stream);
}

/** Stop publishing. */
static inline void om_bus_detach_wal(OmWal *wal) {
    om_wal_set_post_write(wal, 0, 0);
}

#endif
