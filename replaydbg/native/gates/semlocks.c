/* Semaphores of multiprocessing in a replay that is to go live. The replay has none, and its objects have the recorded
 * handles. It counts what the program does with each object, as the objects do; when it goes live, each gets a new
 * semaphore with the value that is left. That is right if only this process has used it, which the launcher checks. */
#include "clock/clock.h"
#include "gates/gates.h"
#include "gates/inside.h"
#include "lanes/lanes.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/time.h>
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
    SemLock *lock; /* borrowed: it tells us when it goes */
    int value;     /* with which it was made */
    char *name;    /* by which other processes know it; NULL: unknown */
} Made;
static Made *made;
static size_t made_count;

static destructor original_dealloc;

/* Not kept alive for us: a replay without this has no such references, and collects at another place with them. */
static void
semlock_goes(PyObject *semlock)
{
    for (size_t i = 0; i < made_count; i++)
        if (made[i].lock == (SemLock *)semlock) {
            free(made[i].name);
            made[i] = made[--made_count];
            break;
        }
    original_dealloc(semlock);
}

void
semlock_note(PyObject *semlock, PyObject *value, PyObject *name)
{
    int overflow;
    if (!core.goes_live || semlock == NULL)
        return;
    long number = value && PyLong_Check(value) ? PyLong_AsLongAndOverflow(value, &overflow) : 1;
    if (original_dealloc == NULL) {
        original_dealloc = Py_TYPE(semlock)->tp_dealloc;
        Py_TYPE(semlock)->tp_dealloc = semlock_goes;
    }
    made = grown(made, made_count + 1, sizeof *made);
    bool is_named = name && PyUnicode_Check(name) && PyUnicode_IS_ASCII(name);
    made[made_count++] = (Made){(SemLock *)semlock, (int)number, is_named ? strdup(PyUnicode_DATA(name)) : NULL};
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

/* If nobody else has used it. */
static unsigned
value_left(const Made *m)
{
    int value = m->lock->kind == RECURSIVE ? m->lock->count <= 0 : m->value - m->lock->count;
    return value < 0 ? 0 : (unsigned)value;
}

static bool
make_again(const Made *m)
{
    char name[64];
    snprintf(name, sizeof name, "/replaydbg-%d-%zu", (int)getpid(), (size_t)(m - made));
    sem_t *made_now = sem_open(name, O_CREAT | O_EXCL, 0600, value_left(m));
    if (made_now == SEM_FAILED)
        return false;
    sem_unlink(name);
    m->lock->handle = made_now;
    return true;
}

/* ---- semaphores that a future makes: no other process can have one ---- */

static sem_t *
semaphore_apart(unsigned value)
{
    sem_t *own = memory_apart_small(sizeof *own);
    if (own)
        sem_init(own, 0, value);
    return own;
}

static sem_t *(*shared_by_name)(const char *name);

void
semlocks_become_future(sem_t *(*shared)(const char *name))
{
    shared_by_name = shared;
    for (size_t i = 0; i < made_count; i++) {
        sem_t *with_others = made[i].name ? shared(made[i].name) : NULL;
        made[i].lock->handle = with_others ? with_others : semaphore_apart(value_left(&made[i]));
        if (with_others)
            endpoint_semaphore(with_others, made[i].name, -1);
    }
}

static sem_t *
our_sem_open(const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    if (!(flags & O_CREAT)) {
        va_end(rest);
        sem_t *found = core.is_future && shared_by_name ? shared_by_name(name) : NULL;
        if (core.is_future && found == NULL)
            diverge("outside", NULL, NULL, "a semaphore of another process");
        return found ? found : sem_open(name, flags);
    }
    mode_t mode = va_arg(rest, mode_t);
    unsigned value = va_arg(rest, unsigned);
    va_end(rest);
    return core.is_future ? semaphore_apart(value) : sem_open(name, flags, mode, value);
}

static int
our_sem_close(sem_t *semaphore)
{
    return core.is_future ? 0 : sem_close(semaphore);
}

static int
our_sem_unlink(const char *name)
{
    return core.is_future ? 0 : sem_unlink(name);
}

/* SemLock.acquire() adds its timeout to it. */
static int
our_gettimeofday(struct timeval *time, void *zone)
{
    if (!core.is_future)
        return gettimeofday(time, zone);
    uint64_t now = simulated_clock(CLOCK_REALTIME);
    *time = (struct timeval){(time_t)(now / 1000000000), (suseconds_t)(now % 1000000000 / 1000)};
    return 0;
}

void
semlocks_relink(void)
{
    static Relink functions[] = {{"sem_open", (void *)our_sem_open},
                                 {"sem_close", (void *)our_sem_close},
                                 {"sem_unlink", (void *)our_sem_unlink},
                                 {"gettimeofday", (void *)our_gettimeofday},
                                 {"sem_wait", NULL},
                                 {"sem_timedwait", NULL},
                                 {"sem_clockwait", NULL},
                                 {"sem_trywait", NULL},
                                 {"sem_post", NULL},
                                 {NULL, NULL}};
    static Relinking module = {.functions = functions, .only_named = "_multiprocessing"};
    for (Relink *r = functions; r->name; r++)
        r->function = r->function ? r->function : threads_interpreters(r->name);
    relink(&module);
}

const char *
semlocks_continue(void)
{
    static char text[120];
    for (size_t i = 0; i < made_count; i++) {
        if (!make_again(&made[i])) {
            snprintf(text, sizeof text, "a semaphore of multiprocessing cannot be made again: %s", strerror(errno));
            return text;
        }
    }
    return NULL;
}
