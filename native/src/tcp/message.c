#include "tcp/message.h"

#include <string.h>

#include "core/error.h"
#include "tcp/wire.h"

uint32_t omi_message_encode_error(void *to, uint64_t request, int32_t code, const char *text) {
    uint8_t payload[OMI_MESSAGE_ERROR_MAX] = {OMI_MESSAGE_ERROR, OMI_MESSAGE_VERSION};
    uint16_t length = (uint16_t)strnlen(text, OMI_MESSAGE_TEXT_MAX);
    memcpy(payload + 4, &code, 4);
    memcpy(payload + 8, &length, 2);
    memcpy(payload + 10, text, length);
    return omi_wire_encode(to, request, OMI_WIRE_TYPE_CONTROL, payload, (uint16_t)(10 + length));
}

int omi_message_error_code(const void *payload, size_t size) {
    const uint8_t *bytes = payload;
    int32_t code;
    uint16_t length;
    if (size < 10 || bytes[0] != OMI_MESSAGE_ERROR)
        return omi_fail(OM_ERR_NET_PROTOCOL, "control frame of %zu bytes where only ERROR is expected", size);
    memcpy(&code, bytes + 4, 4);
    memcpy(&length, bytes + 8, 2);
    if (length > size - 10)
        return omi_fail(OM_ERR_NET_PROTOCOL, "ERROR frame with a text of %u bytes in %zu", length, size - 10);
    /* A code from elsewhere must stay an error here, whatever it is. */
    return omi_fail(code < 0 ? code : OM_ERR_NET_PROTOCOL, "the server says: %.*s", (int)length,
                    (const char *)bytes + 10);
}
