/* In which order a replayed program takes random numbers and reads the clock. A program that was edited may take one
 * more or one less than was recorded: what it gets from there on was meant for another purpose, and what comes of that
 * says little about the edit. Nobody sees that in the log: one recorded seed stands for all numbers that are made from
 * it. So these are counted as they are made, in replays whose end is reported; the launcher compares the two sequences.
 *
 * Numbers from a seed that the program chose itself are its own computation and are left out; so are those in the names
 * of temporary files. */
#include "base/core.h"
#include "code/code.h"
#include "crossing/inside.h"
#include <stdlib.h>

#define MOST_DRAWS 100000u /* of each sequence; more are counted */
#define MOST_KINDS 65000u

enum { NUMBERS, CLOCK, SEQUENCES };
enum { NOT_KNOWN, NEITHER, IS_NUMBERS, IS_CLOCK };

bool draws_are_kept;
static uint64_t reseed; /* 0: numbers as recorded */
/* two bytes each: the number of a kind */
static struct {
    uint8_t *data;
    size_t count, size;
    uint64_t total;
} sequences[SEQUENCES];
/* by hash; by address of an object: 1 if it has a seed from outside, 2 if it has the program's */
static IdMap kind_ids, seeded;
static Buf kinds;
static uint32_t kind_count;

void
draws_prepare(bool is_reported, uint64_t number)
{
    draws_are_kept = is_reported && core.mode == REPLAY;
    reseed = number;
}

/* ---- who asks ---- */

static bool
is_of_tempfile(PyCodeObject *code)
{
    static const char end[] = "/tempfile.py";
    char file[LONGEST_NAME];
    size_t n = text_copy(file, sizeof file, code->co_filename);
    return n >= sizeof end - 1 && strcmp(file + n - (sizeof end - 1), end) == 0;
}

/* The innermost function of the program's own; NULL if there is none. False: the number is for the name of a temporary
 * file. */
static bool
find_asker(PyCodeObject **found)
{
    PyThreadState *thread = report_thread();
    _PyInterpreterFrame *frame = thread ? compat_top_frame(thread) : NULL;
    *found = NULL;
    for (; frame; frame = compat_previous_frame(frame)) {
        PyCodeObject *code = compat_frame_code(frame);
        if (!code_is_library(code)) {
            *found = code;
            return true;
        }
        if (is_of_tempfile(code))
            return false;
    }
    return true;
}

static void
note_draw(int which, const char *what)
{
    PyCodeObject *code;
    if (core.outcome_is_known || !find_asker(&code))
        return;
    if (sequences[which].total++ >= MOST_DRAWS)
        return;
    uint64_t hash =
        hash_bytes(what, strlen(what), code ? hash_text(code->co_qualname, hash_text(code->co_filename, 11)) : 11);
    uint32_t *id = idmap_slot(&kind_ids, hash);
    if (*id == 0) {
        if (kind_count == MOST_KINDS)
            return;
        *id = ++kind_count;
        report_list(&kinds, 2);
        report_text(&kinds, what, strlen(what));
        report_name(&kinds, code ? code->co_qualname : NULL);
    }
    if (sequences[which].count + 2 > sequences[which].size) {
        sequences[which].size = sequences[which].size ? sequences[which].size * 2 : 1024;
        sequences[which].data = grown(sequences[which].data, sequences[which].size, 1);
    }
    sequences[which].data[sequences[which].count++] = (uint8_t)*id;
    sequences[which].data[sequences[which].count++] = (uint8_t)(*id >> 8);
}

/* ---- generators of random numbers ---- */

static PyMethodDef random_def, bits_def;
static PyCFunction original_random, original_bits;

void
draws_seeded(PyObject *generator, bool is_from_outside)
{
    if (draws_are_kept)
        *idmap_slot(&seeded, (uint64_t)(uintptr_t)generator) = is_from_outside ? 1 : 2;
}

static void
note_number(PyObject *generator, const char *what)
{
    if (*idmap_slot(&seeded, (uint64_t)(uintptr_t)generator) == 1)
        note_draw(NUMBERS, what);
}

static PyObject *
counted_random(PyObject *self, PyObject *unused)
{
    note_number(self, "random()");
    return original_random(self, unused);
}

/* Each 32 bits are one step of the generator, whatever the program makes of them. */
static PyObject *
counted_bits(PyObject *self, PyObject *count)
{
    char text[48];
    int overflow;
    long bits = PyLong_Check(count) ? PyLong_AsLongAndOverflow(count, &overflow) : 32;
    snprintf(text, sizeof text, "%ld x 32 random bits", bits > 0 ? (bits + 31) / 32 : 0);
    note_number(self, text);
    return original_bits(self, count);
}

