#ifndef OMBUS_TEST_RING_FIXTURE_H
#define OMBUS_TEST_RING_FIXTURE_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "ombus/om_bus.h"

/** A ring of this shape; zeros are defaults. Fails the test when it cannot be made. */
static inline OmBusStream *make_stream(const char *name, uint32_t capacity, uint32_t slot_size, uint32_t consumers,
                                       uint32_t flags) {
    OmBusStream *stream;
    OmBusStreamConfig config = {
        .stream_name = name, .capacity = capacity, .slot_size = slot_size, .max_consumers = consumers, .flags = flags};
    int rc = om_bus_stream_create(&stream, &config);
    if (rc != 0)
        FAIL("create %s: %d %s", name, rc, om_bus_last_error());
    return stream;
}

static inline OmBusEndpoint *open_endpoint(const char *name, uint32_t index, bool zero_copy) {
    OmBusEndpoint *ep;
    OmBusEndpointConfig config = {.stream_name = name, .consumer_index = index, .zero_copy = zero_copy};
    int rc = om_bus_endpoint_open(&ep, &config);
    if (rc != 0)
        FAIL("open %s: %d %s", name, rc, om_bus_last_error());
    return ep;
}

static inline int try_open(const char *name, uint32_t index) {
    OmBusEndpoint *ep;
    OmBusEndpointConfig config = {.stream_name = name, .consumer_index = index};
    int rc = om_bus_endpoint_open(&ep, &config);
    if (rc == 0)
        om_bus_endpoint_close(ep);
    return rc;
}

/** The ring's raw bytes, as an attacker or a broken program sees them. */
typedef struct RawRing {
    uint8_t *bytes;
    size_t size;
} RawRing;

static inline RawRing map_raw(const char *name) {
    struct stat info;
    char path[128];
    snprintf(path, sizeof path, "/%s", name);
    int fd = shm_open(path, O_RDWR, 0);
    CHECK(fd >= 0 && fstat(fd, &info) == 0);
    RawRing raw = {.size = (size_t)info.st_size};
    raw.bytes = mmap(0, raw.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    CHECK(raw.bytes != MAP_FAILED);
    return raw;
}

static inline void unmap_raw(RawRing raw) {
    munmap(raw.bytes, raw.size);
}

static inline OmBusSlotHeader *raw_slot(RawRing raw, uint64_t index) {
    OmBusShmHeader *h = (OmBusShmHeader *)raw.bytes;
    return (OmBusSlotHeader *)(raw.bytes + 4096 + h->max_consumers * 64ULL + index * h->slot_size);
}

static inline void publish_u64(OmBusStream *stream, uint64_t wal_seq, uint64_t value) {
    CHECK_EQ(om_bus_stream_publish(stream, wal_seq, 1, &value, sizeof value), 0);
}

static inline uint64_t payload_u64(const OmBusRecord *rec) {
    uint64_t value;
    CHECK_EQ(rec->payload_len, sizeof value);
    memcpy(&value, rec->payload, sizeof value);
    return value;
}

#endif
