#ifndef OMI_MESSAGE_H
#define OMI_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Control frames: plain frames of wal_type 0xFD whose payload is op u8, version u8, reserved u16, then the op's fields.
 * A request's number travels as the frame's wal_seq and comes back in every answer. docs/protocol.md has the whole
 * exchange.
 */
enum {
    OMI_MESSAGE_VERSION = 1,
    OMI_MESSAGE_HEADER = 4,
    OMI_MESSAGE_TEXT_MAX = 512, /* of an ERROR */
    OMI_MESSAGE_ERROR_MAX = 16 + OMI_MESSAGE_HEADER + 4 + 2 + OMI_MESSAGE_TEXT_MAX,
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

/** Write a whole ERROR frame; `to` has room for OMI_MESSAGE_ERROR_MAX bytes. Returns its size. */
uint32_t omi_message_encode_error(void *to, uint64_t request, int32_t code, const char *text);

/** What an ERROR frame's payload says: its code, with its text as this thread's last error. OM_ERR_NET_PROTOCOL if
 * malformed. */
int omi_message_error_code(const void *payload, size_t size);

#endif
