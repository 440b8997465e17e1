/* The tree of the best paths from the roots, dominators, and what groups of objects retain together. */
#include "graph.h"
#include <stdbool.h>

/* ---- which edges hold ---- */

/* Bit 3 of a label: the edge is weak (heap/labels.py). It becomes a loop, which changes nothing in any walk here. */
static void
keep_strong(const Graph *graph, const uint32_t *label, uint32_t *strong)
{
    for (uint32_t node = 0; node < graph->count; node++) {
        for (uint32_t edge = graph->first[node]; edge < graph->first[node + 1]; edge++) {
            strong[edge] = label[edge] & 8 ? node : graph->target[edge];
        }
    }
}

static bool
one_label_each(const Column *label, const Column *target)
{
    if (label->length != target->length) {
        PyErr_SetString(PyExc_ValueError, "there is not one label for each edge");
    }
    return label->length == target->length;
}

PyObject *
graph_strong(PyObject *module, PyObject *args)
{
    PyObject *first, *target, *label, *strong = NULL;
    if (!PyArg_ParseTuple(args, "OOO:strong", &first, &target, &label)) {
        return NULL;
    }
    Column columns[3] = {0};
    Graph graph;
    if (column_get(first, 4, "first_edge", &columns[0]) == 0 && column_get(target, 4, "target", &columns[1]) == 0 &&
        column_get(label, 4, "label", &columns[2]) == 0 && graph_make(&columns[0], &columns[1], NULL, &graph) == 0 &&
        one_label_each(&columns[2], &columns[1])) {
        strong = new_column(columns[1].length, 4);
        if (strong != NULL) {
            keep_strong(&graph, U32(columns[2]), OUT32(strong));
        }
    }
    columns_release(columns, 3);
    return strong;
}

/* ---- the tree of the best paths ---- */

typedef struct {
    const Graph *graph;
    const uint32_t *label; /* of each edge */
    uint32_t *parent, *via, *queue, end;
} Paths;

/* Add the nodes to which a node's edges with a name lead, or those without one (labels of kind 4, heap/labels.py). */
static void
add_targets(Paths *paths, uint32_t node, bool is_nameless)
{
    const Graph *graph = paths->graph;
    for (uint32_t edge = graph->first[node]; edge < graph->first[node + 1]; edge++) {
        uint32_t to = graph->target[edge];
        if (paths->parent[to] == UNREACHED && ((paths->label[edge] & 7) == 4) == is_nameless) {
            paths->parent[to] = node;
            paths->via[to] = edge;
            paths->queue[paths->end++] = to;
        }
    }
}

/* All that the nodes behind `at` reach: where names lead to a node, a way by names is taken, however long it is. */
static void
grow(Paths *paths, uint32_t at)
{
    for (uint32_t behind = at; at < paths->end; behind = at) {
        for (; at < paths->end; at++) {
            add_targets(paths, paths->queue[at], false);
        }
        for (; behind < at; behind++) {
            add_targets(paths, paths->queue[behind], true);
        }
    }
}

static void
walk_tree(Paths *paths, uint32_t preferred)
{
    const Graph *graph = paths->graph;
    memset(paths->parent, 0xff, graph->count * sizeof *paths->parent);
    memset(paths->via, 0, graph->count * sizeof *paths->via);
    /* First the preferred roots; when all that they reach is done, the others. */
    for (uint32_t place = 0, most = preferred; place < graph->root_count; most = graph->root_count) {
        uint32_t begin = paths->end;
        for (; place < most; place++) {
            uint32_t root = graph->roots[place];
            if (paths->parent[root] == UNREACHED) {
                paths->parent[root] = graph->count;
                paths->via[root] = place;
                paths->queue[paths->end++] = root;
            }
        }
        grow(paths, begin);
    }
}

PyObject *
graph_tree(PyObject *module, PyObject *args)
{
    PyObject *first, *target, *label, *roots, *parent = NULL, *via = NULL;
    unsigned int preferred;
    if (!PyArg_ParseTuple(args, "OOOOI:tree", &first, &target, &label, &roots, &preferred)) {
        return NULL;
    }
    Column columns[4] = {0};
    Graph graph;
    PyObject *found = NULL;
    if (column_get(first, 4, "first_edge", &columns[0]) == 0 && column_get(target, 4, "target", &columns[1]) == 0 &&
        column_get(roots, 4, "roots", &columns[2]) == 0 && column_get(label, 4, "label", &columns[3]) == 0 &&
        graph_make(&columns[0], &columns[1], &columns[2], &graph) == 0 && one_label_each(&columns[3], &columns[1])) {
        parent = new_column(graph.count, 4);
        via = new_column(graph.count, 4);
        uint32_t *queue = PyMem_RawMalloc(((size_t)graph.count + 1) * sizeof *queue);
        if (queue == NULL) {
            PyErr_NoMemory();
            Py_CLEAR(parent);
        }
        else if (parent != NULL && via != NULL) {
            Paths paths = {&graph, U32(columns[3]), OUT32(parent), OUT32(via), queue, 0};
            Py_BEGIN_ALLOW_THREADS walk_tree(&paths, preferred < graph.root_count ? preferred : graph.root_count);
            Py_END_ALLOW_THREADS
        }
        PyMem_RawFree(queue);
        found = two_columns(parent, via);
    }
    columns_release(columns, 4);
    return found;
}

