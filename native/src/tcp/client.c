#include <stdlib.h>

#include "core/error.h"
#include "core/hint.h"
#include "ombus/om_bus_tcp.h"
#include "tcp/receiver.h"
#include "tcp/socket.h"

struct OmBusTcpClient {
    OmiReceiver receiver;
};

_Static_assert(sizeof(OmBusTcpClientConfig) == 24, "seed layout");

int om_bus_tcp_client_connect(OmBusTcpClient **out, const OmBusTcpClientConfig *config) {
    if (!out || !config || !config->host)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_client_connect without %s",
                        out && config ? "a host" : "an argument");
    *out = NULL;
    OmBusTcpClient *client = calloc(1, sizeof *client);
    if (!client)
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "TCP client");
    int rc = omi_receiver_open(&client->receiver, config);
    if (rc == 0)
        rc = client->receiver.fd = omi_socket_connect(config->host, config->port, -1);
    if (rc < 0) {
        om_bus_tcp_client_close(client);
        return rc;
    }
    *out = client;
    return 0;
}

int om_bus_tcp_client_poll(OmBusTcpClient *client, OmBusRecord *rec) {
    if (OMI_UNLIKELY(!client || !rec))
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_client_poll without %s", client ? "a record" : "a client");
    return omi_receiver_poll(&client->receiver, rec);
}

int om_bus_tcp_client_poll_batch(OmBusTcpClient *client, OmBusRecord *recs, size_t max) {
    if (OMI_UNLIKELY(!client || (!recs && max)))
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_client_poll_batch without %s", client ? "records" : "a client");
    return omi_receiver_poll_batch(&client->receiver, recs, max);
}

int om_bus_tcp_client_wait(OmBusTcpClient *client, int64_t timeout_ns) {
    if (!client)
        return omi_fail(OM_ERR_BUS_INIT, "om_bus_tcp_client_wait without a client");
    OmiWireFrame frame;
    if (omi_recv_buffer_peek(&client->receiver.buffer, &frame) != 0)
        return 1;
    return omi_socket_wait(client->receiver.fd, false, timeout_ns);
}

uint64_t om_bus_tcp_client_wal_seq(const OmBusTcpClient *client) {
    return client ? client->receiver.sequence.last : 0;
}

void om_bus_tcp_client_close(OmBusTcpClient *client) {
    if (!client)
        return;
    omi_receiver_close(&client->receiver);
    free(client);
}
