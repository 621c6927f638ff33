#include "log.h"

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "ombus._native",
                                        .m_doc = "libombus for Python; use the package ombus.", .m_size = -1,
                                        .m_methods = ompy_ring_functions};

/** Make a type and add it to the module under the last part of its name. Returns a reference of ours. */
static PyObject *add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, type) != 0)
        Py_CLEAR(type);
    return type;
}

static int add_constants(PyObject *module) {
    static const struct {
        const char *name;
        long value;
    } constants[] = {
        {"FLAG_CRC", OM_BUS_FLAG_CRC},
        {"FLAG_REJECT_REORDER", OM_BUS_FLAG_REJECT_REORDER},
        {"LOG_SYNC_LINGER", OM_LOG_SYNC_LINGER},
        {"LOG_SYNC_NONE", OM_LOG_SYNC_NONE},
        {"LOG_SYNC_EACH", OM_LOG_SYNC_EACH},
        {"LOG_SALVAGE", OM_LOG_SALVAGE},
        {"LOG_NO_CREATE", OM_LOG_NO_CREATE},
        {"LOG_NO_CRC", OM_LOG_NO_CRC},
        {"LOG_SKIP_CORRUPT", OM_LOG_SKIP_CORRUPT},
        {"LOG_DURABLE_ONLY", OM_LOG_DURABLE_ONLY},
        {"LOG_RETAIN_FOR_CONSUMERS", OM_LOG_RETAIN_FOR_CONSUMERS},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) != 0)
            return -1;
    return 0;
}

static int fill(PyObject *module) {
    PyObject *producer = add_type(module, &ompy_producer_spec), *consumer = add_type(module, &ompy_consumer_spec);
    PyObject *log_writer = add_type(module, &ompy_log_writer_spec),
             *log_reader = add_type(module, &ompy_log_reader_spec);
    Py_XDECREF(producer);
    Py_XDECREF(consumer);
    Py_XDECREF(log_writer);
    Py_XDECREF(log_reader);
    ompy_record_type = add_type(module, &ompy_record_spec);
    ompy_view_type = add_type(module, &ompy_view_spec);
    if (!producer || !consumer || !log_writer || !log_reader || !ompy_record_type || !ompy_view_type)
        return -1;
    PyObject *match_args = Py_BuildValue("(sss)", "seq", "type", "payload");
    int rc = match_args ? PyObject_SetAttrString(ompy_record_type, "__match_args__", match_args) : -1;
    Py_XDECREF(match_args);
    if (rc != 0 || add_constants(module) != 0 || PyModule_AddFunctions(module, ompy_log_functions) != 0)
        return -1;
    return PyModule_AddStringConstant(module, "VERSION", OMBUS_VERSION);
}

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && fill(module) != 0)
        Py_CLEAR(module);
    return module;
}
