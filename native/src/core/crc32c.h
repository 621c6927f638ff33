#ifndef OMI_CRC32C_H
#define OMI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/** CRC-32C (Castagnoli) of `size` bytes, with the usual inversions: the CRC of "123456789" is 0xE3069283. */
uint32_t omi_crc32c(const void *data, size_t size);

/** Continue a CRC over more bytes: omi_crc32c_extend(omi_crc32c(a), b) is the CRC of a then b. */
uint32_t omi_crc32c_extend(uint32_t crc, const void *data, size_t size);

/** An implementation of the extension step; all give the same result. */
typedef uint32_t (*OmiCrc32cFn)(uint32_t crc, const void *data, size_t size);

typedef struct OmiCrc32cImpl {
    const char *name;
    OmiCrc32cFn extend;
} OmiCrc32cImpl;

/** The implementations that run on this machine, fastest first, ended by a NULL name. For tests and benchmarks. */
const OmiCrc32cImpl *omi_crc32c_implementations(void);

#endif
