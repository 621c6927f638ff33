#ifndef OMI_PROCESS_H
#define OMI_PROCESS_H

#include <stdint.h>

/**
 * A process as another one can recognise it later. The start time tells a reused pid from the one meant; the pid
 * namespace says whether we can judge at all (a container's pids mean nothing outside it).
 */
typedef struct OmiProcess {
    uint32_t pid;
    uint64_t start; /* clock ticks after boot; 0 = not known */
    uint64_t pidns; /* inode of the pid namespace; 0 = not known */
} OmiProcess;

typedef enum OmiLiveness { OMI_DEAD, OMI_ALIVE, OMI_UNKNOWN } OmiLiveness;

/** This process. Reads /proc: not for hot paths. */
OmiProcess omi_process_self(void);

/** Whether that process still runs. OMI_UNKNOWN when it lives in another pid namespace. */
OmiLiveness omi_process_liveness(OmiProcess process);

/** Number of forks since the program started; a handle remembers it to refuse work in a child. */
extern uint32_t omi_fork_count;

/** Install the fork counter; every handle's constructor calls it. */
void omi_process_watch_forks(void);

#endif
