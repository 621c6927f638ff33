#ifndef OMI_NET_CLIENT_H
#define OMI_NET_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "ombus/om_net.h"
#include "tcp/net_session.h"

/** What is asked for, as it must be asked again after a reconnect. */
typedef struct OmiWish {
    bool active;
    bool follow;
    bool has_log;
    char stream[OM_NET_NAME_MAX + 1]; /* "" = the default one */
    uint64_t to;
    uint32_t flags;
    uint8_t id[OM_LOG_ID_SIZE];
} OmiWish;

struct OmNetClient {
    OmiSession session;
    OmiWish wish;
    uint64_t position;
    uint32_t flags, timeout_ms, reconnect_ms, retry_base_ms, retry_max_ms;
    /* while disconnected */
    uint64_t give_up_ns, retry_ns;
    uint32_t attempts;
    uint64_t reconnects;
};

/** Deadline of an answer that is asked for now. */
static inline uint64_t omi_client_answer_deadline(const OmNetClient *client) {
    return omi_monotonic_ns() + (uint64_t)client->timeout_ms * OMI_NS_PER_MS;
}

/** Ask for the wish from `from` on, over the present connection. */
int omi_client_ask_range(OmNetClient *client, uint64_t from);

/** After an error: drop a connection whose state is unknown. Returns rc. */
int omi_client_after_error(OmNetClient *client, int rc);

#endif
