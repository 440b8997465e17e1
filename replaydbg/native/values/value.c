/* Values to bytes and back: section 3 of docs/reference/format.md. Only data is coded; nothing here runs program code.
 */
#include "base/core.h"
#include "log/log.h"
#include "values/values.h"
#include <stdlib.h>

#define DEEPEST 64
#define LONGEST_ARGUMENT 512 /* longer strings in arguments are cut: their digest tells them apart */

bool value_hides_wrappers;
TypeTable event_types = {.log = &event_log}, world_types = {.log = &world_log};

static PyTypeObject *
stat_type(void)
{
    static PyTypeObject *type; /* os.stat_result; kept for the life of the process */
    if (type == NULL) {
        PyObject *posix = PyImport_GetModule(PyUnicode_InternFromString("posix"));
        if (posix)
            type = (PyTypeObject *)PyObject_GetAttrString(posix, "stat_result");
        Py_XDECREF(posix);
    }
    return type;
}

/* ---- types ---- */

static const char *
type_names(PyTypeObject *type, PyObject **module, PyObject **qualname)
{
    *module = PyObject_GetAttrString((PyObject *)type, "__module__");
    *qualname = PyObject_GetAttrString((PyObject *)type, "__qualname__");
    if (*module == NULL || *qualname == NULL || !PyUnicode_Check(*module) || !PyUnicode_Check(*qualname)) {
        PyErr_Clear();
        return NULL;
    }
    return PyUnicode_AsUTF8(*qualname);
}

static void
types_append(TypeTable *types, uint64_t hash, PyObject *type)
{
    if (types->types == NULL) {
        types->types = PyList_New(0);
        PyObject_GC_UnTrack(types->types); /* the tool's own objects must not count in the program's collections */
    }
    if (types->count == types->size) {
        types->size = types->size ? types->size * 2 : 32;
        types->hashes = grown(types->hashes, types->size, sizeof(uint64_t));
    }
    types->hashes[types->count++] = hash;
    PyList_Append(types->types, type ? type : Py_None);
}

static uint32_t
type_id(TypeTable *types, PyTypeObject *type)
{
    if (types->types)
        for (Py_ssize_t i = PyList_GET_SIZE(types->types) - 1; i >= 0; i--)
            if (PyList_GET_ITEM(types->types, i) == (PyObject *)type)
                return (uint32_t)i + 1;
    PyObject *module = NULL, *qualname = NULL;
    Buf b = {0};
    if (type_names(type, &module, &qualname) == NULL) {
        Py_XDECREF(module);
        Py_XDECREF(qualname);
        return 0;
    }
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(module, &n);
    buf_varint(&b, DEFINES_TYPE << 2 | 3u);
    buf_str(&b, s, (size_t)n);
    s = PyUnicode_AsUTF8AndSize(qualname, &n);
    buf_str(&b, s, (size_t)n);
    types_append(types, hash_bytes(b.data, b.used, 0), (PyObject *)type);
    if (core.mode == RECORD) {
        uint8_t *p = log_room(types->log, b.used);
        if (p) {
            memcpy(p, b.data, b.used);
            log_commit(types->log, p + b.used);
        }
    }
    free(b.data);
    Py_DECREF(module);
    Py_DECREF(qualname);
    return (uint32_t)types->count;
}

static PyObject *builtin_types;

int
value_prepare(void)
{
    builtin_types = PyDict_Copy(PyEval_GetBuiltins());
    if (builtin_types)
        PyObject_GC_UnTrack(builtin_types);
    return builtin_types ? 0 : -1;
}

/* Finds a type by name among what is loaded: never imports, so that a recording cannot make anything run. */
static PyObject *
type_find(const char *module, size_t nm, const char *qualname, size_t nq)
{
    PyObject *name = PyUnicode_DecodeUTF8(module, (Py_ssize_t)nm, "surrogatepass");
    PyObject *path = PyUnicode_DecodeUTF8(qualname, (Py_ssize_t)nq, "surrogatepass");
    PyObject *found = NULL;
    /* also when the interpreter is being finalized: from our own copy */
    if (nm == 8 && memcmp(module, "builtins", 8) == 0) {
        found = path && builtin_types ? PyDict_GetItemWithError(builtin_types, path) : NULL;
        found = Py_XNewRef(found);
        Py_CLEAR(path);
    }
    else if (name && path)
        found = PyImport_GetModule(name);
    if (found == NULL && name && PyUnicode_CompareWithASCIIString(name, "os") == 0)
        found = PyImport_GetModule(PyUnicode_InternFromString("posix")); /* before `os` is imported: the same types */
    /* not interned: there is one object for each text of one character, and marshal writes whether it is interned */
    PyObject *dot = PyUnicode_FromString("."), *parts = found && path && dot ? PyUnicode_Split(path, dot, -1) : NULL;
    for (Py_ssize_t i = 0; parts && found && i < PyList_GET_SIZE(parts); i++) {
        PyObject *next = PyObject_GetAttr(found, PyList_GET_ITEM(parts, i));
        Py_SETREF(found, next);
    }
    Py_XDECREF(parts);
    Py_XDECREF(dot);
    Py_XDECREF(name);
    Py_XDECREF(path);
    if (found && !PyType_Check(found))
        Py_CLEAR(found);
    PyErr_Clear();
    return found;
}