static void
count_method(PyTypeObject *type, const char *name, int how, PyMethodDef *own, PyCFunction *original,
             PyCFunction counted)
{
    PyObject *method = PyDict_GetItemString(compat_type_dict(type), name);
    if (method == NULL || !Py_IS_TYPE(method, &PyMethodDescr_Type))
        return;
    PyMethodDescrObject *d = (PyMethodDescrObject *)method;
    if ((d->d_method->ml_flags & ~METH_COEXIST) != how)
        return;
    *own = *d->d_method;
    *original = own->ml_meth;
    own->ml_meth = counted;
    d->d_method = own;
}

void
draws_install(PyTypeObject *generator)
{
    if (!draws_are_kept || generator == NULL || original_random)
        return;
    count_method(generator, "random", METH_NOARGS, &random_def, &original_random, counted_random);
    count_method(generator, "getrandbits", METH_O, &bits_def, &original_bits, counted_bits);
}

/* ---- crossings ---- */

static bool
is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

static int
kind_of(const Gate *g)
{
    static const char *const numbers[] = {"_random.Random.seed",
                                          "posix.urandom",
                                          "posix.getrandom",
                                          "_uuid.generate_time_safe",
                                          "_ssl.RAND_bytes",
                                          "libc.getrandom",
                                          "libc.getentropy",
                                          "libc.arc4random",
                                          "libc.arc4random_uniform",
                                          "libc.arc4random_buf",
                                          NULL};
    static const char *const clocks[] = {"time.time",
                                         "time.time_ns",
                                         "time.monotonic",
                                         "time.monotonic_ns",
                                         "time.perf_counter",
                                         "time.perf_counter_ns",
                                         "time.process_time",
                                         "time.process_time_ns",
                                         "time.thread_time",
                                         "time.thread_time_ns",
                                         "time.clock_gettime",
                                         "time.clock_gettime_ns",
                                         "time.localtime",
                                         "time.gmtime",
                                         "_datetime.datetime.now",
                                         "_datetime.datetime.utcnow",
                                         "libc.clock_gettime",
                                         "libc.gettimeofday",
                                         "libc.time",
                                         NULL};
    static uint8_t *known;
    static int known_count;
    char name[160];
    if (g->id >= known_count) {
        int count = g->id + 512;
        known = grown(known, (size_t)count, 1);
        memset(known + known_count, NOT_KNOWN, (size_t)(count - known_count));
        known_count = count;
    }
    if (known[g->id] == NOT_KNOWN) {
        snprintf(name, sizeof name, "%s.%s", g->module, g->name);
        known[g->id] = is_one_of(name, numbers) ? IS_NUMBERS : is_one_of(name, clocks) ? IS_CLOCK : NEITHER;
    }
    return known[g->id];
}

void
draws_crossed(const Gate *g)
{
    int kind = kind_of(g);
    char name[160];
    if (kind == NEITHER)
        return;
    snprintf(name, sizeof name, "%s.%s", g->module, g->name);
    note_draw(kind == IS_NUMBERS ? NUMBERS : CLOCK, name);
}

/* Other random bytes than recorded, the same ones for the same number. Steals `result`; a new reference. */
PyObject *
draws_changed(const Gate *g, PyObject *result)
{
    static uint64_t given;
    PyCodeObject *code;
    if (reseed == 0 || result == NULL || !PyBytes_CheckExact(result) || kind_of(g) != IS_NUMBERS || !find_asker(&code))
        return result;
    PyObject *changed = PyBytes_FromStringAndSize(PyBytes_AS_STRING(result), PyBytes_GET_SIZE(result));
    if (changed == NULL) {
        PyErr_Clear();
        return result;
    }
    for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(changed); i += 8) {
        uint64_t key[2] = {reseed, given++}, mask = hash_bytes(key, sizeof key, 13);
        for (Py_ssize_t at = i; at < i + 8 && at < PyBytes_GET_SIZE(changed); at++)
            PyBytes_AS_STRING(changed)[at] ^= (char)(mask >> 8 * (at - i));
    }
    Py_DECREF(result);
    return changed;
}

/* ---- what is reported ---- */

void
draws_report(Buf *b)
{
    report_key(b, "kinds");
    report_list(b, kind_count);
    buf_bytes(b, kinds.data, kinds.used);
    report_key(b, "draws");
    report_list(b, SEQUENCES);
    for (int i = 0; i < SEQUENCES; i++) {
        report_list(b, 2);
        buf_byte(b, TAG_BYTES);
        buf_str(b, (const char *)sequences[i].data, sequences[i].count);
        report_number(b, (int64_t)sequences[i].total);
    }
}