/* ---- dominators ---- */

/* Lengauer and Tarjan's algorithm, the simple version (see heap/walks/graph_walks.py). Nodes are their numbers in
 * preorder, from 1; number 1 is the root above all roots. */
typedef struct {
    uint32_t *number; /* by node: its number in preorder, 0 if it was not reached */
    uint32_t *node;   /* by number */
    uint32_t *parent, *semi, *label, *ancestor, *dominator, *bucket, *following, *stack;
    uint32_t *pred_first, *pred;
    uint32_t size; /* the highest number */
} Lengauer;

static void
number_nodes(const Graph *graph, Lengauer *work)
{
    uint32_t *cursor = work->semi; /* not in use yet: the next edge of each node, by number */
    uint32_t last = 1;
    work->node[1] = graph->count;
    for (uint32_t i = 0; i < graph->root_count; i++) {
        uint32_t root = graph->roots[i];
        if (work->number[root] != 0) {
            continue;
        }
        uint32_t at = ++last, depth = 0;
        work->number[root] = at;
        work->node[at] = root;
        work->parent[at] = 1;
        cursor[at] = graph->first[root];
        for (;;) {
            uint32_t node = work->node[at];
            if (cursor[at] == graph->first[node + 1]) {
                if (depth == 0) {
                    break;
                }
                at = work->stack[--depth];
                continue;
            }
            uint32_t to = graph->target[cursor[at]++];
            if (work->number[to] == 0) {
                work->stack[depth++] = at;
                work->number[to] = ++last;
                work->node[last] = to;
                work->parent[last] = at;
                cursor[last] = graph->first[to];
                at = last;
            }
        }
    }
    work->size = last;
}

static void
turn_edges(const Graph *graph, Lengauer *work)
{
    uint32_t *first = work->pred_first;
    memset(first, 0, ((size_t)work->size + 2) * sizeof *first);
    for (uint32_t i = 0; i < graph->root_count; i++) {
        first[work->number[graph->roots[i]]]++;
    }
    for (uint32_t at = 2; at <= work->size; at++) {
        uint32_t node = work->node[at];
        for (uint32_t edge = graph->first[node]; edge < graph->first[node + 1]; edge++) {
            first[work->number[graph->target[edge]]]++;
        }
    }
    uint32_t total = 0;
    for (uint32_t at = 0; at <= work->size + 1; at++) {
        total += first[at];
        first[at] = total;
    }
    for (uint32_t i = 0; i < graph->root_count; i++) {
        work->pred[--first[work->number[graph->roots[i]]]] = 1;
    }
    for (uint32_t at = 2; at <= work->size; at++) {
        uint32_t node = work->node[at];
        for (uint32_t edge = graph->first[node]; edge < graph->first[node + 1]; edge++) {
            work->pred[--first[work->number[graph->target[edge]]]] = at;
        }
    }
}

static uint32_t
evaluate(Lengauer *work, uint32_t at)
{
    uint32_t *ancestor = work->ancestor, *label = work->label, *semi = work->semi;
    if (ancestor[at] == 0) {
        return at;
    }
    uint32_t depth = 0;
    for (uint32_t each = at; ancestor[ancestor[each]] != 0; each = ancestor[each]) {
        work->stack[depth++] = each;
    }
    while (depth > 0) {
        uint32_t each = work->stack[--depth], above = ancestor[each];
        if (semi[label[above]] < semi[label[each]]) {
            label[each] = label[above];
        }
        ancestor[each] = ancestor[above];
    }
    return label[at];
}