/* Some types are known in their module under another name than their own (signal.ItimerError is `itimer_error`). */
static PyObject *
type_search(const char *module, size_t nm, const char *qualname, size_t nq)
{
    char private[80];
    snprintf(private, sizeof private, "_%.*s", (int)nm, module);
    PyObject *m = PyDict_GetItemString(PyImport_GetModuleDict(), private);
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    while (m && PyModule_Check(m) && PyDict_Next(PyModule_GetDict(m), &pos, &key, &value)) {
        const char *name = PyType_Check(value) ? ((PyTypeObject *)value)->tp_name : "";
        if (strlen(name) > nm && memcmp(name, module, nm) == 0 && name[nm] == '.')
            name += nm + 1; /* a static type; one made by PyErr_NewException has its name alone */
        if (strlen(name) == nq && memcmp(name, qualname, nq) == 0)
            return Py_NewRef(value);
    }
    return NULL;
}

struct TypeName {
    char *module, *name;
    size_t module_length, name_length;
    PyObject *type; /* NULL: not looked for yet, or not found */
};

static char *
read_name(const uint8_t **p, const uint8_t *end, size_t *length, bool is_apart)
{
    bool ok = true;
    uint64_t n = read_varint(p, end, &ok);
    char *copy = ok && n <= (uint64_t)(end - *p) ? is_apart ? memory_apart_small(n + 1) : malloc(n + 1) : NULL;
    if (copy == NULL)
        return NULL;
    memcpy(copy, *p, n);
    *p += n;
    *length = n;
    return copy;
}

/* Definitions are also read where lanes are switched, without the interpreter's lock: the type is looked for when it is
 * needed. */
#define MOST_FOLLOWED_TYPES 100000

int
types_define(TypeTable *types, const uint8_t **p, const uint8_t *end)
{
    struct TypeName name = {0}, *more = types->names;
    if ((core.followed || types->is_apart) && more == NULL)
        more = memory_apart_small(MOST_FOLLOWED_TYPES * sizeof *more);
    if (types->is_apart |= core.followed) {
        if (types->defined == MOST_FOLLOWED_TYPES)
            return -1;
    }
    else if ((types->defined & (types->defined - 1)) == 0) /* full at each power of two */
        more = realloc(more, (types->defined ? types->defined * 2 : 1) * sizeof *more);
    if (more == NULL)
        return -1;
    types->names = more;
    if (!(name.module = read_name(p, end, &name.module_length, types->is_apart)) ||
        !(name.name = read_name(p, end, &name.name_length, types->is_apart)))
        return -1;
    types->names[types->defined++] = name;
    return 0;
}

void
types_continue(TypeTable *types)
{
    if (types->types)
        PyList_SetSlice(types->types, 0, PyList_GET_SIZE(types->types), NULL);
    types->count = 0;
    while (types->count < types->defined)
        types_append(types, 0, NULL); /* defined once more if it is met again */
}

void
types_keep_found(TypeTable *types, const TypeTable *before)
{
    for (size_t i = 0; i < types->defined && i < before->defined; i++) {
        struct TypeName *one = &types->names[i], *other = &before->names[i];
        if (one->module_length == other->module_length && one->name_length == other->name_length &&
            memcmp(one->module, other->module, one->module_length) == 0 &&
            memcmp(one->name, other->name, one->name_length) == 0)
            one->type = other->type;
    }
}

static PyTypeObject *
type_by_id(TypeTable *types, uint64_t id)
{
    if (id == 0 || id > types->defined)
        return NULL;
    struct TypeName *n = &types->names[id - 1];
    if (n->type == NULL)
        n->type = type_find(n->module, n->module_length, n->name, n->name_length);
    if (n->type == NULL)
        n->type = type_search(n->module, n->module_length, n->name, n->name_length);
    return (PyTypeObject *)n->type;
}

