/* Which objects of two runs are the same: from the roots along edges of one name, then by content
 * (heap/walks/path_matching.py).
 */
#include "pair.h"

enum { ROUNDS = 2, MOST_EDGES = 50 }; /* as in heap/walks/path_matching.py */

/* Not the same for the two in the other order, and for equal ones not always 0: small numbers, of types and texts, come
 * in both. */
static inline uint64_t
mixed(uint64_t hash, uint64_t more)
{
    hash = ((hash << 25 | hash >> 39) ^ more) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Texts and types are those of the snapshot after; what is there before alone gets a number that nothing has after. */
static inline uint64_t
known(const uint32_t *map, size_t count, uint32_t index)
{
    return index < count && map[index] != UNREACHED ? map[index] : (uint64_t)1 << 40 | index;
}

typedef struct {
    Pair pair;
    uint32_t *to_after, *to_before;
    uint64_t *sign, *sign_after, *other;
} Matcher;

static inline uint64_t
label_before(const Matcher *m, uint32_t label)
{
    return (label & 7) == 0 ? known(m->pair.texts, m->pair.text_count, label >> 4) << 4 | (label & 15) : label;
}

static uint64_t
value_sign(const Matcher *m, const Heap *heap, uint32_t node)
{
    uint32_t value = heap->value[node], index = value >> 2;
    int is_before = heap == &m->pair.before;
    switch (value & 3) {
    case TEXT:
        return mixed(TEXT, is_before ? known(m->pair.texts, m->pair.text_count, index) : index);
    case FLOAT:
        return mixed(FLOAT, index < heap->float_count ? heap->floats[index] : 0);
    default:
        return mixed(SMALL, value);
    }
}

/* The same for what is equal some steps deep. */
static void
sign_all(const Matcher *m, const Heap *heap, uint64_t **sign, uint64_t **spare)
{
    int is_before = heap == &m->pair.before;
    for (uint32_t i = 0; i < heap->count; i++) {
        uint64_t type = is_before ? known(m->pair.types, m->pair.type_count, heap->type[i]) : heap->type[i];
        (*sign)[i] = mixed(mixed(1, type), value_sign(m, heap, i));
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < heap->count; i++) {
            uint32_t first = heap->first[i], last = heap->first[i + 1];
            uint64_t hash = (*sign)[i];
            for (uint32_t e = first; e < last && e < first + MOST_EDGES; e++) {
                uint64_t label = is_before ? label_before(m, heap->label[e]) : heap->label[e];
                hash = mixed(mixed(hash, label), (*sign)[heap->target[e]]);
            }
            (*spare)[i] = hash;
        }
        uint64_t *done = *sign;
        *sign = *spare;
        *spare = done;
    }
}

static inline int
take(Matcher *m, uint32_t i, uint32_t j)
{
    if (m->to_after[i] != UNREACHED || m->to_before[j] != UNREACHED || !is_type_equal(&m->pair, i, j)) {
        return 0;
    }
    m->to_after[i] = j;
    m->to_before[j] = i;
    return 1;
}

/* ---- the children of a matched pair ---- */

typedef struct {
    uint64_t key;
    uint32_t target, next; /* the next one of this key, for those after */
} Child;

typedef struct {
    Child *old, *new;
    uint32_t *slots; /* a table of those after, by key */
    uint32_t old_count, new_count;
} Children;

/* Match targets of equal keys, in order, where they are not matched yet. */
static uint32_t
pair_up(Matcher *m, Children *c, uint32_t *queue, uint32_t end)
{
    size_t mask = 15;
    while (mask < (size_t)c->new_count * 2) {
        mask = mask * 2 + 1;
    }
    memset(c->slots, 0xff, (mask + 1) * sizeof *c->slots);
    for (uint32_t k = c->new_count; k-- > 0;) {
        if (m->to_before[c->new[k].target] != UNREACHED) {
            continue;
        }
        size_t slot = mixed(2, c->new[k].key) & mask;
        while (c->slots[slot] != UNREACHED && c->new[c->slots[slot]].key != c->new[k].key) {
            slot = (slot + 1) & mask;
        }
        c->new[k].next = c->slots[slot];
        c->slots[slot] = k;
    }
    for (uint32_t k = 0; k < c->old_count; k++) {
        uint32_t target = c->old[k].target;
        size_t slot = mixed(2, c->old[k].key) & mask;
        while (c->slots[slot] != UNREACHED && c->new[c->slots[slot]].key != c->old[k].key) {
            slot = (slot + 1) & mask;
        }
        while (c->slots[slot] != UNREACHED && m->to_after[target] == UNREACHED) {
            uint32_t place = c->slots[slot];
            Child *other = &c->new[place];
            if (other->next == place) {
                break;
            }
            if (take(m, target, other->target)) {
                queue[end++] = target;
            }
            /* A key keeps its slot: that its last one was tried is marked by a loop. */
            if (other->next == UNREACHED) {
                other->next = place;
            }
            else {
                c->slots[slot] = other->next;
            }
        }
    }
    return end;
}

static inline int
is_leaf(const Heap *heap, uint32_t node)
{
    return (heap->value[node] & 3) != NO_VALUE && heap->first[node] == heap->first[node + 1];
}

typedef enum { LABEL_AND_CONTENT, CONTENT, LABEL_ALONE } Pass;

