#include "bench.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static FILE *json;
static int figures;

void bench_begin(int argc, char **argv, const char *title) {
    json = argc > 1 ? fopen(argv[1], "w") : 0;
    if (argc > 1 && !json) {
        perror(argv[1]);
        exit(1);
    }
    if (json)
        fprintf(json, "{");
    printf("%s\n%-38s %14s   %-34s %9s   %s\n", title, "figure", "value", "beside, in the same run", "ratio", "goal");
}

void bench_figure(const char *name, double value, const char *unit, double peer, const char *peer_name,
                  const char *goal) {
    char beside[96] = "", ratio[32] = "";
    if (peer > 0) {
        snprintf(beside, sizeof beside, "%s %.4g", peer_name, peer);
        snprintf(ratio, sizeof ratio, "%.2f", value / peer);
    }
    printf("%-38s %9.4g %-6s  %-34s %9s   %s\n", name, value, unit, beside, ratio, goal ? goal : "");
    fflush(stdout);
    if (!json)
        return;
    fprintf(json, "%s\n  \"%s\": {\"value\": %.6g, \"unit\": \"%s\"", figures++ ? "," : "", name, value, unit);
    if (peer > 0)
        fprintf(json, ", \"peer\": \"%s\", \"peer_value\": %.6g, \"ratio\": %.4g", peer_name, peer, value / peer);
    if (goal)
        fprintf(json, ", \"goal\": \"%s\"", goal);
    fprintf(json, "}");
}

void bench_end(void) {
    if (json) {
        fprintf(json, "\n}\n");
        fclose(json);
    }
}

uint64_t bench_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static int compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double (*fn)(void *ctx), void *ctx, int runs) {
    double results[64];
    if (runs > 64)
        runs = 64;
    for (int i = 0; i < runs; i++)
        results[i] = fn(ctx);
    qsort(results, (size_t)runs, sizeof results[0], compare_double);
    return results[runs / 2];
}

void bench_pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
}

int bench_compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t bench_quantile(uint64_t *values, size_t count, double q) {
    qsort(values, count, sizeof *values, bench_compare_u64);
    size_t i = (size_t)(q * (double)count);
    return values[i < count ? i : count - 1];
}