/* ---- encoding ---- */

typedef struct {
    Buf *b;
    int how;
    TypeTable *types;
    PyObject *const *args;
    Py_ssize_t nargs;
    int depth;
} Encoder;

static int encode(Encoder *e, PyObject *v);

static uint64_t
zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static int
encode_int(Buf *b, PyObject *v)
{
    int overflow;
    int64_t small = PyLong_AsLongLongAndOverflow(v, &overflow);
    if (!overflow) {
        if (small >= 0 && small < 64) {
            buf_byte(b, (uint8_t)(TAG_SMALL_INT + small));
        }
        else {
            buf_byte(b, TAG_INT);
            buf_varint(b, zigzag(small));
        }
        return 0;
    }
    size_t n = _PyLong_NumBits(v) / 8 + 1;
    buf_byte(b, TAG_BIG_INT);
    buf_varint(b, n);
    buf_reserve(b, n);
#if PY_VERSION_HEX >= 0x030D0000
    if (_PyLong_AsByteArray((PyLongObject *)v, b->data + b->used, n, 1, 1, 0) < 0)
#else
    if (_PyLong_AsByteArray((PyLongObject *)v, b->data + b->used, n, 1, 1) < 0)
#endif
        return -1;
    b->used += n;
    return 0;
}

static void
encode_cut(Buf *b, uint8_t tag, const void *data, size_t n)
{
    uint64_t digest = hash_bytes(data, n, 0);
    buf_byte(b, TAG_CUT);
    buf_byte(b, tag);
    buf_varint(b, n);
    buf_bytes(b, &digest, 8);
    buf_str(b, data, 64);
}

static int
encode_str(Encoder *e, PyObject *v)
{
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(v, &n);
    PyObject *bytes = NULL;
    if (s == NULL) {
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(v, "utf-8", "surrogatepass");
        if (bytes == NULL) {
            PyErr_Clear();
            return -1;
        }
        s = PyBytes_AS_STRING(bytes);
        n = PyBytes_GET_SIZE(bytes);
    }
    if (e->how == ENCODE_ARGUMENT && n > LONGEST_ARGUMENT) {
        encode_cut(e->b, TAG_STR, s, (size_t)n);
    }
    else {
        buf_byte(e->b, TAG_STR);
        buf_str(e->b, s, (size_t)n);
    }
    Py_XDECREF(bytes);
    return 0;
}

static int
encode_data(Encoder *e, uint8_t tag, const void *data, size_t n)
{
    if (e->how == ENCODE_ARGUMENT && n > LONGEST_ARGUMENT) {
        encode_cut(e->b, TAG_BYTES, data, n);
        return 0;
    }
    buf_byte(e->b, tag);
    buf_str(e->b, data, n);
    return 0;
}

static int
encode_items(Encoder *e, uint8_t tag, PyObject *const *items, Py_ssize_t n)
{
    buf_byte(e->b, tag);
    buf_varint(e->b, (uint64_t)n);
    for (Py_ssize_t i = 0; i < n; i++)
        if (encode(e, items[i]) < 0)
            return -1;
    return 0;
}

static int
encode_dict(Encoder *e, PyObject *v)
{
    Py_ssize_t pos = 0;
    PyObject *key, *value;
    buf_byte(e->b, TAG_DICT);
    buf_varint(e->b, (uint64_t)PyDict_GET_SIZE(v));
    while (PyDict_Next(v, &pos, &key, &value))
        if (encode(e, key) < 0 || encode(e, value) < 0)
            return -1;
    return 0;
}

static int
encode_set(Encoder *e, PyObject *v)
{
    Py_ssize_t pos = 0, n = PySet_GET_SIZE(v);
    PyObject *key;
    Py_hash_t hash;
    buf_byte(e->b, PyFrozenSet_Check(v) ? TAG_FROZENSET : TAG_SET);
    buf_varint(e->b, (uint64_t)n);
    while (_PySet_NextEntry(v, &pos, &key, &hash))
        if (encode(e, key) < 0)
            return -1;
    return 0;
}

static int64_t
as_int64(PyObject *v)
{
    int64_t n = v && PyLong_Check(v) ? PyLong_AsLongLong(v) : 0;
    if (n == -1 && PyErr_Occurred())
        PyErr_Clear();
    return n;
}

