/**
 * A range of a log as an Arrow C stream (https://arrow.apache.org/docs/format/CStreamInterface.html), without pyarrow.
 *
 * The stream has a reader of its own and touches nothing of Python, so that whoever reads it may do so in any thread
 * and without the GIL. Each batch is bounded in rows and bytes; its buffers belong to who has received it.
 */

#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the C data interface, as its specification defines it ---- */

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

/* ---- schema ---- */

enum { COLUMN_SEQ, COLUMN_TYPE, COLUMN_TIME, COLUMN_PAYLOAD, COLUMNS };

static const struct {
    const char *name, *format;
} columns[COLUMNS] = {
    {"wal_seq", "l"}, {"wal_type", "s"}, {"timestamp", "tsn:UTC"}, {"payload", "z"}}; /* int64, int16, ns, binary */

static void release_schema_child(struct ArrowSchema *schema) {
    schema->release = 0;
}

/** Parent and children in one piece; only the parent frees it, so a child must not outlive it, which moving would do.
 */
static void release_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    schema->release = 0;
}

static int get_schema(struct ArrowArrayStream *Py_UNUSED(stream), struct ArrowSchema *out) {
    *out = (struct ArrowSchema){.format = "+s", .name = "", .release = release_schema};
    out->children = calloc(COLUMNS, sizeof *out->children);
    for (int i = 0; out->children && i < COLUMNS; i++) {
        out->children[i] = calloc(1, sizeof **out->children);
        if (!out->children[i])
            break;
        /* Names and formats are constants: a child that was moved away owns nothing and needs nothing of its parent. */
        *out->children[i] =
            (struct ArrowSchema){.format = columns[i].format, .name = columns[i].name, .release = release_schema_child};
        out->n_children++;
    }
    if (out->n_children == COLUMNS)
        return 0;
    out->release(out);
    return ENOMEM;
}

/* ---- batches ---- */

enum { CHUNK = 512 };

typedef struct Stream {
    OmLogReader *reader;
    uint64_t rows_max;
    uint64_t bytes_max;

    char error[768];
    /* records that the library has handed out and no batch has taken yet */
    int at, count;
    uint64_t average_len;
    OmLogRecord records[CHUNK];
} Stream;

/** Buffers of a batch that is being filled. */
typedef struct Batch {
    int64_t rows;
    uint64_t *seqs;
    int16_t *types;
    uint64_t *times;
    int32_t *offsets;
    uint8_t *data;
    uint64_t data_size, data_room;
} Batch;

static void batch_clear(Batch *batch) {
    free(batch->seqs);
    free(batch->types);
    free(batch->times);
    free(batch->offsets);
    free(batch->data);
}

static int batch_new(Batch *batch, const Stream *stream) {
    uint64_t rows = stream->rows_max;
    *batch = (Batch){.data_room = stream->average_len * rows + 4096};
    if (batch->data_room > stream->bytes_max)
        batch->data_room = stream->bytes_max;
    batch->seqs = malloc(rows * sizeof *batch->seqs);
    batch->types = malloc(rows * sizeof *batch->types);
    batch->times = malloc(rows * sizeof *batch->times);
    batch->offsets = malloc((rows + 1) * sizeof *batch->offsets);
    batch->data = malloc(batch->data_room);
    return batch->seqs && batch->types && batch->times && batch->offsets && batch->data ? 0 : ENOMEM;
}

static int batch_reserve(Batch *batch, uint64_t size) {
    if (size <= batch->data_room)
        return 0;
    uint64_t room = batch->data_room * 2 > size ? batch->data_room * 2 : size;
    uint8_t *data = realloc(batch->data, room);
    if (!data)
        return ENOMEM;
    batch->data = data;
    batch->data_room = room;
    return 0;
}

/** Take what fits of the records at hand: 0, or ENOMEM. */
static int take(Stream *stream, Batch *batch, bool *full) {
    while (stream->at < stream->count && !*full) {
        const OmLogRecord *record = &stream->records[stream->at];
        uint64_t size = batch->data_size + record->payload_len;
        *full = (uint64_t)batch->rows == stream->rows_max || (batch->rows && size > stream->bytes_max);
        if (*full)
            break;
        if (batch_reserve(batch, size) != 0)
            return ENOMEM;
        batch->seqs[batch->rows] = record->wal_seq;
        batch->types[batch->rows] = record->wal_type;
        batch->times[batch->rows] = record->timestamp_ns;
        batch->offsets[batch->rows++] = (int32_t)batch->data_size;
        memcpy(batch->data + batch->data_size, record->payload, record->payload_len);
        batch->data_size = size;
        stream->at++;
    }
    return 0;
}

/** Ask for about what the batch still lacks, so that little is checked ahead of need where records are large. */
static int refill(Stream *stream, const Batch *batch) {
    if (batch->rows)
        stream->average_len = batch->data_size / (uint64_t)batch->rows;
    uint64_t left = stream->bytes_max > batch->data_size ? stream->bytes_max - batch->data_size : 0;
    uint64_t ask = left / (stream->average_len + 1) + 1;
    if (!batch->rows && !stream->average_len)
        ask = 8;
    stream->at = 0;
    stream->count = 0;
    int rc;
    do {
        rc = om_log_next_batch(stream->reader, stream->records, ask < CHUNK ? ask : CHUNK);
    } while (rc == OM_ERR_LOG_SKIPPED); /* the user asked for that with skip_corrupt */
    stream->count = rc > 0 ? rc : 0;
    return rc;
}

