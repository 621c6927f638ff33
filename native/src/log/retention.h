#ifndef OMI_LOG_RETENTION_H
#define OMI_LOG_RETENTION_H

#include "log/files.h"
#include "ombus/om_log.h"

/** om_log_retain() on an open directory. */
int omi_retain(const OmiLogDir *dir, const OmLogRetention *policy);

/** The lowest position of all named consumers; UINT64_MAX when there is none, 0 when one cannot be read. */
uint64_t omi_consumers_min(const OmiLogDir *dir);

#endif