static int
encode_stat(Encoder *e, PyObject *v)
{
    /* positions: 0-6 as above, 7-9 whole seconds, 10-12 float times, 13-15 ns, 16 blksize, 17 blocks, 18 rdev */
    static const int places[] = {0, 1, 2, 3, 4, 5, 6, 13, 14, 15, 16, 17, 18};
    buf_byte(e->b, TAG_STAT);
    for (int i = 0; i < 13; i++) {
        PyObject *item = PyStructSequence_GET_ITEM(v, places[i]);
        int64_t n = as_int64(item);
        if ((i == 1 || i == 2) && item && PyLong_Check(item))
            n = (int64_t)PyLong_AsUnsignedLongLongMask(item);
        buf_varint(e->b, zigzag(n));
    }
    return 0;
}

static Py_ssize_t
struct_fields(PyTypeObject *type)
{
    PyObject *n = PyDict_GetItemString(compat_type_dict(type), "n_fields");
    return n ? PyLong_AsSsize_t(n) : -1;
}

static int
encode_struct(Encoder *e, PyObject *v)
{
    if (Py_TYPE(v) == stat_type())
        return encode_stat(e, v);
    Py_ssize_t n = struct_fields(Py_TYPE(v));
    uint32_t id = n < 0 ? 0 : type_id(e->types, Py_TYPE(v));
    if (id == 0)
        return -1;
    buf_byte(e->b, TAG_STRUCT);
    buf_varint(e->b, id);
    buf_varint(e->b, (uint64_t)n);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyStructSequence_GET_ITEM(v, i);
        if (encode(e, item ? item : Py_None) < 0)
            return -1;
    }
    return 0;
}

static bool
is_struct_sequence(PyObject *v)
{
    return PyTuple_Check(v) && !PyTuple_CheckExact(v) && Py_TYPE(v)->tp_base == &PyTuple_Type &&
           PyDict_GetItemString(compat_type_dict(Py_TYPE(v)), "n_sequence_fields") != NULL;
}

static int
encode_other(Encoder *e, PyObject *v)
{
    PyTypeObject *type = Py_TYPE(v);
    if (e->how == ENCODE_RESULT)
        for (Py_ssize_t i = 0; i < e->nargs; i++)
            if (e->args[i] == v) {
                buf_byte(e->b, TAG_ARGUMENT);
                buf_varint(e->b, (uint64_t)i);
                return 0;
            }
    for (const ValueCodec *codec = value_codecs; codec->type; codec++)
        if (type == *codec->type) {
            buf_byte(e->b, (uint8_t)codec->tag);
            return encode(e, codec->first(v)) < 0 || encode(e, codec->second(v)) < 0 ? -1 : 0;
        }
    /* arguments define no types: replay compares their bytes, and would number types anew */
    if (is_struct_sequence(v)) {
        if (e->how == ENCODE_ARGUMENT)
            return encode_items(e, TAG_TUPLE, ((PyTupleObject *)v)->ob_item, PyTuple_GET_SIZE(v));
        return encode_struct(e, v);
    }
    /* subclasses (enums, named tuples) are coded as the data they hold */
    if (PyLong_Check(v))
        return encode_int(e->b, v);
    if (PyUnicode_Check(v))
        return encode_str(e, v);
    if (e->how == ENCODE_RESULT)
        return -1;
    int fd = file_fd(v);
    if (fd == -2)
        fd = socket_fd(v);
    if (fd == -2 && !value_hides_wrappers)
        fd = wrapper_fd(v);
    if (fd != -2) {
        buf_byte(e->b, TAG_FILE);
        buf_varint(e->b, (uint64_t)(fd + 1));
        return 0;
    }
    const char *name = type->tp_name;
    buf_byte(e->b, TAG_OPAQUE);
    buf_str(e->b, name, strlen(name));
    return 0;
}

