#ifndef OMI_NET_STREAM_H
#define OMI_NET_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "ombus/om_bus.h"
#include "ombus/om_log.h"
#include "ombus/om_net.h"
#include "tcp/fanout.h"
#include "tcp/message.h"
#include "tcp/waiter.h"

/** What wakes those who wait at the end of a stream. */
typedef struct OmiBell {
    OmLogReader *reader;     /* of a log: the waiter's */
    OmBusEndpoint *endpoint; /* of a ring: the waiter's while it is armed */
    OmiWaiter *waiter;
} OmiBell;

/**
 * A stream that a server offers: a log, or a ring without one. Log clients read the log themselves, each with a reader
 * of its own; this object feeds those who only listen (silent clients, and all clients of a ring) through one fanout of
 * plain frames, and knows when new records arrive.
 */
typedef struct OmiNetStream {
    char name[OM_NET_NAME_MAX + 1];
    OmiLoop *loop;
    char *dir;  /* of the log; NULL = a ring */
    char *ring; /* name of the ring; NULL = a log */
    uint32_t consumer_index;
    OmLogReader *status; /* for questions about the log */
    OmLogReader *tail;   /* feeds the fanout; open while somebody listens */
    OmiBell visible;     /* rings for new records; its endpoint feeds a ring's fanout, open while somebody listens */
    OmiBell durable;     /* rings for records that reached the disk; opened when first needed */
    OmiFanout fanout;
    uint32_t listeners; /* connections at the fanout */
    uint64_t retry_ns;  /* after an error of the source: not before this time */
} OmiNetStream;

int omi_net_stream_open_log(OmiNetStream **out, const char *name, const char *dir, OmiLoop *loop,
                            uint32_t fanout_limit);
int omi_net_stream_open_ring(OmiNetStream **out, const char *name, const char *ring_name, uint32_t consumer_index,
                             OmiLoop *loop, uint32_t fanout_limit);
void omi_net_stream_close(OmiNetStream *stream);

/** Fill an entry of STATUS. time_ns 0 = no question about time. */
int omi_net_stream_status(OmiNetStream *stream, uint64_t time_ns, OmiStatusEntry *entry);

/** One more listener, from the live end on. */
int omi_net_stream_listen(OmiNetStream *stream);
void omi_net_stream_unlisten(OmiNetStream *stream);

/** A record for the fanout. */
typedef void (*OmiNetSink)(void *ctx, const OmBusRecord *rec);

/**
 * Hand new records to the listeners' sink, up to `max`; returns how many. Only while the visible bell's waiter is idle.
 * A record too long for a plain frame is left out: a gap for those who cannot ask for it.
 */
int omi_net_stream_pump(OmiNetStream *stream, int max, OmiNetSink sink, void *ctx);

/** Whether nobody waits on the bell's source, so that it may be used and armed. */
bool omi_net_stream_bell_idle(OmiNetStream *stream, bool durable);

/** Ring the bell when there is a (durable) record at or behind `position`; of a ring, any record. */
void omi_net_stream_arm(OmiNetStream *stream, bool durable, uint64_t position);

/** Position of the listeners in the log; UINT64_MAX when nobody listens. */
uint64_t omi_net_stream_tail_position(const OmiNetStream *stream);

#endif
