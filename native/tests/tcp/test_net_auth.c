/* Who gets in: secrets, anonymous clients, replayed and altered handshakes. */
#include "core/sha256.h"
#include "net_fixture.h"
#include "tcp/auth.h"
#include "tcp/message.h"

static const char secret[] = "correct horse battery staple";

typedef struct Guarded {
    TestLog log;
    TestServer server;
    uint16_t port;
} Guarded;

static void guarded_open(Guarded *guarded, uint32_t flags, uint32_t handshake_timeout_ms) {
    OmNetServerConfig config = {.secret = secret,
                                .secret_size = sizeof secret - 1,
                                .flags = flags,
                                .handshake_timeout_ms = handshake_timeout_ms};
    log_open(&guarded->log, 1 << 20);
    log_append(&guarded->log, 10);
    server_of(&guarded->server, &guarded->log, &config);
    guarded->port = om_net_server_port(guarded->server.srv);
}

static void guarded_close(Guarded *guarded) {
    server_stop(&guarded->server);
    log_close(&guarded->log);
}

TEST(the_right_secret_opens_the_stream) {
    Guarded guarded;
    OmNetClient *client;
    guarded_open(&guarded, 0, 0);
    CHECK_EQ(try_client(&client, guarded.port, secret), 0);
    CHECK_EQ(om_net_client_replay(client, NULL, 1, 11, NULL, 0), 0);
    expect_records(client, 1, 11);
    om_net_client_close(client);
    guarded_close(&guarded);
}

TEST(no_secret_and_a_wrong_one_are_told_apart) {
    Guarded guarded;
    OmNetClient *client = NULL;
    guarded_open(&guarded, 0, 0);
    CHECK_EQ(try_client(&client, guarded.port, NULL), OM_ERR_NET_AUTH_REQUIRED);
    CHECK(client == NULL);
    CHECK_EQ(try_client(&client, guarded.port, "wrong"), OM_ERR_NET_AUTH_FAILED);
    CHECK_CONTAINS(om_bus_last_error(), "does not know this server's secret");
    CHECK_EQ(SERVER_STAT(&guarded.server, auth_failures), 1);
    guarded_close(&guarded);
}

TEST(a_client_with_a_secret_refuses_a_server_that_does_not_ask_for_it) {
    TestLog log;
    TestServer server;
    OmNetClient *client = NULL;
    log_open(&log, 1 << 20);
    server_of(&server, &log, NULL);
    CHECK_EQ(try_client(&client, om_net_server_port(server.srv), secret), OM_ERR_NET_AUTH_FAILED);
    CHECK_CONTAINS(om_bus_last_error(), "does not ask for the secret");
    server_stop(&server);
    log_close(&log);
}

TEST(a_silent_client_of_a_guarded_server_gets_nothing_and_is_told_why) {
    Guarded guarded;
    OmBusRecord rec;
    guarded_open(&guarded, 0, 50);
    OmBusTcpClient *silent = client_on(guarded.port, 0);
    WAIT_FOR(SERVER_STAT(&guarded.server, connections) == 1, short_sleep());
    log_append(&guarded.log, 10);
    CHECK_EQ(next_result(NULL, silent, &rec), OM_ERR_NET_AUTH_REQUIRED);
    CHECK_EQ(next_result(NULL, silent, &rec), OM_ERR_BUS_TCP_DISCONNECTED);
    CHECK_EQ(SERVER_STAT(&guarded.server, timeouts), 1);
    om_bus_tcp_client_close(silent);
    guarded_close(&guarded);
}

TEST(anonymous_clients_may_be_allowed_to_listen_but_not_to_ask) {
    Guarded guarded;
    OmBusRecord rec;
    OmNetClient *client;
    guarded_open(&guarded, OM_NET_ALLOW_ANONYMOUS, 50);
    OmBusTcpClient *silent = client_on(guarded.port, 0);
    WAIT_FOR(SERVER_STAT(&guarded.server, connections) == 1, short_sleep());
    log_append(&guarded.log, 1);
    CHECK_EQ(next_result(NULL, silent, &rec), 1);
    CHECK_EQ(rec.wal_seq, 11);
    CHECK_EQ(try_client(&client, guarded.port, NULL), OM_ERR_NET_AUTH_REQUIRED);
    for (int i = 0; i < 1000; i++) /* longer than the handshake may take: silence is allowed here */
        short_sleep();
    log_append(&guarded.log, 1);
    CHECK_EQ(next_result(NULL, silent, &rec), 1);
    CHECK_EQ(rec.wal_seq, 12);
    om_bus_tcp_client_close(silent);
    guarded_close(&guarded);
}

/* ---- By hand, to see what only a hostile client does ---- */

static void send_frame(int fd, uint64_t request, const void *payload, uint16_t size) {
    uint8_t frame[1024];
    uint32_t frame_size = omi_wire_encode(frame, request, OMI_WIRE_TYPE_CONTROL, payload, size);
    CHECK_EQ(send(fd, frame, frame_size, MSG_NOSIGNAL), frame_size);
}

/** The next frame's payload; its op, or 0 when the server has closed. */
static int recv_payload(int fd, uint8_t payload[1024], uint16_t *size) {
    OmBusTcpFrameHeader header;
    if (recv(fd, &header, sizeof header, MSG_WAITALL) != sizeof header)
        return 0;
    CHECK_EQ(header.wal_type, OMI_WIRE_TYPE_CONTROL);
    CHECK(header.payload_len <= 1024);
    *size = header.payload_len;
    CHECK_EQ(recv(fd, payload, header.payload_len, MSG_WAITALL), header.payload_len);
    return payload[0];
}

