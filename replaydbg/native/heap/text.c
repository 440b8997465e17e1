/* Values and steps as short texts, as Python would write them; but nothing of the program's is asked. */
#include "base/core.h"
#include "heap/inside.h"
#include <internal/pycore_moduleobject.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_TEXT 8192
#define MOST_DEPTH 3
#define MOST_DIGITS 9 /* of an int: 81 decimal digits */

/* A text that is written; `room` is for all of it. */
typedef struct {
    uint8_t data[MOST_TEXT + 16];
    size_t used;
    size_t characters, most; /* characters of strings, over all parts */
} Text;
typedef enum { HAS_NONE, IS_CUT, IS_WHOLE } Outcome;

static void
put(Text *t, const char *s)
{
    size_t n = strlen(s);
    n = n < MOST_TEXT - t->used ? n : MOST_TEXT - t->used;
    memcpy(t->data + t->used, s, n);
    t->used += n;
}

static void
put_escaped(Text *t, Py_UCS4 c, Py_UCS4 quote, bool is_bytes)
{
    char s[16];
    if (c >= ' ' && c < 0x7f && c != quote && c != '\\') {
        t->data[t->used++] = (uint8_t)c;
        return;
    }
    if (c == quote || c == '\\')
        snprintf(s, sizeof s, "\\%c", (char)c);
    else if (c == '\n' || c == '\r' || c == '\t')
        snprintf(s, sizeof s, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (c <= 0xff && (is_bytes || !_PyUnicode_IsPrintable(c)))
        snprintf(s, sizeof s, "\\x%02x", (unsigned)c);
    else if (_PyUnicode_IsPrintable(c)) {
        t->used += put_character(t->data + t->used, c);
        return;
    }
    else
        snprintf(s, sizeof s, c <= 0xffff ? "\\u%04x" : "\\U%08x", (unsigned)c);
    put(t, s);
}

/* Of `data` with characters of `kind` bytes. */
static Outcome
put_quoted(Text *t, int kind, const void *data, Py_ssize_t length, bool is_bytes)
{
    size_t left = t->most - t->characters, n = (size_t)length < left ? (size_t)length : left;
    bool has_single = false, has_double = false;
    for (size_t i = 0; i < n; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, (Py_ssize_t)i);
        has_single |= c == '\'';
        has_double |= c == '"';
    }
    Py_UCS4 quote = has_single && !has_double ? '"' : '\'';
    char mark[2] = {(char)quote, 0};
    put(t, mark);
    size_t i = 0;
    for (; i < n && t->used < MOST_TEXT - 16; i++, t->characters++)
        put_escaped(t, PyUnicode_READ(kind, data, (Py_ssize_t)i), quote, is_bytes);
    put(t, mark);
    if (i == (size_t)length)
        return IS_WHOLE;
    put(t, "...");
    return IS_CUT;
}

static Outcome
put_str(Text *t, PyObject *o)
{
    return put_quoted(t, PyUnicode_KIND(o), PyUnicode_DATA(o), PyUnicode_GET_LENGTH(o), false);
}

static Outcome
put_bytes(Text *t, const char *data, Py_ssize_t n)
{
    put(t, "b");
    return put_quoted(t, PyUnicode_1BYTE_KIND, data, n, true);
}

/* The digits of an int, the lowest first, in base 2**30. */
static const digit *
digits_of(PyObject *o, Py_ssize_t *n, bool *is_negative)
{
    PyLongObject *v = (PyLongObject *)o;
#if PY_VERSION_HEX >= 0x030C0000
    *n = (Py_ssize_t)(v->long_value.lv_tag >> _PyLong_NON_SIZE_BITS);
    *is_negative = (v->long_value.lv_tag & 3) == 2;
    return v->long_value.ob_digit;
#else
    *n = Py_ABS(Py_SIZE(v));
    *is_negative = Py_SIZE(v) < 0;
    return v->ob_digit;
#endif
}