static void
fill(const Matcher *m, Children *c, uint32_t i, uint32_t j, Pass pass)
{
    const Heap *before = &m->pair.before, *after = &m->pair.after;
    c->old_count = c->new_count = 0;
    for (uint32_t e = before->first[i]; e < before->first[i + 1]; e++) {
        uint32_t target = before->target[e];
        int is_out = m->to_after[target] != UNREACHED || (pass == CONTENT && (before->label[e] & 7) == 0) ||
                     (pass == LABEL_ALONE && is_leaf(before, target));
        if (!is_out) {
            uint64_t label = pass == CONTENT ? 0 : label_before(m, before->label[e]);
            uint64_t key = pass == LABEL_ALONE ? label : mixed(label, m->sign[target]);
            c->old[c->old_count++] = (Child){key, target, UNREACHED};
        }
    }
    for (uint32_t e = after->first[j]; c->old_count > 0 && e < after->first[j + 1]; e++) {
        uint32_t target = after->target[e];
        int is_out = m->to_before[target] != UNREACHED || (pass == CONTENT && (after->label[e] & 7) == 0) ||
                     (pass == LABEL_ALONE && is_leaf(after, target));
        if (!is_out) {
            uint64_t label = pass == CONTENT ? 0 : after->label[e];
            uint64_t key = pass == LABEL_ALONE ? label : mixed(label, m->sign_after[target]);
            c->new[c->new_count++] = (Child){key, target, UNREACHED};
        }
    }
}

static void
walk_pairs(Matcher *m, Children *c, uint32_t *queue, uint32_t end)
{
    for (uint32_t at = 0; at < end; at++) {
        uint32_t i = queue[at], j = m->to_after[i];
        for (Pass pass = LABEL_AND_CONTENT; pass <= LABEL_ALONE; pass++) {
            fill(m, c, i, j, pass);
            if (c->old_count > 0 && c->new_count > 0) {
                end = pair_up(m, c, queue, end);
            }
        }
    }
}

static uint32_t
most_edges(const Heap *heap)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < heap->count; i++) {
        uint32_t edges = heap->first[i + 1] - heap->first[i];
        most = edges > most ? edges : most;
    }
    return most;
}

static PyObject *
match_paths(Matcher *m, const Column *roots)
{
    size_t count = m->pair.before.count, count_after = m->pair.after.count,
           larger = count > count_after ? count : count_after;
    size_t old = most_edges(&m->pair.before), new = most_edges(&m->pair.after), slots = 16;
    while (slots <= new * 2) {
        slots *= 2;
    }
    PyObject *to_after = new_column(count, 4), *to_before = new_column(count_after, 4);
    uint64_t *signs = PyMem_RawMalloc((3 * larger + 1) * sizeof *signs);
    Child *children = PyMem_RawMalloc((old + new + 1) * sizeof *children);
    uint32_t *numbers = PyMem_RawMalloc((slots * 2 + count + 1) * sizeof *numbers);
    if (to_after == NULL || to_before == NULL || signs == NULL || children == NULL || numbers == NULL) {
        Py_CLEAR(to_after);
        PyErr_NoMemory();
    }
    else {
        Children c = {.old = children, .new = children + old, .slots = numbers};
        uint32_t *queue = numbers + slots * 2, end = 0;
        m->to_after = OUT32(to_after);
        m->to_before = OUT32(to_before);
        m->sign = signs;
        m->sign_after = signs + larger;
        m->other = signs + 2 * larger;
        Py_BEGIN_ALLOW_THREADS memset(m->to_after, 0xff, count * 4);
        memset(m->to_before, 0xff, count_after * 4);
        sign_all(m, &m->pair.before, &m->sign, &m->other);
        sign_all(m, &m->pair.after, &m->sign_after, &m->other);
        for (size_t k = 0; k + 1 < roots->length; k += 2) {
            if (take(m, U32(*roots)[k], U32(*roots)[k + 1])) {
                queue[end++] = U32(*roots)[k];
            }
        }
        walk_pairs(m, &c, queue, end);
        Py_END_ALLOW_THREADS
    }
    PyMem_RawFree(signs);
    PyMem_RawFree(children);
    PyMem_RawFree(numbers);
    return two_columns(to_after, to_before);
}

PyObject *
graph_match_paths(PyObject *module, PyObject *args)
{
    PyObject *heaps[2], *objects[3], *found = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO:match_paths", &heaps[0], &heaps[1], &objects[0], &objects[1], &objects[2])) {
        return NULL;
    }
    Column columns[2 * COLUMNS + 3] = {0};
    Column *rest = columns + 2 * COLUMNS;
    Matcher m = {0};
    int is_wrong =
        heap_make(heaps[0], columns, &m.pair.before) < 0 || heap_make(heaps[1], columns + COLUMNS, &m.pair.after) < 0;
    for (int i = 0; i < 3 && !is_wrong; i++) {
        is_wrong = column_get(objects[i], 4, "matching", &rest[i]) < 0;
    }
    if (!is_wrong) {
        m.pair.types = U32(rest[0]);
        m.pair.type_count = rest[0].length;
        m.pair.texts = U32(rest[1]);
        m.pair.text_count = rest[1].length;
        int is_outside = rest[2].length % 2 != 0;
        for (size_t k = 0; k < rest[2].length && !is_outside; k++) {
            is_outside = U32(rest[2])[k] >= (k % 2 ? m.pair.after.count : m.pair.before.count);
        }
        if (is_outside) {
            PyErr_SetString(PyExc_ValueError, "a root leads out of the graph");
        }
        else {
            found = match_paths(&m, &rest[2]);
        }
    }
    columns_release(columns, 2 * COLUMNS + 3);
    return found;
}
