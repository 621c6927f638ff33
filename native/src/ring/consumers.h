#ifndef OMI_RING_CONSUMERS_H
#define OMI_RING_CONSUMERS_H

/**
 * The life of a consumer slot. This file and consumers.c are the only ones that know it.
 *
 *            open                        close
 *   FREE ------------> JOINING -> CLAIMED ------> FREE
 *                                 |  ^
 *       blocks a full ring longer |  | polls again: told OM_ERR_BUS_CONSUMER_STALE,
 *       than staleness_ns         v  | stands at the live end from now on
 *                              PASSED_OVER
 *
 *   JOINING, CLAIMED or PASSED_OVER with its process gone: the producer frees the slot as soon as it needs the room,
 *   and the next open() of that index takes it.
 *
 * - The word `claim` is state << 32 | pid and only ever changes by compare-and-swap (or by its holder).
 * - The producer waits for CLAIMED slots only. A slot nobody opened, and no slot at all, never holds it up.
 * - Staleness is judged by the producer, by its own clock, from the moment it first finds a consumer in its way: a
 *   consumer needs no clock to stay alive, and an idle one (nothing to read) is never in the way.
 * - Overrun means: passed over, then overwritten. Whoever lost the claim must not trust the ring's content any more,
 *   so even one not yet overwritten is sent to the live end.
 * - A process that calls exec() keeps its pid and start time, and so its claims: close the endpoints first.
 * - A version-1 consumer leaves no claim. It is recognised by last_poll_ns != 0, and its heartbeat decides.
 *
 * Joining without being overrun: the producer may run up to (the minimum it last computed) + capacity before it looks
 * at the slots again. So the joiner first makes its claim visible, passes a full fence, and only then reads `head` for
 * its position: a minimum computed without it is at most that head. The producer fences before it computes, too. A
 * joiner that was stopped for a whole lap in the middle of this finds its place out of date, and takes another.
 */

#include "core/process.h"
#include "ring/ring.h"

enum { OMI_CONSUMER_CLAIMED = 1, OMI_CONSUMER_PASSED_OVER = 2, OMI_CONSUMER_JOINING = 3 };

static inline uint64_t omi_claim(uint32_t state, uint32_t pid) {
    return (uint64_t)state << 32 | pid;
}

/** Take slot `index` (or any free one) and join at the live end. On success *index and *claim are set. */
int omi_consumer_join(const OmiRing *ring, uint32_t *index, uint64_t *claim, uint64_t *position);

/** Come back after having been passed over; *position is then the live end. OM_ERR_BUS_IN_USE: the slot is gone. */
int omi_consumer_rejoin(const OmiRing *ring, uint32_t index, uint64_t claim, uint64_t *position);

/** Give the slot back. */
void omi_consumer_leave(const OmiRing *ring, uint32_t index, uint64_t claim);

/** What the producer remembers of consumers that stand in its way. */
typedef struct OmiConsumerWatch {
    uint64_t tail;
    uint64_t since_ns; /* when the producer first saw it blocking at `tail`; 0 = not in the way */
} OmiConsumerWatch;

/** Position of the slowest consumer the producer must wait for; `head` when there is none. */
uint64_t omi_consumers_slowest(const OmiRing *ring, uint64_t head, uint64_t staleness_ns);

/** Free slots of dead processes and pass over stale consumers among those that block position `head`. */
void omi_consumers_unblock(const OmiRing *ring, uint64_t head, uint64_t staleness_ns, OmiConsumerWatch *watch,
                           uint64_t now_ns);

/** For inspection. */
void omi_consumer_describe(const OmiRing *ring, uint32_t index, OmBusConsumerInfo *info);

#endif
