/* The module replaydbg.native._digest: a keyed hash of long data, for the signature of a recording's owner.
 *
 * It is NH, the universal hash of UMAC (RFC 4418), over 64-bit words: of each chunk of 4 KiB, the sum of
 * (k[2i] + m[2i]) * (k[2i+1] + m[2i+1]) modulo 2^128, with additions modulo 2^64. Two chunks that are different have the
 * same hash with a probability of at most 2^-64 for whoever does not know the key. By itself it is no signature: the
 * hashes go into a keyed blake2b (replaydbg/log/sealed/origin.py), which also hides them. Nothing of this runs in a recorded
 * program.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

#define CHUNK 4096
#define WORDS (CHUNK / 8)
#define HASH 16

__extension__ typedef unsigned __int128 Sum;

static uint64_t
word(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return le64toh(value);
}

static void
hash_chunk(const uint64_t *key, const uint8_t *chunk, uint8_t *out)
{
    Sum one = 0, two = 0; /* two sums: the processor adds them at the same time */
    for (int i = 0; i < WORDS; i += 4) {
        const uint8_t *p = chunk + 8 * i;
        one += (Sum)(key[i] + word(p)) * (key[i + 1] + word(p + 8));
        two += (Sum)(key[i + 2] + word(p + 16)) * (key[i + 3] + word(p + 24));
    }
    one += two;
    uint64_t halves[2] = {htole64((uint64_t)one), htole64((uint64_t)(one >> 64))};
    memcpy(out, halves, HASH);
}

static void
hash_all(const uint64_t *key, const uint8_t *data, size_t length, uint8_t *out)
{
    size_t chunks = length / CHUNK, rest = length % CHUNK;
    for (size_t i = 0; i < chunks; i++)
        hash_chunk(key, data + i * CHUNK, out + i * HASH);
    if (rest) {
        uint8_t last[CHUNK] = {0};
        memcpy(last, data + chunks * CHUNK, rest);
        hash_chunk(key, last, out + chunks * HASH);
    }
}

/* digest(key, data): the hashes of the chunks of `data`, 16 bytes each; the last chunk is filled with zeros, so the
 * caller adds the length. */
static PyObject *
digest(PyObject *module, PyObject *args)
{
    Py_buffer key, data;
    if (!PyArg_ParseTuple(args, "y*y*:digest", &key, &data))
        return NULL;
    PyObject *result = NULL;
    if (key.len != CHUNK)
        PyErr_Format(PyExc_ValueError, "the key must have %d bytes (got %zd)", CHUNK, key.len);
    else
        result = PyBytes_FromStringAndSize(NULL, (data.len / CHUNK + (data.len % CHUNK != 0)) * HASH);
    if (result) {
        uint64_t words[WORDS];
        for (int i = 0; i < WORDS; i++)
            words[i] = word((const uint8_t *)key.buf + 8 * i);
        hash_all(words, data.buf, (size_t)data.len, (uint8_t *)PyBytes_AS_STRING(result));
    }
    PyBuffer_Release(&key);
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef methods[] = {
    {"digest", digest, METH_VARARGS, PyDoc_STR("Return the hashes of the chunks of data, with a key.")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "replaydbg.native._digest",
    .m_doc = PyDoc_STR("A keyed hash of long data, for the tool's side."),
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__digest(void)
{
    return PyModule_Create(&definition);
}
