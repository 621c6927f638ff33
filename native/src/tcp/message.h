#ifndef OMI_MESSAGE_H
#define OMI_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "tcp/wire.h"

/**
 * Control frames: plain frames of wal_type 0xFD whose payload is one of the structs below and, where it ends in a
 * length, that many bytes of text. All little-endian and packed. A request's number travels as the frame's wal_seq and
 * comes back in every answer. Bytes behind what a receiver knows are ignored, so that fields can be added.
 * docs/protocol.md has the whole exchange.
 */
enum {
    OMI_MESSAGE_VERSION = 1,
    OMI_MESSAGE_TEXT_MAX = 512, /* of an ERROR, an agent, a stream's name */
    OMI_NONCE_SIZE = 32,
    OMI_PROOF_SIZE = 32,
    OMI_STREAM_ID_SIZE = 16,
};

typedef enum OmiMessageOp {
    OMI_MESSAGE_HELLO = 1,
    OMI_MESSAGE_STATUS = 2,
    OMI_MESSAGE_REPLAY = 3,
    OMI_MESSAGE_SUBSCRIBE = 4,
    OMI_MESSAGE_END = 5,
    OMI_MESSAGE_ERROR = 6,
    OMI_MESSAGE_AUTH = 7,
} OmiMessageOp;

#define OMI_PACKED __attribute__((packed))

/** How every message begins. */
typedef struct OMI_PACKED OmiMessageHeader {
    uint8_t op;
    uint8_t version;
    uint16_t reserved;
} OmiMessageHeader;

typedef struct OMI_PACKED OmiHelloRequest {
    OmiMessageHeader header;
    uint32_t features; /* none yet */
    uint8_t nonce[OMI_NONCE_SIZE];
    uint16_t agent_len;
} OmiHelloRequest;

enum { OMI_HELLO_AUTH_REQUIRED = 1 };

typedef struct OMI_PACKED OmiHelloAnswer {
    OmiMessageHeader header;
    uint32_t features;
    uint8_t nonce[OMI_NONCE_SIZE];
    uint64_t server_id; /* random, another one after each start */
    uint32_t flags;     /* OMI_HELLO_AUTH_REQUIRED */
    uint32_t streams;   /* how many are served; 0 before the client has proved itself */
    uint16_t agent_len;
} OmiHelloAnswer;

/** Request and answer. */
typedef struct OMI_PACKED OmiAuth {
    OmiMessageHeader header;
    uint8_t proof[OMI_PROOF_SIZE];
} OmiAuth;

typedef struct OMI_PACKED OmiStatusRequest {
    OmiMessageHeader header;
    uint32_t flags;
    uint64_t time_ns;    /* also find the first wal_seq at this time; 0 = do not */
    uint16_t stream_len; /* 0 = all streams */
} OmiStatusRequest;

/** Followed by `count` times OmiStatusEntry and its name. */
typedef struct OMI_PACKED OmiStatusAnswer {
    OmiMessageHeader header;
    uint32_t count;
} OmiStatusAnswer;

enum { OMI_STREAM_HAS_LOG = 1, OMI_STREAM_DEFAULT = 2, OMI_STREAM_UNAVAILABLE = 4 };

typedef struct OMI_PACKED OmiStatusEntry {
    uint32_t flags; /* OMI_STREAM_* */
    uint32_t reserved;
    uint64_t first_seq; /* 0 = none */
    uint64_t last_seq;
    uint64_t durable_seq;
    uint64_t epoch;
    uint64_t time_seq; /* answer to time_ns; 0 = not asked */
    uint8_t id[OMI_STREAM_ID_SIZE];
    uint16_t name_len;
} OmiStatusEntry;

