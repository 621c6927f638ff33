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

/** Start time from /proc/PID/stat, 22nd field; 0 when there is none to read. Zombies count as gone: *gone is set. */
static uint64_t start_time(uint32_t pid, int *gone) {
    char path[48], line[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        *gone = errno == ENOENT && access("/proc/self/stat", R_OK) == 0;
        return 0;
    }
    ssize_t size = read(fd, line, sizeof line - 1);
    close(fd);
    *gone = size <= 0; /* ESRCH: it ended between open and read */
    if (size <= 0)
        return 0;
    line[size] = 0;
    /* The 2nd field is the command in parentheses and may itself hold blanks and parentheses. */
    char *field = strrchr(line, ')');
    if (!field || field[1] != ' ')
        return 0;
    field += 2;
    *gone = *field == 'Z' || *field == 'X';
    for (int i = 3; i < 22 && field; i++) {
        field = strchr(field, ' ');
        field = field ? field + 1 : 0;
    }
    return field ? strtoull(field, 0, 10) : 0;
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
