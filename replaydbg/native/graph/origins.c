/* Whose each object is, by the way to it; and which chosen objects no chosen object alone holds. */
#include "graph.h"

typedef struct {
    const uint32_t *parent, *via, *label, *type, *ends;
    const uint8_t *data, *of_root, *of_type;
    uint32_t count;
    size_t data_size;
} Ways;

/* Kind 0 is a label whose text stands in the table; an attribute begins with a dot. */
static inline int
is_attribute(const Ways *w, uint32_t edge)
{
    uint32_t label = w->label[edge], text = label >> 4;
    if ((label & 7) != 0) {
        return 0;
    }
    uint32_t begin = text ? w->ends[text - 1] : 0;
    return begin < w->ends[text] && w->data[begin] == '.';
}

/* Up to what is known, and down again: the tree of shortest paths may be a million steps deep. */
static void
walk_ways(const Ways *w, uint32_t *way, uint8_t *origin)
{
    memset(origin, 0xff, w->count);
    for (uint32_t node = 0; node < w->count; node++) {
        uint32_t depth = 0, at = node;
        while (origin[at] == 0xff) {
            uint32_t above = w->parent[at];
            if (above == UNREACHED || above == w->count) {
                origin[at] = above == UNREACHED ? 0 : w->of_root[w->via[at]];
                break;
            }
            way[depth++] = at;
            at = above;
        }
        uint8_t found = origin[at];
        while (depth > 0) {
            uint32_t below = way[--depth];
            if (found == 0 && is_attribute(w, w->via[below])) {
                found = w->of_type[w->type[at]];
            }
            origin[below] = found;
            at = below;
        }
    }
}

/* Whether every number leads somewhere, and every way upwards ends. */
static int
ways_check(const Ways *w, const Column *c)
{
    size_t count = c[0].length, edges = c[2].length, texts = c[5].length;
    int is_wrong = count > INT32_MAX || c[1].length != count || c[3].length != count;
    uint32_t last = 0;
    for (size_t i = 0; i < texts && !is_wrong; i++) {
        is_wrong = w->ends[i] < last || w->ends[i] > w->data_size;
        last = w->ends[i];
    }
    for (size_t i = 0; i < edges && !is_wrong; i++) {
        is_wrong = (w->label[i] & 7) == 0 && w->label[i] >> 4 >= texts;
    }
    uint32_t *turned = is_wrong ? NULL : PyMem_RawCalloc(count + 1, sizeof *turned);
    for (size_t i = 0; i < count && !is_wrong; i++) {
        uint32_t above = w->parent[i];
        is_wrong = w->type[i] >= c[7].length || turned == NULL;
        if (above == count) {
            is_wrong |= w->via[i] >= c[6].length;
        }
        else if (above != UNREACHED) {
            is_wrong |= above > count || w->via[i] >= edges;
        }
    }
    /* A ring has no end: each node is given the number of the first one that came to it. */
    for (size_t i = 0; i < count && !is_wrong; i++) {
        for (uint32_t at = (uint32_t)i; at != UNREACHED && at != count && turned[at] != i + 1;) {
            if (turned[at] != 0) {
                break;
            }
            turned[at] = (uint32_t)i + 1;
            uint32_t above = w->parent[at];
            is_wrong |= above < count && turned[above] == i + 1;
            at = above;
        }
    }
    PyMem_RawFree(turned);
    if (is_wrong) {
        PyErr_SetString(PyExc_ValueError, "the columns of ways do not fit");
        return -1;
    }
    return 0;
}

PyObject *
graph_origins(PyObject *module, PyObject *args)
{
    static const Py_ssize_t width[8] = {4, 4, 4, 4, 1, 4, 1, 1};
    static const char *const name[8] = {"parent", "via", "label", "type", "data", "ends", "of_root", "of_type"};
    PyObject *o[8], *found = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOOOO:origins", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6], &o[7])) {
        return NULL;
    }
    Column c[8] = {0};
    int is_wrong = 0;
    for (int i = 0; i < 8 && !is_wrong; i++) {
        is_wrong = column_get(o[i], width[i], name[i], &c[i]) < 0;
    }
    if (!is_wrong) {
        Ways ways = {
            .parent = U32(c[0]),
            .via = U32(c[1]),
            .label = U32(c[2]),
            .type = U32(c[3]),
            .data = U8(c[4]),
            .ends = U32(c[5]),
            .of_root = U8(c[6]),
            .of_type = U8(c[7]),
            .count = (uint32_t)c[0].length,
            .data_size = c[4].length,
        };
        if (ways_check(&ways, c) == 0 && (found = new_column(ways.count, 1)) != NULL) {
            uint32_t *way = PyMem_RawMalloc(((size_t)ways.count + 1) * sizeof *way);
            if (way == NULL) {
                Py_CLEAR(found);
                PyErr_NoMemory();
            }
            else {
                walk_ways(&ways, way, (uint8_t *)PyBytes_AS_STRING(found));
            }
            PyMem_RawFree(way);
        }
    }
    columns_release(c, 8);
    return found;
}

PyObject *
graph_tops(PyObject *module, PyObject *args)
{
    PyObject *dominator, *chosen, *found = NULL;
    if (!PyArg_ParseTuple(args, "OO:tops", &dominator, &chosen)) {
        return NULL;
    }
    Column c[2] = {0};
    if (column_get(dominator, 4, "dominator", &c[0]) == 0 && column_get(chosen, 1, "chosen", &c[1]) == 0) {
        size_t count = c[0].length, tops = 0;
        uint32_t *nodes = c[1].length == count ? PyMem_RawMalloc(count * sizeof *nodes + 1) : NULL;
        if (nodes == NULL) {
            PyErr_SetString(PyExc_ValueError, "there is not one choice for each node");
        }
        else {
            for (size_t i = 0; i < count; i++) {
                uint32_t above = U32(c[0])[i];
                if (U8(c[1])[i] && above != UNREACHED && (above >= count || !U8(c[1])[above])) {
                    nodes[tops++] = (uint32_t)i;
                }
            }
            found = PyBytes_FromStringAndSize((const char *)nodes, (Py_ssize_t)(tops * 4));
        }
        PyMem_RawFree(nodes);
    }
    columns_release(c, 2);
    return found;
}
