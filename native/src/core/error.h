#ifndef OMI_ERROR_H
#define OMI_ERROR_H

#include "ombus/om_bus_error.h"

/**
 * Set this thread's last-error text (printf style) and return rc, so that a failing path reads
 * `return omi_fail(OM_ERR_..., "...")`. Set it at the cause: name the object, the offset, the sequence.
 */
__attribute__((format(printf, 2, 3), cold)) int omi_fail(int rc, const char *format, ...);

/** As omi_fail(), with ": " and strerror(errno) appended; errno stays as it is. */
__attribute__((format(printf, 2, 3), cold)) int omi_fail_errno(int rc, const char *format, ...);

#endif