static int
encode(Encoder *e, PyObject *v)
{
    Buf *b = e->b;
    if (v == Py_None) {
        buf_byte(b, TAG_NONE);
        return 0;
    }
    if (v == Py_False || v == Py_True) {
        buf_byte(b, v == Py_True ? TAG_TRUE : TAG_FALSE);
        return 0;
    }
    if (PyLong_CheckExact(v))
        return encode_int(b, v);
    if (PyFloat_CheckExact(v)) {
        double d = PyFloat_AS_DOUBLE(v);
        buf_byte(b, TAG_FLOAT);
        buf_bytes(b, &d, 8);
        return 0;
    }
    if (PyUnicode_CheckExact(v))
        return encode_str(e, v);
    if (PyBytes_CheckExact(v))
        return encode_data(e, TAG_BYTES, PyBytes_AS_STRING(v), (size_t)PyBytes_GET_SIZE(v));
    if (e->depth >= DEEPEST)
        return -1;
    int rc;
    e->depth++;
    if (PyTuple_CheckExact(v))
        rc = encode_items(e, TAG_TUPLE, ((PyTupleObject *)v)->ob_item, PyTuple_GET_SIZE(v));
    else if (PyList_CheckExact(v))
        rc = encode_items(e, TAG_LIST, ((PyListObject *)v)->ob_item, PyList_GET_SIZE(v));
    else if (PyDict_CheckExact(v))
        rc = encode_dict(e, v);
    else if (PyAnySet_CheckExact(v))
        rc = encode_set(e, v);
    else if (PyByteArray_CheckExact(v))
        rc = encode_data(e, TAG_BYTEARRAY, PyByteArray_AS_STRING(v), (size_t)PyByteArray_GET_SIZE(v));
    else if (PyComplex_CheckExact(v)) {
        Py_complex c = PyComplex_AsCComplex(v);
        buf_byte(b, TAG_COMPLEX);
        buf_bytes(b, &c, 16);
        rc = 0;
    }
    else
        rc = encode_other(e, v);
    e->depth--;
    return rc;
}

int
value_encode(Buf *b, PyObject *value, int how, TypeTable *types, PyObject *const *args, Py_ssize_t nargs)
{
    Encoder e = {b, how, types, args, nargs, 0};
    size_t used = b->used;
    if (encode(&e, value) < 0) {
        PyErr_Clear();
        b->used = used;
        return -1;
    }
    return 0;
}

int
value_encode_exception(Buf *b, TypeTable *types, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Encoder e = {b, ENCODE_RESULT, types, args, nargs, 0};
    size_t used = b->used;
    int rc = -1;
    uint32_t id = value ? type_id(types, Py_TYPE(value)) : 0;
    if (id) {
        buf_byte(b, TAG_EXCEPTION);
        buf_varint(b, id);
        rc = encode(&e, ((PyBaseExceptionObject *)value)->args);
        if (rc == 0 && PyObject_TypeCheck(value, (PyTypeObject *)PyExc_OSError)) {
            PyOSErrorObject *o = (PyOSErrorObject *)value;
            PyObject *parts[] = {o->myerrno, o->strerror, o->filename, o->filename2, o->dict}; /* TLS sets attributes */
            int n = o->dict && PyDict_GET_SIZE(o->dict) ? 5 : 4;
            for (int i = 0; i < 4; i++)
                if (parts[i] == NULL)
                    parts[i] = Py_None;
            rc = encode_items(&e, TAG_TUPLE, parts, n);
        }
        else if (rc == 0)
            buf_byte(b, TAG_NONE);
    }
    if (rc < 0)
        b->used = used;
    PyErr_Restore(type, value, traceback);
    return rc;
}

/* ---- decoding ---- */

typedef struct {
    const uint8_t *p, *end;
    TypeTable *types;
    PyObject *const *args;
    Py_ssize_t nargs;
    int depth;
} Decoder;

static PyObject *decode(Decoder *d);
static bool skip(const uint8_t **p, const uint8_t *end, int depth);

static bool
decode_length(Decoder *d, uint64_t *n)
{
    bool ok = true;
    *n = read_varint(&d->p, d->end, &ok);
    return ok && *n <= (uint64_t)(d->end - d->p);
}

#define FEW 64

/* How many items follow, which are then there: room is made for them before they are read, and a number alone costs one
 * byte. */
static bool
decode_count(Decoder *d, uint64_t *n)
{
    if (!decode_length(d, n))
        return false;
    const uint8_t *p = d->p;
    for (uint64_t i = *n > FEW ? 0 : *n; i < *n; i++)
        if (!skip(&p, d->end, d->depth))
            return false;
    return true;
}

