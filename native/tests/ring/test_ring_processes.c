/* The ring between real processes, some of which are killed. */

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "core/clock.h"
#include "ring_fixture.h"

/** Run body(ctx) in a child; its return value is the exit status. A failed CHECK there is status 1. */
static pid_t spawn(int (*body)(void *), void *ctx) {
    pid_t pid = fork();
    if (pid == 0)
        _exit(setjmp(test_failed) == 0 ? body(ctx) : 1);
    return pid;
}

static int exit_status(pid_t pid) {
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/** Memory shared with children, for hand-shakes. */
static _Atomic uint64_t *shared_word(void) {
    void *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static void await(_Atomic uint64_t *word, uint64_t value) {
    while (atomic_load(word) < value)
        sched_yield();
}

/* A payload that tells whether it is whole and whose it is: 7 words derived from wal_seq. */
static void fill_payload(uint64_t payload[7], uint64_t wal_seq) {
    for (uint64_t i = 0; i < 7; i++)
        payload[i] = wal_seq * 0x9E3779B97F4A7C15U + i;
}

static bool is_whole(const OmBusRecord *rec) {
    uint64_t expected[7];
    fill_payload(expected, rec->wal_seq);
    return rec->payload_len == sizeof expected && memcmp(rec->payload, expected, sizeof expected) == 0;
}

typedef struct Reading {
    const char *name;
    uint64_t records;
    uint64_t batch; /* 0 = single polls */
    _Atomic uint64_t *ready;
} Reading;

/** Read `records` records from 1 on; 0 when all came in order and whole. */
static int read_all(void *ctx) {
    const Reading *reading = ctx;
    OmBusRecord recs[64];
    OmBusEndpoint *ep = open_endpoint(reading->name, OM_BUS_CONSUMER_ANY, false);
    atomic_fetch_add(reading->ready, 1);
    for (uint64_t next = 1; next <= reading->records;) {
        int n = reading->batch ? om_bus_endpoint_peek_batch(ep, recs, reading->batch) : om_bus_endpoint_poll(ep, recs);
        if (n < 0)
            return 2;
        if (n == 0 && om_bus_endpoint_wait(ep, 20 * OMI_NS_PER_S) != 1)
            return 3;
        for (int i = 0; i < n; i++, next++)
            if (recs[i].wal_seq != next || !is_whole(&recs[i]))
                return 4;
        if (reading->batch && om_bus_endpoint_release(ep, (size_t)n) != 0)
            return 5;
    }
    om_bus_endpoint_close(ep);
    return 0;
}

TEST(ten_million_records_between_two_processes_arrive_whole_and_in_order) {
    const char *name = test_unique("tenmillion");
    Reading reading = {.name = name, .records = 10000000, .batch = 64, .ready = shared_word()};
    uint64_t payload[7];
    OmBusStream *stream = make_stream(name, 4096, 128, 2, 0);
    pid_t pid = spawn(read_all, &reading);
    await(reading.ready, 1);
    for (uint64_t seq = 1; seq <= reading.records; seq++) {
        fill_payload(payload, seq);
        CHECK_EQ(om_bus_stream_publish(stream, seq, 1, payload, sizeof payload), 0);
    }
    CHECK_EQ(exit_status(pid), 0);
    om_bus_stream_destroy(stream);
}

TEST(three_processes_read_the_same_stream_through_a_tiny_ring) {
    const char *name = test_unique("three");
    Reading reading = {.name = name, .records = 200000, .ready = shared_word()};
    Reading batching = reading;
    batching.batch = 5;
    uint64_t payload[7];
    OmBusStream *stream = make_stream(name, 8, 80, 4, OM_BUS_FLAG_CRC);
    pid_t pids[3] = {spawn(read_all, &reading), spawn(read_all, &batching), spawn(read_all, &reading)};
    await(reading.ready, 3);
    for (uint64_t seq = 1; seq <= reading.records; seq++) {
        fill_payload(payload, seq);
        CHECK_EQ(om_bus_stream_publish(stream, seq, 1, payload, sizeof payload), 0);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(exit_status(pids[i]), 0);
    om_bus_stream_destroy(stream);
}

typedef struct Publishing {
    const char *name;
    _Atomic uint64_t *acknowledged; /* last wal_seq whose publish() returned */
} Publishing;

static int publish_for_ever(void *ctx) {
    const Publishing *publishing = ctx;
    uint64_t payload[7];
    OmBusStream *stream = make_stream(publishing->name, 64, 80, 2, 0);
    for (uint64_t seq = atomic_load(publishing->acknowledged) + 1;; seq++) {
        fill_payload(payload, seq);
        if (om_bus_stream_publish(stream, seq, 1, payload, sizeof payload) != 0)
            return 1;
        atomic_store(publishing->acknowledged, seq);
    }
}

/* The producer dies at any point of publish(), 60 times; its successor goes on. Nothing acknowledged is lost, nothing
 * half-written is seen, and every restart is reported exactly once and at its place. */
TEST(a_producer_killed_while_publishing_loses_nothing) {
    const char *name = test_unique("killproducer");
    Publishing publishing = {.name = name, .acknowledged = shared_word()};
    OmBusRecord rec;
    OmBusStream *stream = make_stream(name, 64, 80, 2, 0); /* so that the consumer can be there first */
    om_bus_stream_detach(stream);
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 0);
    uint64_t last = 0, epochs = 0;
    enum { KILLS = 60 };
    for (int round = 0; round < KILLS; round++) {
        pid_t pid = spawn(publish_for_ever, &publishing);
        uint64_t until = last + 500 + test_random() % 3000;
        bool killed = false;
        for (;;) {
            int rc = om_bus_endpoint_poll(ep, &rec);
            if (rc == OM_ERR_BUS_EPOCH_CHANGED) {
                epochs++;
                continue;
            }
            if (rc == 1 || rc == OM_ERR_BUS_GAP_DETECTED || rc == OM_ERR_BUS_REORDER_DETECTED) {
                CHECK(is_whole(&rec));
                /* The successor starts after the last acknowledged one: it may repeat the one that was published but
                 * not yet acknowledged when the producer died, but it must not leave one out. */
                CHECK(rec.wal_seq == last + 1 || (rec.wal_seq == last && epochs > 0));
                last = rec.wal_seq;
            } else if (rc == 0 && killed) {
                break;
            } else {
                CHECK_EQ(rc, 0);
            }
            if (last >= until && !killed) {
                kill(pid, SIGKILL);
                CHECK_EQ(exit_status(pid), -SIGKILL);
                killed = true;
            }
        }
        CHECK(last >= atomic_load(publishing.acknowledged));
    }
    CHECK_EQ(epochs, KILLS);
    om_bus_endpoint_close(ep);
    CHECK_EQ(om_bus_unlink(name), 0);
}

static int open_and_hang(void *ctx) {
    const Reading *reading = ctx;
    open_endpoint(reading->name, 0, false);
    atomic_store(reading->ready, 1);
    for (;;)
        pause();
    return 0;
}

TEST(a_consumer_killed_while_it_holds_the_ring_full_is_passed_over_at_once) {
    const char *name = test_unique("killconsumer");
    Reading reading = {.name = name, .ready = shared_word()};
    OmBusStream *stream = make_stream(name, 16, 64, 1, 0); /* no staleness: only death lets the producer go on */
    pid_t pid = spawn(open_and_hang, &reading);
    await(reading.ready, 1);
    for (uint64_t i = 1; i <= 16; i++)
        publish_u64(stream, i, i);
    CHECK_EQ(om_bus_stream_publish_timed(stream, 17, 1, "x", 1, 50 * OMI_NS_PER_MS), OM_ERR_BUS_TIMEOUT);
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_IN_USE);
    char holder[32];
    snprintf(holder, sizeof holder, "pid %d", (int)pid);
    CHECK_CONTAINS(om_bus_last_error(), holder);
    kill(pid, SIGKILL);
    CHECK_EQ(exit_status(pid), -SIGKILL);
    publish_u64(stream, 17, 17);
    OmBusStreamInfo info;
    OmBusConsumerInfo consumer;
    CHECK_EQ(om_bus_inspect(name, &info, &consumer, 1), 1);
    CHECK_EQ(consumer.state, OM_BUS_CONSUMER_FREE);
    CHECK_EQ(try_open(name, 0), 0); /* the slot came back */
    om_bus_stream_destroy(stream);
}

TEST(a_stopped_consumer_is_passed_over_after_staleness_and_told_so) {
    const char *name = test_unique("stopconsumer");
    OmBusStream *stream;
    OmBusStreamConfig config = {
        .stream_name = name, .capacity = 16, .max_consumers = 2, .staleness_ns = 30 * OMI_NS_PER_MS};
    CHECK_EQ(om_bus_stream_create(&stream, &config), 0);
    Reading reading = {.name = name, .ready = shared_word()};
    pid_t pid = spawn(open_and_hang, &reading);
    await(reading.ready, 1);
    kill(pid, SIGSTOP);
    for (uint64_t i = 1; i <= 100; i++)
        publish_u64(stream, i, i);
    OmBusStreamInfo info;
    OmBusConsumerInfo consumer;
    CHECK_EQ(om_bus_inspect(name, &info, &consumer, 1), 2);
    CHECK_EQ(consumer.state, OM_BUS_CONSUMER_PASSED_OVER);
    CHECK_EQ(consumer.pid, pid);
    CHECK_EQ(info.min_tail, info.head); /* every consumer is stale: nobody to wait for */
    kill(pid, SIGKILL);
    CHECK_EQ(exit_status(pid), -SIGKILL);
    om_bus_stream_destroy(stream);
}

static int publish_second_producer(void *ctx) {
    OmBusStream *stream;
    OmBusStreamConfig config = {.stream_name = ctx};
    int rc = om_bus_stream_create(&stream, &config);
    char holder[32];
    snprintf(holder, sizeof holder, "pid %d", (int)getppid());
    return rc == OM_ERR_BUS_IN_USE && strstr(om_bus_last_error(), holder) ? 0 : 1;
}

TEST(a_second_producer_process_is_refused_while_the_first_lives) {
    const char *name = test_unique("second");
    OmBusStream *stream = make_stream(name, 0, 0, 0, 0);
    CHECK_EQ(exit_status(spawn(publish_second_producer, (void *)name)), 0);
    /* The same process may take over from itself; the lock goes along and stays when the first handle goes. */
    OmBusStream *successor = make_stream(name, 0, 0, 0, 0);
    om_bus_stream_destroy(stream);
    CHECK_EQ(exit_status(spawn(publish_second_producer, (void *)name)), 0);
    publish_u64(successor, 1, 1);
    om_bus_stream_destroy(successor);
}

static int create_and_report(void *ctx) {
    const Publishing *publishing = ctx;
    OmBusStream *stream;
    OmBusStreamConfig config = {.stream_name = publishing->name, .capacity = 16, .slot_size = 64};
    while (atomic_load(publishing->acknowledged) == 0)
        ; /* all at once */
    int rc = om_bus_stream_create(&stream, &config);
    if (rc != 0 && rc != OM_ERR_BUS_IN_USE)
        fprintf(stderr, "create: %d %s\n", rc, om_bus_last_error());
    if (rc != 0)
        return rc == OM_ERR_BUS_IN_USE ? 0 : 2;
    usleep(400000); /* stay the producer until every other one has tried */
    return om_bus_stream_publish(stream, 1, 1, "x", 1) == 0 ? 1 : 3;
}

/* Whatever lies there: of processes that create one ring at the same time exactly one becomes its producer. */
TEST(exactly_one_of_several_creators_wins) {
    for (int round = 0; round < 6; round++) {
        const char *name = test_unique("race");
        char path[160];
        Publishing publishing = {.name = name, .acknowledged = shared_word()};
        snprintf(path, sizeof path, "/dev/shm/%s", name);
        if (round % 3 == 1) { /* left behind by a creator that died at once */
            close(open(path, O_CREAT | O_RDWR, 0600));
        } else if (round % 3 == 2) { /* or somewhat later */
            om_bus_stream_detach(make_stream(name, 16, 64, 0, 0));
            RawRing raw = map_raw(name);
            ((OmBusShmHeader *)raw.bytes)->magic = 0;
            unmap_raw(raw);
        }
        pid_t pids[4];
        for (int i = 0; i < 4; i++)
            pids[i] = spawn(create_and_report, &publishing);
        usleep(20000);
        atomic_store(publishing.acknowledged, 1);
        int winners = 0;
        for (int i = 0; i < 4; i++) {
            int status = exit_status(pids[i]);
            if (status != 0 && status != 1)
                FAIL("round %d: creator %d ended with %d", round, i, status);
            winners += status;
        }
        CHECK_EQ(winners, 1);
        CHECK_EQ(om_bus_unlink(name), 0);
    }
}

static int leave_a_child_behind(void *ctx) {
    const Publishing *publishing = ctx;
    make_stream(publishing->name, 16, 64, 1, 0);
    pid_t child = fork();
    for (; child == 0;)
        pause(); /* holds the inherited descriptor, and with it the producer's lock */
    atomic_store(publishing->acknowledged, (uint64_t)child);
    return 0;
}

TEST(a_child_that_outlives_the_producer_does_not_keep_the_ring_locked) {
    const char *name = test_unique("orphan");
    Publishing publishing = {.name = name, .acknowledged = shared_word()};
    CHECK_EQ(exit_status(spawn(leave_a_child_behind, &publishing)), 0);
    OmBusStream *stream = make_stream(name, 16, 64, 1, 0);
    CHECK_EQ(kill((pid_t)atomic_load(publishing.acknowledged), SIGKILL), 0); /* it was there all the time */
    om_bus_stream_destroy(stream);
}

typedef struct Handles {
    OmBusStream *stream;
    OmBusEndpoint *ep;
} Handles;

static int use_after_fork(void *ctx) {
    Handles *handles = ctx;
    OmBusRecord rec;
    uint8_t byte = 0;
    if (om_bus_stream_publish(handles->stream, 9, 1, &byte, 1) != OM_ERR_BUS_FORKED)
        return 1;
    if (!strstr(om_bus_last_error(), "fork"))
        return 2;
    if (om_bus_endpoint_poll(handles->ep, &rec) != OM_ERR_BUS_FORKED ||
        om_bus_endpoint_poll_batch(handles->ep, &rec, 1) != OM_ERR_BUS_FORKED ||
        om_bus_endpoint_wait(handles->ep, 0) != OM_ERR_BUS_FORKED)
        return 3;
    om_bus_endpoint_close(handles->ep); /* must not give up the parent's place, nor its ring */
    om_bus_stream_destroy(handles->stream);
    return 0;
}

TEST(handles_refuse_to_work_after_fork_and_closing_them_there_harms_nobody) {
    const char *name = test_unique("forked");
    Handles handles = {.stream = make_stream(name, 16, 64, 1, 0)};
    handles.ep = open_endpoint(name, 0, false);
    CHECK_EQ(exit_status(spawn(use_after_fork, &handles)), 0);
    OmBusRecord rec;
    publish_u64(handles.stream, 1, 1);
    CHECK_EQ(om_bus_endpoint_poll(handles.ep, &rec), 1);
    CHECK_EQ(try_open(name, 0), OM_ERR_BUS_IN_USE);
    om_bus_endpoint_close(handles.ep);
    om_bus_stream_destroy(handles.stream);
}

static int publish_after_a_while(void *ctx) {
    usleep(300000);
    OmBusStream *stream = make_stream(ctx, 16, 64, 1, 0);
    publish_u64(stream, 1, 1);
    om_bus_stream_detach(stream);
    return 0;
}

static int64_t cpu_ns(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * OMI_NS_PER_S +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * OMI_NS_PER_US;
}

TEST(a_waiting_consumer_sleeps_and_is_woken_by_a_producer_in_another_process) {
    const char *name = test_unique("wait");
    om_bus_stream_detach(make_stream(name, 16, 64, 1, 0));
    OmBusEndpoint *ep = open_endpoint(name, 0, false);
    CHECK_EQ(om_bus_endpoint_wait(ep, 0), 0);
    CHECK_EQ(om_bus_endpoint_wait(ep, 5 * OMI_NS_PER_MS), 0);
    pid_t pid = spawn(publish_after_a_while, (void *)name);
    int64_t before = cpu_ns();
    CHECK_EQ(om_bus_endpoint_wait(ep, 20 * OMI_NS_PER_S), 1);
    CHECK(cpu_ns() - before < 150 * OMI_NS_PER_MS); /* it slept: a spinning one would have used 300 ms and more */
    CHECK_EQ(exit_status(pid), 0);
    OmBusRecord rec;
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), OM_ERR_BUS_EPOCH_CHANGED);
    CHECK_EQ(om_bus_endpoint_wait(ep, 20 * OMI_NS_PER_S), 1);
    CHECK_EQ(om_bus_endpoint_poll(ep, &rec), 1);
    om_bus_endpoint_close(ep);
    CHECK_EQ(om_bus_unlink(name), 0);
}

