/*
 * The byte examples of docs/protocol.md, which the Python and Scala tests read too: tests/vectors/protocol.json. This
 * test encodes each of them with the library and compares; OMBUS_WRITE_VECTORS=PATH writes the file instead.
 */
#include "check.h"
#include "tcp/auth.h"
#include "tcp/message.h"

enum { VECTORS_MAX = 32 };

typedef struct Vector {
    const char *name;
    const char *fields; /* what it says, as JSON members */
    uint8_t bytes[512];
    uint32_t size;
} Vector;

static Vector vectors[VECTORS_MAX];
static int vector_count;

static Vector *add(const char *name, const char *fields) {
    CHECK(vector_count < VECTORS_MAX);
    Vector *vector = &vectors[vector_count++];
    *vector = (Vector){.name = name, .fields = fields};
    return vector;
}

static void add_message(const char *name, const char *fields, uint64_t request, const void *fixed, size_t fixed_size,
                        const char *text) {
    Vector *vector = add(name, fields);
    vector->size = omi_message_encode(vector->bytes, request, fixed, fixed_size, text, strlen(text));
}

static void add_frames(void) {
    Vector *vector = add("record", "\"flags\": 0, \"wal_type\": 3, \"wal_seq\": 42, \"payload\": \"6869\"");
    vector->size = omi_wire_encode(vector->bytes, 42, 3, "hi", 2);
    vector = add("record_ext", "\"flags\": 1, \"wal_type\": 1, \"wal_seq\": 42, \"timestamp_ns\": 1700000000123456789, "
                               "\"payload\": \"68656c6c6f\"");
    vector->size = (uint32_t)omi_wire_encode_ext(vector->bytes, 42, 1, 1700000000123456789U, "hello", 5);
    vector = add("record_ext_empty",
                 "\"flags\": 1, \"wal_type\": 128, \"wal_seq\": 1, \"timestamp_ns\": 1, \"payload\": \"\"");
    vector->size = (uint32_t)omi_wire_encode_ext(vector->bytes, 1, 128, 1, "", 0);
    vector =
        add("slow_warning", "\"flags\": 0, \"wal_type\": 254, \"wal_seq\": 0, \"pending\": 228, \"capacity\": 256");
    vector->size = OMI_WIRE_SLOW_WARNING;
    omi_wire_encode_slow_warning(vector->bytes, 228, 256);
}

static OmiHelloRequest hello_request(void) {
    OmiHelloRequest hello = {.header = omi_message_header(OMI_MESSAGE_HELLO), .agent_len = 11};
    for (int i = 0; i < OMI_NONCE_SIZE; i++)
        hello.nonce[i] = (uint8_t)i;
    return hello;
}

static OmiHelloAnswer hello_answer(void) {
    OmiHelloAnswer hello = {.header = omi_message_header(OMI_MESSAGE_HELLO),
                            .server_id = 0x1122334455667788U,
                            .flags = OMI_HELLO_AUTH_REQUIRED,
                            .agent_len = 11};
    for (int i = 0; i < OMI_NONCE_SIZE; i++)
        hello.nonce[i] = (uint8_t)(0xA0 + i);
    return hello;
}

static const char secret[] = "correct horse battery staple";

static OmiAuth auth_of(OmiAuthSide side) {
    uint8_t client[64], server[80];
    OmiHelloRequest request = hello_request();
    OmiHelloAnswer answer = hello_answer();
    memcpy(client, &request, sizeof request);
    memcpy(client + sizeof request, "ombus 0.1.0", 11);
    memcpy(server, &answer, sizeof answer);
    memcpy(server + sizeof answer, "ombus 0.1.0", 11);
    OmiTranscript transcript = {client, server, sizeof request + 11, sizeof answer + 11};
    OmiAuth auth = {.header = omi_message_header(OMI_MESSAGE_AUTH)};
    omi_auth_proof(side, secret, sizeof secret - 1, &transcript, auth.proof);
    return auth;
}