static Outcome
put_int(Text *t, PyObject *o)
{
    Py_ssize_t n;
    bool is_negative;
    const digit *digits = digits_of(o, &n, &is_negative);
    char s[16 * MOST_DIGITS], *at = s + sizeof s - 1;
    if (n > MOST_DIGITS) {
        snprintf(s, sizeof s, "<int of %zd bits>",
                 n * PyLong_SHIFT - __builtin_clz(digits[n - 1]) + (32 - PyLong_SHIFT));
        put(t, s);
        return IS_CUT;
    }
    digit left[MOST_DIGITS];
    memcpy(left, digits, (size_t)n * sizeof *left);
    *at = 0;
    do {
        uint64_t rest = 0;
        for (Py_ssize_t i = n; i-- > 0;) {
            uint64_t v = rest << PyLong_SHIFT | left[i];
            left[i] = (digit)(v / 10);
            rest = v % 10;
        }
        *--at = (char)('0' + rest);
        while (n > 0 && left[n - 1] == 0)
            n--;
    } while (n > 0);
    if (is_negative)
        *--at = '-';
    put(t, at);
    return IS_WHOLE;
}

static Outcome
put_float(Text *t, double v)
{
    char s[40];
    if (!isfinite(v))
        return HAS_NONE;
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(s, sizeof s, "%.*g", precision, v);
        if (strtod(s, NULL) == v)
            break;
    }
    if (strspn(s, "-0123456789") == strlen(s))
        strcat(s, ".0");
    put(t, s);
    return IS_WHOLE;
}

static const char *
constant_text(PyObject *o)
{
    return o == Py_None             ? "None"
           : o == Py_True           ? "True"
           : o == Py_False          ? "False"
           : o == Py_Ellipsis       ? "..."
           : o == Py_NotImplemented ? "NotImplemented"
                                    : NULL;
}

/* A constant, or a tuple of such. */
static Outcome
put_source(Text *t, PyObject *o, int depth)
{
    if (constant_text(o)) {
        put(t, constant_text(o));
        return o == Py_NotImplemented ? HAS_NONE : IS_WHOLE;
    }
    if (PyUnicode_CheckExact(o))
        return put_str(t, o);
    if (PyLong_CheckExact(o))
        return put_int(t, o);
    if (PyFloat_CheckExact(o))
        return put_float(t, PyFloat_AS_DOUBLE(o));
    if (PyBytes_CheckExact(o))
        return put_bytes(t, PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o));
    if (!PyTuple_CheckExact(o) || depth == MOST_DEPTH || PyTuple_GET_SIZE(o) > 16)
        return HAS_NONE;
    put(t, "(");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) {
        Outcome each = put_source(t, PyTuple_GET_ITEM(o, i), depth + 1);
        if (each != IS_WHOLE)
            return each;
        put(t, i + 1 < PyTuple_GET_SIZE(o) ? ", " : "");
    }
    put(t, PyTuple_GET_SIZE(o) == 1 ? ",)" : ")");
    return t->used < MOST_TEXT - 16 ? IS_WHOLE : IS_CUT;
}

static void
put_name(Text *t, PyObject *name)
{
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(name) && i < 500; i++)
        t->used += put_character(t->data + t->used, PyUnicode_READ_CHAR(name, i));
}

size_t
text_of_name(uint8_t *to, size_t room, PyObject *name)
{
    size_t used = 0;
    Py_ssize_t n = name && PyUnicode_Check(name) ? PyUnicode_GET_LENGTH(name) : 0;
    for (Py_ssize_t i = 0; i < n && used + 4 <= room; i++)
        used += put_character(to + used, PyUnicode_READ_CHAR(name, i));
    return used;
}

/* ---- steps ---- */

static uint32_t
label_of_text(const Text *t)
{
    return label_of(KIND_PLAIN, texts_place(&heap.strings, t->data, t->used));
}

static Text *
new_text(size_t most)
{
    static Text text;
    text.used = text.characters = 0;
    text.most = most;
    return &text;
}