static void
find_dominators(Lengauer *work)
{
    for (uint32_t at = 0; at <= work->size; at++) {
        work->semi[at] = work->label[at] = at;
        work->ancestor[at] = work->bucket[at] = 0;
    }
    for (uint32_t at = work->size; at > 1; at--) {
        uint32_t least = work->parent[at], above = least;
        for (uint32_t i = work->pred_first[at]; i < work->pred_first[at + 1]; i++) {
            uint32_t source = work->pred[i];
            uint32_t semi = source <= at ? source : work->semi[evaluate(work, source)];
            if (semi < least) {
                least = semi;
            }
        }
        work->semi[at] = least;
        work->following[at] = work->bucket[least];
        work->bucket[least] = at;
        work->ancestor[at] = above;
        for (uint32_t each = work->bucket[above]; each != 0; each = work->following[each]) {
            uint32_t best = evaluate(work, each);
            work->dominator[each] = work->semi[best] < work->semi[each] ? best : above;
        }
        work->bucket[above] = 0;
    }
    for (uint32_t at = 2; at <= work->size; at++) {
        if (work->dominator[at] != work->semi[at]) {
            work->dominator[at] = work->dominator[work->dominator[at]];
        }
    }
}

static PyObject *
dominators_of(const Graph *graph)
{
    size_t nodes = (size_t)graph->count + 3;
    size_t edges = (size_t)graph->first[graph->count] + graph->root_count;
    uint32_t *memory = PyMem_RawCalloc(nodes * 11 + edges + 1, sizeof *memory);
    if (memory == NULL) {
        return PyErr_NoMemory();
    }
    Lengauer work = {0};
    uint32_t **columns[] = {&work.number,    &work.node,     &work.parent,    &work.semi,
                            &work.label,     &work.ancestor, &work.dominator, &work.bucket,
                            &work.following, &work.stack,    &work.pred_first};
    for (size_t i = 0; i < 11; i++) {
        *columns[i] = memory + i * nodes;
    }
    work.pred = memory + 11 * nodes;
    Py_BEGIN_ALLOW_THREADS number_nodes(graph, &work);
    turn_edges(graph, &work);
    find_dominators(&work);
    Py_END_ALLOW_THREADS PyObject *dominator = new_column(graph->count, 4), *order = new_column(work.size - 1, 4);
    if (dominator != NULL && order != NULL) {
        memset(OUT32(dominator), 0xff, (size_t)graph->count * 4);
        for (uint32_t at = 2; at <= work.size; at++) {
            OUT32(order)[at - 2] = work.node[at];
            OUT32(dominator)[work.node[at]] = work.node[work.dominator[at]];
        }
    }
    PyMem_RawFree(memory);
    return two_columns(dominator, order);
}

PyObject *
graph_dominators(PyObject *module, PyObject *args)
{
    PyObject *first, *target, *roots, *found = NULL;
    if (!PyArg_ParseTuple(args, "OOO:dominators", &first, &target, &roots)) {
        return NULL;
    }
    Column columns[3] = {0};
    Graph graph;
    if (column_get(first, 4, "first_edge", &columns[0]) == 0 && column_get(target, 4, "target", &columns[1]) == 0 &&
        column_get(roots, 4, "roots", &columns[2]) == 0 &&
        graph_make(&columns[0], &columns[1], &columns[2], &graph) == 0) {
        found = dominators_of(&graph);
    }
    columns_release(columns, 3);
    return found;
}

/* ---- what is retained ---- */

