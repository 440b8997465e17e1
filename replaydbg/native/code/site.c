/* Where in the source a crossing happens: code object and instruction, interned. A site is found in a direct-mapped
 * cache by the address of the instruction; when a code object dies the cache is emptied, so that a new one at the same
 * address is not taken for it. No reference to the program's code is held. */
#include "base/core.h"
#include "code/inside.h"
#include "log/log.h"
#include <stdlib.h>
#if PY_VERSION_HEX < 0x030C0000
#define NEED_OPCODE_TABLES 1 /* the interpreter does not export its own */
#include <internal/pycore_opcode.h>
#include <opcode.h>
#endif

#define CACHE_SIZE 8192 /* a power of two; programs have 20 to 700 sites (measured on a dozen real ones) */

typedef struct {
    const void *instr;
    uint32_t gate, site;
    uint64_t hash;
} CacheEntry;
static CacheEntry cache[CACHE_SIZE];

typedef struct { /* what hangs on a code object, freed with it */
    uint64_t hash;
    uint32_t id;
} CodeNote;

static IdMap site_ids, code_ids;
static uint32_t sites_defined, codes_defined;

/* ---- code objects ---- */

void
site_forget_code(void *extra)
{
    if (extra == NULL)
        return; /* other owners' data made room for ours, which this code object never had */
    free(extra);
    memset(cache, 0, sizeof cache);
    stacks_forget();
}

/* A text in UTF-8 that keeps lone surrogates, as the log has it; an exception that is on its way stays. */
static PyObject *
text_bytes(PyObject *text)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *bytes = text && PyUnicode_Check(text) ? PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass") : NULL;
    PyErr_Restore(type, value, traceback);
    return bytes;
}

uint64_t
hash_text(PyObject *text, uint64_t seed)
{
    if (text && PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text))
        return hash_bytes(PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text), seed);
    PyObject *bytes = text_bytes(text);
    if (bytes)
        seed = hash_bytes(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), seed);
    Py_XDECREF(bytes);
    return seed;
}

