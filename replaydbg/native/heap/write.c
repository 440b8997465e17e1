/* Pictures of the heap: the nodes in the order of their addresses, and written to a file. See heap.h. */
#include "heap/inside.h"
#include <errno.h>
#include <sys/uio.h>

/* ---- in the order of the addresses ---- */

typedef struct {
    uint64_t address;
    uint32_t node;
} Met;
#define DIGIT 11

static Met *
sorted(Met *from, Met *to, uint32_t n)
{
    for (int shift = 3; shift < 48; shift += DIGIT) {
        uint32_t count[1 << DIGIT] = {0}, total = 0;
        for (uint32_t i = 0; i < n; i++)
            count[from[i].address >> shift & ((1 << DIGIT) - 1)]++;
        if (n && count[from[0].address >> shift & ((1 << DIGIT) - 1)] == n)
            continue; /* all have the same digit */
        for (int i = 0; i < 1 << DIGIT; i++) {
            uint32_t here = count[i];
            count[i] = total;
            total += here;
        }
        for (uint32_t i = 0; i < n; i++)
            to[count[from[i].address >> shift & ((1 << DIGIT) - 1)]++] = from[i];
        Met *other = from;
        from = to;
        to = other;
    }
    return from;
}

typedef struct {
    Column address, size, since, type, value, first_edge, target, label;
} Ordered;

static void
put_edges(Ordered *o, const Met *order, const uint32_t *new_place)
{
    const uint32_t *first = (const uint32_t *)heap.first_edge.data, *target = (const uint32_t *)heap.target.data;
    uint32_t n = node_count(), at = 0;
    size_t edges = heap.target.used / 4;
    uint32_t *to = column_room(&o->target, edges * 4), *labels = column_room(&o->label, edges * 4),
             *starts = column_room(&o->first_edge, (n + (size_t)1) * 4);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t old = order[i].node, end = first[old + 1];
        starts[i] = at;
        if (i + 8 < n)
            __builtin_prefetch(&target[first[order[i + 8].node]]);
        memcpy(labels + at, (uint32_t *)heap.label.data + first[old], (end - first[old]) * 4);
        for (uint32_t e = first[old]; e < end; e++)
            to[at++] = new_place[target[e]];
    }
    starts[n] = at;
}

static void
put_in_order(Ordered *o)
{
    uint32_t n = node_count();
    Column places = {0}, news = {0};
    /* The table of addresses is of no use any more, and larger than what is to be sorted. */
    _Static_assert(sizeof(Met) == sizeof(PointerEntry), "it is sorted there");
    Met *from = column_room(&places, n * sizeof(Met)), *to = (Met *)(void *)heap.nodes.at;
    for (uint32_t i = 0; i < n; i++)
        from[i] = (Met){((uint64_t *)heap.address.data)[i], i};
    Met *order = sorted(from, to, n);
    uint32_t *new_place = column_room(&news, n * (size_t)4);
    uint64_t *address = column_room(&o->address, n * (size_t)8), *size = column_room(&o->size, n * (size_t)8);
    uint32_t *type = column_room(&o->type, n * (size_t)4), *value = column_room(&o->value, n * (size_t)4),
             *since = column_room(&o->since, n * (size_t)4);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t old = order[i].node;
        new_place[old] = i;
        address[i] = order[i].address;
        size[i] = ((uint64_t *)heap.size.data)[old];
        type[i] = ((uint32_t *)heap.type.data)[old];
        value[i] = ((uint32_t *)heap.value.data)[old];
        since[i] = ((uint32_t *)heap.since.data)[old];
    }
    uint32_t *roots = (uint32_t *)heap.root_nodes.data;
    for (size_t i = 0; i < heap.root_nodes.used / 4; i++)
        roots[i] = new_place[roots[i]];
    put_edges(o, order, new_place);
}

/* ---- what is written: see replaydbg/heap/storage/raw_snapshot.py ---- */

typedef struct {
    char magic[8];
    uint64_t version, number, event, step, time_ns;
    uint64_t nodes_cut, edges_cut, items_cut, containers_cut, most_nodes, most_edges, most_items;
} Head; /* then the length in bytes of each part, and the parts, each from a multiple of eight on */

static int
write_all(int fd, struct iovec *parts, int n)
{
    while (n) {
        ssize_t done = writev(fd, parts, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        while (n && (size_t)done >= parts->iov_len) {
            done -= (ssize_t)parts->iov_len;
            parts++;
            n--;
        }
        if (n) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return 0;
}

static int
put_out(int fd, Ordered *o, const HeapOccasion *occasion)
{
    static const uint8_t zeros[8];
    Column name = {.data = (uint8_t *)occasion->name, .used = strlen(occasion->name)},
           reason = {.data = (uint8_t *)occasion->reason, .used = strlen(occasion->reason)};
    Column *parts[] = {&o->address,
                       &o->size,
                       &o->since,
                       &o->type,
                       &o->value,
                       &o->first_edge,
                       &o->target,
                       &o->label,
                       &heap.floats,
                       &heap.strings.ends,
                       &heap.strings.data,
                       &heap.types.ends,
                       &heap.types.data,
                       &heap.root_nodes,
                       &heap.root_ends,
                       &heap.root_texts,
                       &name,
                       &reason};
    enum { PARTS = sizeof parts / sizeof *parts };
    uint64_t lengths[PARTS];
    struct iovec vector[2 + 2 * PARTS];
    Head head = {.magic = "RDBGHEAP",
                 .version = 1,
                 .number = occasion->number,
                 .event = occasion->event,
                 .step = occasion->step,
                 .time_ns = occasion->time_ns,
                 .nodes_cut = heap.nodes_cut,
                 .edges_cut = heap.edges_cut,
                 .items_cut = heap.items_cut,
                 .containers_cut = heap.containers_cut,
                 .most_nodes = heap.limits.nodes,
                 .most_edges = heap.limits.edges,
                 .most_items = heap.limits.items};
    int n = 2;
    for (int i = 0; i < PARTS; i++) {
        lengths[i] = parts[i]->used;
        vector[n++] = (struct iovec){parts[i]->data, parts[i]->used};
        vector[n++] = (struct iovec){(void *)zeros, -parts[i]->used & 7};
    }
    vector[0] = (struct iovec){&head, sizeof head};
    vector[1] = (struct iovec){lengths, sizeof lengths};
    return write_all(fd, vector, n);
}

int
heap_put_out(int fd, const HeapOccasion *occasion)
{
    Ordered ordered = {0};
    put_in_order(&ordered);
    return put_out(fd, &ordered, occasion);
}
