/* Items: what publish_batch() was given, as pointers and sizes; the same for rings and logs. */

#include "common.h"

static int fail(const char *text) {
    ompy_raise_detail(OM_ERR_BUS_INIT, "%s", text);
    return -1;
}

/** A row is a record: whatever lies below the first dimension must lie together, the rows need not. */
static int rows_of(Items *items) {
    const Py_buffer *buffer = &items->buffer;
    if (buffer->ndim == 0)
        return fail("publish_batch() needs an array of at least one dimension: use publish() for one record");
    Py_ssize_t size = buffer->itemsize;
    for (int i = buffer->ndim - 1; i > 0; i--) {
        if (buffer->shape[i] > 1 && buffer->strides[i] != size)
            return fail("the rows of the array are not contiguous: pass numpy.ascontiguousarray(array)");
        size *= buffer->shape[i];
    }
    if (buffer->strides[0] < 0 && buffer->shape[0] > 1)
        return fail("the array runs backward: pass numpy.ascontiguousarray(array)");
    if (buffer->ndim == 1 && size == 1)
        return fail("every byte would become a record: say how long a record is with itemsize=");
    items->count = (size_t)buffer->shape[0];
    items->item_size = (size_t)size;
    items->stride = (size_t)buffer->strides[0];
    return 0;
}

static int pieces_of(Items *items, PyObject *itemsize) {
    uint64_t size;
    if (ompy_u64(itemsize, "itemsize", PY_SSIZE_T_MAX, &size) != 0)
        return -1;
    if (!PyBuffer_IsContiguous(&items->buffer, 'C'))
        return fail("itemsize= needs a contiguous buffer");
    if (size == 0 || (uint64_t)items->buffer.len % size != 0) {
        ompy_raise_detail(OM_ERR_BUS_INIT, "%zd bytes are not a multiple of itemsize %llu", items->buffer.len,
                          (unsigned long long)size);
        return -1;
    }
    items->count = (uint64_t)items->buffer.len / size;
    items->item_size = items->stride = size;
    return 0;
}

static int from_buffer(Items *items, PyObject *object, PyObject *itemsize) {
    /* Without PyBUF_FORMAT: NumPy then also gives types that the buffer protocol cannot describe (datetime64). */
    if (PyObject_GetBuffer(object, &items->buffer, PyBUF_STRIDED_RO) != 0)
        return -1;
    return itemsize && itemsize != Py_None ? pieces_of(items, itemsize) : rows_of(items);
}

static int add_object(Items *items, size_t at, PyObject *object) {
    Piece *piece = &items->pieces[at];
    char *data;
    Py_ssize_t size;
    if (PyBytes_CheckExact(object)) {
        if (PyBytes_AsStringAndSize(object, &data, &size) != 0)
            return -1;
    } else {
        if (!items->views && !(items->views = PyMem_Calloc(items->count, sizeof *items->views))) {
            PyErr_NoMemory();
            return -1;
        }
        Py_buffer *view = &items->views[items->view_count];
        if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) != 0)
            return -1;
        items->view_count++;
        data = view->buf;
        size = view->len;
    }
    piece->data = data;
    piece->size = (size_t)size;
    return 0;
}

static int from_sequence(Items *items, PyObject *objects) {
    items->objects = PySequence_Tuple(objects);
    if (!items->objects)
        return -1;
    items->count = (size_t)PyTuple_Size(items->objects);
    items->pieces = PyMem_Calloc(items->count, sizeof *items->pieces);
    if (!items->pieces && items->count) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < items->count; i++)
        if (add_object(items, i, PyTuple_GetItem(items->objects, (Py_ssize_t)i)) != 0)
            return -1;
    return 0;
}

int ompy_items_get(Items *items, PyObject *object, PyObject *itemsize) {
    *items = (Items){0};
    return PyObject_CheckBuffer(object) ? from_buffer(items, object, itemsize) : from_sequence(items, object);
}

size_t ompy_items_largest(const Items *items) {
    size_t largest = items->objects || !items->count ? 0 : items->item_size;
    for (size_t i = 0; items->objects && i < items->count; i++)
        if (items->pieces[i].size > largest)
            largest = items->pieces[i].size;
    return largest;
}

void ompy_items_clear(Items *items) {
    while (items->view_count)
        PyBuffer_Release(&items->views[--items->view_count]);
    PyMem_Free(items->views);
    PyMem_Free(items->pieces);
    Py_XDECREF(items->objects);
    if (items->buffer.obj)
        PyBuffer_Release(&items->buffer);
}
