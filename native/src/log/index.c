#include "log/index.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/crc32c.h"
#include "core/error.h"
#include "log/frame.h"

uint32_t omi_index_capacity(uint64_t segment_size, uint32_t index_bytes) {
    return (uint32_t)(2 * (segment_size / index_bytes) + 4);
}

static uint64_t file_size(uint32_t capacity) {
    return sizeof(OmiIndexHeader) + (uint64_t)capacity * sizeof(OmiIndexEntry);
}

static uint32_t header_crc(const OmiIndexHeader *header) {
    return omi_crc32c(header, offsetof(OmiIndexHeader, crc));
}

static uint32_t entry_crc(const OmiIndex *index, uint64_t seq, const OmiIndexEntry *entry) {
    uint64_t words[3] = {seq, entry->max_time_ns, (uint64_t)entry->ordinal << 32 | entry->offset};
    return omi_crc32c_extend(index->seed, words, sizeof words);
}

static void attach(OmiIndex *index, void *map, size_t size) {
    const OmiIndexHeader *header = map;
    index->map = map;
    index->map_size = size;
    index->entries = (OmiIndexEntry *)((uint8_t *)map + sizeof(OmiIndexHeader));
    index->capacity = header->capacity;
    index->seed = header->crc;
}

int omi_index_create(OmiIndex *index, const OmiLogDir *dir, const OmiSegmentIdent *ident) {
    char name[OMI_FILE_NAME_SIZE];
    *index = (OmiIndex){0};
    omi_file_name(name, ident->number, OMI_INDEX_SUFFIX);
    unlinkat(dir->fd, name, 0); /* never shorten a file that a reader may have mapped */
    int fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return omi_fail_errno(OM_ERR_LOG_OPEN, "cannot create '%s/%s'", dir->path, name);
    OmiIndexHeader header = {.magic = OMI_INDEX_MAGIC,
                             .version = OMI_LOG_VERSION,
                             .number = ident->number,
                             .created_ns = ident->created_ns,
                             .capacity = omi_index_capacity(ident->size_bytes, ident->index_bytes)};
    memcpy(header.log_id, ident->log_id, OM_LOG_ID_SIZE);
    header.crc = header_crc(&header);
    size_t size = (size_t)file_size(header.capacity);
    int rc = omi_file_reserve(dir, name, fd, size);
    void *map = rc == 0 ? mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED) {
        unlinkat(dir->fd, name, 0);
        return rc != 0 ? rc : omi_fail_errno(OM_ERR_LOG_IO, "cannot map '%s/%s'", dir->path, name);
    }
    memcpy(map, &header, sizeof header);
    attach(index, map, size);
    return 0;
}

int omi_index_open(OmiIndex *index, const OmiLogDir *dir, const OmiSegmentIdent *ident) {
    char name[OMI_FILE_NAME_SIZE];
    struct stat info;
    *index = (OmiIndex){0};
    omi_file_name(name, ident->number, OMI_INDEX_SUFFIX);
    int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return OM_ERR_LOG_NOT_FOUND;
    bool sized = fstat(fd, &info) == 0 && (uint64_t)info.st_size >= sizeof(OmiIndexHeader);
    size_t size = sized ? (size_t)info.st_size : 0;
    void *map = sized ? mmap(0, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED)
        return OM_ERR_LOG_IO;
    const OmiIndexHeader *header = map;
    if (header->magic != OMI_INDEX_MAGIC || header->version != OMI_LOG_VERSION ||
        memcmp(header->log_id, ident->log_id, OM_LOG_ID_SIZE) != 0 || header->number != ident->number ||
        header->created_ns != ident->created_ns || header->crc != header_crc(header) ||
        file_size(header->capacity) > size) {
        munmap(map, size);
        return OM_ERR_LOG_CORRUPT;
    }
    attach(index, map, size);
    return 0;
}

