/* The course of a run, for the comparison with another run of the same program: which lines of the program's own code
 * each lane ran, and what its variables were. Written by the process that runs the whole program, if it is asked to.
 *
 * What is written depends on no address, no hash and no directory, so that two runs have equal courses as long as they
 * do the same: a record names a line by its file's last part, its function and its instruction, and the variables that
 * its function can see by a digest of their values. Nothing here runs Python or makes an object; of objects of C code
 * mostly the type is known alone. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "engine/inside.h"
#include <structmember.h>

#define MOST_RECORDS (4u << 20) /* 24 bytes each */
enum { MOST_DEPTH = 6, MOST_ITEMS = 256, MOST_VALUES = 4096 };

typedef struct {
    uint64_t count; /* of lines */
    uint64_t values;
    uint32_t place;
    uint32_t lane;
} CourseRecord;

static int fd = -1;
static Buf records;
static uint64_t written;
static int left;       /* values that may still be looked at for this digest */
static bool is_opaque; /* something in it was of C code that is not known here */

static inline uint64_t
mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* ---- values ---- */

static uint64_t of_value(PyObject *o, int depth);

/* A text with addresses (a repr) is the same with others. */
static uint64_t
of_text(PyObject *text)
{
    size_t n = (size_t)PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text);
    const char *data = PyUnicode_DATA(text), *at = data;
    uint64_t h = 11;
    if (PyUnicode_KIND(text) == 1)
        for (const char *next; (next = memmem(at, n - (size_t)(at - data), " at 0x", 6)) != NULL;) {
            h = hash_bytes(at, (size_t)(next + 6 - at), h);
            for (at = next + 6; at < data + n && ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f')); at++)
                ;
        }
    return hash_bytes(at, n - (size_t)(at - data), h);
}

static uint64_t
of_number(PyObject *number)
{
    PyLongObject *n = (PyLongObject *)number;
#if PY_VERSION_HEX >= 0x030C0000
    size_t digits = n->long_value.lv_tag >> _PyLong_NON_SIZE_BITS;
    return hash_bytes(n->long_value.ob_digit, digits * sizeof(digit), 2 + (n->long_value.lv_tag & 3));
#else
    return hash_bytes(n->ob_digit, (size_t)Py_ABS(Py_SIZE(n)) * sizeof(digit),
                      2 + (Py_SIZE(n) < 0 ? 2 : Py_SIZE(n) == 0));
#endif
}

static uint64_t
of_items(PyObject **items, Py_ssize_t n, int depth)
{
    uint64_t h = (uint64_t)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (i == MOST_ITEMS / 2 && n > MOST_ITEMS)
            i = n - MOST_ITEMS / 2;
        h = mix(h, of_value(items[i], depth));
    }
    return h;
}

/* Equal dictionaries and sets may have their items in another order. */
static uint64_t
of_dict(PyObject *dict, int depth)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    uint64_t sum = 0;
    int n = 0;
    while (PyDict_Next(dict, &at, &key, &value) && n++ < MOST_ITEMS)
        sum += mix(of_value(key, depth), of_value(value, depth));
    return mix((uint64_t)PyDict_GET_SIZE(dict), sum);
}

static uint64_t
of_set(PyObject *set, int depth)
{
    Py_ssize_t at = 0;
    PyObject *key;
    Py_hash_t hash;
    uint64_t sum = 0;
    bool is_whole = PySet_GET_SIZE(set) <= MOST_ITEMS; /* which ones come first depends on their hashes */
    while (is_whole && _PySet_NextEntry(set, &at, &key, &hash))
        sum += mix(1, of_value(key, depth));
    return mix((uint64_t)PySet_GET_SIZE(set), sum);
}

