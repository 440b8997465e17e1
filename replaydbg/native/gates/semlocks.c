/* Semaphores of multiprocessing in a replay that is to go live. The replay has none, and its objects have the recorded
 * handles. It counts what the program does with each object, as the objects do; when it goes live, each gets a new
 * semaphore with the value that is left. That is right if only this process has used it, which the launcher checks. */
#include "gates/gates.h"
#include "gates/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

/* The same in 3.11 to 3.13. */
typedef struct {
    PyObject_HEAD sem_t *handle; /* NULL: none */
    unsigned long last_tid;
    int count; /* how often it was acquired, less how often it was released */
    int maxvalue, kind;
    char *name;
} SemLock;
enum { RECURSIVE };

typedef struct {
    SemLock *lock; /* a reference: weak ones are not possible */
    int value;     /* with which it was made */
} Made;
static Made *made;
static size_t made_count;

void
semlock_note(PyObject *semlock, PyObject *value)
{
    int overflow;
    if (!core.goes_live || semlock == NULL)
        return;
    long number = value && PyLong_Check(value) ? PyLong_AsLongAndOverflow(value, &overflow) : 1;
    made = grown(made, made_count + 1, sizeof *made);
    made[made_count++] = (Made){(SemLock *)Py_NewRef(semlock), (int)number};
}

void
semlock_follow(const Crossing *c, PyObject *result)
{
    const char *name = c->gate->name;
    if (c->self == NULL || strcmp(c->gate->module, "_multiprocessing") != 0)
        return;
    SemLock *lock = (SemLock *)c->self;
    if ((strcmp(name, "SemLock.acquire") == 0 || strcmp(name, "SemLock.__enter__") == 0) && result == Py_True) {
        lock->count++;
        lock->last_tid = PyThread_get_thread_ident();
    }
    else if (strcmp(name, "SemLock.release") == 0 || strcmp(name, "SemLock.__exit__") == 0)
        lock->count--;
}

static bool
make_again(const Made *m)
{
    char name[64];
    int value = m->lock->kind == RECURSIVE ? m->lock->count <= 0 : m->value - m->lock->count;
    snprintf(name, sizeof name, "/replaydbg-%d-%zu", (int)getpid(), (size_t)(m - made));
    sem_t *made_now = sem_open(name, O_CREAT | O_EXCL, 0600, (unsigned)(value < 0 ? 0 : value));
    if (made_now == SEM_FAILED)
        return false;
    sem_unlink(name);
    m->lock->handle = made_now;
    return true;
}

const char *
semlocks_continue(void)
{
    static char text[120];
    for (size_t i = 0; i < made_count; i++) {
        if (Py_REFCNT(made[i].lock) == 1)
            made[i].lock->handle = NULL; /* the program has dropped it */
        else if (!make_again(&made[i])) {
            snprintf(text, sizeof text, "a semaphore of multiprocessing cannot be made again: %s", strerror(errno));
            return text;
        }
        Py_DECREF(made[i].lock);
    }
    free(made);
    made = NULL;
    made_count = 0;
    return NULL;
}
