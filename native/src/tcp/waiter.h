#ifndef OMI_WAITER_H
#define OMI_WAITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tcp/loop.h"

/**
 * A thread that sleeps on something an event loop cannot watch (a log's or a ring's doorbell) and wakes the loop when
 * it rings. One shot: the loop arms it, and may touch what it waits on again only after omi_waiter_take() said true.
 *
 *      IDLE --arm (loop)--> ARMED --wait() != 0 (thread)--> FIRED --take (loop)--> IDLE
 */
typedef struct OmiWaiter OmiWaiter;

/** Sleep up to timeout_ns; non-zero = there is something to look at, or an error that the loop will meet too. */
typedef int (*OmiWaitFn)(void *ctx, int64_t timeout_ns);

int omi_waiter_open(OmiWaiter **out, OmiLoop *loop, OmiWaitFn wait, void *ctx);

/** Stop the thread, armed or not, and free. */
void omi_waiter_close(OmiWaiter *waiter);

/** Start waiting; nothing when it waits already. */
void omi_waiter_arm(OmiWaiter *waiter);

/** Whether the loop may use what is waited on: false while ARMED. A fired waiter becomes idle. */
bool omi_waiter_take(OmiWaiter *waiter);

#endif