static int read_after_a_while(void *ctx) {
    const Reading *reading = ctx;
    OmBusEndpoint *ep = open_endpoint(reading->name, 0, false);
    OmBusRecord rec;
    atomic_store(reading->ready, 1);
    usleep(300000);
    for (uint64_t i = 1; i <= 17;) {
        int rc = om_bus_endpoint_poll(ep, &rec);
        if (rc < 0 || (rc == 1 && rec.wal_seq != i))
            return 1;
        if (rc == 1)
            i++;
        else
            om_bus_endpoint_wait(ep, OMI_NS_PER_S);
    }
    om_bus_endpoint_close(ep);
    return 0;
}

static void count_backpressure(uint64_t head, uint64_t min_tail, void *ctx) {
    if (head - min_tail == 16)
        ++*(int *)ctx;
}

TEST(a_producer_blocked_on_a_full_ring_sleeps_and_is_woken_by_the_consumer) {
    const char *name = test_unique("blocked");
    int told = 0;
    OmBusStream *stream;
    OmBusStreamConfig config = {.stream_name = name,
                                .capacity = 16,
                                .max_consumers = 1,
                                .backpressure_cb = count_backpressure,
                                .backpressure_ctx = &told};
    CHECK_EQ(om_bus_stream_create(&stream, &config), 0);
    Reading reading = {.name = name, .ready = shared_word()};
    pid_t pid = spawn(read_after_a_while, &reading);
    await(reading.ready, 1);
    for (uint64_t i = 1; i <= 16; i++)
        publish_u64(stream, i, i);
    int64_t before = cpu_ns();
    publish_u64(stream, 17, 17);
    CHECK(cpu_ns() - before < 150 * OMI_NS_PER_MS);
    CHECK_EQ(told, 1); /* once per stall */
    CHECK_EQ(exit_status(pid), 0);
    om_bus_stream_destroy(stream);
}
