#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "log/retention.h"
#include "ombus/om_bus.h"

#define CONSUMERS_DIR "consumers"
#define CURSOR_SUFFIX ".cursor"

static int cursor_path(char out[PATH_MAX], const char *dir, const char *name) {
    if (!dir || !name)
        return omi_fail(OM_ERR_BUS_INIT, "no log directory or consumer name given");
    size_t size = strlen(name);
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    if (size == 0 || size > OM_LOG_CONSUMER_NAME_MAX || good != size || name[0] == '.')
        return omi_fail(OM_ERR_LOG_NAME, "consumer name '%.220s'", name);
    if (snprintf(out, PATH_MAX, "%s/" CONSUMERS_DIR "/%s" CURSOR_SUFFIX, dir, name) >= PATH_MAX)
        return omi_fail(OM_ERR_LOG_NAME, "the path of consumer '%s' is too long", name);
    return 0;
}

int om_log_consumer_save(const char *dir, const char *name, uint64_t wal_seq) {
    char path[PATH_MAX];
    int rc = cursor_path(path, dir, name);
    if (rc != 0)
        return rc;
    struct stat info;
    if (stat(dir, &info) != 0)
        return omi_fail_errno(OM_ERR_LOG_NOT_FOUND, "no log directory '%s'", dir);
    char *slash = strrchr(path, '/');
    *slash = 0;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return omi_fail_errno(OM_ERR_LOG_OPEN, "cannot create '%s'", path);
    *slash = '/';
    return om_bus_cursor_save(path, wal_seq);
}

int om_log_consumer_load(const char *dir, const char *name, uint64_t *wal_seq) {
    char path[PATH_MAX];
    int rc = cursor_path(path, dir, name);
    if (rc != 0)
        return rc;
    if (access(path, F_OK) != 0)
        return omi_fail_errno(OM_ERR_LOG_NOT_FOUND, "no consumer '%s' of '%s'", name, dir);
    rc = om_bus_endpoint_load_cursor(path, wal_seq);
    return rc == OM_ERR_BUS_SHM_OPEN ? omi_fail(OM_ERR_BUS_CRC_MISMATCH, "'%s' is too short", path) : rc;
}

int om_log_consumer_remove(const char *dir, const char *name) {
    char path[PATH_MAX];
    int rc = cursor_path(path, dir, name);
    if (rc == 0 && unlink(path) != 0)
        rc = omi_fail_errno(errno == ENOENT ? OM_ERR_LOG_NOT_FOUND : OM_ERR_LOG_OPEN, "cannot remove '%s'", path);
    return rc;
}

int om_log_consumers(const char *dir, int (*fn)(const OmLogConsumer *consumer, void *ctx), void *ctx) {
    char path[PATH_MAX], name[OM_LOG_CONSUMER_NAME_MAX + 1];
    if (!dir || !fn)
        return omi_fail(OM_ERR_BUS_INIT, "no log directory or function given");
    snprintf(path, sizeof path, "%s/" CONSUMERS_DIR, dir);
    DIR *stream = opendir(path);
    if (!stream)
        return errno == ENOENT ? 0 : omi_fail_errno(OM_ERR_LOG_OPEN, "cannot list '%s'", path);
    int count = 0, stop = 0;
    for (struct dirent *entry; !stop && (entry = readdir(stream));) {
        const size_t suffix = sizeof CURSOR_SUFFIX - 1;
        size_t size = strlen(entry->d_name);
        struct stat info;
        if (size <= suffix || size - suffix >= sizeof name || strcmp(entry->d_name + size - suffix, CURSOR_SUFFIX) != 0)
            continue;
        memcpy(name, entry->d_name, size - suffix);
        name[size - suffix] = 0;
        OmLogConsumer consumer = {.name = name};
        consumer.result = om_log_consumer_load(dir, name, &consumer.wal_seq);
        if (consumer.result == OM_ERR_LOG_NAME || consumer.result == OM_ERR_LOG_NOT_FOUND)
            continue; /* not ours, or removed meanwhile */
        if (fstatat(dirfd(stream), entry->d_name, &info, 0) == 0)
            consumer.saved_ns = (uint64_t)info.st_mtim.tv_sec * OMI_NS_PER_S + (uint64_t)info.st_mtim.tv_nsec;
        count++;
        stop = fn(&consumer, ctx);
    }
    closedir(stream);
    return count;
}

static int take_min(const OmLogConsumer *consumer, void *ctx) {
    uint64_t *min = ctx;
    uint64_t seq = consumer->result == 0 ? consumer->wal_seq : 0;
    if (seq < *min)
        *min = seq;
    return 0;
}

uint64_t omi_consumers_min(const OmiLogDir *dir) {
    uint64_t min = UINT64_MAX;
    return om_log_consumers(dir->path, take_min, &min) < 0 ? 0 : min;
}
