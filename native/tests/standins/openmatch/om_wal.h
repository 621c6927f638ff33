#ifndef OPENMATCH_OM_WAL_H
#define OPENMATCH_OM_WAL_H

/**
 * A stand-in for OpenMatch's own header, which we do not ship: just what the glue headers of ombus call, on a file in
 * OpenMatch's format (docs/formats.md, last section), so that they can be tested.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum OmWalType {
    OM_WAL_INSERT = 1,
    OM_WAL_CANCEL = 2,
    OM_WAL_MATCH = 3,
    OM_WAL_CHECKPOINT = 4,
    OM_WAL_DEACTIVATE = 5,
    OM_WAL_ACTIVATE = 6,
} OmWalType;

typedef struct OmWalInsert {
    uint64_t order_id, price, volume, vol_remain;
    uint16_t org, flags, product_id, reserved;
    uint32_t user_data_size, aux_data_size;
    uint64_t timestamp_ns;
} OmWalInsert;

typedef struct OmWalCancel {
    uint64_t order_id, timestamp_ns;
    uint32_t slot_idx;
    uint16_t product_id, reserved;
} OmWalCancel;

typedef struct OmWalMatch {
    uint64_t maker_id, taker_id, price, volume, timestamp_ns;
} OmWalMatch;

typedef void (*OmWalPostWrite)(uint64_t seq, uint8_t type, const void *data, uint16_t len, void *ctx);

/** The writer: records go to the file at once, without CRC. */
typedef struct OmWal {
    FILE *file;
    uint64_t seq;
    OmWalPostWrite post_write;
    void *ctx;
} OmWal;

static inline void om_wal_set_post_write(OmWal *wal, OmWalPostWrite fn, void *ctx) {
    wal->post_write = fn;
    wal->ctx = ctx;
}

static inline uint64_t om_wal_write(OmWal *wal, OmWalType type, const void *data, uint16_t len) {
    uint64_t word = ++wal->seq << 24 | (uint64_t)type << 16 | len;
    if (wal->file) {
        fwrite(&word, 8, 1, wal->file);
        fwrite(data, len, 1, wal->file);
    }
    if (wal->post_write)
        wal->post_write(wal->seq, (uint8_t)type, data, len, wal->ctx);
    return wal->seq;
}

typedef struct OmWalReplay {
    FILE *file;
    uint8_t data[65536];
} OmWalReplay;

static inline int om_wal_replay_init(OmWalReplay *replay, const char *path) {
    replay->file = fopen(path, "rb");
    return replay->file ? 0 : -1;
}

static inline int om_wal_replay_next(OmWalReplay *replay, OmWalType *type, void **data, uint64_t *seq, size_t *len) {
    uint64_t word;
    if (fread(&word, 8, 1, replay->file) != 1)
        return 0;
    *seq = word >> 24;
    *type = (OmWalType)(word >> 16 & 0xFF);
    *len = word & 0xFFFF;
    *data = replay->data;
    return fread(replay->data, 1, *len, replay->file) == *len ? 1 : -2;
}

static inline void om_wal_replay_close(OmWalReplay *replay) {
    fclose(replay->file);
}

#endif