uint32_t
label_text(const char *text)
{
    return label_of(KIND_PLAIN, texts_place(&heap.strings, (const uint8_t *)text, strlen(text)));
}

uint32_t
label_numbered(const char *before, uint64_t number, const char *after)
{
    char s[100];
    snprintf(s, sizeof s, "%s%llu%s", before, (unsigned long long)number, after);
    return label_text(s);
}

static void
put_variable(Text *t, const char *holder, PyObject *name)
{
    put(t, holder);
    put(t, "f_locals[");
    put_str(t, name);
    put(t, "]");
}

static uint32_t
make_label(int style, PyObject *name)
{
    Text *t = new_text(MOST_TEXT / 16);
    switch (style) {
    case STYLE_ATTRIBUTE:
        if (PyUnicode_IsIdentifier(name)) {
            put(t, ".");
            put_name(t, name);
        }
        else {
            put(t, ".__dict__[");
            put_str(t, name);
            put(t, "]");
        }
        break;
    case STYLE_KEY:
        t->most = heap.limits.text;
        put(t, "[");
        if (put_str(t, name) != IS_WHOLE)
            return 0;
        put(t, "]");
        break;
    case STYLE_LOCAL:
        put_variable(t, ".", name);
        break;
    case STYLE_GENERATOR:
        put_variable(t, ".gi_frame.", name);
        break;
    case STYLE_COROUTINE:
        put_variable(t, ".cr_frame.", name);
        break;
    case STYLE_ASYNCGEN:
        put_variable(t, ".ag_frame.", name);
        break;
    case STYLE_CELL:
        put(t, ".<cell ");
        put_name(t, name);
        put(t, ">");
        break;
    }
    return label_of_text(t);
}

uint32_t
label_named(int style, PyObject *name)
{
    uint64_t key = (uint64_t)(uintptr_t)name << 3 | (unsigned)style;
    PointerEntry *e = pointers_find(&heap.labels, key);
    if (e->key == 0) {
        uint32_t label = make_label(style, name);
        *e = (PointerEntry){key, label};
        heap.labels.used++;
        return label;
    }
    return e->value;
}

uint32_t
label_member(const char *name)
{
    Text *t = new_text(MOST_TEXT);
    put(t, ".");
    put(t, name);
    return label_of_text(t);
}

uint32_t
label_key(PyObject *key, Py_ssize_t at)
{
    if (PyUnicode_CheckExact(key)) {
        uint32_t label = label_named(STYLE_KEY, key);
        return label ? label : label_of(KIND_VALUE, (uint64_t)at);
    }
    if (PyLong_CheckExact(key)) {
        Py_ssize_t n;
        bool is_negative;
        const digit *digits = digits_of(key, &n, &is_negative);
        if (n == 0 || (n == 1 && !is_negative && digits[0] < MOST_LABEL))
            return label_of(KIND_INDEX, n ? digits[0] : 0);
    }
    Text *t = new_text(heap.limits.text);
    put(t, "[");
    if (put_source(t, key, 0) != IS_WHOLE)
        return label_of(KIND_VALUE, (uint64_t)at);
    put(t, "]");
    return label_of_text(t);
}

/* ---- values ---- */

enum { NO_VALUE, TEXT_VALUE, SMALL_VALUE, FLOAT_VALUE };

static uint32_t
text_value(const Text *t)
{
    return texts_place(&heap.strings, t->data, t->used) << 2 | TEXT_VALUE;
}

/* Behind what is cut: which whole it was, so that another one of equal length and beginning is another one. It is not
 * shown. */