/** REPLAY and SUBSCRIBE. */
typedef struct OMI_PACKED OmiRangeRequest {
    OmiMessageHeader header;
    uint32_t flags;                 /* OM_NET_* of om_net.h */
    uint64_t from;                  /* 0 = the first there is, UINT64_MAX = the live end */
    uint64_t to;                    /* REPLAY: exclusive; SUBSCRIBE: ignored */
    uint8_t id[OMI_STREAM_ID_SIZE]; /* the stream must have this identity; zeros = any */
    uint16_t stream_len;            /* 0 = the default stream */
} OmiRangeRequest;

/** Sent before the first record. */
typedef struct OMI_PACKED OmiRangeAnswer {
    OmiMessageHeader header;
    uint32_t flags; /* OMI_STREAM_* */
    uint64_t from;  /* where the records begin */
    uint64_t to;
    uint8_t id[OMI_STREAM_ID_SIZE];
    uint64_t epoch;
} OmiRangeAnswer;

typedef struct OMI_PACKED OmiEnd {
    OmiMessageHeader header;
    uint32_t reserved;
    uint64_t next; /* position behind what was sent */
} OmiEnd;

typedef struct OMI_PACKED OmiErrorMessage {
    OmiMessageHeader header;
    int32_t code; /* OM_ERR_*: negative */
    uint16_t text_len;
} OmiErrorMessage;

_Static_assert(sizeof(OmiHelloRequest) == 42 && sizeof(OmiHelloAnswer) == 58 && sizeof(OmiAuth) == 36, "wire layout");
_Static_assert(sizeof(OmiStatusRequest) == 18 && sizeof(OmiStatusAnswer) == 8 && sizeof(OmiStatusEntry) == 66,
               "wire layout");
_Static_assert(sizeof(OmiRangeRequest) == 42 && sizeof(OmiRangeAnswer) == 48, "wire layout");
_Static_assert(sizeof(OmiEnd) == 16 && sizeof(OmiErrorMessage) == 10, "wire layout");

enum {
    OMI_MESSAGE_ERROR_MAX = OMI_WIRE_HEADER + (int)sizeof(OmiErrorMessage) + OMI_MESSAGE_TEXT_MAX,
    /* The longest frame that a server takes from a client. */
    OMI_MESSAGE_REQUEST_MAX = OMI_WIRE_HEADER + 64 + OMI_MESSAGE_TEXT_MAX,
};

static inline OmiMessageHeader omi_message_header(OmiMessageOp op) {
    return (OmiMessageHeader){.op = (uint8_t)op, .version = OMI_MESSAGE_VERSION};
}

/**
 * Write a whole control frame: `fixed` (whose last field is text_len when there is text) and the text. `to` has room
 * for all of it. Returns the frame's size.
 */
uint32_t omi_message_encode(void *to, uint64_t request, const void *fixed, size_t fixed_size, const char *text,
                            size_t text_len);

/** Copy a payload's fixed part into `fixed`. OM_ERR_NET_PROTOCOL when the payload is shorter. */
int omi_message_decode(const void *payload, size_t size, void *fixed, size_t fixed_size);

/**
 * As omi_message_decode() for a message that ends in a text; `text_len` is its last field. *text points into the
 * payload and is not terminated. OM_ERR_NET_PROTOCOL when the text does not fit the payload or is longer than text_max.
 */
int omi_message_decode_text(const void *payload, size_t size, void *fixed, size_t fixed_size, size_t text_max,
                            const char **text, uint16_t *text_len);

/** Write a whole ERROR frame; `to` has room for OMI_MESSAGE_ERROR_MAX bytes. Returns its size. */
uint32_t omi_message_encode_error(void *to, uint64_t request, int32_t code, const char *text);

/** What an ERROR frame's payload says: its code, and its text as this thread's last error. OM_ERR_NET_PROTOCOL if
 * malformed. */
int omi_message_error_code(const void *payload, size_t size);

/** The op of a control payload, or OM_ERR_NET_PROTOCOL (too short) or OM_ERR_NET_VERSION. */
int omi_message_op(const void *payload, size_t size);

/** For texts: "HELLO", ...; "?" when unknown. */
const char *omi_message_op_name(int op);

#endif
