/* Arbitrary bytes as a ring object: attach, read, inspect. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ombus/om_bus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t fuzz_seed_input(uint8_t *data, size_t capacity);

static const char *ring_name(void) {
    static char name[64];
    snprintf(name, sizeof name, "/ombus-fuzz-%d", (int)getpid());
    return name;
}

size_t fuzz_seed_input(uint8_t *data, size_t capacity) {
    OmBusStream *stream;
    OmBusStreamConfig config = {
        .stream_name = ring_name(), .capacity = 16, .slot_size = 64, .max_consumers = 2, .flags = OM_BUS_FLAG_CRC};
    if (om_bus_stream_create(&stream, &config) != 0)
        return 0;
    for (uint64_t seq = 1; seq <= 12; seq++)
        om_bus_stream_publish(stream, seq, 1, "a payload", 9);
    int fd = shm_open(ring_name(), O_RDONLY, 0);
    ssize_t size = read(fd, data, capacity);
    close(fd);
    om_bus_stream_destroy(stream);
    return size > 0 ? (size_t)size : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int fd = shm_open(ring_name(), O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    OmBusStreamInfo info;
    OmBusConsumerInfo consumers[4];
    om_bus_inspect(ring_name(), &info, consumers, 4);
    OmBusEndpoint *ep;
    OmBusEndpointConfig config = {.stream_name = ring_name(), .consumer_index = OM_BUS_CONSUMER_ANY};
    if (om_bus_endpoint_open(&ep, &config) == 0) {
        OmBusRecord recs[4];
        for (int i = 0; i < 4; i++) {
            om_bus_endpoint_poll(ep, recs);
            om_bus_endpoint_poll_batch(ep, recs, 4);
        }
        om_bus_endpoint_close(ep);
    }
    shm_unlink(ring_name());
    return 0;
}