static void add_handshake(void) {
    OmiHelloRequest request = hello_request();
    OmiHelloAnswer answer = hello_answer();
    OmiAuth client = auth_of(OMI_AUTH_CLIENT), server = auth_of(OMI_AUTH_SERVER);
    add_message("hello_request", "\"op\": 1, \"request\": 1, \"features\": 0, \"agent\": \"ombus 0.1.0\"", 1, &request,
                sizeof request, "ombus 0.1.0");
    add_message("hello_answer",
                "\"op\": 1, \"request\": 1, \"features\": 0, \"server_id\": 1234605616436508552, \"flags\": 1, "
                "\"streams\": 0, \"agent\": \"ombus 0.1.0\"",
                1, &answer, sizeof answer, "ombus 0.1.0");
    add_message("auth_request", "\"op\": 7, \"request\": 2, \"secret\": \"correct horse battery staple\"", 2, &client,
                sizeof client, "");
    add_message("auth_answer", "\"op\": 7, \"request\": 2, \"secret\": \"correct horse battery staple\"", 2, &server,
                sizeof server, "");
}

static void add_status(void) {
    OmiStatusRequest request = {.header = omi_message_header(OMI_MESSAGE_STATUS), .stream_len = 8};
    add_message("status_request", "\"op\": 2, \"request\": 3, \"flags\": 0, \"time_ns\": 0, \"stream\": \"engine-0\"",
                3, &request, sizeof request, "engine-0");
    OmiStatusAnswer answer = {.header = omi_message_header(OMI_MESSAGE_STATUS), .count = 1};
    OmiStatusEntry entry = {.flags = OMI_STREAM_HAS_LOG | OMI_STREAM_DEFAULT,
                            .first_seq = 1,
                            .last_seq = 1000,
                            .durable_seq = 990,
                            .epoch = 2,
                            .name_len = 8};
    memset(entry.id, 0xEE, sizeof entry.id);
    uint8_t payload[sizeof answer + sizeof entry];
    memcpy(payload, &answer, sizeof answer);
    memcpy(payload + sizeof answer, &entry, sizeof entry);
    add_message(
        "status_answer",
        "\"op\": 2, \"request\": 3, \"count\": 1, \"streams\": [{\"flags\": 3, \"first_seq\": 1, \"last_seq\": 1000, "
        "\"durable_seq\": 990, \"epoch\": 2, \"time_seq\": 0, \"id\": \"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\", "
        "\"name\": \"engine-0\"}]",
        3, payload, sizeof payload, "engine-0");
}

static void add_ranges(void) {
    OmiRangeRequest request = {
        .header = omi_message_header(OMI_MESSAGE_REPLAY), .from = 100, .to = 200, .stream_len = 8};
    add_message("replay_request",
                "\"op\": 3, \"request\": 4, \"flags\": 0, \"from\": 100, \"to\": 200, \"id\": "
                "\"00000000000000000000000000000000\", \"stream\": \"engine-0\"",
                4, &request, sizeof request, "engine-0");
    OmiRangeAnswer answer = {.header = omi_message_header(OMI_MESSAGE_REPLAY),
                             .flags = OMI_STREAM_HAS_LOG,
                             .from = 100,
                             .to = 200,
                             .epoch = 2};
    memset(answer.id, 0xEE, sizeof answer.id);
    add_message("replay_answer",
                "\"op\": 3, \"request\": 4, \"flags\": 1, \"from\": 100, \"to\": 200, \"id\": "
                "\"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\", \"epoch\": 2",
                4, &answer, sizeof answer, "");
    OmiEnd end = {.header = omi_message_header(OMI_MESSAGE_END), .next = 200};
    add_message("end", "\"op\": 5, \"request\": 4, \"next\": 200", 4, &end, sizeof end, "");
    request =
        (OmiRangeRequest){.header = omi_message_header(OMI_MESSAGE_SUBSCRIBE), .from = UINT64_MAX, .to = UINT64_MAX};
    add_message(
        "subscribe_request",
        "\"op\": 4, \"request\": 5, \"flags\": 0, \"from\": 18446744073709551615, \"to\": 18446744073709551615, "
        "\"id\": \"00000000000000000000000000000000\", \"stream\": \"\"",
        5, &request, sizeof request, "");
    Vector *vector = add("error", "\"op\": 6, \"request\": 6, \"code\": -864, \"text\": \"no stream \\\"x\\\" here\"");
    vector->size = omi_message_encode_error(vector->bytes, 6, OM_ERR_NET_NO_STREAM, "no stream \"x\" here");
}

