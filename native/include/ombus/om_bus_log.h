#ifndef OM_BUS_LOG_H
#define OM_BUS_LOG_H

/**
 * @file om_bus_log.h
 * @brief Ring and log together: what is appended to the log is then published to the ring.
 */

#include "om_bus.h"
#include "om_log.h"

OM_BEGIN_DECLS

/**
 * From now on every append to `log` also publishes to `stream`, after the record is in the log; NULL ends it. The
 * stream must outlive the log handle or be detached first. A full ring makes the append wait (the ring's
 * back-pressure). A payload that does not fit a ring slot is left out: ring consumers get OM_ERR_BUS_GAP_DETECTED and
 * read it from the log. Appends never fail because of the ring; om_log_writer_stats() counts what it missed.
 */
int om_bus_attach_log(OmBusStream *stream, OmLogWriter *log);

OM_END_DECLS

#endif
