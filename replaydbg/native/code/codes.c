/* What is known of each code object while lines or ticks are counted: found by its address, forgotten when it dies. The
 * type's deallocator is wrapped for that: the program sees nothing of it, where an extra hung on the code object would
 * change its sys.getsizeof(). No reference to the program's code is held. */
#include "code/inside.h"
#include <stdlib.h>

CodeFacts *code_last; /* most lines run in the code object in which the one before ran */

static struct {
    CodeFacts **buckets;
    size_t size, used; /* size is a power of two */
} table;
static destructor original_dealloc;
static CodeWatcher watchers[2];
static int watcher_count;

static inline size_t
bucket_of(PyCodeObject *code)
{
    return ((uintptr_t)code >> 5) * 0x9E3779B97F4A7C15u >> 24 & (table.size - 1);
}

static void
grow(void)
{
    size_t old_size = table.size;
    CodeFacts **old = table.buckets;
    table.size = old_size ? old_size * 2 : 4096;
    table.buckets = calloc(table.size, sizeof *table.buckets);
    if (table.buckets == NULL)
        Py_FatalError("replaydbg: out of memory for the step clock");
    for (size_t i = 0; i < old_size; i++)
        for (CodeFacts *f = old[i], *next; f; f = next) {
            next = f->next;
            CodeFacts **slot = &table.buckets[bucket_of(f->code)];
            f->next = *slot;
            *slot = f;
        }
    free(old);
}

bool codes_command;

/* Python that came with the interpreter or was installed: where the program's own is meant, this is not. See
 * replaydbg/installed.py. */
bool
code_is_library(PyCodeObject *code)
{
    static const char *const marks[] = {"/lib/python3.", "/lib64/python3.", "/site-packages/", "/dist-packages/"};
    char file[LONGEST_NAME];
    text_copy(file, sizeof file, code->co_filename);
    if (file[0] == '<')
        return !(codes_command && strcmp(file, "<string>") == 0);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(file, marks[i]))
            return true;
    return false;
}

/* The importer's own Python: how many lines of it run depends on what is cached (byte code, directory listings), which
 * is no part of what the program does; nobody looks for a moment there. */
static bool
is_importers(PyCodeObject *code)
{
    static const char *const names[] = {"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>",
                                        "<frozen zipimport>"};
    if (!PyUnicode_Check(code->co_filename) || PyUnicode_READ_CHAR(code->co_filename, 0) != '<')
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (PyUnicode_CompareWithASCIIString(code->co_filename, names[i]) == 0)
            return true;
    return false;
}

CodeFacts *
code_facts_find(PyCodeObject *code)
{
    if (table.size) {
        for (CodeFacts *f = table.buckets[bucket_of(code)]; f; f = f->next)
            if (f->code == code)
                return code_last = f;
    }
    if (table.used >= table.size)
        grow();
    CodeFacts *f = calloc(1, sizeof *f);
    if (f == NULL)
        Py_FatalError("replaydbg: out of memory for the step clock");
    f->code = code;
    f->hash = code_identity(code);
    f->is_importers = is_importers(code);
    f->is_library = code_is_library(code);
    CodeFacts **slot = &table.buckets[bucket_of(code)];
    f->next = *slot;
    *slot = f;
    table.used++;
    for (int i = 0; i < watcher_count; i++)
        if (watchers[i].born)
            watchers[i].born(f);
    return code_last = f;
}

static void
dealloc(PyObject *code)
{
    for (CodeFacts **slot = &table.buckets[bucket_of((PyCodeObject *)code)]; *slot; slot = &(*slot)->next)
        if ((*slot)->code == (PyCodeObject *)code) {
            CodeFacts *f = *slot;
            for (int i = 0; i < watcher_count; i++)
                if (watchers[i].dies)
                    watchers[i].dies(f);
            *slot = f->next;
            table.used--;
            if (code_last == f)
                code_last = NULL;
            free(f->cells);
            free(f);
            break;
        }
    original_dealloc(code);
}

void
codes_watch(CodeWatcher watcher)
{
    if (table.size == 0)
        grow();
    if (original_dealloc == NULL) {
        original_dealloc = PyCode_Type.tp_dealloc;
        PyCode_Type.tp_dealloc = dealloc;
    }
    watchers[watcher_count++] = watcher;
}

void
codes_each(void (*visit)(CodeFacts *))
{
    for (size_t i = 0; i < table.size; i++)
        for (CodeFacts *f = table.buckets[i]; f; f = f->next)
            visit(f);
}

/* ---- lines ---- */

static unsigned
table_varint(const uint8_t **p)
{
    unsigned v = **p & 63, shift = 0;
    while (*(*p)++ & 64)
        v |= (unsigned)(**p & 63) << (shift += 6);
    return v;
}

static int
table_signed(const uint8_t **p)
{
    unsigned v = table_varint(p);
    return v & 1 ? -(int)(v >> 1) : (int)(v >> 1);
}

/* The table of locations, as CPython's Objects/locations.md describes it; the interpreter's own reader is not exported,
 * and asking it line by line begins at the start each time. */
void
code_lines(PyCodeObject *code, void (*visit)(void *to, int unit, int units, int line), void *to)
{
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(code->co_linetable),
                  *end = p + PyBytes_GET_SIZE(code->co_linetable);
    int line = code->co_firstlineno, unit = 0;
    while (p < end) {
        int units = (*p & 7) + 1, kind = *p >> 3 & 15;
        bool has_line = kind != 15;
        p++;
        if (kind == 14 || kind == 13)
            line += table_signed(&p);
        else if (kind >= 10 && kind <= 12)
            line += kind - 10;
        while (p < end && !(*p & 0x80)) /* columns; an entry's first byte alone has the high bit */
            p++;
        visit(to, unit, units, has_line ? line : -1);
        unit += units;
    }
}