static int64_t
decode_zigzag(Decoder *d, bool *ok)
{
    uint64_t v = read_varint(&d->p, d->end, ok);
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static PyObject *
decode_tuple(Decoder *d)
{
    uint64_t n;
    if (!decode_count(d, &n))
        return NULL;
    PyObject *t = PyTuple_New((Py_ssize_t)n);
    for (uint64_t i = 0; t && i < n; i++) {
        PyObject *v = decode(d);
        if (v == NULL)
            Py_CLEAR(t);
        else
            PyTuple_SET_ITEM(t, (Py_ssize_t)i, v);
    }
    return t;
}

static PyObject *
decode_list(Decoder *d)
{
    uint64_t n;
    if (!decode_count(d, &n))
        return NULL;
    PyObject *t = PyList_New((Py_ssize_t)n);
    for (uint64_t i = 0; t && i < n; i++) {
        PyObject *v = decode(d);
        if (v == NULL)
            Py_CLEAR(t);
        else
            PyList_SET_ITEM(t, (Py_ssize_t)i, v);
    }
    return t;
}

static PyObject *
decode_dict(Decoder *d)
{
    uint64_t n;
    if (!decode_count(d, &n))
        return NULL;
    PyObject *t = PyDict_New();
    for (uint64_t i = 0; t && i < n; i++) {
        PyObject *key = decode(d), *value = key ? decode(d) : NULL;
        if (value == NULL || PyDict_SetItem(t, key, value) < 0)
            Py_CLEAR(t);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return t;
}

static PyObject *
decode_set(Decoder *d, bool frozen)
{
    uint64_t n;
    if (!decode_count(d, &n))
        return NULL;
    PyObject *t = frozen ? PyFrozenSet_New(NULL) : PySet_New(NULL);
    for (uint64_t i = 0; t && i < n; i++) {
        PyObject *v = decode(d);
        if (v == NULL || PySet_Add(t, v) < 0)
            Py_CLEAR(t);
        Py_XDECREF(v);
    }
    return t;
}

/* A class of the program may look like one and be none. */
static bool
is_struct_type(PyTypeObject *type)
{
    PyTypeObject *known = stat_type();
    return known && type->tp_dealloc == known->tp_dealloc && type->tp_base == &PyTuple_Type && struct_fields(type) >= 0;
}

static PyObject *
decode_struct(Decoder *d)
{
    bool ok = true;
    PyTypeObject *type = type_by_id(d->types, read_varint(&d->p, d->end, &ok));
    uint64_t n = read_varint(&d->p, d->end, &ok);
    if (!ok || type == NULL || !is_struct_type(type) || (uint64_t)struct_fields(type) != n)
        return NULL;
    PyObject *v = PyStructSequence_New(type);
    for (uint64_t i = 0; v && i < n; i++) {
        PyObject *item = decode(d);
        if (item == NULL)
            Py_CLEAR(v);
        else
            PyStructSequence_SET_ITEM(v, (Py_ssize_t)i, item);
    }
    return v;
}

static PyObject *
decode_stat(Decoder *d)
{
    int64_t f[13];
    bool ok = true;
    for (int i = 0; i < 13; i++)
        f[i] = decode_zigzag(d, &ok);
    PyTypeObject *type = stat_type();
    PyObject *v = ok && type ? PyStructSequence_New(type) : NULL;
    if (v == NULL)
        return NULL;
    for (int i = 0; i < 7; i++)
        PyStructSequence_SET_ITEM(
            v, i, i == 1 || i == 2 ? PyLong_FromUnsignedLongLong((uint64_t)f[i]) : PyLong_FromLongLong(f[i]));
    for (int i = 0; i < 3; i++) {
        int64_t ns = f[7 + i], seconds = ns / 1000000000, rest = ns % 1000000000;
        if (rest < 0) {
            rest += 1000000000;
            seconds--;
        }
        PyStructSequence_SET_ITEM(v, 7 + i, PyLong_FromLongLong(seconds));
        PyStructSequence_SET_ITEM(v, 10 + i, PyFloat_FromDouble((double)seconds + 1e-9 * (double)rest));
        PyStructSequence_SET_ITEM(v, 13 + i, PyLong_FromLongLong(ns));
    }
    for (int i = 0; i < 3; i++)
        PyStructSequence_SET_ITEM(v, 16 + i, PyLong_FromLongLong(f[10 + i]));
    return v;
}

/* The file name in an exception is the very object that the program passed; the log has its value. */
static PyObject *
as_passed(Decoder *d, PyObject *name)
{
    for (Py_ssize_t i = 0; i < d->nargs; i++) {
        PyObject *v = d->args[i];
        if (v == NULL)
            continue;
        if (PyUnicode_Check(name) && PyUnicode_Check(v) && PyUnicode_Compare(name, v) == 0)
            return v;
        if (PyBytes_Check(name) && PyBytes_Check(v) && PyBytes_GET_SIZE(name) == PyBytes_GET_SIZE(v) &&
            memcmp(PyBytes_AS_STRING(name), PyBytes_AS_STRING(v), (size_t)PyBytes_GET_SIZE(v)) == 0)
            return v;
        if (PyByteArray_CheckExact(name) && PyByteArray_CheckExact(v) &&
            PyByteArray_GET_SIZE(name) == PyByteArray_GET_SIZE(v) &&
            memcmp(PyByteArray_AS_STRING(name), PyByteArray_AS_STRING(v), (size_t)PyByteArray_GET_SIZE(v)) == 0)
            return v;
    }
    return name;
}

/* Makes the exception and sets it; returns NULL either way, with `PyErr_Occurred` telling whether it worked. */
static PyObject *
decode_exception(Decoder *d)
{
    bool ok = true;
    PyTypeObject *type = type_by_id(d->types, read_varint(&d->p, d->end, &ok));
    PyObject *args = ok ? decode(d) : NULL;
    PyObject *os = args ? decode(d) : NULL;
    PyObject *exception = NULL;
    if (os && type && PyExceptionClass_Check(type) && PyTuple_CheckExact(args)) {
        if (PyTuple_CheckExact(os) && PyTuple_GET_SIZE(os) >= 4 && PyTuple_GET_SIZE(args) == 2 &&
            PyTuple_GET_ITEM(os, 2) != Py_None) {
            PyObject *one = as_passed(d, PyTuple_GET_ITEM(os, 2)), *two = as_passed(d, PyTuple_GET_ITEM(os, 3));
            exception =
                PyObject_CallFunctionObjArgs((PyObject *)type, PyTuple_GET_ITEM(os, 0), PyTuple_GET_ITEM(os, 1), one,
                                             two == Py_None ? NULL : Py_None, two == Py_None ? NULL : two, NULL);
        }
        else
            exception = PyObject_Call((PyObject *)type, args, NULL);
    }
    if (exception && PyExceptionInstance_Check(exception) && PyTuple_CheckExact(os) && PyTuple_GET_SIZE(os) == 5 &&
        PyDict_CheckExact(PyTuple_GET_ITEM(os, 4)))
        Py_XSETREF(((PyBaseExceptionObject *)exception)->dict, Py_NewRef(PyTuple_GET_ITEM(os, 4)));
    if (exception && PyExceptionInstance_Check(exception))
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(args);
    Py_XDECREF(os);
    Py_XDECREF(exception);
    return NULL;
}

static PyObject *
decode_bytes_like(Decoder *d, int tag)
{
    uint64_t n;
    if (!decode_length(d, &n))
        return NULL;
    const char *s = (const char *)d->p;
    d->p += n;
    switch (tag) {
    case TAG_STR:
        return PyUnicode_DecodeUTF8(s, (Py_ssize_t)n, "surrogatepass");
    case TAG_BYTES:
        return PyBytes_FromStringAndSize(s, (Py_ssize_t)n);
    case TAG_BYTEARRAY:
        return PyByteArray_FromStringAndSize(s, (Py_ssize_t)n);
    default:
        return _PyLong_FromByteArray((const unsigned char *)s, n, 1, 1);
    }
}

static PyObject *
decode_content(Decoder *d)
{
    bool ok = true;
    uint64_t offset = read_varint(&d->p, d->end, &ok), n = read_varint(&d->p, d->end, &ok);
    const uint8_t *data = ok ? content_at(offset, n) : NULL;
    return data ? PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)n) : NULL;
}

