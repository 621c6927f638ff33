#ifndef OMI_DOORBELL_H
#define OMI_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/hint.h"

/**
 * A doorbell in shared memory: sleepers wait on a futex, the notifier pays one relaxed load while nobody sleeps.
 *
 * The notifier publishes, then loads `sleepers`; a sleeper stores `sleepers`, then looks for what was published.
 * Either side could miss the other unless a full fence stands between its store and its load. A fence in the
 * notifier would cost more than a publish, so the sleeper pays for both: membarrier(GLOBAL_EXPEDITED) makes every
 * registered process pass a fence. Where a notifier is not registered (old kernel, seccomp, another library)
 * sleepers must look again every OMI_DOORBELL_BLIND_NS.
 */
typedef struct OmiDoorbell {
    _Atomic uint32_t rings;    /* futex word: counts rings */
    _Atomic uint32_t sleepers; /* non-zero: somebody is about to sleep or sleeps */
} OmiDoorbell;

enum { OMI_DOORBELL_BLIND_NS = 1000000 };

/** Register this process as a notifier; once per process is enough. False: its sleepers wait blind. */
bool omi_doorbell_register_notifier(void);

/** Announce that we shall sleep. Look for work between this and omi_doorbell_sleep(). Returns the ring count. */
uint32_t omi_doorbell_arm(OmiDoorbell *bell);

/** Sleep until the bell rings after arm(), or timeout_ns (>= 0) passes. */
void omi_doorbell_sleep(OmiDoorbell *bell, uint32_t rings_seen, int64_t timeout_ns);

/** Wake all sleepers. */
void omi_doorbell_ring(OmiDoorbell *bell);

/** The notifier's hot path, after its publishing store. */
static inline void omi_doorbell_notify(OmiDoorbell *bell) {
    if (OMI_UNLIKELY(atomic_load_explicit(&bell->sleepers, memory_order_relaxed)))
        omi_doorbell_ring(bell);
}

#endif