static void
put_text(Buf *b, PyObject *text)
{
    PyObject *bytes = text_bytes(text);
    if (bytes)
        buf_str(b, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    else
        buf_str(b, "?", 1);
    Py_XDECREF(bytes);
}

static void
emit(Buf *b)
{
    uint8_t *p = log_room(&event_log, b->used);
    if (p) {
        memcpy(p, b->data, b->used);
        log_commit(&event_log, p + b->used);
    }
    b->used = 0;
}

uint64_t
code_identity(PyCodeObject *code)
{
    return hash_text(code->co_filename, hash_text(code->co_qualname, (uint64_t)code->co_firstlineno));
}

/* The interpreter calls the free function of every index for which a code object has room, with NULL where nothing was
 * set; and _PyCode_SetExtra() makes room for all indexes that there are. So it is not called for a code object that has
 * no data yet: other owners would hear of code to which they attached nothing, after the program's end too, when their
 * function may be gone. Room is made here, up to our own index, which is the first; another owner's _PyCode_SetExtra()
 * extends it. */
typedef struct { /* private to CPython's codeobject.c, the same from 3.11 to 3.13 */
    Py_ssize_t size;
    void *data[];
} CodeExtra;

static int
attach_note(PyCodeObject *code, CodeNote *note)
{
    if (code->co_extra)
        return CODE_SET_EXTRA((PyObject *)code, core.code_extra, note);
    size_t places = (size_t)core.code_extra + 1;
    CodeExtra *extra = PyMem_Calloc(1, sizeof *extra + places * sizeof *extra->data);
    if (extra == NULL)
        return -1;
    extra->size = (Py_ssize_t)places;
    extra->data[core.code_extra] = note;
    code->co_extra = (void *)extra;
    return 0;
}

static CodeNote *
code_note(PyCodeObject *code)
{
    CodeNote *note = NULL;
    CODE_GET_EXTRA((PyObject *)code, core.code_extra, (void **)&note);
    if (note)
        return note;
    note = calloc(1, sizeof *note);
    if (note == NULL)
        Py_FatalError("replaydbg: out of memory for sites");
    note->hash = code_identity(code);
    if (attach_note(code, note) < 0)
        Py_FatalError("replaydbg: out of memory for sites");
    return note;
}

bool
site_hear_of_end(PyCodeObject *code)
{
    return code_note(code) != NULL;
}

static uint32_t
code_id(PyCodeObject *code, CodeNote *note)
{
    if (note->id)
        return note->id;
    uint32_t *slot = idmap_slot(&code_ids, note->hash);
    if (!*slot) {
        static Buf b;
        *slot = ++codes_defined;
        buf_varint(&b, DEFINES_CODE << 2 | 3u);
        put_text(&b, code->co_filename);
        put_text(&b, code->co_qualname);
        buf_varint(&b, (uint64_t)code->co_firstlineno);
        emit(&b);
    }
    return note->id = *slot;
}

/* Of a PRECALL its CALL: see frame_place(). */
int
call_place(PyCodeObject *code, int lasti)
{
#if PY_VERSION_HEX < 0x030C0000
    const _Py_CODEUNIT *units = _PyCode_CODE(code);
    int unit = lasti / (int)sizeof *units;
    bool is_inside = lasti >= 0 && unit < Py_SIZE(code);
    if (is_inside && _PyOpcode_Deopt[_Py_OPCODE(units[unit])] == PRECALL)
        return (unit + 1 + _PyOpcode_Caches[PRECALL]) * (int)sizeof *units;
#endif
    return lasti;
}

/* The instruction that a frame executes, the same whether it is traced or not. 3.11 runs the general form of every
 * instruction while a trace function is set: a call happens at CALL then, and at the PRECALL before it in the
 * specialised forms; and two stores are two instructions, otherwise one. */
int
frame_place(_PyInterpreterFrame *frame)
{
    int lasti = call_place(compat_frame_code(frame), compat_frame_lasti(frame));
#if PY_VERSION_HEX < 0x030C0000
    const _Py_CODEUNIT *code = _PyCode_CODE(compat_frame_code(frame));
    int unit = lasti / (int)sizeof *code, first = 0;
    if (lasti < 0)
        return lasti;
    if (_PyOpcode_Deopt[_Py_OPCODE(code[unit])] == STORE_FAST) {
        bool in_run = false; /* from the start: what lies before an instruction may be a cache of any content */
        for (int i = 0; i <= unit; i += 1 + _PyOpcode_Caches[_PyOpcode_Deopt[_Py_OPCODE(code[i])]]) {
            bool stores = _PyOpcode_Deopt[_Py_OPCODE(code[i])] == STORE_FAST;
            first = stores && !in_run ? i : first;
            in_run = stores;
        }
        unit = first;
    }
    lasti = unit * (int)sizeof *code;
#endif
    return lasti;
}

/* ---- sites ---- */

static uint64_t
site_hash(int gate, uint64_t code_hash, int lasti)
{
    uint64_t key[3] = {(uint64_t)gate, code_hash, (uint64_t)lasti};
    return hash_bytes(key, sizeof key, 0);
}

static uint32_t
site_id(int gate, unsigned shape, PyCodeObject *code, CodeNote *note, int lasti, uint64_t hash)
{
    uint32_t *slot = idmap_slot(&site_ids, hash);
    if (!*slot) {
        static Buf b;
        uint32_t code_number = code ? code_id(code, note) : 0;
        *slot = ++sites_defined;
        buf_varint(&b, DEFINES_SITE << 2 | 3u);
        buf_varint(&b, (uint64_t)gate);
        buf_varint(&b, code_number);
        buf_varint(&b, (uint64_t)lasti);
        buf_varint(&b, code ? (uint64_t)PyCode_Addr2Line(code, lasti) : 0);
        buf_varint(&b, shape);
        emit(&b);
    }
    return *slot;
}

static uint32_t
site_slow(int gate, unsigned shape, _PyInterpreterFrame *frame, CacheEntry *entry, uint64_t *hash)
{
    PyCodeObject *code = frame ? compat_frame_code(frame) : NULL;
    CodeNote *note = code ? code_note(code) : NULL;
    int lasti = code ? frame_place(frame) : 0;
    uint64_t h = site_hash(gate, note ? note->hash : 0, lasti);
    entry->site = core.mode == RECORD ? site_id(gate, shape, code, note, lasti, h) : 0;
    entry->instr = code ? compat_frame_instr(frame) : NULL;
    entry->gate = (uint32_t)gate;
    entry->hash = h;
    *hash = h;
    return entry->site;
}

uint32_t
site_here(int gate, unsigned shape, uint64_t *hash)
{
    _PyInterpreterFrame *frame = compat_top_frame(core.tstate);
    const void *instr = frame ? compat_frame_instr(frame) : NULL;
    CacheEntry *entry = &cache[(((uintptr_t)instr >> 1) + (uintptr_t)gate * 2039u) & (CACHE_SIZE - 1)];
    if (instr && entry->instr == instr && entry->gate == (uint32_t)gate) {
        *hash = entry->hash;
        return entry->site;
    }
    return site_slow(gate, shape, frame, entry, hash);
}

/* ---- what the log defines, in replay ---- */
typedef struct {
    uint64_t hash;
    uint32_t gate, shape;
} RecordedSite;
static RecordedSite *recorded;
static size_t recorded_size;
static uint64_t *recorded_codes;
static size_t recorded_codes_size;

static bool
read_text_hash(const uint8_t **p, const uint8_t *end, uint64_t seed, uint64_t *hash)
{
    bool ok = true;
    uint64_t n = read_varint(p, end, &ok);
    if (!ok || n > (uint64_t)(end - *p))
        return false;
    *hash = hash_bytes(*p, n, seed);
    *p += n;
    return true;
}

int
code_define(const uint8_t **p, const uint8_t *end)
{
    bool ok = true;
    uint64_t n, hash;
    n = read_varint(p, end, &ok);
    const uint8_t *file = *p;
    if (!ok || n > (uint64_t)(end - *p))
        return -1;
    *p += n;
    const uint8_t *name = *p;
    if (!read_text_hash(p, end, 0, &hash))
        return -1;
    uint64_t line = read_varint(p, end, &ok);
    const uint8_t *q = name;
    if (!ok || !read_text_hash(&q, end, line, &hash))
        return -1;
    if (codes_defined + 1 >= recorded_codes_size) {
        recorded_codes_size = recorded_codes_size ? recorded_codes_size * 2 : 256;
        recorded_codes = grown(recorded_codes, recorded_codes_size, sizeof *recorded_codes);
    }
    recorded_codes[++codes_defined] = hash_bytes(file, n, hash);
    return 0;
}

int
site_define(const uint8_t **p, const uint8_t *end)
{
    bool ok = true;
    uint64_t gate = read_varint(p, end, &ok), code = read_varint(p, end, &ok), lasti = read_varint(p, end, &ok);
    read_varint(p, end, &ok);
    uint64_t shape = read_varint(p, end, &ok);
    if (!ok || code > codes_defined)
        return -1;
    if (sites_defined + 1 >= recorded_size) {
        recorded_size = recorded_size ? recorded_size * 2 : 256;
        recorded = grown(recorded, recorded_size, sizeof *recorded);
    }
    uint64_t key[3] = {gate, code ? recorded_codes[code] : 0, lasti};
    recorded[++sites_defined] = (RecordedSite){hash_bytes(key, sizeof key, 0), (uint32_t)gate, (uint32_t)shape};
    return 0;
}

void
sites_forget_definitions(void)
{
    sites_defined = codes_defined = 0;
}

/* Numbers count on. What was defined before is defined once more where it is met again: it has another number then. */
void
sites_continue(void)
{
    memset(cache, 0, sizeof cache);
}

uint64_t
site_recorded_hash(uint32_t id)
{
    return id && id <= sites_defined ? recorded[id].hash : 0;
}

int
site_recorded_gate(uint32_t id)
{
    return id && id <= sites_defined ? (int)recorded[id].gate : 0;
}

unsigned
site_recorded_shape(uint32_t id)
{
    return id && id <= sites_defined ? recorded[id].shape : 0;
}
