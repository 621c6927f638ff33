#include "log/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/crc32c.h"
#include "core/error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static OmiSegment *new_segment(uint64_t number, int fd, uint64_t size) {
    OmiSegment *segment = calloc(1, sizeof *segment);
    if (segment) {
        segment->refs = 1;
        segment->fd = fd;
        segment->number = number;
        segment->size = size;
    }
    return segment;
}

int omi_segment_create(OmiSegment **out, const OmiLogDir *dir, const uint8_t log_id[OM_LOG_ID_SIZE], uint64_t number,
                       uint64_t size, uint32_t index_bytes) {
    char name[OMI_FILE_NAME_SIZE];
    omi_file_name(name, number, OMI_SEGMENT_SUFFIX);
    int fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return omi_fail_errno(errno == ENOSPC || errno == EDQUOT ? OM_ERR_LOG_DISK_FULL : OM_ERR_LOG_OPEN,
                              "cannot create '%s/%s'", dir->path, name);
    OmiSegment *segment = new_segment(number, fd, size);
    int rc = segment ? omi_file_reserve(dir, name, fd, size) : omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    if (rc == 0) {
        segment->base = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (segment->base == MAP_FAILED)
            rc = omi_fail_errno(OM_ERR_LOG_IO, "cannot map '%s/%s'", dir->path, name);
    }
    if (rc != 0) {
        free(segment);
        close(fd);
        unlinkat(dir->fd, name, 0);
        return rc;
    }
    OmiSegmentIdent ident = {.magic = OMI_SEGMENT_MAGIC,
                             .version = OMI_LOG_VERSION,
                             .number = number,
                             .created_ns = omi_wall_ns(),
                             .size_bytes = size,
                             .index_bytes = index_bytes};
    memcpy(ident.log_id, log_id, OM_LOG_ID_SIZE);
    omi_ident_write(omi_segment_header(segment), &ident);
    omi_index_create(&segment->index, dir, &ident); /* without one (disk full) readers walk */
    *out = segment;
    return 0;
}

int omi_segment_map(OmiSegment **out, const OmiLogDir *dir, uint64_t number, bool writable) {
    char name[OMI_FILE_NAME_SIZE];
    struct stat info;
    omi_file_name(name, number, OMI_SEGMENT_SUFFIX);
    int fd = openat(dir->fd, name, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        return omi_fail_errno(errno == ENOENT ? OM_ERR_LOG_NOT_FOUND : OM_ERR_LOG_OPEN, "cannot open '%s/%s'",
                              dir->path, name);
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < OMI_SEGMENT_DATA) {
        close(fd);
        return omi_fail(OM_ERR_LOG_CORRUPT, "'%s/%s' is not a segment: %lld bytes long", dir->path, name,
                        (long long)info.st_size);
    }
    OmiSegment *segment = new_segment(number, fd, (uint64_t)info.st_size);
    if (!segment) {
        close(fd);
        return omi_fail(OM_ERR_BUS_NO_MEMORY, "out of memory");
    }
    segment->base = mmap(0, segment->size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (segment->base == MAP_FAILED) {
        int rc = omi_fail_errno(OM_ERR_LOG_IO, "cannot map '%s/%s'", dir->path, name);
        free(segment);
        close(fd);
        return rc;
    }
    *out = segment;
    return 0;
}

void omi_segment_ref(OmiSegment *segment) {
    atomic_fetch_add_explicit(&segment->refs, 1, memory_order_relaxed);
}

void omi_segment_unref(OmiSegment *segment) {
    if (!segment || atomic_fetch_sub_explicit(&segment->refs, 1, memory_order_acq_rel) != 1)
        return;
    omi_index_close(&segment->index);
    munmap(segment->base, segment->size);
    close(segment->fd);
    free(segment);
}

void omi_segment_prefault(OmiSegment *segment, uint64_t from, uint64_t to) {
    from &= ~(uint64_t)(OMI_PAGE - 1);
    if (to > segment->size)
        to = segment->size;
    if (from >= to || madvise(segment->base + from, to - from, MADV_POPULATE_WRITE) == 0 || errno != EINVAL)
        return;
    /* Before Linux 5.14: an atomic "or" of nothing dirties the page and disturbs no record that is being written. */
    for (; from < to; from += OMI_PAGE)
        atomic_fetch_or_explicit((_Atomic uint64_t *)(segment->base + from), 0, memory_order_relaxed);
}

void omi_segment_remove(const OmiLogDir *dir, uint64_t number) {
    char name[OMI_FILE_NAME_SIZE];
    omi_file_name(name, number, OMI_SEGMENT_SUFFIX);
    unlinkat(dir->fd, name, 0);
    omi_file_name(name, number, OMI_INDEX_SUFFIX);
    unlinkat(dir->fd, name, 0);
}

int omi_segment_read_header(const OmiLogDir *dir, uint64_t number, OmiSegmentHeader *out, uint64_t *file_size) {
    char name[OMI_FILE_NAME_SIZE];
    struct stat info;
    omi_file_name(name, number, OMI_SEGMENT_SUFFIX);
    int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return omi_fail_errno(errno == ENOENT ? OM_ERR_LOG_NOT_FOUND : OM_ERR_LOG_OPEN, "cannot open '%s/%s'",
                              dir->path, name);
    bool whole = fstat(fd, &info) == 0 && pread(fd, out, sizeof *out, 0) == (ssize_t)sizeof *out;
    close(fd);
    if (!whole)
        return omi_fail(OM_ERR_LOG_CORRUPT, "'%s/%s' is shorter than a segment's header", dir->path, name);
    if (file_size)
        *file_size = (uint64_t)info.st_size;
    return 0;
}

static uint32_t ident_crc(const OmiSegmentIdent *ident) {
    return omi_crc32c(ident, offsetof(OmiSegmentIdent, crc));
}

static uint32_t use_crc(const OmiSegmentHeader *header, const OmiSegmentUse *use) {
    return omi_crc32c_extend(header->ident.crc, use, offsetof(OmiSegmentUse, crc));
}

static uint32_t seal_crc(const OmiSegmentHeader *header, const OmiSegmentSeal *seal) {
    return omi_crc32c_extend(header->ident.crc, seal, offsetof(OmiSegmentSeal, crc));
}

bool omi_ident_valid(const OmiSegmentHeader *header, uint64_t number) {
    const OmiSegmentIdent *ident = &header->ident;
    return ident->magic == OMI_SEGMENT_MAGIC && ident->version == OMI_LOG_VERSION && ident->number == number &&
           ident->crc == ident_crc(ident) && ident->index_bytes != 0;
}

bool omi_use_valid(const OmiSegmentHeader *header) {
    OmiSegmentUse use = header->use; /* a copy: the writer may be storing it */
    return use.crc == use_crc(header, &use) && use.base_seq > use.prev_seq && use.base_seq <= OM_LOG_SEQ_MAX;
}

bool omi_seal_valid(const OmiSegmentHeader *header) {
    OmiSegmentSeal seal = header->seal;
    return seal.crc == seal_crc(header, &seal);
}

void omi_ident_write(OmiSegmentHeader *header, const OmiSegmentIdent *ident) {
    header->ident = *ident;
    header->ident.crc = ident_crc(ident);
}

void omi_use_write(OmiSegmentHeader *header, const OmiSegmentUse *use) {
    header->use = *use;
    header->use.crc = use_crc(header, use);
}

void omi_seal_write(OmiSegmentHeader *header, const OmiSegmentSeal *seal) {
    header->seal = *seal;
    header->seal.crc = seal_crc(header, seal);
}
