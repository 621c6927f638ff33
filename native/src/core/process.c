#include "core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t omi_fork_count;

static void count_fork(void) {
    omi_fork_count++;
}

static void watch_forks_once(void) {
    pthread_atfork(0, 0, count_fork);
}

void omi_process_watch_forks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks_once);
}

/** A field of /proc/PID/stat by its number in proc(5), from the 3rd on; NULL when there is none. */
static const char *stat_field(const char *line, int number) {
    /* The 2nd field is the command in parentheses and may itself hold blanks and parentheses. */
    const char *field = strrchr(line, ')');
    for (int i = 2; i < number && field; i++) {
        field = strchr(field, ' ');
        field = field ? field + 1 : 0;
    }
    return field;
}

enum { STAT_STATE = 3, STAT_NUM_THREADS = 20, STAT_START_TIME = 22 };

/** Start time of a process; 0 when it cannot be read. *gone is set when it has ended for sure. */
static uint64_t start_time(uint32_t pid, int *gone) {
    char path[48], line[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    *gone = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* ended, or hidden from us (hidepid): kill() knows better */
    ssize_t size = read(fd, line, sizeof line - 1);
    close(fd);
    if (size <= 0) { /* ESRCH: it ended between open and read */
        *gone = 1;
        return 0;
    }
    line[size] = 0;
    const char *state = stat_field(line, STAT_STATE), *threads = stat_field(line, STAT_NUM_THREADS);
    /* A zombie has ended, unless only its main thread has and others go on. */
    *gone = state && (*state == 'Z' || *state == 'X') && (!threads || strtol(threads, 0, 10) <= 1);
    const char *start = stat_field(line, STAT_START_TIME);
    return start ? strtoull(start, 0, 10) : 0;
}

static uint64_t own_pid_namespace(void) {
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

OmiProcess omi_process_self(void) {
    int gone;
    uint32_t pid = (uint32_t)getpid();
    return (OmiProcess){.pid = pid, .start = start_time(pid, &gone), .pidns = own_pid_namespace()};
}

OmiLiveness omi_process_liveness(OmiProcess process) {
    if (process.pid == 0 || process.pidns != own_pid_namespace())
        return OMI_UNKNOWN;
    if (kill((pid_t)process.pid, 0) != 0 && errno == ESRCH)
        return OMI_DEAD;
    int gone;
    uint64_t start = start_time(process.pid, &gone);
    if (gone)
        return OMI_DEAD;
    return start && process.start && start != process.start ? OMI_DEAD : OMI_ALIVE;
}
