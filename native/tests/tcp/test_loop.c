#include "tcp/loop.h"

#include <pthread.h>
#include <sys/socket.h>

#include "check.h"
#include "ombus/om_bus_error.h"

typedef struct Side {
    OmiWatch watch;
    uint32_t seen;
    int calls;
    OmiLoop *loop;
    struct Side *victim; /* removed by this one's callback */
} Side;

static void note(OmiWatch *watch, uint32_t events) {
    Side *side = (Side *)watch;
    side->seen |= events;
    side->calls++;
    if (side->victim)
        omi_loop_remove(side->loop, &side->victim->watch);
}

static OmiLoop *loop_of(OmiLoopKind kind) {
    OmiLoop *loop = NULL;
    CHECK_EQ(omi_loop_create(&loop, kind), 0);
    return loop;
}

static void for_both(void (*test)(OmiLoopKind)) {
    test(OMI_LOOP_BEST);
    test(OMI_LOOP_POLL);
}

static void readiness(OmiLoopKind kind) {
    OmiLoop *loop = loop_of(kind);
    Side side = {0};
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    CHECK_EQ(omi_loop_add(loop, &side.watch, fds[0], OMI_LOOP_READ, note), 0);
    CHECK_EQ(omi_loop_run(loop, 0), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(omi_loop_run(loop, -1), 1);
    CHECK_EQ(omi_loop_run(loop, -1), 1); /* level-triggered: still there */
    CHECK_EQ(side.calls, 2);
    CHECK_EQ(side.seen, OMI_LOOP_READ);
    CHECK_EQ(omi_loop_set_interest(loop, &side.watch, OMI_LOOP_WRITE), 0);
    side.seen = 0;
    CHECK_EQ(omi_loop_run(loop, -1), 1);
    CHECK_EQ(side.seen, OMI_LOOP_WRITE);
    CHECK_EQ(omi_loop_set_interest(loop, &side.watch, 0), 0);
    CHECK_EQ(omi_loop_run(loop, 0), 0);
    close(fds[1]);
    side.seen = 0;
    CHECK_EQ(omi_loop_run(loop, -1), 1); /* a hang-up comes unasked */
    CHECK(side.seen & OMI_LOOP_HANGUP);
    omi_loop_remove(loop, &side.watch);
    omi_loop_remove(loop, &side.watch);
    CHECK_EQ(omi_loop_run(loop, 0), 0);
    close(fds[0]);
    omi_loop_destroy(loop);
}

TEST(readiness_is_level_triggered) {
    for_both(readiness);
}

static void removal(OmiLoopKind kind) {
    OmiLoop *loop = loop_of(kind);
    Side sides[2] = {{.loop = loop}, {.loop = loop}};
    sides[0].victim = &sides[1];
    sides[1].victim = &sides[0];
    int fds[4];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds + 2 * i), 0);
        CHECK_EQ(omi_loop_add(loop, &sides[i].watch, fds[2 * i], OMI_LOOP_READ, note), 0);
        CHECK_EQ(write(fds[2 * i + 1], "x", 1), 1);
    }
    CHECK_EQ(omi_loop_run(loop, -1), 2); /* both are ready; whoever comes first removes the other */
    CHECK_EQ(sides[0].calls + sides[1].calls, 1);
    for (int i = 0; i < 2; i++)
        omi_loop_remove(loop, &sides[i].watch);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    omi_loop_destroy(loop);
}

TEST(a_watch_removed_by_another_ones_callback_is_not_called) {
    for_both(removal);
}

static void many(OmiLoopKind kind) {
    enum { COUNT = 300 };
    OmiLoop *loop = loop_of(kind);
    static Side sides[COUNT];
    static int fds[COUNT][2];
    memset(sides, 0, sizeof sides);
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
        CHECK_EQ(omi_loop_add(loop, &sides[i].watch, fds[i][0], OMI_LOOP_READ, note), 0);
        CHECK_EQ(write(fds[i][1], "x", 1), 1);
    }
    int called = 0;
    for (int turn = 0; turn < 100 && called < COUNT; turn++) {
        CHECK(omi_loop_run(loop, 0) > 0);
        for (int i = 0; i < COUNT; i++)
            if (sides[i].calls && sides[i].watch.fd >= 0) {
                omi_loop_remove(loop, &sides[i].watch);
                called++;
            }
    }
    CHECK_EQ(called, COUNT);
    for (int i = 0; i < COUNT; i++) {
        close(fds[i][0]);
        close(fds[i][1]);
    }
    omi_loop_destroy(loop);
}

TEST(more_descriptors_than_fit_in_one_round_are_all_served) {
    for_both(many);
}

static void *wake(void *loop) {
    omi_loop_wake(loop);
    return NULL;
}

static void waking(OmiLoopKind kind) {
    OmiLoop *loop = loop_of(kind);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wake, loop), 0);
    CHECK_EQ(omi_loop_run(loop, -1), 1); /* would sleep for ever */
    pthread_join(thread, NULL);
    for (int i = 0; i < 70000; i++) /* more than a pipe holds: never blocks */
        omi_loop_wake(loop);
    for (int i = 0; i < 10000 && omi_loop_run(loop, 0) > 0; i++) {
    }
    CHECK_EQ(omi_loop_run(loop, 0), 0);
    omi_loop_destroy(loop);
}

TEST(another_thread_can_wake_the_loop) {
    for_both(waking);
}
