#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hint.h"
#include "ombus/om_bus_tcp.h"
#include "tcp/receiver.h"
#include "tcp/socket.h"

/**
 *      WAITING --pause over--> CONNECTING --stands--> CONNECTED
 *         ^                        | fails                | lost
 *         +------------------------+----------------------+      FAILED after max_retries failures in a row
 *
 * A connection that stands counts as a success only once a record came through it: a server that accepts and closes
 * at once would otherwise be asked without pause for ever.
 */
typedef enum State { WAITING, CONNECTING, CONNECTED, FAILED } State;

struct OmBusTcpAutoClient {
    OmiReceiver receiver;
    char *host;
    uint16_t port;
    uint32_t max_retries, retry_base_ms, retry_max_ms;
    State state;
    uint32_t attempts; /* since the last record */
    uint64_t retry_at_ns;
};

_Static_assert(sizeof(OmBusTcpAutoClientConfig) == 40, "seed layout");

static void attempt_failed(OmBusTcpAutoClient *client) {
    omi_receiver_disconnect(&client->receiver);
    uint64_t pause_ms = client->retry_base_ms;
    for (uint32_t i = 1; i < client->attempts && pause_ms < client->retry_max_ms; i++)
        pause_ms *= 2;
    if (pause_ms > client->retry_max_ms)
        pause_ms = client->retry_max_ms;
    client->retry_at_ns = omi_monotonic_ns() + pause_ms * OMI_NS_PER_MS;
    client->state = client->max_retries && client->attempts > client->max_retries ? FAILED : WAITING;
}

static void start_attempt(OmBusTcpAutoClient *client) {
    int fd = omi_socket_connect_start(client->host, client->port, client->attempts, NULL);
    if (client->attempts < UINT32_MAX)
        client->attempts++;
    if (fd < 0) {
        attempt_failed(client);
        return;
    }
    client->receiver.fd = fd;
    client->state = CONNECTING;
}

int om_bus_tcp_auto_client_create(OmBusTcpAutoClient **out, const OmBusTcpAutoClientConfig *config) {
    if (!out || !config || !config->base.host)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_auto_client_create without %s",
                        out && config ? "a host" : "an argument");
    *out = NULL;
    OmBusTcpAutoClient *client = calloc(1, sizeof *client);
    if (!client)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "TCP client");
    client->port = config->base.port;
    client->max_retries = config->max_retries;
    client->retry_base_ms = config->retry_base_ms ? config->retry_base_ms : OM_BUS_TCP_DEFAULT_RETRY_BASE_MS;
    client->retry_max_ms = config->retry_max_ms ? config->retry_max_ms : OM_BUS_TCP_DEFAULT_RETRY_MAX_MS;
    int rc = omi_receiver_open(&client->receiver, &config->base);
    client->host = strdup(config->base.host);
    if (rc == 0 && !client->host)
        rc = omi_fail(OM_ERR_BUS_NO_MEMORY, "host name");
    if (rc < 0) {
        om_bus_tcp_auto_client_close(client);
        return rc;
    }
    start_attempt(client);
    *out = client;
    return 0;
}

/** Get a step closer to a connection: 1 = it stands, 0 = not yet, or OM_ERR_BUS_TCP_CONNECT. */
static OMI_COLD int advance_connection(OmBusTcpAutoClient *client) {
    if (client->state == WAITING && omi_monotonic_ns() >= client->retry_at_ns)
        start_attempt(client);
    if (client->state == CONNECTING) {
        int rc = omi_socket_connected(client->receiver.fd, 0);
        if (rc > 0)
            client->state = CONNECTED;
        else if (rc < 0)
            attempt_failed(client);
    }
    if (client->state == FAILED)
        return omi_fail(OM_ERR_BUS_TCP_CONNECT, "%s port %u: gave up after %u retries", client->host, client->port,
                        client->max_retries);
    return client->state == CONNECTED;
}

int om_bus_tcp_auto_client_poll(OmBusTcpAutoClient *client, OmBusRecord *rec) {
    if (OMI_UNLIKELY(!client || !rec))
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_auto_client_poll without %s", client ? "a record" : "a client");
    if (OMI_UNLIKELY(client->state != CONNECTED)) {
        int rc = advance_connection(client);
        if (rc <= 0)
            return rc;
    }
    int rc = omi_receiver_poll(&client->receiver, rec);
    if (OMI_LIKELY(rc == 1 || rc == OM_ERR_BUS_GAP_DETECTED || rc == OM_ERR_BUS_REORDER_DETECTED)) {
        client->attempts = 0;
        return rc;
    }
    if (rc == 0 || rc == OM_ERR_BUS_TCP_SLOW_WARNING)
        return rc;
    attempt_failed(client);
    return rc == OM_ERR_BUS_TCP_DISCONNECTED ? 0 : rc;
}

uint64_t om_bus_tcp_auto_client_wal_seq(const OmBusTcpAutoClient *client) {
    return client ? client->receiver.sequence.last : 0;
}

void om_bus_tcp_auto_client_close(OmBusTcpAutoClient *client) {
    if (!client)
        return;
    omi_receiver_close(&client->receiver);
    free(client->host);
    free(client);
}