static void
put_mark(Text *t, const void *whole, size_t size)
{
    uint64_t hash = size, word;
    const uint8_t *at = whole;
    for (; size >= 8; at += 8, size -= 8) {
        memcpy(&word, at, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    for (word = 0; size > 0; size--)
        word = word << 8 | *at++;
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    char mark[11];
    mark[0] = 0;
    snprintf(mark + 1, sizeof mark - 1, "#%08x", (unsigned)(hash >> 32));
    memcpy(t->data + t->used, mark, sizeof mark - 1);
    t->used += sizeof mark - 1;
}

static uint32_t
int_value(PyObject *o)
{
    Py_ssize_t n;
    bool is_negative;
    const digit *digits = digits_of(o, &n, &is_negative);
    if (n == 0 || (n == 1 && digits[0] < 1u << 28)) {
        uint32_t zigzag = n == 0 ? 0 : is_negative ? digits[0] * 2 - 1 : digits[0] * 2;
        return zigzag << 2 | SMALL_VALUE;
    }
    Text *t = new_text(heap.limits.text);
    if (put_int(t, o) == IS_CUT)
        put_mark(t, digits, (size_t)n * sizeof *digits);
    return text_value(t);
}

static uint32_t
name_value(PyObject *name)
{
    if (name == NULL || !PyUnicode_Check(name))
        return NO_VALUE;
    Text *t = new_text(0);
    put_name(t, name);
    return text_value(t);
}

static uint32_t
type_value(PyTypeObject *type)
{
    size_t place = type_facts(type)->name, begin = place ? ((uint32_t *)heap.types.ends.data)[place - 1] : 0;
    size_t n = ((uint32_t *)heap.types.ends.data)[place] - begin;
    return texts_place(&heap.strings, heap.types.data.data + begin, n) << 2 | TEXT_VALUE;
}

uint32_t
value_of(PyObject *o, How how)
{
    Text *t;
    switch (how) {
    case IS_INT:
        return int_value(o);
    case IS_FLOAT: {
        uint32_t place = (uint32_t)(heap.floats.used / 8);
        memcpy(column_room(&heap.floats, 8), &((PyFloatObject *)o)->ob_fval, 8);
        return place << 2 | FLOAT_VALUE;
    }
    case IS_STR:
        if (put_str(t = new_text(heap.limits.text), o) == IS_CUT)
            put_mark(t, PyUnicode_DATA(o), (size_t)PyUnicode_GET_LENGTH(o) * PyUnicode_KIND(o));
        return text_value(t);
    case IS_BYTES:
        if (put_bytes(t = new_text(heap.limits.text), PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o)) == IS_CUT)
            put_mark(t, PyBytes_AS_STRING(o), (size_t)PyBytes_GET_SIZE(o));
        return text_value(t);
    case IS_BYTEARRAY: {
        put(t = new_text(heap.limits.text), "bytearray(");
        Outcome outcome = put_bytes(t, PyByteArray_AS_STRING(o), PyByteArray_GET_SIZE(o));
        put(t, ")");
        if (outcome == IS_CUT)
            put_mark(t, PyByteArray_AS_STRING(o), (size_t)PyByteArray_GET_SIZE(o));
        return text_value(t);
    }
    case IS_CONSTANT:
        put(t = new_text(0), constant_text(o) ? constant_text(o) : "");
        return text_value(t);
    case IS_FUNCTION:
        return name_value(((PyFunctionObject *)o)->func_qualname);
    case IS_CODE:
        return name_value(((PyCodeObject *)o)->co_qualname);
    case IS_BUILTIN:
        put(t = new_text(0), ((PyCFunctionObject *)o)->m_ml->ml_name);
        return text_value(t);
    case IS_TYPE:
        return type_value((PyTypeObject *)o);
    case IS_MODULE:
        return name_value(((PyModuleObject *)o)->md_name);
    case IS_GENERATOR:
        return name_value(((PyGenObject *)o)->gi_qualname);
    default:
        return NO_VALUE;
    }
}

uint32_t
value_of_frame(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    Text *t = new_text(0);
    char line[40];
    put_name(t, code->co_qualname);
    snprintf(line, sizeof line, "() line %d", PyCode_Addr2Line(code, compat_frame_lasti(frame)));
    put(t, line);
    /* Its file decides whose call it is. */
    put(t, " of ");
    put_name(t, code->co_filename);
    return text_value(t);
}
