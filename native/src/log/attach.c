#include "core/error.h"
#include "ombus/om_bus_log.h"

static int publish_to_ring(uint64_t wal_seq, uint8_t wal_type, const void *payload, uint32_t len, void *ctx) {
    /* Not an empty announcement: a consumer could not tell it from a record without payload. The gap is the signal that
     * every ring consumer already knows. */
    if (len > UINT16_MAX)
        return OM_ERR_BUS_RECORD_TOO_LARGE;
    return om_bus_stream_publish(ctx, wal_seq, wal_type, payload, (uint16_t)len);
}

int om_bus_attach_log(OmBusStream *stream, OmLogWriter *log) {
    if (!log)
        return omi_fail(OM_ERR_BUS_INIT, "no log writer given");
    return om_log_set_publish(log, stream ? publish_to_ring : 0, stream);
}
