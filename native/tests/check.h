#ifndef OMBUS_TEST_CHECK_H
#define OMBUS_TEST_CHECK_H

/**
 * The test harness: a test is `TEST(name) { ... }`; main() runs all of a program's tests (or those whose name contains
 * argv[1]) and closes with "N passed, M failed". A failed CHECK ends its test only.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Test {
    const char *name;
    void (*run)(void);
    struct Test *next;
} Test;

extern void test_register(Test *test);
extern jmp_buf test_failed;

#define TEST(test_name)                                                   \
    static void test_name(void);                                          \
    __attribute__((constructor)) static void register_##test_name(void) { \
        static Test test = {#test_name, test_name, 0};                    \
        test_register(&test);                                             \
    }                                                                     \
    static void test_name(void)

#define FAIL(...)                                       \
    do {                                                \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                   \
        fputc('\n', stderr);                            \
        longjmp(test_failed, 1);                        \
    } while (0)

#define CHECK(condition)                      \
    do {                                      \
        if (!(condition))                     \
            FAIL("not true: %s", #condition); \
    } while (0)

#define CHECK_EQ(actual, expected)                                                          \
    do {                                                                                    \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);         \
        if (actual_ != expected_)                                                           \
            FAIL("%s is %lld, expected %s = %lld", #actual, actual_, #expected, expected_); \
    } while (0)

#define CHECK_CONTAINS(text, part)                                           \
    do {                                                                     \
        if (!strstr((text), (part)))                                         \
            FAIL("%s is \"%s\", which lacks \"%s\"", #text, (text), (part)); \
    } while (0)

/** A name or path part that no other run uses; the buffer is the program's, four are live at a time. */
const char *test_unique(const char *stem);

/** Where test programs that belong to this one are (helper processes). */
const char *test_program_dir(void);

/** Repeatable random numbers; test_seed() is printed when a test fails, OMBUS_TEST_SEED sets it. */
uint64_t test_random(void);

#endif
