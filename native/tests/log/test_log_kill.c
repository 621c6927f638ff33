#include <stdbool.h>

#include "log_testing.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

/** Shared with the writer processes: last acknowledged, last durable. */
static _Atomic uint64_t *ack;
static char ack_path[200];

static pid_t start_writer(const char *dir, uint64_t segment_bytes, int sync) {
    char program[4300], segment[24], mode[8], seed[24];
    snprintf(program, sizeof program, "%s/helper_log_writer", test_program_dir());
    snprintf(segment, sizeof segment, "%llu", (unsigned long long)segment_bytes);
    snprintf(mode, sizeof mode, "%d", sync);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)test_random());
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, dir, segment, mode, ack_path, seed, (char *)0);
        _exit(127);
    }
    CHECK(child > 0);
    return child;
}

/** Kill a writer at a random moment after it has begun. */
static void run_and_kill(const char *dir, uint64_t segment_bytes, int sync) {
    uint64_t before = atomic_load(&ack[0]);
    pid_t child = start_writer(dir, segment_bytes, sync);
    int status;
    for (int i = 0; atomic_load(&ack[0]) == before; i++) {
        if (i > 200000 || waitpid(child, &status, WNOHANG) != 0)
            FAIL("the writer did not begin");
        usleep(50);
    }
    usleep((useconds_t)(test_random() % 1500));
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
}

TEST(every_acknowledged_record_survives_500_kills) {
    enum { KILLS = 500, KILLS_PER_LOG = 25 };
    snprintf(ack_path, sizeof ack_path, "%s", log_dir("ack"));
    int fd = open(ack_path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    ack = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(ack != MAP_FAILED);
    const char *dir = 0;
    uint64_t checked = 0, cut = 0, total = 0;
    for (int kill_number = 0; kill_number < KILLS; kill_number++) {
        if (kill_number % KILLS_PER_LOG == 0) {
            if (dir)
                remove_tree(dir);
            dir = log_dir("kill");
            atomic_store(&ack[0], 0);
            atomic_store(&ack[1], 0);
            checked = 0;
        }
        run_and_kill(dir, 16 << 10 << kill_number % 4, kill_number % 3);
        uint64_t acknowledged = atomic_load(&ack[0]);
        /* As a reader finds it, before any repair ... */
        OmLogReader *r = open_reader(dir, 0);
        OK(om_log_seek(r, checked + 1));
        uint64_t last = read_all(r, checked + 1, 300);
        CHECK(last >= acknowledged);
        CHECK_EQ(om_log_last_seq(r), last);
        CHECK((uint64_t)om_log_durable_seq(r) >= atomic_load(&ack[1]));
        /* ... and as the next writer does: the same records. */
        OmLogWriterOptions options = {.sync = OM_LOG_SYNC_NONE, .segment_bytes = 16 << 10};
        OmLogWriter *w = open_writer(dir, &options);
        OmLogReport report;
        om_log_writer_repair_report(w, &report);
        CHECK_EQ(om_log_writer_last_seq(w), last);
        CHECK_EQ(report.tail_records, 0); /* nothing that was published is cut */
        cut += report.tail_bytes != 0;
        CHECK_EQ(read_all(r, last + 1, 300), last);
        OK(om_log_close(w));
        om_log_reader_close(r);
        total += last - checked;
        checked = last;
        if (kill_number % KILLS_PER_LOG == KILLS_PER_LOG - 1) { /* the whole log once more, from its start */
            OK(om_log_verify(dir, 0, &report));
            CHECK_EQ(report.records, last);
            CHECK_EQ(report.first_seq, 1);
            CHECK_EQ(report.damages, 0);
        }
    }
    printf("        %d kills, %llu records, %llu unfinished appends cut\n", KILLS, (unsigned long long)total,
           (unsigned long long)cut);
}
