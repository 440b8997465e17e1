/* Bytes, numbers and hashes: buffers that grow in the core's own memory, and what the log's records are made of. */
#include "base/core.h"
#include <stdlib.h>
#include <time.h>

uint64_t
monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- start parameters ---- */

uint64_t
boot_number(PyObject *boot, const char *key)
{
    PyObject *v = PyDict_GetItemString(boot, key);
    return v && PyLong_Check(v) ? PyLong_AsUnsignedLongLongMask(v) : 0;
}

char *
boot_bytes(PyObject *boot, const char *key)
{
    PyObject *v = PyDict_GetItemString(boot, key);
    return v && PyBytes_Check(v) ? strdup(PyBytes_AS_STRING(v)) : NULL;
}

/* ---- memory ---- */

/* As realloc(), of `count` items of `each` bytes. Without memory a replay ends with a sentence, and everything else at
 * once. */
void *
grown(void *old, size_t count, size_t each)
{
    size_t size;
    void *room = __builtin_mul_overflow(count, each, &size) ? NULL : realloc(old, size ? size : 1);
    if (room == NULL && core.mode == REPLAY)
        diverge("memory", NULL, NULL, "the replay ran out of memory while it read the recording");
    if (room == NULL)
        Py_FatalError("replaydbg: out of memory");
    return room;
}

/* ---- bytes ---- */

void
buf_reserve(Buf *b, size_t n)
{
    if (b->size - b->used >= n)
        return;
    if (b->is_fixed)
        Py_FatalError("replaydbg: a message is too long");
    size_t size = b->size ? b->size : 256;
    while (size - b->used < n)
        size *= 2;
    uint8_t *data = realloc(b->data, size);
    if (data == NULL)
        Py_FatalError("replaydbg: out of memory while encoding an event");
    b->data = data;
    b->size = size;
}

void
buf_byte(Buf *b, uint8_t byte)
{
    buf_reserve(b, 1);
    b->data[b->used++] = byte;
}

void
buf_bytes(Buf *b, const void *data, size_t n)
{
    buf_reserve(b, n);
    if (n)
        memcpy(b->data + b->used, data, n);
    b->used += n;
}

void
buf_varint(Buf *b, uint64_t v)
{
    buf_reserve(b, 10);
    while (v >= 0x80) {
        b->data[b->used++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    b->data[b->used++] = (uint8_t)v;
}

void
buf_str(Buf *b, const char *s, size_t n)
{
    buf_varint(b, n);
    buf_bytes(b, s, n);
}

uint64_t
read_varint(const uint8_t **p, const uint8_t *end, bool *ok)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return v;
    }
    *ok = false;
    return 0;
}

/* A 64-bit hash with two independent multiply-fold lanes over 16 bytes a step (the construction of wyhash, Wang Yi,
 * 2019, written anew): one multiplication for 8 bytes, far from a bottleneck beside the copy of the same bytes. */
static inline uint64_t
fold(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t
load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

uint64_t
hash_bytes(const void *data, size_t n, uint64_t seed)
{
    const uint64_t k0 = 0x9E3779B97F4A7C15u, k1 = 0xD1B54A32D192ED03u, k2 = 0x8CB92BA72F3D8DD7u;
    const uint8_t *p = data;
    uint64_t h = seed ^ fold(n ^ k0, k1), g = h ^ k2;
    size_t left = n;
    for (; left >= 32; left -= 32, p += 32) {
        h = fold(load64(p) ^ k1, load64(p + 8) ^ h);
        g = fold(load64(p + 16) ^ k2, load64(p + 24) ^ g);
    }
    if (n >= 32)
        h = fold(h ^ k0, g ^ k1);
    for (; left >= 8; left -= 8, p += 8)
        h = fold(load64(p) ^ k1, h ^ k0);
    uint64_t tail = 0;
    if (left)
        memcpy(&tail, p, left);
    return fold(h ^ k0, fold(tail ^ k2, (uint64_t)n ^ k1));
}

/* ---- a map from 64-bit hashes to ids ---- */
uint32_t *
idmap_slot(IdMap *m, uint64_t key)
{
    if (m->used * 2 >= m->size) {
        IdMap bigger = {.size = m->size ? m->size * 2 : 1024, .used = m->used};
        bigger.is_apart = m->is_apart;
        bigger.keys =
            m->is_apart ? memory_apart_small(bigger.size * sizeof(uint64_t)) : calloc(bigger.size, sizeof(uint64_t));
        bigger.ids =
            m->is_apart ? memory_apart_small(bigger.size * sizeof(uint32_t)) : calloc(bigger.size, sizeof(uint32_t));
        if (!bigger.keys || !bigger.ids)
            Py_FatalError("replaydbg: out of memory for a map of ids");
        for (size_t i = 0; i < m->size; i++)
            if (m->ids[i]) {
                size_t j = m->keys[i] & (bigger.size - 1);
                while (bigger.ids[j])
                    j = (j + 1) & (bigger.size - 1);
                bigger.keys[j] = m->keys[i];
                bigger.ids[j] = m->ids[i];
            }
        if (!m->is_apart) {
            free(m->keys);
            free(m->ids);
        }
        *m = bigger;
    }
    size_t j = key & (m->size - 1);
    while (m->ids[j] && m->keys[j] != key)
        j = (j + 1) & (m->size - 1);
    if (!m->ids[j]) {
        m->keys[j] = key;
        m->used++;
    }
    return &m->ids[j];
}
