/* Files of SQLite in a future: contents and names of the layer. SQLite reads and writes them by its own virtual file
 * system, whose calls are crossings (sqlite/). */
#include "base/core.h"
#include "future/future.h"
#include "future/layer.h"
#include "future/turns.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static NameKind
kind_of(const char *path, Name **name)
{
    return path && path[0] == '/' ? name_kind(path, name) : IS_UNKNOWN;
}

static Node *
node_of_path(const char *path)
{
    Name *name;
    return kind_of(path, &name) == IS_FILE ? node_indexed(node_of(name)) : NULL;
}

int
database_exists(const char *path)
{
    Name *name;
    NameKind kind = kind_of(path, &name);
    return kind == IS_UNKNOWN || kind == IS_OTHER ? -1 : kind != IS_ABSENT;
}

int
database_opens(const char *path, bool creates)
{
    int there = database_exists(path);
    Name *name = there == 1 ? name_find(path) : NULL;
    if (name && name->kind != IS_FILE)
        return EISDIR;
    if (there == 0 && !creates)
        return ENOENT;
    if (there == 0 && name_parent_error(path) == 0)
        name_touch(name_of(path), IS_FILE, node_new(S_IFREG | 0644, true));
    else if (there == 1)
        name_touch(name, IS_FILE, node_of(name));
    else
        return -1;
    Node *node = node_of_path(path);
    return node->is_known && node_begin(node) ? 0 : -1;
}

ssize_t
database_reads(const char *path, void *data, size_t n, int64_t offset)
{
    Node *node = node_of_path(path);
    return node && node->is_known && node_begin(node) ? pread(node->fd, data, n, offset) : -1;
}

bool
database_writes(const char *path, const void *data, size_t n, int64_t offset)
{
    Node *node = node_of_path(path);
    if (node == NULL || !node_begin(node))
        return false;
    node->changed = layer_now();
    turns_change(turns_path(path, PATH_ITSELF));
    return pwrite(node->fd, data, n, offset) == (ssize_t)n;
}

bool
database_resizes(const char *path, int64_t size)
{
    Node *node = node_of_path(path);
    turns_change(turns_path(path, PATH_ITSELF));
    return node && node_begin(node) && node_resize(node, size);
}

int64_t
database_size(const char *path)
{
    Node *node = node_of_path(path);
    return node ? node_size(node) : -1;
}

bool
database_removes(const char *path)
{
    Name *name;
    if (kind_of(path, &name) != IS_FILE)
        return false;
    name_touch(name, IS_ABSENT, -1);
    return true;
}

const char *
database_directory(void)
{
    return names_directory();
}