static uint64_t
of_attributes(PyObject *o, int depth)
{
    PyTypeObject *type = Py_TYPE(o);
    Instance found = instance_of(o);
    uint64_t sum = 0;
    if (found.values) {
        PyDictKeysObject *keys = shared_keys(type);
        for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
            PyObject *name = DK_UNICODE_ENTRIES(keys)[i].me_key;
            if (name && found.values->values[i])
                sum += mix(of_text(name), of_value(found.values->values[i], depth));
        }
        sum = mix(0, sum);
    }
    else if (found.dict && PyDict_Check(found.dict))
        sum = of_dict(found.dict, depth);
    for (; type; type = type->tp_base) /* its slots */
        for (PyMemberDef *m = type->tp_flags & Py_TPFLAGS_HEAPTYPE ? type->tp_members : NULL; m && m->name; m++)
            if (m->type == T_OBJECT_EX || m->type == T_OBJECT)
                sum = mix(sum, of_value(*(PyObject **)((char *)o + m->offset), depth));
    return sum;
}

/* Numbers in an object of C code: words that are no addresses. */
static uint64_t
of_words(PyObject *o)
{
    uint64_t word, h = 7;
    const char *end = (const char *)o + Py_TYPE(o)->tp_basicsize;
    for (const char *p = (const char *)o + sizeof(PyObject); p + sizeof word <= end; p += sizeof word) {
        memcpy(&word, p, sizeof word);
        if (!memory_may_be_address(word))
            h = mix(h, word);
    }
    return h;
}

/* Whether all of it are attributes: its class was made by Python code, as were those that the class inherits from, up
 * to a type that is known here. */
static bool
is_of_python(PyTypeObject *type)
{
    while (type && type->tp_flags & Py_TPFLAGS_HEAPTYPE && ((PyHeapTypeObject *)type)->ht_module == NULL)
        type = type->tp_base;
    return type == &PyBaseObject_Type || type == &PyTuple_Type || type == &PyList_Type || type == &PyDict_Type ||
           type == &PySet_Type || type == &PyFrozenSet_Type;
}

static uint64_t
of_object(PyObject *o, int depth)
{
    const char *name = Py_TYPE(o)->tp_name;
    if (PyFunction_Check(o))
        return of_text(((PyFunctionObject *)o)->func_qualname);
    if (PyType_Check(o) || PyModule_Check(o) || PyCode_Check(o))
        return 1;
    if (PyMethod_Check(o))
        return mix(of_value(PyMethod_GET_FUNCTION(o), depth), of_value(PyMethod_GET_SELF(o), depth));
    if (PyCell_Check(o))
        return of_value(PyCell_GET(o), depth + 1);
    if (PyExceptionInstance_Check(o))
        return mix(of_value(((PyBaseExceptionObject *)o)->args, depth), of_attributes(o, depth));
    if (strcmp(name, "decimal.Decimal") == 0 || strncmp(name, "datetime.", 9) == 0)
        return of_words(o);
    is_opaque |= !is_of_python(Py_TYPE(o));
    return of_attributes(o, depth);
}

static uint64_t
of_value(PyObject *o, int depth)
{
    if (o == NULL || depth <= 0 || left-- <= 0)
        return 0;
    if (PyLong_Check(o)) /* True and 1 differ by type */
        return mix(of_number(o), (uint64_t)PyBool_Check(o));
    if (PyUnicode_Check(o))
        return of_text(o);
    const char *type = Py_TYPE(o)->tp_name;
    uint64_t h = hash_bytes(type, strlen(type), 3);
    if (PyFloat_Check(o) || PyComplex_CheckExact(o))
        return hash_bytes((char *)o + sizeof(PyObject), PyFloat_Check(o) ? sizeof(double) : sizeof(Py_complex), h);
    if (PyBytes_Check(o))
        return hash_bytes(PyBytes_AS_STRING(o), (size_t)PyBytes_GET_SIZE(o), h);
    if (PyByteArray_Check(o))
        return hash_bytes(PyByteArray_AS_STRING(o), (size_t)PyByteArray_GET_SIZE(o), h);
    if (PyTuple_Check(o))
        h = mix(h, of_items(((PyTupleObject *)o)->ob_item, PyTuple_GET_SIZE(o), depth - 1));
    else if (PyList_Check(o))
        h = mix(h, of_items(((PyListObject *)o)->ob_item, PyList_GET_SIZE(o), depth - 1));
    else if (PyDict_Check(o))
        h = mix(h, of_dict(o, depth - 1));
    else if (PyAnySet_Check(o))
        h = mix(h, of_set(o, depth - 1));
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o) || PyDict_CheckExact(o) || PyAnySet_CheckExact(o) || o == Py_None)
        return h;
    return mix(h, of_object(o, depth - 1));
}

