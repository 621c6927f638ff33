/**
 * A writer process to be killed: helper_log_writer DIR SEGMENT_BYTES SYNC ACK_FILE SEED. It appends for ever, in every
 * way there is, and stores the last acknowledged and the last durable wal_seq into ACK_FILE after each call.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ombus/om_log.h"

static uint64_t state;

static uint64_t next_random(void) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return state >> 33;
}

static uint32_t len_of(uint64_t seq) {
    uint64_t z = seq * 0x9E3779B97F4A7C15U;
    return (uint32_t)((z ^ z >> 29) % 301);
}

static void fill(uint8_t *to, uint64_t seq) {
    for (uint32_t i = 0, len = len_of(seq); i < len; i++)
        to[i] = (uint8_t)(seq * 131 + i * 7 + 1);
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    int fd = open(argv[4], O_RDWR);
    _Atomic uint64_t *ack = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    state = strtoull(argv[5], 0, 10);
    OmLogWriterOptions options = {.segment_bytes = strtoull(argv[2], 0, 10),
                                  .sync = (uint32_t)atoi(argv[3]),
                                  .linger_ms = 1,
                                  .linger_records = 64,
                                  .index_bytes = 1024};
    OmLogWriter *w;
    if (fd < 0 || ack == MAP_FAILED || om_log_open_writer(&w, argv[1], &options) != 0) {
        fprintf(stderr, "helper_log_writer: %s\n", om_bus_last_error());
        return 1;
    }
    for (;;) {
        uint64_t seq = om_log_writer_last_seq(w) + 1;
        static uint8_t payloads[32][304];
        int64_t rc;
        switch (next_random() % 4) {
        case 0: {
            OmLogRecord recs[32];
            size_t count = 1 + next_random() % 32;
            for (size_t i = 0; i < count; i++) {
                fill(payloads[i], seq + i);
                recs[i] = (OmLogRecord){
                    .payload = payloads[i], .payload_len = len_of(seq + i), .wal_type = (uint8_t)(1 + (seq + i) % 5)};
            }
            rc = om_log_append_batch(w, recs, count);
            break;
        }
        case 1: {
            void *payload;
            rc = om_log_reserve(w, len_of(seq) + 16, &payload);
            if (rc == 0) {
                fill(payload, seq);
                rc = om_log_commit(w, 0, (uint8_t)(1 + seq % 5), len_of(seq));
            }
            break;
        }
        default:
            fill(payloads[0], seq);
            rc = om_log_append(w, 0, (uint8_t)(1 + seq % 5), payloads[0], len_of(seq));
        }
        if (rc < 0) {
            fprintf(stderr, "helper_log_writer: %s\n", om_bus_last_error());
            return 1;
        }
        atomic_store(&ack[0], om_log_writer_last_seq(w));
        atomic_store(&ack[1], om_log_writer_durable_seq(w));
    }
}
