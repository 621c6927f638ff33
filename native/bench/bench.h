#ifndef OMBUS_BENCH_H
#define OMBUS_BENCH_H

/**
 * What the benchmarks share: figures beside a peer measured in the same run, printed as a table and written as JSON
 * to the path in argv[1]. A figure without its peer says nothing on a machine nobody knows.
 */

#include <stdint.h>
#include <stdio.h>

/** Open the table and the JSON file (none when argc < 2). */
void bench_begin(int argc, char **argv, const char *title);

/**
 * One figure. `peer` is the same-run limit it is held against (0 = none). The ratio printed is value / peer.
 * `goal` says in words what we aim at, or is NULL.
 */
void bench_figure(const char *name, double value, const char *unit, double peer, const char *peer_name,
                  const char *goal);

void bench_end(void);

uint64_t bench_now_ns(void);

/** Run fn() `runs` times and return the median of its results. */
double bench_median(double (*fn)(void *ctx), void *ctx, int runs);

/** Keep this process on one core; cores are taken modulo how many there are. */
void bench_pin(int core);

int bench_compare_u64(const void *a, const void *b);

/** The q-quantile (0..1) of values, which are sorted by the call. */
uint64_t bench_quantile(uint64_t *values, size_t count, double q);

/** Stop the compiler from dropping a computation. */
static inline void bench_use(const void *p) {
    __asm__ volatile("" : : "r"(p) : "memory");
}

#endif
