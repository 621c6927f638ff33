#ifndef OMI_CLOCK_H
#define OMI_CLOCK_H

#include <stdint.h>
#include <time.h>

#define OMI_NS_PER_S 1000000000LL
#define OMI_NS_PER_MS 1000000LL
#define OMI_NS_PER_US 1000LL

static inline uint64_t omi_clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * OMI_NS_PER_S + (uint64_t)t.tv_nsec;
}

/** For intervals and liveness; comparable between processes of one host. */
static inline uint64_t omi_monotonic_ns(void) {
    return omi_clock_ns(CLOCK_MONOTONIC);
}

/** For record timestamps; may step. */
static inline uint64_t omi_wall_ns(void) {
    return omi_clock_ns(CLOCK_REALTIME);
}

/** Deadline of a timeout on the monotonic clock; UINT64_MAX = never (timeout_ns < 0). */
static inline uint64_t omi_deadline_ns(int64_t timeout_ns) {
    return timeout_ns < 0 ? UINT64_MAX : omi_monotonic_ns() + (uint64_t)timeout_ns;
}

#endif
