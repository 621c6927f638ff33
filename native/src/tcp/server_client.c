#include "tcp/server_client.h"

#include <stdlib.h>
#include <string.h>

#include "tcp/socket.h"

/** Bytes owed to the client, wherever they are. */
static const uint8_t *pending(const OmiServerClient *client, const OmiFanout *fanout, uint64_t *size) {
    if (client->doomed) {
        *size = client->farewell_size - client->farewell_sent;
        return client->farewell + client->farewell_sent;
    }
    *size = fanout->head - client->position;
    return omi_fanout_at(fanout, client->position);
}

static void advance(OmiServerClient *client, uint64_t sent) {
    if (client->doomed)
        client->farewell_sent += (uint32_t)sent;
    else
        client->position += sent;
}

bool omi_server_client_flush(OmiServerClient *client, OmiLoop *loop, const OmiFanout *fanout) {
    uint64_t size;
    const uint8_t *bytes = pending(client, fanout, &size);
    while (size > 0) {
        ssize_t sent = omi_socket_send(client->watch.fd, bytes, size);
        if (sent < 0)
            return false;
        advance(client, (uint64_t)sent);
        bytes += sent;
        size -= (uint64_t)sent;
        if (size > 0 && sent == 0)
            break;
    }
    client->blocked = size > 0;
    return omi_loop_set_interest(loop, &client->watch, OMI_LOOP_READ | (client->blocked ? OMI_LOOP_WRITE : 0U)) == 0;
}

void omi_server_client_dismiss(OmiServerClient *client, const OmiFanout *fanout, const void *frame, uint32_t size) {
    if (client->doomed)
        return;
    uint64_t owed = fanout->head - client->position;
    client->farewell = malloc(owed + size);
    if (client->farewell) {
        memcpy(client->farewell, omi_fanout_at(fanout, client->position), owed);
        if (size)
            memcpy(client->farewell + owed, frame, size);
        client->farewell_size = (uint32_t)(owed + size);
    }
    client->doomed = true;
}

void omi_server_client_close(OmiServerClient *client, OmiLoop *loop) {
    int fd = client->watch.fd;
    omi_loop_remove(loop, &client->watch);
    omi_socket_close_gently(fd);
    free(client->farewell);
    *client = (OmiServerClient){.watch.fd = -1};
}
