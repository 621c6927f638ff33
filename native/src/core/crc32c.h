#ifndef OMI_CRC32C_H
#define OMI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/** CRC-32C (Castagnoli) of `size` bytes, with the usual inversions: the CRC of "123456789" is 0xE3069283. */
uint32_t omi_crc32c(const void *data, size_t size);

/** Continue a CRC over more bytes: omi_crc32c_extend(omi_crc32c(a), b) is the CRC of a then b. */
uint32_t omi_crc32c_extend(uint32_t crc, const void *data, size_t size);

/**
 * CRC of three words followed by `size` bytes: a record's header, put together in registers, and its payload. One call,
 * and header and payload run as parallel lanes, because this is what an append and a scan pay per record.
 */
uint32_t omi_crc32c_words(uint64_t w0, uint64_t w1, uint64_t w2, const void *data, size_t size);

/** An implementation; all give the same results. */
typedef uint32_t (*OmiCrc32cFn)(uint32_t crc, const void *data, size_t size);
typedef uint32_t (*OmiCrc32cWordsFn)(uint64_t w0, uint64_t w1, uint64_t w2, const void *data, size_t size);

typedef struct OmiCrc32cImpl {
    const char *name;
    OmiCrc32cFn extend;
    OmiCrc32cWordsFn words;
} OmiCrc32cImpl;

/** The implementations that run on this machine, fastest first, ended by a NULL name. For tests and benchmarks. */
const OmiCrc32cImpl *omi_crc32c_implementations(void);

#endif
