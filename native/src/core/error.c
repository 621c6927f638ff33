#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[512];

int omi_fail(int rc, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return rc;
}

int omi_fail_errno(int rc, const char *format, ...) {
    int error = errno;
    char reason[96] = "";
    const char *text = strerror_r(error, reason, sizeof reason); /* the GNU form */
    va_list args;
    va_start(args, format);
    int used = vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof last_error)
        snprintf(last_error + used, sizeof last_error - (size_t)used, ": %s", text);
    errno = error; /* callers may look at it once more */
    return rc;
}

const char *om_bus_last_error(void) {
    return last_error;
}

const char *om_bus_error_string(int rc) {
    switch (rc) {
#define CASE(name, code, text) \
    case code:                 \
        return text;
        OM_BUS_ERRORS(CASE)
#undef CASE
    }
    return rc >= 0 ? "ok" : "unknown error";
}

const char *om_bus_error_name(int rc) {
    switch (rc) {
#define CASE(name, code, text) \
    case code:                 \
        return #name;
        OM_BUS_ERRORS(CASE)
#undef CASE
    }
    return 0;
}

const char *om_bus_version(void) {
    return OMBUS_VERSION;
}
