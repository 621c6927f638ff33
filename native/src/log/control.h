#ifndef OMI_LOG_CONTROL_H
#define OMI_LOG_CONTROL_H

#include <stdbool.h>

#include "log/files.h"
#include "log/layout.h"

/**
 * The control file: who the log is, who writes it, how far it has come, and the doorbell. Only the identity and the
 * durable mark are meant to outlive a reboot; both are checked, and a log can be read without either.
 */
typedef struct OmiControlFile {
    OmiControl *map; /* NULL = not there or damaged */
    int fd;
    bool writable;
} OmiControlFile;

/** Map DIR/log.ctl; writable falls back to read-only where the rights do not allow more. OM_ERR_LOG_NOT_FOUND,
 * OM_ERR_LOG_FOREIGN (damaged or not ours) or OM_ERR_LOG_VERSION. */
int omi_control_open(OmiControlFile *control, const OmiLogDir *dir, bool must_write);

/** Put a new one in place, durably. `fresh`: the log is new, so that nothing of it can have been durable; else there is
 * no mark, and only the end of the last segment counts as a possible torn tail. */
int omi_control_create(OmiControlFile *control, const OmiLogDir *dir, const uint8_t log_id[OM_LOG_ID_SIZE], bool fresh);

void omi_control_close(OmiControlFile *control);

/** This boot's id; zeros when the system does not tell. */
void omi_boot_id(uint8_t id[16]);

/** Whether the counters were written in the boot `id`, so that the page cache still backs them. */
bool omi_control_same_boot(const OmiControl *control, const uint8_t id[16]);

/** Take the counters over for a writer of this process. */
void omi_control_set_writer(OmiControl *control);

/** Record the durable point; it goes to disk with the next sync of anything on that disk. */
void omi_control_set_mark(OmiControlFile *control, uint64_t seq, uint64_t segment, uint64_t offset);

/** The newest valid mark; false when there is none. */
bool omi_control_mark(const OmiControl *control, OmiDurableMark *out);

/** Segments up to this number have been pruned, whatever is left of them; 0 = none. */
uint64_t omi_control_pruned(const OmiControl *control);

/** Say so, durably, before they are removed: else their absence would look like a loss. */
int omi_control_set_pruned(OmiControlFile *control, uint64_t number);

/** The writer's lock, held until its fd is closed or its process ends. OM_ERR_LOG_LOCKED names the holder. */
int omi_log_lock(const OmiLogDir *dir, int *lock_fd);

void omi_log_unlock(int lock_fd);

/** Whether somebody holds it. Works across pid namespaces, which a pid would not. */
bool omi_log_locked(const OmiLogDir *dir);

#endif