void omi_index_close(OmiIndex *index) {
    if (index->map)
        munmap(index->map, index->map_size);
    else
        free(index->entries);
    *index = (OmiIndex){0};
}

bool omi_index_add(OmiIndex *index, uint64_t seq, uint64_t max_time_ns, uint64_t offset, uint32_t ordinal) {
    if (index->count >= index->capacity)
        return false;
    OmiIndexEntry *entry = &index->entries[index->count++];
    entry->max_time_ns = max_time_ns;
    entry->offset = (uint32_t)offset;
    entry->ordinal = ordinal;
    entry->crc = entry_crc(index, seq, entry);
    entry->reserved = 0;
    atomic_store_explicit(&entry->seq, seq, memory_order_release);
    return true;
}

uint32_t omi_index_count(const OmiIndex *index) {
    if (!index->map)
        return index->count;
    uint32_t low = 0, high = index->capacity; /* entries below low are set, from high on they are not */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (omi_index_key(&index->entries[middle], OMI_BY_SEQ) != 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const OmiIndexEntry *omi_index_floor(const OmiIndex *index, OmiIndexKey key, uint64_t value, bool *valid) {
    uint32_t low = 0, high = omi_index_count(index);
    *valid = true;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (omi_index_key(&index->entries[middle], key) <= value)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const OmiIndexEntry *entry = &index->entries[low - 1];
    *valid = entry->crc == entry_crc(index, omi_index_key(entry, OMI_BY_SEQ), entry);
    return entry;
}

static bool grow(OmiIndex *index) {
    uint32_t capacity = index->capacity ? 2 * index->capacity : 64;
    OmiIndexEntry *more = realloc(index->entries, capacity * sizeof *more);
    if (!more)
        return false;
    memset(more + index->capacity, 0, (capacity - index->capacity) * sizeof *more);
    index->entries = more;
    index->capacity = capacity;
    return true;
}

int omi_index_build(OmiIndex *index, const uint8_t *base, uint64_t size, uint32_t index_bytes, uint64_t prev_seq,
                    uint64_t prev_max_time_ns) {
    if (index->walked_offset == 0) {
        index->walked_offset = OMI_SEGMENT_DATA;
        index->walked_seq = prev_seq;
        index->walked_time_ns = prev_max_time_ns;
    }
    uint64_t mark = index->count ? index->entries[index->count - 1].offset + (uint64_t)index_bytes : 0;
    for (;;) {
        OmiFrameView view;
        OmiFrameState state = omi_frame_check(base, index->walked_offset, size, index->walked_seq, false, &view);
        if (state != OMI_FRAME_RECORD && state != OMI_FRAME_PADDING)
            return 0;
        if (state == OMI_FRAME_RECORD) {
            if (index->walked_offset + view.size > mark) {
                if (index->count == index->capacity && !grow(index))
                    return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
                omi_index_add(index, view.seq, index->walked_time_ns, index->walked_offset, index->walked_records);
                mark = index->walked_offset + index_bytes;
            }
            index->walked_seq = view.seq;
            index->walked_records++;
            if (view.time_ns > index->walked_time_ns)
                index->walked_time_ns = view.time_ns;
        }
        index->walked_offset += view.size;
    }
}

int omi_index_rewrite(OmiIndex *index, const OmiLogDir *dir, const OmiSegmentHeader *header, uint64_t size) {
    OmiIndex built = {0};
    int rc = omi_index_build(&built, (const uint8_t *)header, size, header->ident.index_bytes, header->use.prev_seq,
                             header->use.prev_max_time_ns);
    if (rc == 0)
        rc = omi_index_create(index, dir, &header->ident);
    for (uint32_t i = 0; rc == 0 && i < built.count; i++) {
        const OmiIndexEntry *entry = &built.entries[i];
        omi_index_add(index, omi_index_key(entry, OMI_BY_SEQ), entry->max_time_ns, entry->offset, entry->ordinal);
    }
    omi_index_close(&built);
    return rc;
}
