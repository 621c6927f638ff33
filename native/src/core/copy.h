#ifndef OMI_COPY_H
#define OMI_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Sizes that omi_copy_small() takes. */
enum { OMI_COPY_SMALL_MAX = 64 };

/**
 * Copy up to OMI_COPY_SMALL_MAX bytes inline. Two fixed-size moves that overlap in the middle cover a whole range of
 * sizes, where the library's memcpy costs a call and its dispatch (and makes the caller save its registers).
 */
static inline void omi_copy_small(void *to, const void *from, size_t size) {
    uint8_t *t = (uint8_t *)to;
    const uint8_t *f = (const uint8_t *)from;
#define OMI_MOVE_ENDS(n) (memcpy(t, f, (n)), memcpy(t + size - (n), f + size - (n), (n))) /* n is a constant */
    if (size >= 32)
        OMI_MOVE_ENDS(32);
    else if (size >= 16)
        OMI_MOVE_ENDS(16);
    else if (size >= 8)
        OMI_MOVE_ENDS(8);
    else if (size >= 4)
        OMI_MOVE_ENDS(4);
    else
        for (size_t i = 0; i < size; i++)
            t[i] = f[i];
#undef OMI_MOVE_ENDS
}

/** memcpy for payloads that are usually small. */
static inline void omi_copy(void *to, const void *from, size_t size) {
    if (size <= OMI_COPY_SMALL_MAX)
        omi_copy_small(to, from, size);
    else
        memcpy(to, from, size);
}

#endif
