/*
 * Arbitrary bytes as what a client says, to a server of a log and to one that only broadcasts. Whatever it says, the
 * next client is served, and what the server answers is well-formed.
 */

#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ombus/om_bus_tcp.h"
#include "ombus/om_net.h"
#include "tcp/message.h"
#include "tcp/wire.h"

/* Not assert(): it must hold in a release build too. */
#define MUST(condition)   \
    do {                  \
        if (!(condition)) \
            abort();      \
    } while (0)

static char dir[64];
static OmNetServer *net_server;
static OmBusTcpServer *seed_server;

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *ftw) {
    (void)info, (void)flag, (void)ftw;
    return remove(path);
}

static void clean_up(void) {
    om_net_server_destroy(net_server);
    om_bus_tcp_server_destroy(seed_server);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void require(int rc) {
    if (rc < 0) {
        fprintf(stderr, "%d: %s\n", rc, om_bus_last_error());
        abort();
    }
}

static void start(void) {
    OmLogWriter *writer;
    OmLogWriterOptions options = {.segment_bytes = 64 << 10, .sync = OM_LOG_SYNC_NONE};
    snprintf(dir, sizeof dir, "/tmp/fuzz-tcp-%d", (int)getpid());
    require(om_log_open_writer(&writer, dir, &options));
    for (int i = 0; i < 1000; i++)
        require((int)om_log_append(writer, 0, 1, "0123456789012345", 16));
    om_log_close(writer);
    OmNetServerConfig config = {.accepts_per_s = 100000000, .idle_timeout_ms = 100};
    require(om_net_server_create(&net_server, &config));
    require(om_net_server_add_log(net_server, "engine-0", dir));
    OmBusTcpServerConfig seed_config = {.bind_addr = "127.0.0.1"};
    require(om_bus_tcp_server_create(&seed_server, &seed_config));
    atexit(clean_up);
}

static int connect_to(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    return fd;
}

static void turn(bool net) {
    for (int i = 0; i < 3; i++)
        require(net ? om_net_server_step(net_server, 0) : om_bus_tcp_server_poll_io(seed_server));
}

/** Everything that came must be frames, but for a last one that may still be on its way. */
static void check_answers(int fd) {
    static uint8_t got[1 << 20];
    size_t used = 0;
    ssize_t n;
    while (used < sizeof got && (n = recv(fd, got + used, sizeof got - used, MSG_DONTWAIT)) > 0)
        used += (size_t)n;
    OmiWireFrame frame;
    for (size_t at = 0; at < used; at += frame.size) {
        int rc = omi_wire_decode(got + at, used - at, sizeof got, &frame);
        MUST(rc >= 0);
        if (rc == 0)
            break;
        MUST(!(frame.flags & OMI_WIRE_FLAG_EXT) || omi_wire_crc_ok(got + at, &frame));
        if (frame.wal_type == OMI_WIRE_TYPE_CONTROL)
            MUST(omi_message_op(frame.payload, frame.payload_len) > 0);
    }
}

static void converse(bool net, const uint8_t *data, size_t size) {
    int fd = connect_to(net ? om_net_server_port(net_server) : om_bus_tcp_server_port(seed_server));
    turn(net);
    for (size_t sent = 0; sent < size;) {
        size_t piece = 1 + data[sent] * 8;
        piece = piece < size - sent ? piece : size - sent;
        if (send(fd, data + sent, piece, MSG_DONTWAIT | MSG_NOSIGNAL) <= 0)
            break;
        sent += piece;
        turn(net);
    }
    turn(net);
    check_answers(fd);
    close(fd);
    turn(net);
}

/** A decent client still gets an answer. */
static void check_serving(void) {
    OmiHelloRequest hello = {.header = omi_message_header(OMI_MESSAGE_HELLO)};
    uint8_t frame[128], got[64];
    uint32_t size = omi_message_encode(frame, 1, &hello, sizeof hello, NULL, 0);
    int fd = connect_to(om_net_server_port(net_server));
    if (send(fd, frame, size, MSG_NOSIGNAL) != (ssize_t)size)
        abort();
    ssize_t n = 0;
    for (int i = 0; i < 1000 && n < OMI_WIRE_HEADER + 4; i++) {
        turn(true);
        n = recv(fd, got, sizeof got, MSG_DONTWAIT | MSG_PEEK);
    }
    MUST(n >= OMI_WIRE_HEADER + 4 && got[4] == OMI_WIRE_TYPE_CONTROL && got[16] == OMI_MESSAGE_HELLO);
    close(fd);
    turn(true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned runs;
    if (!net_server)
        start();
    converse(true, data, size);
    converse(false, data, size);
    if (runs++ % 64 == 0)
        check_serving();
    return 0;
}

size_t fuzz_seed_input(uint8_t *data, size_t capacity) {
    OmiHelloRequest hello = {.header = omi_message_header(OMI_MESSAGE_HELLO), .agent_len = 4};
    OmiStatusRequest status = {.header = omi_message_header(OMI_MESSAGE_STATUS), .time_ns = 1};
    OmiRangeRequest range = {.header = omi_message_header(OMI_MESSAGE_REPLAY), .from = 10, .to = 20, .stream_len = 8};
    if (capacity < 1024)
        return 0;
    size_t size = omi_message_encode(data, 1, &hello, sizeof hello, "fuzz", 4);
    size += omi_message_encode(data + size, 2, &status, sizeof status, NULL, 0);
    size += omi_message_encode(data + size, 3, &range, sizeof range, "engine-0", 8);
    range.header = omi_message_header(OMI_MESSAGE_SUBSCRIBE);
    range.from = 990;
    size += omi_message_encode(data + size, 4, &range, sizeof range, "engine-0", 8);
    return size + omi_message_encode(data + size, 5, &status, sizeof status, NULL, 0);
}
