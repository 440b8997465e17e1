/* The layer at the moment, as the launcher has read it in the log (replaydbg/futures/layer.py). What the program had
 * written until then is in no log: the replay has it, and keeps it. */
#include "base/core.h"
#include "future/layer.h"
#include "resume/resume.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct __attribute__((packed)) {
    char kind; /* 'P' */
    uint8_t what, is_touched, has_status;
    int32_t node; /* as the launcher counts them; -1: none. Of a directory that was made: its permissions */
    uint32_t path, target, listing;
} NameHead;
typedef struct __attribute__((packed)) {
    char kind; /* 'N' */
    uint8_t is_known;
    uint32_t mode;
    int32_t links;
    uint64_t base, pieces; /* bytes, and how many pieces follow these */
} NodeHead;
typedef struct __attribute__((packed)) {
    uint64_t event; /* 0: it was cut, or lengthened, to `offset` */
    uint64_t offset, length;
} Piece;
typedef struct __attribute__((packed)) {
    char kind; /* 'O' */
    int32_t number, node, flags, copy_of;
    uint64_t offset;
    uint32_t path; /* of a directory */
} OpenHead;
typedef struct __attribute__((packed)) {
    char kind; /* 'C' */
    uint32_t path;
} DirectoryHead;
typedef struct __attribute__((packed)) {
    char kind; /* 'U' */
    uint32_t mask;
} MaskPart;

static const uint8_t **parts; /* in their order */
static size_t part_count;

/* The size of the one at `p`; 0: it is none of these, or cut short. */
static size_t
size_of(const uint8_t *p, size_t left)
{
    NameHead name;
    NodeHead node;
    OpenHead open;
    DirectoryHead directory;
    switch (*p) {
    case 'P':
        if (left < sizeof name)
            return 0;
        memcpy(&name, p, sizeof name);
        return sizeof name + (name.has_status ? STATUS_FIELDS * sizeof(int64_t) : 0) + (size_t)name.path + name.target +
               name.listing;
    case 'N':
        if (left < sizeof node)
            return 0;
        memcpy(&node, p, sizeof node);
        return node.pieces > left ? 0 : sizeof node + node.base + node.pieces * sizeof(Piece);
    case 'O':
        if (left < sizeof open)
            return 0;
        memcpy(&open, p, sizeof open);
        return sizeof open + open.path;
    case 'C':
        if (left < sizeof directory)
            return 0;
        memcpy(&directory, p, sizeof directory);
        return sizeof directory + directory.path;
    case 'U':
        return sizeof(MaskPart);
    default:
        return 0;
    }
}

size_t
layer_part(const uint8_t *p, size_t left)
{
    size_t size = size_of(p, left);
    if (size == 0 || size > left)
        return 0;
    parts = grown(parts, part_count + 1, sizeof *parts);
    parts[part_count++] = p;
    return size;
}

static char *
text_at(const uint8_t **p, size_t n)
{
    char *text = grown(NULL, n + 1, 1);
    memcpy(text, *p, n);
    text[n] = 0;
    *p += n;
    return text;
}

static void
load_name(const uint8_t *p)
{
    NameHead head;
    memcpy(&head, p, sizeof head);
    p += sizeof head;
    int64_t status[STATUS_FIELDS];
    if (head.has_status) {
        memcpy(status, p, sizeof status);
        p += sizeof status;
    }
    char *path = text_at(&p, head.path);
    Name *name = name_of(path);
    free(path);
    name->kind = head.what <= IS_OTHER ? (NameKind)head.what : IS_OTHER;
    name->is_touched = head.is_touched;
    name->node = name->kind == IS_MADE ? -1 : head.node;
    name->mode = name->kind == IS_MADE ? (uint32_t)head.node & 07777 : 0;
    name->target = head.target ? text_at(&p, head.target) : NULL;
    if (head.listing) {
        name->listing = (const char *)p;
        name->listing_size = head.listing - 1; /* it has a zero more, so that an empty one is one */
    }
    name->has_status = head.has_status;
    if (head.has_status)
        memcpy(name->status, status, sizeof status);
}

static void
load_node(const uint8_t *p)
{
    NodeHead head;
    Piece piece;
    memcpy(&head, p, sizeof head);
    p += sizeof head;
    Node *node = node_indexed(node_new(head.mode, head.is_known));
    node->links = head.links;
    if (head.is_known)
        node_write(node, p, head.base, 0);
    p += head.base;
    for (uint64_t i = 0; i < head.pieces; i++, p += sizeof piece) {
        size_t n = 0;
        memcpy(&piece, p, sizeof piece);
        const uint8_t *data = piece.event ? sent_data(piece.event, &n) : NULL;
        if (piece.event == 0)
            node_resize(node, (off_t)piece.offset);
        else if (!node->is_known)
            node_resize(node,
                        (off_t)(piece.offset + piece.length > node->size ? piece.offset + piece.length : node->size));
        else if (data == NULL || n < piece.length || !node_write(node, data, piece.length, piece.offset))
            node->is_known = false; /* a part of it is nowhere */
    }
}

static bool
load_open(const uint8_t *p)
{
    OpenHead head;
    memcpy(&head, p, sizeof head);
    p += sizeof head;
    if (head.copy_of >= 0) {
        fd_copied(head.copy_of, head.number);
        return dup3(head.copy_of, head.number, O_CLOEXEC) >= 0;
    }
    if (head.node >= 0)
        return node_opened(head.node, head.flags, (off_t)head.offset, head.number) >= 0;
    char *path = text_at(&p, head.path);
    int fd = directory_opened(path, head.flags, head.number);
    free(path);
    return fd >= 0;
}

void
layer_load(void)
{
    for (size_t i = 0; i < part_count; i++) {
        const uint8_t *p = parts[i];
        if (*p == 'P')
            load_name(p);
        else if (*p == 'N')
            load_node(p);
        else if (*p == 'C') {
            p += sizeof(DirectoryHead);
            char *path = text_at(&p, size_of(parts[i], SIZE_MAX) - sizeof(DirectoryHead));
            names_go(path);
            free(path);
        }
        else if (*p == 'U') {
            MaskPart part;
            memcpy(&part, p, sizeof part);
            umask((mode_t)part.mask);
        }
    }
}

bool
layer_opens(void)
{
    bool is_good = true;
    for (size_t i = 0; i < part_count; i++)
        if (*parts[i] == 'O')
            is_good = load_open(parts[i]) && is_good;
    return is_good;
}
