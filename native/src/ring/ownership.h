#ifndef OMI_RING_OWNERSHIP_H
#define OMI_RING_OWNERSHIP_H

/**
 * Who may publish to a ring. One process at a time: the one in the extension's word `owner` (pid and start time in one
 * word, so that it changes at once).
 *
 * - A producer also holds flock() on the object. The kernel drops it with the process, in whatever pid namespace that
 *   lived, but a forked child may keep it; so the lock alone is not believed, nor is the word alone.
 * - To become the owner: nobody else alive is in the word (a process that cannot be judged, in another pid namespace,
 *   counts as alive exactly as long as the lock is held), then compare-and-swap oneself into it.
 * - A process may take over from itself: its former handle is fenced off by the epoch (publish.c asks it every time).
 * - A ring that is removed, or replaced by one of another shape, is retired: first its name goes, then `retired` is set
 *   and the epoch moves, and its consumers learn that they must reopen. So an object with a name is not retired, but
 *   for somebody who opened it in between and has to look.
 */

#include "core/process.h"
#include "ring/ring.h"

/** Become the ring's producer. OM_ERR_BUS_IN_USE names the pid that is. */
int omi_ring_own(const OmiRing *ring, const OmiProcess *self);

/** Stop being it. */
void omi_ring_disown(const OmiRing *ring);

/** Who publishes to the ring; pid 0 = nobody, or not known. */
OmiProcess omi_ring_owner(const OmiRing *ring);

/** Tell all consumers that nothing comes any more. Its name must be gone already. */
void omi_ring_retire(const OmiRing *ring);

#endif
