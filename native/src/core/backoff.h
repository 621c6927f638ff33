#ifndef OMI_BACKOFF_H
#define OMI_BACKOFF_H

#include <sched.h>
#include <stdint.h>

#include "core/hint.h"

/**
 * The one way to wait here: relax, relax longer, yield, then sleep. Spinning is short because the other side may
 * need this very core; who reaches OMI_BACKOFF_SLEEP must block on a doorbell.
 */
typedef enum OmiBackoffPhase { OMI_BACKOFF_SPIN, OMI_BACKOFF_YIELD, OMI_BACKOFF_SLEEP } OmiBackoffPhase;

enum { OMI_BACKOFF_SPINS_SHORT = 10, OMI_BACKOFF_SPINS = 42, OMI_BACKOFF_YIELDS = 64 };

/** Pause according to how often *turns this was called, and say which phase the next turn is in. */
static inline OmiBackoffPhase omi_backoff(uint32_t *turns) {
    uint32_t turn = (*turns)++;
    if (turn < OMI_BACKOFF_SPINS) {
        for (int i = turn < OMI_BACKOFF_SPINS_SHORT ? 1 : 4; i > 0; i--)
            omi_cpu_relax();
        return OMI_BACKOFF_SPIN;
    }
    if (turn < OMI_BACKOFF_SPINS + OMI_BACKOFF_YIELDS) {
        sched_yield();
        return OMI_BACKOFF_YIELD;
    }
    return OMI_BACKOFF_SLEEP;
}

#endif