uint64_t
course_digest(PyObject *value)
{
    left = MOST_VALUES;
    is_opaque = false;
    uint64_t digest = of_value(value, MOST_DEPTH);
    return (digest & ~15ull) | (uint64_t)is_opaque << 4;
}

/* ---- frames ---- */

static bool
is_hidden(PyObject *name)
{
    return !PyUnicode_Check(name) || (PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' &&
                                      PyUnicode_READ_CHAR(name, 1) == '_');
}

/* Names of a module or a class, without those that the interpreter puts there. */
static uint64_t
of_names(PyObject *names)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    uint64_t sum = 0;
    while (PyDict_Next(names, &at, &key, &value))
        if (!is_hidden(key))
            sum += mix(of_text(key), of_value(value, MOST_DEPTH));
    return sum;
}

static uint64_t
of_globals(PyCodeObject *code, PyObject *globals)
{
    uint64_t h = 0;
    for (Py_ssize_t i = 0; globals && PyDict_CheckExact(globals) && i < PyTuple_GET_SIZE(code->co_names); i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_names, i), *value = is_hidden(name) ? NULL : read_key(globals, name);
        if (value && !PyFunction_Check(value) && !PyModule_Check(value) && !PyType_Check(value))
            h = mix(mix(h, (uint64_t)i), of_value(value, MOST_DEPTH));
    }
    return h;
}

static uint64_t
of_frame(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    uint64_t h = 0;
    left = MOST_VALUES;
    if (!(code->co_flags & CO_OPTIMIZED))
        return frame->f_locals && PyDict_CheckExact(frame->f_locals) ? of_names(frame->f_locals) : 0;
    for (int i = 0; i < code->co_nlocalsplus; i++)
        h = mix(h, of_value(compat_frame_value(frame, i), MOST_DEPTH));
    return mix(h, of_globals(code, frame->f_globals));
}

/* ---- lines ---- */

static uint32_t
code_hash(CodeFacts *facts)
{
    if (facts->course_hash)
        return facts->course_hash;
    PyObject *file = facts->code->co_filename;
    size_t n = (size_t)PyUnicode_GET_LENGTH(file) * PyUnicode_KIND(file);
    const char *text = PyUnicode_DATA(file), *last = memrchr(text, '/', n);
    last = last && PyUnicode_KIND(file) == 1 ? last : text;
    uint64_t h = hash_text(facts->code->co_qualname,
                           hash_bytes(last, n - (size_t)(last - text), (uint64_t)facts->code->co_firstlineno));
    return facts->course_hash = (uint32_t)(h ^ h >> 32) | 1;
}

void
course_prepare(int to)
{
    fd = to;
    course_is_on = fd >= 0;
    if (course_is_on)
        records = (Buf){.data = memory_apart(1u << 20), .size = 1u << 20, .is_fixed = true};
}

/* In a clone. */
void
course_leave(void)
{
    fd = -1;
    course_is_on = false;
}

/* One line of the program's own code is about to run. */
void
course_line(_PyInterpreterFrame *frame, CodeFacts *facts, int unit)
{
    if (written++ >= MOST_RECORDS)
        return;
    CourseRecord record = {stepclock.count, of_frame(frame), code_hash(facts) * 31 + (uint32_t)unit,
                           (uint32_t)core.lane};
    buf_bytes(&records, &record, sizeof record);
    if (records.used > (1u << 20) - 64)
        report_send(fd, &records);
}

void
course_send(void)
{
    report_send(fd, &records);
}
