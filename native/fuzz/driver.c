/*
 * main() of the fuzz targets: `fuzz_x [--seconds N] [--seed S] [FILE...]`. Files are replayed once each and nothing
 * else is done (to reproduce a crash); otherwise random and mutated inputs are tried for N seconds. The input under
 * test is kept in fuzz_<pid>.input until it has passed, so that a crash leaves it behind.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Targets may provide a good input to start from; its size is returned. */
__attribute__((weak)) size_t fuzz_seed_input(uint8_t *data, size_t capacity);

enum { INPUT_MAX = 1 << 16 };

static uint64_t state;

static uint64_t next_random(void) { /* splitmix64 */
    uint64_t z = (state += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

static size_t mutate(uint8_t *data, size_t size) {
    static const uint8_t interesting[] = {0, 1, 0x7F, 0x80, 0xFF, 0xFE, 0x10, 0x20};
    for (uint64_t edits = 1 + next_random() % 16; edits > 0 && size > 0; edits--) {
        size_t at = next_random() % size;
        switch (next_random() % 6) {
        case 0:
            data[at] ^= (uint8_t)(1 << (next_random() % 8));
            break;
        case 1:
            data[at] = (uint8_t)next_random();
            break;
        case 2:
            data[at] = interesting[next_random() % sizeof interesting];
            break;
        case 3: /* cut */
            size = at + 1;
            break;
        case 4: { /* repeat a piece */
            size_t length = next_random() % (size - at) + 1;
            if (size + length <= INPUT_MAX) {
                memmove(data + at + length, data + at, size - at);
                size += length;
            }
            break;
        }
        default: /* a run of one byte, as a torn write leaves it */
            memset(data + at, interesting[next_random() % sizeof interesting], next_random() % (size - at) % 64);
        }
    }
    return size;
}

static int replay(const char *path) {
    static uint8_t data[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    printf("%s: passed\n", path);
    return 0;
}

static void keep(const char *path, const uint8_t *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        perror(path);
}

int main(int argc, char **argv) {
    static uint8_t seed_input[INPUT_MAX], data[INPUT_MAX];
    long seconds = 20;
    state = (uint64_t)time(0) ^ (uint64_t)getpid() << 32;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atol(argv[++i]);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            state = strtoull(argv[++i], 0, 0);
        else
            return replay(argv[i]);
    }
    printf("%s: seed %llu\n", argv[0], (unsigned long long)state);
    char path[64];
    snprintf(path, sizeof path, "/tmp/fuzz_%d.input", (int)getpid());
    size_t seed_size = fuzz_seed_input ? fuzz_seed_input(seed_input, sizeof seed_input) : 0;
    time_t end = time(0) + seconds;
    unsigned long runs = 0;
    while (time(0) < end)
        for (int i = 0; i < 100; i++, runs++) {
            size_t size;
            if (seed_size && next_random() % 8) {
                memcpy(data, seed_input, seed_size);
                size = mutate(data, seed_size);
            } else {
                size = next_random() % 512;
                for (size_t k = 0; k < size; k++)
                    data[k] = (uint8_t)next_random();
            }
            keep(path, data, size);
            LLVMFuzzerTestOneInput(data, size);
        }
    unlink(path);
    printf("%s: %lu inputs, no fault\n", argv[0], runs);
    return 0;
}