/* Whether the columns are those of a tree: each dominator stands before what it dominates. -1 with an exception. */
static int
tree_check(const Column *dominator, const Column *order)
{
    size_t count = dominator->length;
    uint8_t *seen = PyMem_RawCalloc(count + 1, 1);
    if (seen == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int is_wrong = order->length > count || count > INT32_MAX;
    seen[count] = 1;
    for (size_t i = 0; !is_wrong && i < order->length; i++) {
        uint32_t node = U32(*order)[i];
        is_wrong = node >= count || seen[node] || U32(*dominator)[node] > count || !seen[U32(*dominator)[node]];
        if (!is_wrong) {
            seen[node] = 1;
        }
    }
    PyMem_RawFree(seen);
    if (is_wrong) {
        PyErr_SetString(PyExc_ValueError, "these are not the columns of a tree of dominators");
        return -1;
    }
    return 0;
}

PyObject *
graph_retained(PyObject *module, PyObject *args)
{
    PyObject *dominator, *order, *size, *found = NULL;
    if (!PyArg_ParseTuple(args, "OOO:retained", &dominator, &order, &size)) {
        return NULL;
    }
    Column columns[3] = {0};
    if (column_get(dominator, 4, "dominator", &columns[0]) == 0 && column_get(order, 4, "order", &columns[1]) == 0 &&
        column_get(size, 8, "size", &columns[2]) == 0 && tree_check(&columns[0], &columns[1]) == 0) {
        if (columns[2].length != columns[0].length) {
            PyErr_SetString(PyExc_ValueError, "there is not one size for each node");
        }
        else if ((found = new_column(columns[0].length + 1, 8)) != NULL) {
            uint64_t *total = OUT64(found);
            memset(total, 0, (columns[0].length + 1) * 8);
            for (size_t i = columns[1].length; i-- > 0;) {
                uint32_t node = U32(columns[1])[i];
                total[node] += U64(columns[2])[node];
                total[U32(columns[0])[node]] += total[node];
            }
        }
    }
    columns_release(columns, 3);
    return found;
}

/* ---- what groups retain together ---- */

typedef struct {
    const uint32_t *dominator, *order, *group;
    const uint64_t *retained;
    const uint8_t *chosen;
    uint32_t count, reached, groups;
} Tree;

/* Down the tree of dominators: what a chosen node retains counts for its group, unless one above it in that group has
 * it already. */
static void
walk_groups(const Tree *tree, uint32_t *memory, uint64_t *total)
{
    uint32_t *child = memory, *sibling = child + tree->count + 1, *open = sibling + tree->count + 1;
    memset(child, 0xff, ((size_t)tree->count + 1) * sizeof *child);
    memset(open, 0, tree->groups * sizeof *open);
    for (uint32_t i = tree->reached; i-- > 0;) {
        uint32_t node = tree->order[i], above = tree->dominator[node];
        sibling[node] = child[above];
        child[above] = node;
    }
    /* Going down, a node's parent is its dominator, so no stack is needed. */
    uint32_t at = child[tree->count];
    while (at != UNREACHED && at != tree->count) {
        uint32_t group = tree->group[at];
        if (tree->chosen[at] && open[group]++ == 0) {
            total[group] += tree->retained[at];
        }
        if (child[at] != UNREACHED) {
            at = child[at];
            continue;
        }
        for (;;) {
            if (tree->chosen[at]) {
                open[tree->group[at]]--;
            }
            if (sibling[at] != UNREACHED) {
                at = sibling[at];
                break;
            }
            at = tree->dominator[at];
            if (at == tree->count) {
                break;
            }
        }
    }
}

/* Whether the other columns fit to the tree. */
static int
groups_check(const Tree *tree, const Column *columns)
{
    int is_wrong =
        columns[2].length != tree->count || columns[3].length < tree->count || columns[4].length != tree->count;
    for (uint32_t i = 0; !is_wrong && i < tree->count; i++) {
        is_wrong = tree->group[i] >= tree->groups;
    }
    if (is_wrong) {
        PyErr_SetString(PyExc_ValueError, "the columns of groups do not fit");
        return -1;
    }
    return 0;
}

PyObject *
graph_retained_by(PyObject *module, PyObject *args)
{
    PyObject *objects[5], *found = NULL;
    unsigned int groups;
    if (!PyArg_ParseTuple(args, "OOOOOI:retained_by", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4],
                          &groups)) {
        return NULL;
    }
    static const Py_ssize_t width[5] = {4, 4, 4, 8, 1};
    static const char *const name[5] = {"dominator", "order", "group", "retained", "chosen"};
    Column columns[5] = {0};
    int is_wrong = 0;
    for (int i = 0; i < 5 && !is_wrong; i++) {
        is_wrong = column_get(objects[i], width[i], name[i], &columns[i]) < 0;
    }
    if (!is_wrong && columns[0].length < INT32_MAX && groups < INT32_MAX) {
        Tree tree = {
            .dominator = U32(columns[0]),
            .order = U32(columns[1]),
            .group = U32(columns[2]),
            .retained = U64(columns[3]),
            .chosen = U8(columns[4]),
            .count = (uint32_t)columns[0].length,
            .reached = (uint32_t)columns[1].length,
            .groups = groups,
        };
        if (tree_check(&columns[0], &columns[1]) == 0 && groups_check(&tree, columns) == 0) {
            found = new_column(groups, 8);
            uint32_t *memory = PyMem_RawMalloc((2 * ((size_t)tree.count + 1) + groups) * sizeof *memory);
            if (memory == NULL) {
                Py_CLEAR(found);
                PyErr_NoMemory();
            }
            else if (found != NULL) {
                memset(OUT64(found), 0, (size_t)groups * 8);
                Py_BEGIN_ALLOW_THREADS walk_groups(&tree, memory, OUT64(found));
                Py_END_ALLOW_THREADS
            }
            PyMem_RawFree(memory);
        }
    }
    else if (!is_wrong) {
        PyErr_SetString(PyExc_ValueError, "too many nodes or groups");
    }
    columns_release(columns, 5);
    return found;
}