static int set_error(Stream *stream, int rc) {
    const char *name = om_bus_error_name(rc);
    snprintf(stream->error, sizeof stream->error, "%s: %s (%s)", name ? name : "?", om_bus_error_string(rc),
             om_bus_last_error());
    return EIO;
}

static int fill(Stream *stream, Batch *batch) {
    bool full = false;
    int rc = batch_new(batch, stream);
    while (rc == 0 && !full) {
        rc = take(stream, batch, &full);
        if (rc != 0 || full)
            break;
        int found = refill(stream, batch);
        if (found == 0)
            break;
        if (found < 0)
            return set_error(stream, found);
    }
    if (rc == ENOMEM)
        snprintf(stream->error, sizeof stream->error, "out of memory: read a smaller range, or smaller batches");
    else
        batch->offsets[batch->rows] = (int32_t)batch->data_size;
    return rc;
}

static void release_column(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)array->buffers[i]);
    free(array->buffers);
    array->release = 0;
}

static void release_batch(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release) /* else it was moved away and lives on */
            array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    free(array->children);
    free(array->buffers);
    array->release = 0;
}

/** A column that owns the buffers: values, or offsets and values. */
static int add_column(struct ArrowArray *parent, int64_t rows, void *first, void *second) {
    struct ArrowArray *column = calloc(1, sizeof *column);
    const void **buffers = calloc(3, sizeof *buffers);
    if (!column || !buffers) {
        free(column);
        free(buffers);
        return ENOMEM;
    }
    buffers[1] = first;
    buffers[2] = second;
    *column =
        (struct ArrowArray){.length = rows, .n_buffers = second ? 3 : 2, .buffers = buffers, .release = release_column};
    parent->children[parent->n_children++] = column;
    return 0;
}

/** Move the batch's buffers into an Arrow array. */
static int export_batch(Batch *batch, struct ArrowArray *out) {
    *out = (struct ArrowArray){.length = batch->rows, .n_buffers = 1, .release = release_batch};
    out->buffers = calloc(1, sizeof *out->buffers);
    out->children = calloc(COLUMNS, sizeof *out->children);
    int rc = out->buffers && out->children ? 0 : ENOMEM;
    if (rc == 0 && (rc = add_column(out, batch->rows, batch->seqs, 0)) == 0)
        batch->seqs = 0;
    if (rc == 0 && (rc = add_column(out, batch->rows, batch->types, 0)) == 0)
        batch->types = 0;
    if (rc == 0 && (rc = add_column(out, batch->rows, batch->times, 0)) == 0)
        batch->times = 0;
    if (rc == 0 && (rc = add_column(out, batch->rows, batch->offsets, batch->data)) == 0)
        batch->offsets = 0, batch->data = 0;
    if (rc != 0)
        out->release(out);
    return rc;
}

/* ---- the stream ---- */

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out) {
    Stream *stream = self->private_data;
    Batch batch;
    *out = (struct ArrowArray){0}; /* released = the end */
    int rc = fill(stream, &batch);
    if (rc == 0 && batch.rows)
        rc = export_batch(&batch, out);
    batch_clear(&batch);
    return rc;
}

static const char *get_last_error(struct ArrowArrayStream *self) {
    return ((Stream *)self->private_data)->error;
}

static void release_stream(struct ArrowArrayStream *self) {
    Stream *stream = self->private_data;
    om_log_reader_close(stream->reader);
    free(stream);
    self->release = 0;
}

static void capsule_free(PyObject *capsule) {
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream->release) /* else whoever imported it has taken it over */
        stream->release(stream);
    free(stream);
}

/** arrow_stream(dir, flags, from, to, rows_max, bytes_max): a capsule as __arrow_c_stream__() returns it. */
PyObject *ompy_arrow_stream(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *dir;
    OmLogReaderOptions options = {0};
    unsigned long long from, to, rows_max, bytes_max;
    if (!PyArg_ParseTuple(args, "O&IKKKK:arrow_stream", PyUnicode_FSConverter, &dir, &options.flags, &from, &to,
                          &rows_max, &bytes_max))
        return 0;
    if (!rows_max || rows_max > INT32_MAX || !bytes_max || bytes_max > INT32_MAX - (uint64_t)OM_LOG_PAYLOAD_MAX) {
        Py_DECREF(dir);
        return ompy_raise_detail(OM_ERR_BUS_INIT, "a batch has 1 to 2^31 - 1 rows and up to 1.9 GiB");
    }
    Stream *stream = calloc(1, sizeof *stream);
    struct ArrowArrayStream *arrow = calloc(1, sizeof *arrow);
    int rc = stream && arrow ? 0 : OM_ERR_BUS_NO_MEMORY;
    if (rc == 0) {
        Py_BEGIN_ALLOW_THREADS;
        rc = om_log_open_reader(&stream->reader, PyBytes_AsString(dir), &options);
        if (rc == 0)
            rc = om_log_seek_range(stream->reader, from, to);
        Py_END_ALLOW_THREADS;
        stream->rows_max = rows_max;
        stream->bytes_max = bytes_max;
        *arrow = (struct ArrowArrayStream){.get_schema = get_schema,
                                           .get_next = get_next,
                                           .get_last_error = get_last_error,
                                           .release = release_stream,
                                           .private_data = stream};
    }
    Py_DECREF(dir);
    PyObject *capsule = rc == 0 ? PyCapsule_New(arrow, "arrow_array_stream", capsule_free) : ompy_raise(rc);
    if (!capsule) {
        if (stream)
            om_log_reader_close(stream->reader);
        free(stream);
        free(arrow);
    }
    return capsule;
}
