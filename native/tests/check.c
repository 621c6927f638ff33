#include "check.h"

#include <libgen.h>
#include <time.h>

jmp_buf test_failed;

static Test *first_test, **last_test = &first_test;
static uint64_t seed, random_state;
static char program_dir[4096];

void test_register(Test *test) {
    *last_test = test;
    last_test = &test->next;
}

const char *test_unique(const char *stem) {
    static char names[4][128];
    static unsigned count;
    char *name = names[count++ % 4];
    snprintf(name, sizeof names[0], "ombus-test-%s-%d-%u", stem, (int)getpid(), count);
    return name;
}

const char *test_program_dir(void) {
    return program_dir;
}

uint64_t test_random(void) { /* splitmix64 */
    uint64_t z = (random_state += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

int main(int argc, char **argv) {
    volatile int passed = 0, failed = 0;
    char program[4096];
    snprintf(program, sizeof program, "%s", argv[0]);
    snprintf(program_dir, sizeof program_dir, "%s", dirname(program));
    const char *given = getenv("OMBUS_TEST_SEED");
    seed = given ? strtoull(given, 0, 0) : (uint64_t)time(0) ^ (uint64_t)getpid() << 32;
    setvbuf(stdout, 0, _IOLBF, 0);
    for (Test *volatile test = first_test; test; test = test->next) {
        if (argc > 1 && !strstr(test->name, argv[1]))
            continue;
        random_state = seed;
        if (setjmp(test_failed) == 0) {
            test->run();
            passed++;
            printf("ok      %s\n", test->name);
        } else {
            failed++;
            printf("FAILED  %s (OMBUS_TEST_SEED=%llu)\n", test->name, (unsigned long long)seed);
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
