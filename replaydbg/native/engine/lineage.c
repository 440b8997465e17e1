/* What the types of exceptions inherit from: written once for each, that one can be asked for as `except` asks for it.
 */
#include "base/core.h"
#include "engine/inside.h"
#include "heap/heap.h"

#define MOST_BASES 64 /* at most this many of a lineage are reported */

/* Which number a type got, by what is written of it: one that has ended may have another one in its place. */
static struct {
    PyTypeObject *type; /* only compared, and only of types that cannot end */
    uint64_t hash;
    uint32_t number; /* from 1; 0: there is none in this slot */
} known[1024];
static uint32_t numbers;
static uint8_t text[MOST_BASES * TYPE_NAME_ROOM];

/* Returns the number of an exception's type. What it inherits from is written before, as a list of names, unless it
 * was; if another type has taken its slot since, it is written again and has another number. */
uint32_t
lineage_number(Buf *b, PyTypeObject *type)
{
    bool is_static = !(type->tp_flags & Py_TPFLAGS_HEAPTYPE);
    size_t at = (uintptr_t)type >> 4 & 1023;
    if (is_static && known[at].type == type)
        return known[at].number;
    size_t ends[MOST_BASES], n = 0, used = 0;
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro) && n < MOST_BASES; i++) {
        if (!PyType_Check(PyTuple_GET_ITEM(mro, i)))
            continue;
        used += heap_type_name(text + used, (PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        ends[n++] = used;
    }
    uint64_t hash = hash_bytes(ends, n * sizeof *ends, hash_bytes(text, used, 0));
    if (known[at].number && known[at].hash == hash)
        return known[at].number;
    report_list(b, n);
    for (size_t i = 0, from = 0; i < n; from = ends[i++])
        report_text(b, (const char *)text + from, ends[i] - from);
    known[at].type = is_static ? type : NULL;
    known[at].hash = hash;
    return known[at].number = ++numbers;
}