typedef struct Hello {
    uint8_t sent[64], got[1024];
    uint16_t sent_size, got_size;
} Hello;

static void say_hello(int fd, Hello *hello) {
    OmiHelloRequest request = {.header = omi_message_header(OMI_MESSAGE_HELLO)};
    memset(request.nonce, 'n', sizeof request.nonce);
    memcpy(hello->sent, &request, sizeof request);
    hello->sent_size = sizeof request;
    send_frame(fd, 1, &request, sizeof request);
    CHECK_EQ(recv_payload(fd, hello->got, &hello->got_size), OMI_MESSAGE_HELLO);
}

static OmiAuth prove(const Hello *hello, OmiAuthSide side) {
    OmiAuth auth = {.header = omi_message_header(OMI_MESSAGE_AUTH)};
    OmiTranscript transcript = {hello->sent, hello->got, hello->sent_size, hello->got_size};
    omi_auth_proof(side, secret, sizeof secret - 1, &transcript, auth.proof);
    return auth;
}

/** Send what should be refused after HELLO: the code of the server's ERROR, after which it has closed. */
static int refused_after_hello(uint16_t port, const void *payload, uint16_t size) {
    Hello hello;
    uint8_t answer[1024];
    uint16_t answer_size;
    int fd = raw_connect(port);
    say_hello(fd, &hello);
    send_frame(fd, 2, payload, size);
    CHECK_EQ(recv_payload(fd, answer, &answer_size), OMI_MESSAGE_ERROR);
    int code = omi_message_error_code(answer, answer_size);
    CHECK_EQ(recv_payload(fd, answer, &answer_size), 0);
    close(fd);
    return code;
}

TEST(a_proof_is_good_for_one_connection_and_one_side) {
    Guarded guarded;
    Hello hello;
    uint8_t answer[1024];
    uint16_t size;
    guarded_open(&guarded, 0, 0);
    int fd = raw_connect(guarded.port);
    say_hello(fd, &hello);
    OmiAuth proof = prove(&hello, OMI_AUTH_CLIENT), reflected = prove(&hello, OMI_AUTH_SERVER);
    send_frame(fd, 2, &proof, sizeof proof);
    CHECK_EQ(recv_payload(fd, answer, &size), OMI_MESSAGE_AUTH);
    CHECK(memcmp(answer, &reflected, sizeof reflected) == 0); /* the server proves itself too */
    close(fd);
    CHECK_EQ(refused_after_hello(guarded.port, &proof, sizeof proof), OM_ERR_NET_AUTH_FAILED); /* replayed */
    CHECK_EQ(refused_after_hello(guarded.port, &reflected, sizeof reflected), OM_ERR_NET_AUTH_FAILED);
    guarded_close(&guarded);
}

TEST(nothing_is_answered_before_the_proof) {
    Guarded guarded;
    guarded_open(&guarded, 0, 0);
    OmiStatusRequest status = {.header = omi_message_header(OMI_MESSAGE_STATUS)};
    OmiRangeRequest range = {.header = omi_message_header(OMI_MESSAGE_SUBSCRIBE)};
    CHECK_EQ(refused_after_hello(guarded.port, &status, sizeof status), OM_ERR_NET_AUTH_REQUIRED);
    CHECK_EQ(refused_after_hello(guarded.port, &range, sizeof range), OM_ERR_NET_AUTH_REQUIRED);
    guarded_close(&guarded);
}

/** A server that relays the real one's HELLO but does not know the secret. */
typedef struct Impostor {
    RawPeer peer;
    pthread_t thread;
} Impostor;

static void *impersonate(void *context) {
    Impostor *impostor = context;
    uint8_t payload[1024];
    uint16_t size;
    impostor->peer.fd = accept(impostor->peer.listen_fd, NULL, NULL);
    recv_payload(impostor->peer.fd, payload, &size);
    OmiHelloAnswer hello = {.header = omi_message_header(OMI_MESSAGE_HELLO), .flags = OMI_HELLO_AUTH_REQUIRED};
    send_frame(impostor->peer.fd, 1, &hello, sizeof hello);
    recv_payload(impostor->peer.fd, payload, &size); /* the client's proof */
    send_frame(impostor->peer.fd, 2, payload, size); /* sent back: the best it can do */
    return NULL;
}

TEST(a_server_that_does_not_know_the_secret_is_found_out) {
    Impostor impostor = {.peer = raw_listen()};
    OmNetClient *client;
    CHECK_EQ(pthread_create(&impostor.thread, NULL, impersonate, &impostor), 0);
    CHECK_EQ(try_client(&client, impostor.peer.port, secret), OM_ERR_NET_AUTH_FAILED);
    CHECK_CONTAINS(om_bus_last_error(), "cannot prove that it knows the secret");
    pthread_join(impostor.thread, NULL);
    raw_close(&impostor.peer);
}

TEST(secrets_that_are_empty_or_too_long_are_refused) {
    OmNetServer *srv;
    OmNetServerConfig config = {.secret = "x", .secret_size = 0};
    CHECK_EQ(om_net_server_create(&srv, &config), OM_ERR_BUS_INIT);
    config.secret_size = OM_NET_SECRET_MAX + 1;
    CHECK_EQ(om_net_server_create(&srv, &config), OM_ERR_BUS_INIT);
    OmNetClient *client;
    OmNetClientConfig client_config = {.host = "127.0.0.1", .port = 1, .secret = "x"};
    CHECK_EQ(om_net_client_open(&client, &client_config), OM_ERR_BUS_INIT);
}