static void make_vectors(void) {
    vector_count = 0;
    add_frames();
    add_handshake();
    add_status();
    add_ranges();
}

static void put_hex(char *to, const Vector *vector) {
    for (uint32_t i = 0; i < vector->size; i++)
        sprintf(to + 2 * i, "%02x", vector->bytes[i]);
}

static void write_vectors(const char *path) {
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(file, "{\n\"frames\": [\n");
    for (int i = 0; i < vector_count; i++) {
        char hex[1100];
        put_hex(hex, &vectors[i]);
        fprintf(file, "{\"name\": \"%s\", %s,\n \"hex\": \"%s\"}%s\n", vectors[i].name, vectors[i].fields, hex,
                i + 1 < vector_count ? "," : "");
    }
    fprintf(file, "]\n}\n");
    fclose(file);
}

static char *read_vectors(void) {
    static char text[65536];
    char path[4096];
    snprintf(path, sizeof path, "%.*s../../../tests/vectors/protocol.json",
             (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__);
    FILE *file = fopen(path, "r");
    if (!file)
        FAIL("cannot read %s", path);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

TEST(the_library_encodes_the_documented_bytes) {
    make_vectors();
    const char *path = getenv("OMBUS_WRITE_VECTORS");
    if (path)
        write_vectors(path);
    const char *text = read_vectors();
    int named = 0;
    for (const char *at = text; (at = strstr(at, "{\"name\": ")); at++)
        named += at[9] == '"';
    for (int i = 0; i < vector_count; i++) {
        char key[80], hex[1100];
        snprintf(key, sizeof key, "{\"name\": \"%s\", ", vectors[i].name);
        const char *entry = strstr(text, key);
        if (!entry)
            FAIL("no vector %s in the file", vectors[i].name);
        put_hex(hex, &vectors[i]);
        const char *found = strstr(entry, "\"hex\": \"") + 8;
        if (strncmp(found, hex, strlen(hex)) != 0 || found[strlen(hex)] != '"')
            FAIL("vector %s is %.*s, the library says %s", vectors[i].name, (int)strcspn(found, "\""), found, hex);
    }
    CHECK_EQ(named, vector_count);
}

TEST(the_library_decodes_the_documented_bytes) {
    make_vectors();
    for (int i = 0; i < vector_count; i++) {
        OmiWireFrame frame;
        CHECK_EQ(omi_wire_decode(vectors[i].bytes, vectors[i].size, 4096, &frame), 1);
        CHECK_EQ(frame.size, vectors[i].size);
        if (frame.flags & OMI_WIRE_FLAG_EXT)
            CHECK(omi_wire_crc_ok(vectors[i].bytes, &frame));
        if (frame.wal_type == OMI_WIRE_TYPE_CONTROL)
            CHECK(omi_message_op(frame.payload, frame.payload_len) > 0);
        if (strcmp(vectors[i].name, "error") == 0) {
            CHECK_EQ(omi_message_error_code(frame.payload, frame.payload_len), OM_ERR_NET_NO_STREAM);
            CHECK_CONTAINS(om_bus_last_error(), "no stream \"x\" here");
        }
    }
}
