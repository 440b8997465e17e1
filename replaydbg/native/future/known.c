/* What the recording knows of the outside, as the launcher has read it in the log (replaydbg/futures/known.py): answers
 * to questions, and contents of files. */
#include "base/core.h"
#include "future/inside.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct __attribute__((packed)) {
    char kind; /* 'A' */
    uint32_t gate, arguments, outcome;
    uint8_t is_raised;
} AnswerHead;
typedef struct __attribute__((packed)) {
    char kind; /* 'F' */
    uint32_t path;
    uint64_t size;
} FileHead;

static const uint8_t *known;
static size_t known_size;
static IdMap answers, files; /* by hashes: 1 more than the index in `places` */
static size_t *places;
static uint32_t place_count;

static void
note_place(IdMap *map, uint64_t key, size_t at)
{
    uint32_t *slot = idmap_slot(map, key);
    places = grown(places, place_count + 1, sizeof *places);
    places[place_count++] = at;
    *slot = place_count;
}

static const uint8_t *
place_of(IdMap *map, uint64_t key)
{
    uint32_t *slot = idmap_slot(map, key);
    return *slot ? known + places[*slot - 1] : NULL;
}

/* Returns where the next one begins; 0: it cannot be read. */
static size_t
index_one(size_t at)
{
    const uint8_t *p = known + at;
    size_t left = known_size - at;
    if (*p == 'A' && left >= sizeof(AnswerHead)) {
        AnswerHead head;
        memcpy(&head, p, sizeof head);
        size_t size = sizeof head + head.arguments + (size_t)head.outcome;
        if (size > left)
            return 0;
        uint64_t hash = head.arguments ? hash_bytes(p + sizeof head, head.arguments, 0) : 0;
        note_place(&answers, hash_bytes(&head.gate, sizeof head.gate, hash), at);
        return at + size;
    }
    FileHead head;
    if (*p != 'F') {
        size_t size = layer_part(p, left);
        return size ? at + size : 0;
    }
    if (left < sizeof head)
        return 0;
    memcpy(&head, p, sizeof head);
    if (head.path > left - sizeof head || head.size > left - sizeof head - head.path)
        return 0;
    note_place(&files, hash_bytes(p + sizeof head, head.path, 0), at);
    return at + sizeof head + head.path + head.size;
}

int
known_load(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    known_size = (size_t)st.st_size;
    void *map = known_size ? mmap(NULL, known_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    if (map == MAP_FAILED)
        return -1;
    known = map;
    for (size_t at = 0; at < known_size;)
        if ((at = index_one(at)) == 0)
            return -1;
    return 0;
}

const uint8_t *
known_answer(const Crossing *c, const uint8_t **end, bool *is_raised)
{
    uint32_t gate = (uint32_t)c->gate->id;
    const uint8_t *p = place_of(&answers, hash_bytes(&gate, sizeof gate, c->args_hash));
    AnswerHead head;
    if (p == NULL)
        return NULL;
    memcpy(&head, p, sizeof head);
    *is_raised = head.is_raised;
    *end = p + sizeof head + head.arguments + head.outcome;
    return p + sizeof head + head.arguments;
}

const uint8_t *
known_content(const char *path, size_t *size)
{
    const uint8_t *p = place_of(&files, hash_bytes(path, strlen(path), 0));
    FileHead head;
    if (p == NULL)
        return NULL;
    memcpy(&head, p, sizeof head);
    *size = head.size;
    return p + sizeof head + head.path;
}
