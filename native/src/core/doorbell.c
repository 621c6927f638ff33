#include "core/doorbell.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

static bool registered;

static void register_once(void) {
    registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool omi_doorbell_register_notifier(void) {
    /* A forked child inherits the registration with the address space, so once per program is enough. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
    return registered;
}

uint32_t omi_doorbell_arm(OmiDoorbell *bell) {
    uint32_t rings_seen = atomic_load_explicit(&bell->rings, memory_order_relaxed);
    atomic_store_explicit(&bell->sleepers, 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    return rings_seen;
}

void omi_doorbell_sleep(OmiDoorbell *bell, uint32_t rings_seen, int64_t timeout_ns) {
    struct timespec limit = {.tv_sec = timeout_ns / OMI_NS_PER_S, .tv_nsec = timeout_ns % OMI_NS_PER_S};
    /* Not FUTEX_PRIVATE: the other side is another process. Every way of returning means "look again". */
    syscall(SYS_futex, &bell->rings, FUTEX_WAIT, rings_seen, &limit, 0, 0);
}

void omi_doorbell_ring(OmiDoorbell *bell) {
    /* Clear first: a sleeper that arms after this is either woken below or sees the new ring count. Clearing also
     * stops the notifier from paying a system call per record until the woken one runs. */
    atomic_store_explicit(&bell->sleepers, 0, memory_order_seq_cst);
    atomic_fetch_add_explicit(&bell->rings, 1, memory_order_seq_cst);
    syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}
