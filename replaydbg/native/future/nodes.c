/* Contents of the files of the layer. One is in a memory file while it is open, or has been. Several descriptions of one
 * share it, and with it one offset of the kernel's: whoever uses it puts his own there first. Nobody comes between, as
 * all lanes are one thread, and a memory file never makes it wait. */
#include "base/core.h"
#include "clock/clock.h"
#include "future/layer.h"
#include "future/turns.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 4096, HIGH = 384 /* where the layer's own begin: a program has lower ones */ };
enum { FIRST_INODE = 1 << 30, DEVICE = 0x7264 /* of files that the program has made */ };

static Node *nodes;
static int32_t node_count;
static Description *descriptions;
static int32_t description_count;
static int32_t by_fd[MOST_DESCRIPTORS]; /* 1 more than the index */

uint64_t
layer_now(void)
{
    return simulated_clock(CLOCK_REALTIME);
}

Node *
node_indexed(int32_t index)
{
    return index < 0 || index >= node_count ? NULL : &nodes[index];
}

mode_t
usual_mask(void)
{
    mode_t mask = umask(077);
    umask(mask);
    return mask;
}

int32_t
node_new(uint32_t mode, bool is_known)
{
    uint64_t now = layer_now();
    nodes = grown(nodes, (size_t)node_count + 1, sizeof *nodes);
    nodes[node_count] = (Node){.fd = -1,
                               .is_known = is_known,
                               .mode = mode,
                               .links = 1,
                               .holder = -1,
                               .inode = FIRST_INODE + (uint64_t)node_count,
                               .device = DEVICE,
                               .accessed = now,
                               .changed = now};
    return node_count++;
}

int32_t
node_of(Name *name)
{
    size_t size = 0;
    if (name->node >= 0)
        return name->node;
    const uint8_t *content = known_content(name->path, &size);
    uint32_t mode = name->has_status ? (uint32_t)name->status[AT_MODE] : S_IFREG | 0644;
    name->node = node_new(mode, content != NULL);
    Node *node = &nodes[name->node];
    if (name->has_status) {
        node->inode = (uint64_t)name->status[AT_INODE];
        node->device = (uint64_t)name->status[AT_DEVICE];
        node->links = (int)name->status[AT_LINKS];
        node->accessed = (uint64_t)name->status[AT_ACCESS];
        node->changed = (uint64_t)name->status[AT_CHANGE];
    }
    if (content)
        node_write(node, content, size, 0);
    else
        node_resize(node, name->has_status ? (off_t)name->status[AT_SIZE] : 0);
    return name->node;
}

bool
node_write(Node *node, const uint8_t *data, size_t n, uint64_t offset)
{
    if (offset + n > node->size && !node_resize(node, (off_t)(offset + n)))
        return false;
    if (n) /* an empty file has no content */
        memcpy(node->content + offset, data, n);
    return true;
}

off_t
node_size(const Node *node)
{
    struct stat st;
    return node->fd >= 0 && fstat(node->fd, &st) == 0 ? st.st_size : (off_t)node->size;
}

bool
node_resize(Node *node, off_t size)
{
    if (node->fd >= 0)
        return ftruncate(node->fd, size) == 0;
    if (!node->is_known) { /* nobody will read it */
        node->size = (size_t)size;
        return true;
    }
    uint8_t *content = realloc(node->content, (size_t)size + 1);
    if (content == NULL)
        return false;
    if ((size_t)size > node->size)
        memset(content + node->size, 0, (size_t)size - node->size);
    node->content = content;
    node->size = (size_t)size;
    return true;
}

/* ---- descriptors ---- */

static int
memory_of(const char *name, ino_t *memory)
{
    struct stat st;
    int low = memfd_create(name, MFD_CLOEXEC), fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH);
    if (low >= 0)
        close(low);
    *memory = fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
    return fd;
}

bool
node_begin(Node *node)
{
    if (node->fd >= 0)
        return true;
    node->fd = memory_of("file", &node->memory);
    for (size_t done = 0; node->fd >= 0 && node->content && done < node->size;) {
        ssize_t n = pwrite(node->fd, node->content + done, node->size - done, (off_t)done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    if (node->fd < 0 || (node->content == NULL && ftruncate(node->fd, (off_t)node->size) < 0))
        return false;
    free(node->content);
    node->content = NULL;
    return true;
}

/* Where the program's number leads: to `description`. */
static int
put(int fd, int at, const Description *description)
{
    int number = at < 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : dup3(fd, at, O_CLOEXEC);
    if (number < 0 || number >= MOST_DESCRIPTORS) {
        errno = number < 0 ? errno : EMFILE;
        return -1;
    }
    descriptions = grown(descriptions, (size_t)description_count + 1, sizeof *descriptions);
    descriptions[description_count] = *description;
    by_fd[number] = ++description_count;
    return number;
}

int
node_opened(int32_t node, int flags, off_t offset, int at)
{
    if (!node_begin(&nodes[node]))
        return -1;
    Description made = {.node = node, .flags = flags, .offset = offset, .memory = nodes[node].memory};
    int fd = put(nodes[node].fd, at, &made);
    if (fd >= 0)
        fd_take(&descriptions[description_count - 1], false);
    return fd;
}

int
directory_opened(const char *path, int flags, int at)
{
    Description made = {.node = -1, .flags = flags, .path = strdup(path)};
    int memory = memory_of("directory", &made.memory), fd = memory < 0 ? -1 : put(memory, at, &made);
    if (memory >= 0)
        close(memory);
    return fd;
}

Description *
fd_description(int fd)
{
    struct stat st;
    int32_t index = fd >= 0 && fd < MOST_DESCRIPTORS ? by_fd[fd] : 0;
    if (index == 0)
        return NULL;
    if (fstat(fd, &st) == 0 && st.st_ino == descriptions[index - 1].memory && S_ISREG(st.st_mode))
        return &descriptions[index - 1];
    by_fd[fd] = 0; /* it was closed, and may have been opened as something else */
    return NULL;
}

void
fd_copied(int fd, int copy)
{
    Description *description = fd_description(fd);
    if (description && copy >= 0 && copy < MOST_DESCRIPTORS)
        by_fd[copy] = (int32_t)(description - descriptions) + 1;
}

/* Other processes know it by its names. */
static void
tell_others(int32_t node, bool writes)
{
    const Name *name;
    for (uint32_t i = 0; (name = name_at(i)) != NULL; i++)
        if (name->node == node && writes)
            turns_change(turns_path(name->path, PATH_ITSELF));
        else if (name->node == node)
            turns_look(turns_path(name->path, PATH_ITSELF));
}

void
fd_take(Description *description, bool writes)
{
    Node *node = node_indexed(description->node);
    int32_t index = (int32_t)(description - descriptions);
    if (node == NULL)
        return;
    if (turns_are_taken())
        tell_others(description->node, writes);
    if (node->holder != index) {
        if (node->holder >= 0)
            descriptions[node->holder].offset = lseek(node->fd, 0, SEEK_CUR);
        lseek(node->fd, description->offset, SEEK_SET);
        node->holder = index;
    }
    if (writes)
        node->changed = layer_now();
    if (writes && (description->flags & O_APPEND))
        lseek(node->fd, 0, SEEK_END);
}
