#ifndef OM_BUS_ERROR_H
#define OM_BUS_ERROR_H

/**
 * @file om_bus_error.h
 * @brief Every error code of libombus with its text: the only place where one is defined.
 *
 * Functions return 0 or a count on success and one of these on failure. The text says what happened and
 * what to do; om_bus_last_error() adds the file, offset or sequence concerned.
 */

/* Around the declarations of every public header: C linkage, and visible outside of libombus.so. */
#ifdef __cplusplus
#define OM_BEGIN_DECLS _Pragma("GCC visibility push(default)") extern "C" {
#define OM_END_DECLS \
    }                \
    _Pragma("GCC visibility pop")
#else
#define OM_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define OM_END_DECLS _Pragma("GCC visibility pop")
#endif

OM_BEGIN_DECLS

/* clang-format off */
#define OM_BUS_ERRORS(X) \
    /* shared-memory ring */ \
    X(OM_ERR_BUS_INIT,             -800, "invalid argument, or a closed or NULL handle: check the call's arguments") \
    X(OM_ERR_BUS_SHM_CREATE,       -801, "cannot create the shared-memory object: check the name, the rights and the free space of /dev/shm") \
    X(OM_ERR_BUS_SHM_MAP,          -802, "cannot map the shared-memory object: check its size and the memory limits") \
    X(OM_ERR_BUS_SHM_OPEN,         -803, "cannot open the object or file: check that its owner has created it, its name and your rights") \
    X(OM_ERR_BUS_NOT_POW2,         -804, "capacity is not a power of two: use 1024, 4096, 65536, ...") \
    X(OM_ERR_BUS_CONSUMER_ID,      -805, "no such consumer slot: use an index below max_consumers, or create the ring with more") \
    X(OM_ERR_BUS_RECORD_TOO_LARGE, -806, "payload does not fit: create the ring with slot_size of at least the payload plus 24 bytes") \
    X(OM_ERR_BUS_MAGIC_MISMATCH,   -807, "wrong magic: this object is not an ombus ring, or it is still being created") \
    X(OM_ERR_BUS_VERSION_MISMATCH, -808, "unsupported format version: use the same ombus release on both sides") \
    X(OM_ERR_BUS_CRC_MISMATCH,     -809, "checksum mismatch: the data was damaged; it was skipped, replay it from the log") \
    X(OM_ERR_BUS_GAP_DETECTED,     -810, "gap in wal_seq: the record is delivered; replay the missing range from the log") \
    X(OM_ERR_BUS_EMPTY,            -811, "no record available: poll again or wait") \
    /* TCP */ \
    X(OM_ERR_BUS_TCP_BIND,         -812, "cannot bind or listen: check that the address is local and the port free") \
    X(OM_ERR_BUS_TCP_CONNECT,      -813, "cannot connect: check host, port and that the server runs") \
    X(OM_ERR_BUS_TCP_SEND,         -814, "send failed: the connection is lost, reconnect") \
    X(OM_ERR_BUS_TCP_RECV,         -815, "receive failed: the connection is lost, reconnect") \
    X(OM_ERR_BUS_TCP_DISCONNECTED, -816, "the peer closed the connection: reconnect and resume after the last wal_seq") \
    X(OM_ERR_BUS_TCP_PROTOCOL,     -817, "malformed frame: the peer does not speak the ombus protocol") \
    X(OM_ERR_BUS_TCP_IO,           -818, "waiting on the sockets failed: close and reconnect; see the system's reason") \
    X(OM_ERR_BUS_TCP_MAX_CLIENTS,  -819, "too many clients: raise max_clients or close some") \
    /* resilience */ \
    X(OM_ERR_BUS_EPOCH_CHANGED,    -820, "the producer restarted: records after this come from the new producer; check your position against the log") \
    X(OM_ERR_BUS_CONSUMER_STALE,   -821, "this consumer fell behind and lost its place: it now stands at the newest record; replay what it missed from the log") \
    X(OM_ERR_BUS_TCP_SLOW_WARNING, -822, "the server is about to drop this slow client: read faster, then reconnect and resume") \
    X(OM_ERR_BUS_REORDER_DETECTED, -823, "wal_seq went backward: the record is delivered for inspection; the producer repeats or restarts its sequence") \
    /* beyond the seed */ \
    X(OM_ERR_BUS_TIMEOUT,          -824, "timed out: the ring stayed full; a consumer is slower than the producer") \
    X(OM_ERR_BUS_FORKED,           -825, "this handle was opened before fork(): open it again in the child process") \
    X(OM_ERR_BUS_IN_USE,           -826, "held by another live process: stop that one first, or for a consumer choose another index") \
    X(OM_ERR_BUS_CORRUPT,          -827, "fields in shared memory contradict each other: remove the ring and let the producer create it again") \
    X(OM_ERR_BUS_NO_MEMORY,        -828, "out of memory: use a smaller ring or batch, or raise the memory limit") \
    X(OM_ERR_BUS_RING_GONE,        -829, "the ring was removed or replaced by one of another shape: open or create it again by name") \
    /* log */ \
    X(OM_ERR_LOG_OPEN,             -840, "cannot open or create the log's files: check the path, your rights and the limit of open files") \
    X(OM_ERR_LOG_LOCKED,           -841, "another writer has this log open: stop it first, or read the log instead") \
    X(OM_ERR_LOG_DISK_FULL,        -842, "no space for a new segment: free some or prune the log, then append again; what was appended is safe") \
    X(OM_ERR_LOG_IO,               -843, "reading, mapping or syncing a file of the log failed: check the disk and the system log") \
    X(OM_ERR_LOG_SEQ_ORDER,        -844, "wal_seq is not greater than the last one in the log: continue after the last, or pass 0 to have it assigned") \
    X(OM_ERR_LOG_SEQ_LIMIT,        -845, "wal_seq beyond 2^63 - 2, which readers could not address: start a new log") \
    X(OM_ERR_LOG_TOO_LARGE,        -846, "payload larger than 64 MiB: split it") \
    X(OM_ERR_LOG_CORRUPT,          -847, "the log is damaged here: read with skip_corrupt, restore the segment from a copy, or run `ombus log repair --salvage`") \
    X(OM_ERR_LOG_SKIPPED,          -848, "damage was skipped: the reader goes on behind it; the range lost is in the detail") \
    X(OM_ERR_LOG_PRUNED,           -849, "retention has removed these records: the reader stands at the first one left") \
    X(OM_ERR_LOG_FOREIGN,          -850, "a file here is not part of this log: move it away, or check the directory") \
    X(OM_ERR_LOG_VERSION,          -851, "log format of another release: use the ombus release that wrote it") \
    X(OM_ERR_LOG_TIMEOUT,          -852, "timed out: the records are not on disk yet") \
    X(OM_ERR_LOG_STATE,            -853, "a reservation is open, or none is: commit or abort it, or reserve first") \
    X(OM_ERR_LOG_TYPE,             -854, "wal_type 0xFD to 0xFF are reserved: use a lower one") \
    X(OM_ERR_LOG_NOT_FOUND,        -855, "not there: check the directory or the consumer's name") \
    X(OM_ERR_LOG_NAME,             -856, "bad consumer name: use up to 200 letters, digits, '.', '_' and '-'") \
    X(OM_ERR_LOG_CANCELLED,        -857, "stopped by the caller") \
    /* network: the control protocol of om_net.h; a server sends these codes in its ERROR frames */ \
    X(OM_ERR_NET_TIMEOUT,          -860, "the server did not answer in time: check the network and the server's load, then try again") \
    X(OM_ERR_NET_PROTOCOL,         -861, "malformed or unexpected control frame: use the same ombus release on both sides") \
    X(OM_ERR_NET_VERSION,          -862, "unsupported version of the control protocol: update the older side") \
    X(OM_ERR_NET_UNKNOWN_OP,       -863, "unknown control operation: update the server") \
    X(OM_ERR_NET_NO_STREAM,        -864, "no such stream on this server: list its streams with STATUS") \
    X(OM_ERR_NET_RANGE,            -865, "the range is not in the server's log: start at its first wal_seq, or accept the loss") \
    X(OM_ERR_NET_AUTH_REQUIRED,    -866, "the server asks for a secret: give the client the server's secret") \
    X(OM_ERR_NET_AUTH_FAILED,      -867, "the secrets differ: give both sides the same secret") \
    X(OM_ERR_NET_LIMIT,            -868, "a limit of the server is reached: close connections, ask for less, or raise the limit") \
    X(OM_ERR_NET_NO_HISTORY,       -869, "this stream has no log: subscribe to its live end, or serve it with a log") \
    X(OM_ERR_NET_BUSY,             -870, "a transfer is under way on this connection: wait for its END or open another connection") \
    X(OM_ERR_NET_SHUTDOWN,         -871, "the server is stopping: reconnect later and resume") \
    X(OM_ERR_NET_SOURCE,           -872, "the server cannot read its source: see the server's log") \
    X(OM_ERR_NET_IDENTITY,         -873, "the stream is not the one this client read before: check the server's log directory, then start anew") \
    X(OM_ERR_NET_END,              -874, "the range is complete: ask for the next one") \
    /* columns and spools */ \
    X(OM_ERR_COL_INCOMPLETE,       -890, "the log ends before the range does: records that were there have gone; check that it is the same log and that its disk kept what it had") \
    X(OM_ERR_COL_FRAME,            -891, "these bytes are no valid frame: the sender does not speak the ombus protocol, or they were damaged on the way") \
    X(OM_ERR_SPOOL_RESET,          -892, "the ring's producer started its sequence again: drain it into a new spool directory")
/* clang-format on */

#define OM_BUS_ERROR_ENUM_(name, code, text) name = (code),
typedef enum OmBusError { OM_BUS_ERRORS(OM_BUS_ERROR_ENUM_) OM_BUS_OK = 0 } OmBusError;
#undef OM_BUS_ERROR_ENUM_

/** Text for a result code: what happened and what to do. Never NULL; unknown codes give "unknown error". */
const char *om_bus_error_string(int rc);

/** The code's name, such as "OM_ERR_BUS_GAP_DETECTED"; NULL for an unknown code. */
const char *om_bus_error_name(int rc);

/**
 * Detail of the last failure in this thread: object, field, offset or sequence, and the system's own reason.
 * Empty when none. Valid until the next failing call of this thread.
 */
const char *om_bus_last_error(void);

/** Version of the library, as in the VERSION file, such as "0.1.0". */
const char *om_bus_version(void);

OM_END_DECLS

#endif
