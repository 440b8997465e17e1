/* The names of the layer: what is behind each path that somebody has asked about. */
#include "base/core.h"
#include "future/layer.h"
#include "future/turns.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_LINKS = 40 }; /* followed for one path, as by the kernel */

static Name **names; /* each stays where it is */
static uint32_t name_count;
static IdMap by_path; /* hashes to 1 more than the index */
static char working[LONGEST_NAME];

Name *
name_at(uint32_t index)
{
    return index < name_count ? names[index] : NULL;
}

Name *
name_find(const char *path)
{
    uint32_t *slot = idmap_slot(&by_path, hash_bytes(path, strlen(path), 0));
    return *slot ? names[*slot - 1] : NULL;
}

Name *
name_of(const char *path)
{
    Name *name = name_find(path);
    if (name)
        return name;
    uint32_t *slot = idmap_slot(&by_path, hash_bytes(path, strlen(path), 0));
    names = grown(names, name_count + 1, sizeof *names);
    name = names[name_count] = grown(NULL, 1, sizeof *name);
    *name = (Name){.path = strdup(path), .node = -1};
    *slot = ++name_count;
    return name;
}

const char *
names_directory(void)
{
    return working;
}

void
names_go(const char *directory)
{
    snprintf(working, sizeof working, "%s", directory);
}

void
name_parent(char *to, const char *path)
{
    size_t n = (size_t)(strrchr(path, '/') - path);
    memmove(to, path, n);
    to[n] = 0;
    if (n == 0)
        strcpy(to, "/");
}

const char *
name_child(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    if (n == 1)
        n = 0; /* of the root */
    if (strncmp(path, directory, n) != 0 || path[n] != '/' || path[n + 1] == 0 || strchr(path + n + 1, '/'))
        return NULL;
    return path + n + 1;
}

bool
name_is_listed(const Name *directory, const char *child)
{
    for (size_t at = 0; at < directory->listing_size; at += strlen(directory->listing + at) + 1)
        if (strcmp(directory->listing + at, child) == 0)
            return true;
    return false;
}

NameKind
name_kind(const char *path, Name **found)
{
    char parent[LONGEST_NAME];
    Name *name = *found = name_find(path), *above;
    turns_look(turns_path(path, PATH_ITSELF));
    if (name && name->kind != IS_UNKNOWN)
        return name->kind;
    if (path[0] != '/' || path[1] == 0)
        return path[0] == '/' ? IS_DIRECTORY : IS_ABSENT;
    name_parent(parent, path);
    switch (name_kind(parent, &above)) {
    case IS_ABSENT:
    case IS_FILE:
    case IS_MADE:
        return IS_ABSENT;
    case IS_DIRECTORY:
        return above && above->listing && !name_is_listed(above, strrchr(path, '/') + 1) ? IS_ABSENT : IS_UNKNOWN;
    default:
        return IS_UNKNOWN;
    }
}

void
name_touch(Name *name, NameKind kind, int32_t node)
{
    turns_change(turns_path(name->path, PATH_ITSELF));
    if (name->kind != kind)
        turns_change_listing(name->path);
    name->kind = kind;
    name->is_touched = true;
    name->node = node;
    if (kind != IS_FILE)
        name->has_status = false;
}

bool
name_is_touched(const char *path)
{
    char above[LONGEST_NAME];
    snprintf(above, sizeof above, "%s", path);
    for (;;) {
        Name *name = name_find(above);
        if (name && name->is_touched)
            return true;
        if (above[0] != '/' || above[1] == 0)
            return false;
        name_parent(above, above);
    }
}

int
name_parent_error(const char *path)
{
    char parent[LONGEST_NAME];
    Name *name;
    name_parent(parent, path);
    switch (name_kind(parent, &name)) {
    case IS_DIRECTORY:
    case IS_MADE:
        return 0;
    case IS_ABSENT:
        return name_parent_error(parent) == ENOTDIR ? ENOTDIR : ENOENT;
    case IS_FILE:
        return ENOTDIR;
    default:
        return -1;
    }
}

/* ---- paths ---- */

/* Takes the next part of `rest` to `part`; false: there is none. */
static bool
next_part(const char **rest, char *part)
{
    while (**rest == '/')
        ++*rest;
    size_t n = strcspn(*rest, "/");
    if (n == 0 || n >= LONGEST_NAME)
        return false;
    memcpy(part, *rest, n);
    part[n] = 0;
    *rest += n;
    return true;
}

static bool
follow(const char *given, const char *base, bool follows, char *to)
{
    char text[2][2 * LONGEST_NAME], part[LONGEST_NAME];
    const char *rest = text[0];
    int links = 0;
    snprintf(text[0], sizeof text[0], "%s", given);
    snprintf(to, LONGEST_NAME, "%s", given[0] == '/' || strcmp(base, "/") == 0 ? "" : base);
    while (next_part(&rest, part)) {
        char *end = to + strlen(to);
        if (strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            char *last = strrchr(to, '/');
            if (last)
                *last = 0;
            continue;
        }
        if (end + strlen(part) + 2 > to + LONGEST_NAME)
            return false;
        sprintf(end, "/%s", part);
        Name *name = name_find(to);
        bool is_last = rest[strspn(rest, "/")] == 0;
        if (name == NULL || name->kind != IS_LINK || (is_last && !follows))
            continue;
        if (++links > MOST_LINKS || name->target == NULL)
            return false;
        snprintf(text[1], sizeof text[1], "%s/%s", name->target, rest);
        memcpy(text[0], text[1], sizeof text[0]);
        rest = text[0];
        *(name->target[0] == '/' ? to : end) = 0;
    }
    if (to[0] == 0)
        strcpy(to, "/");
    return true;
}

bool
name_where(PyObject *object, PyObject *directory_fd, bool follows, Where *where)
{
    const char *base = working;
    if (object == NULL || (!PyUnicode_Check(object) && !PyBytes_Check(object)))
        return false;
    if (directory_fd && directory_fd != Py_None) {
        Description *d = fd_description((int)number_of(directory_fd, -1));
        if (d == NULL || d->path == NULL)
            return false;
        base = d->path;
    }
    PyObject *bytes = PyUnicode_Check(object) ? PyUnicode_EncodeFSDefault(object) : Py_NewRef(object);
    bool is_good = bytes && PyBytes_GET_SIZE(bytes) < LONGEST_NAME && PyBytes_GET_SIZE(bytes) > 0 &&
                   strlen(PyBytes_AS_STRING(bytes)) == (size_t)PyBytes_GET_SIZE(bytes) &&
                   (base[0] || PyBytes_AS_STRING(bytes)[0] == '/') &&
                   follow(PyBytes_AS_STRING(bytes), base, follows, where->path);
    PyErr_Clear();
    Py_XDECREF(bytes);
    where->object = object;
    if (is_good)
        where->kind = name_kind(where->path, &where->name);
    return is_good;
}