static PyObject *
decode_registered(Decoder *d, int tag)
{
    const ValueCodec *codec = value_codecs;
    while (codec->type && codec->tag != tag)
        codec++;
    if (codec->type == NULL)
        return NULL;
    PyObject *first = decode(d), *second = first ? decode(d) : NULL;
    PyObject *value = second ? codec->make(first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return value;
}

static PyObject *
decode_tagged(Decoder *d, int tag)
{
    bool ok = true;
    double f[2];
    switch (tag) {
    case TAG_NONE:
        Py_RETURN_NONE;
    case TAG_FALSE:
        Py_RETURN_FALSE;
    case TAG_TRUE:
        Py_RETURN_TRUE;
    case TAG_INT: {
        int64_t v = decode_zigzag(d, &ok);
        return ok ? PyLong_FromLongLong(v) : NULL;
    }
    case TAG_FLOAT:
    case TAG_COMPLEX: {
        size_t n = tag == TAG_FLOAT ? 8 : 16;
        if ((size_t)(d->end - d->p) < n)
            return NULL;
        memcpy(f, d->p, n);
        d->p += n;
        return tag == TAG_FLOAT ? PyFloat_FromDouble(f[0]) : PyComplex_FromDoubles(f[0], f[1]);
    }
    case TAG_STR:
    case TAG_BYTES:
    case TAG_BYTEARRAY:
    case TAG_BIG_INT:
        return decode_bytes_like(d, tag);
    case TAG_TUPLE:
        return decode_tuple(d);
    case TAG_LIST:
        return decode_list(d);
    case TAG_DICT:
        return decode_dict(d);
    case TAG_SET:
    case TAG_FROZENSET:
        return decode_set(d, tag == TAG_FROZENSET);
    case TAG_STRUCT:
        return decode_struct(d);
    case TAG_STAT:
        return decode_stat(d);
    case TAG_ARGUMENT: {
        uint64_t i = read_varint(&d->p, d->end, &ok);
        return ok && i < (uint64_t)d->nargs ? Py_XNewRef(d->args[i]) : NULL;
    }
    case TAG_EXCEPTION:
        return decode_exception(d);
    case TAG_CONTENT:
        return decode_content(d);
    default:
        return decode_registered(d, tag);
    }
}

static PyObject *
decode(Decoder *d)
{
    if (d->p >= d->end)
        return NULL;
    int tag = *d->p++;
    if (tag >= TAG_SMALL_INT && tag < 0x80)
        return PyLong_FromLong(tag - TAG_SMALL_INT);
    if (d->depth >= DEEPEST + 8)
        return NULL;
    d->depth++;
    PyObject *v = decode_tagged(d, tag);
    d->depth--;
    return v;
}

PyObject *
value_decode(const uint8_t **p, const uint8_t *end, TypeTable *types, PyObject *const *args, Py_ssize_t nargs)
{
    Decoder d = {*p, end, types, args, nargs, 0};
    PyObject *v = decode(&d);
    *p = d.p;
    return v;
}

/* ---- passing over a value without making it ---- */

static bool
skip_bytes(const uint8_t **p, const uint8_t *end, uint64_t n)
{
    if (n > (uint64_t)(end - *p))
        return false;
    *p += n;
    return true;
}

static bool
skip_payload(const uint8_t **p, const uint8_t *end)
{
    bool ok = true;
    uint64_t n = read_varint(p, end, &ok);
    return ok && skip_bytes(p, end, n);
}

static bool
skip_items(const uint8_t **p, const uint8_t *end, int depth, uint64_t each)
{
    bool ok = true;
    uint64_t n = read_varint(p, end, &ok);
    if (!ok || n > (uint64_t)(end - *p))
        return false;
    for (uint64_t i = 0; i < n * each; i++)
        if (!skip(p, end, depth))
            return false;
    return true;
}

static bool
skip(const uint8_t **p, const uint8_t *end, int depth)
{
    bool ok = true;
    if (*p >= end || depth > DEEPEST + 8)
        return false;
    int tag = *(*p)++;
    if (tag >= TAG_SMALL_INT && tag < 0x80)
        return true;
    switch (tag) {
    case TAG_NONE:
    case TAG_FALSE:
    case TAG_TRUE:
    case TAG_BUFFER_LEAVES:
    case TAG_BUFFER_FILLED:
        return true;
    case TAG_INT:
    case TAG_ARGUMENT:
    case TAG_FILE:
        read_varint(p, end, &ok);
        return ok;
    case TAG_FLOAT:
        return skip_bytes(p, end, 8);
    case TAG_COMPLEX:
        return skip_bytes(p, end, 16);
    case TAG_STR:
    case TAG_BYTES:
    case TAG_BYTEARRAY:
    case TAG_BIG_INT:
    case TAG_OPAQUE:
        return skip_payload(p, end);
    case TAG_TUPLE:
    case TAG_LIST:
    case TAG_SET:
    case TAG_FROZENSET:
        return skip_items(p, end, depth + 1, 1);
    case TAG_DICT:
        return skip_items(p, end, depth + 1, 2);
    case TAG_STRUCT:
        read_varint(p, end, &ok);
        return ok && skip_items(p, end, depth + 1, 1);
    case TAG_STAT:
        for (int i = 0; i < 13; i++)
            read_varint(p, end, &ok);
        return ok;
    case TAG_EXCEPTION:
        read_varint(p, end, &ok);
        return ok && skip(p, end, depth + 1) && skip(p, end, depth + 1);
    case TAG_CONTENT:
        read_varint(p, end, &ok);
        read_varint(p, end, &ok);
        return ok;
    case TAG_CUT:
        if (!skip_bytes(p, end, 1))
            return false;
        read_varint(p, end, &ok);
        return ok && skip_bytes(p, end, 8) && skip_payload(p, end);
    case TAG_DIR_ENTRY:
        return skip(p, end, depth + 1) && skip(p, end, depth + 1);
    default:
        return false;
    }
}

bool
value_skip(const uint8_t **p, const uint8_t *end)
{
    return skip(p, end, 0);
}
