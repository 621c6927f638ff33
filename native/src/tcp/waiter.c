#include "tcp/waiter.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"

/* How long closing may have to wait for the thread. */
enum { WAIT_NS = 100 * OMI_NS_PER_MS };

typedef enum State { IDLE, ARMED, FIRED } State;

struct OmiWaiter {
    OmiLoop *loop;
    OmiWaitFn wait;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t mutex; /* for sleeping while idle; the state itself is atomic */
    pthread_cond_t armed;
    _Atomic int state;
    _Atomic bool quit;
};

static bool sleep_until_armed(OmiWaiter *waiter) {
    pthread_mutex_lock(&waiter->mutex);
    while (!atomic_load(&waiter->quit) && atomic_load(&waiter->state) != ARMED)
        pthread_cond_wait(&waiter->armed, &waiter->mutex);
    pthread_mutex_unlock(&waiter->mutex);
    return !atomic_load(&waiter->quit);
}

static void *run(void *context) {
    OmiWaiter *waiter = context;
    while (sleep_until_armed(waiter)) {
        while (!atomic_load(&waiter->quit) && waiter->wait(waiter->ctx, WAIT_NS) == 0) {
        }
        atomic_store(&waiter->state, FIRED);
        omi_loop_wake(waiter->loop);
    }
    return NULL;
}

int omi_waiter_open(OmiWaiter **out, OmiLoop *loop, OmiWaitFn wait, void *ctx) {
    OmiWaiter *waiter = calloc(1, sizeof *waiter);
    if (!waiter)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "waiting thread");
    *waiter = (OmiWaiter){.loop = loop, .wait = wait, .ctx = ctx};
    pthread_mutex_init(&waiter->mutex, NULL);
    pthread_cond_init(&waiter->armed, NULL);
    /* Signals are for the application's threads: a handler that runs here would find a thread it does not know. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&waiter->thread, NULL, run, waiter);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        pthread_mutex_destroy(&waiter->mutex);
        pthread_cond_destroy(&waiter->armed);
        free(waiter);
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "waiting thread: error %d", error);
    }
    *out = waiter;
    return 0;
}

static void signal_thread(OmiWaiter *waiter) {
    pthread_mutex_lock(&waiter->mutex);
    pthread_cond_signal(&waiter->armed);
    pthread_mutex_unlock(&waiter->mutex);
}

void omi_waiter_close(OmiWaiter *waiter) {
    if (!waiter)
        return;
    atomic_store(&waiter->quit, true);
    signal_thread(waiter);
    pthread_join(waiter->thread, NULL);
    pthread_mutex_destroy(&waiter->mutex);
    pthread_cond_destroy(&waiter->armed);
    free(waiter);
}

void omi_waiter_arm(OmiWaiter *waiter) {
    int idle = IDLE;
    if (atomic_compare_exchange_strong(&waiter->state, &idle, ARMED))
        signal_thread(waiter);
}

bool omi_waiter_take(OmiWaiter *waiter) {
    int fired = FIRED;
    atomic_compare_exchange_strong(&waiter->state, &fired, IDLE);
    return atomic_load(&waiter->state) == IDLE;
}
