#include "tcp/message.h"

#include <string.h>

#include "core/error.h"

uint32_t omi_message_encode(void *to, uint64_t request, const void *fixed, size_t fixed_size, const char *text,
                            size_t text_len) {
    uint8_t *bytes = to;
    OmBusTcpFrameHeader header = {OM_BUS_TCP_FRAME_MAGIC, OMI_WIRE_TYPE_CONTROL, 0, (uint16_t)(fixed_size + text_len),
                                  request};
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + OMI_WIRE_HEADER, fixed, fixed_size);
    if (text_len)
        memcpy(bytes + OMI_WIRE_HEADER + fixed_size, text, text_len);
    return omi_wire_size((uint32_t)(fixed_size + text_len));
}

const char *omi_message_op_name(int op) {
    static const char *const names[] = {"?", "HELLO", "STATUS", "REPLAY", "SUBSCRIBE", "END", "ERROR", "AUTH"};
    return op > 0 && op < (int)(sizeof names / sizeof *names) ? names[op] : names[0];
}

int omi_message_op(const void *payload, size_t size) {
    OmiMessageHeader header;
    int rc = omi_message_decode(payload, size, &header, sizeof header);
    if (rc != 0)
        return rc;
    if (header.version != OMI_MESSAGE_VERSION)
        return omi_fail(OM_ERR_NET_VERSION, "control frame of version %u, this is %d", header.version,
                        OMI_MESSAGE_VERSION);
    return header.op;
}

int omi_message_decode(const void *payload, size_t size, void *fixed, size_t fixed_size) {
    if (size < fixed_size) {
        omi_fail(OM_ERR_NET_PROTOCOL, "control frame of %zu bytes, at least %zu expected", size, fixed_size);
        return OM_ERR_NET_PROTOCOL; /* a constant: the compiler then knows that `fixed` is filled otherwise */
    }
    memcpy(fixed, payload, fixed_size);
    return 0;
}

int omi_message_decode_text(const void *payload, size_t size, void *fixed, size_t fixed_size, size_t text_max,
                            const char **text, uint16_t *text_len) {
    int rc = omi_message_decode(payload, size, fixed, fixed_size);
    if (rc != 0)
        return rc;
    memcpy(text_len, (const uint8_t *)fixed + fixed_size - 2, 2);
    if (*text_len > size - fixed_size || *text_len > text_max) {
        omi_fail(OM_ERR_NET_PROTOCOL, "control frame with a text of %u bytes in %zu, at most %zu", *text_len,
                 size - fixed_size, text_max);
        return OM_ERR_NET_PROTOCOL;
    }
    *text = (const char *)payload + fixed_size;
    return 0;
}

uint32_t omi_message_encode_error(void *to, uint64_t request, int32_t code, const char *text) {
    uint16_t length = (uint16_t)strnlen(text, OMI_MESSAGE_TEXT_MAX);
    OmiErrorMessage message = {.header = omi_message_header(OMI_MESSAGE_ERROR), .code = code, .text_len = length};
    return omi_message_encode(to, request, &message, sizeof message, text, length);
}

int omi_message_error_code(const void *payload, size_t size) {
    OmiErrorMessage message;
    const char *text;
    uint16_t length;
    int op = omi_message_op(payload, size);
    if (op < 0)
        return op;
    if (op != OMI_MESSAGE_ERROR)
        return omi_fail(OM_ERR_NET_PROTOCOL, "%s where only ERROR is expected", omi_message_op_name(op));
    int rc = omi_message_decode_text(payload, size, &message, sizeof message, OMI_MESSAGE_TEXT_MAX, &text, &length);
    if (rc != 0)
        return rc;
    /* A code from elsewhere must stay an error here, whatever it is. */
    return omi_fail(message.code < 0 ? message.code : OM_ERR_NET_PROTOCOL, "the server says: %.*s", (int)length, text);
}
