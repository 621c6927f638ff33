#ifndef OM_SPOOL_H
#define OM_SPOOL_H

/**
 * @file om_spool.h
 * @brief A spool: a thread that drains a ring into a log, so that what the ring carried can be read again.
 *
 * The spool is a consumer of the ring like any other: a full ring waits for it, so nothing that is published while it
 * runs is lost, unless the ring was told to pass slow consumers over. What was lost (nobody spooled, passed over,
 * damaged in the ring) is written down in DIR/spool.losses, a line "FROM TO WHY" each (TO not included), before the
 * first record behind it is appended: a reader of the log can tell a loss from a gap that the producer left.
 */

#include <stdint.h>

#include "om_log.h"

OM_BEGIN_DECLS

#define OM_SPOOL_LOSSES_FILE "spool.losses"

/** Zero in a field means its default. */
typedef struct OmSpoolOptions {
    OmLogWriterOptions log; /* segment_bytes: (16 MiB) */
    uint32_t batch_records; /* most records taken from the ring at once (1024) */
    uint32_t reserved;
} OmSpoolOptions;

typedef struct OmSpool OmSpool;

typedef struct OmSpoolStatus {
    uint64_t records; /* spooled by this handle */
    uint64_t bytes;   /* of their payloads */
    uint64_t last_seq;
    uint64_t losses;    /* lines that this handle wrote into spool.losses */
    uint64_t lost_seqs; /* sequence numbers in them */
    uint64_t waits;     /* times that the disk was full; the ring then holds the producer back */
    uint64_t reopened;  /* times that the ring was found created anew */
    uint64_t reserved;
} OmSpoolStatus;

/**
 * Open the ring at its live end and the log in dir (created when missing), and start the thread. options may be NULL.
 * Errors: those of om_bus_endpoint_open() and om_log_open_writer().
 */
int om_spool_start(OmSpool **out, const char *ring, const char *dir, const OmSpoolOptions *options);

/**
 * How it does: 0 = it runs; negative = the error that stopped it, with its text in om_bus_last_error().
 * OM_ERR_SPOOL_RESET: the producer started its sequence again, which a log cannot hold. Any thread.
 */
int om_spool_status(OmSpool *spool, OmSpoolStatus *out);

/** Stop the thread, sync and close the log, leave the ring. NULL-safe. Returns as om_log_close(). */
int om_spool_stop(OmSpool *spool);

OM_END_DECLS

#endif
