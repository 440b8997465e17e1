/* Functions of the C library that take a thread (pthread_t), as the program's own C code calls them: by ctypes and
 * cffi, which ask for them by name, and in extension modules. The ident that threading.get_ident() gives is a lane's,
 * of which the C library knows nothing. A lane has the name that it was given and a stack of its own; whatever else
 * belongs to a thread of the operating system is that of the one on which all lanes run. Where what comes of it depends
 * on the machine it is a crossing. Other threads are left to the C library. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "lanes/inside.h"
#include "log/log.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static Lane *
lane_of(pthread_t thread)
{
    return on_lanes ? lane_of_ident((uintptr_t)thread) : NULL;
}

/* Of no lane that lives: for the C library it would be memory that says nothing. */
static bool
was_lane(pthread_t thread)
{
    return on_lanes && lane_is_ident((uintptr_t)thread) && lane_of(thread) == NULL;
}

/* ---- names ---- */

/* The kernel gives a program the name of its file, and a thread that of its maker. */
void
lane_name_at_start(Lane *lane)
{
    const char *slash = NULL, *path = NULL;
    if (lane != &lanes.first) {
        memcpy(lane->kernel_name, lanes.running->kernel_name, sizeof lane->kernel_name);
        return;
    }
    PyObject *executable = PySys_GetObject("executable");
    if (executable && PyUnicode_Check(executable) && (path = PyUnicode_AsUTF8(executable)))
        slash = strrchr(path, '/');
    PyErr_Clear();
    snprintf(lane->kernel_name, sizeof lane->kernel_name, "%s", slash ? slash + 1 : "python");
}

static int
our_setname(pthread_t thread, const char *name)
{
    Lane *lane = lane_of(thread);
    if (was_lane(thread))
        return ESRCH;
    if (lane == NULL)
        return pthread_setname_np(thread, name);
    if (strlen(name) >= sizeof lane->kernel_name)
        return ERANGE;
    memset(lane->kernel_name, 0, sizeof lane->kernel_name);
    memcpy(lane->kernel_name, name, strlen(name));
    if (lane == lanes.main && core.mode != REPLAY) /* others see it */
        pthread_setname_np(pthread_self(), name);
    return 0;
}

static int
our_getname(pthread_t thread, char *name, size_t size)
{
    Lane *lane = lane_of(thread);
    if (was_lane(thread))
        return ESRCH;
    if (lane == NULL)
        return pthread_getname_np(thread, name, size);
    if (size < sizeof lane->kernel_name)
        return ERANGE;
    memcpy(name, lane->kernel_name, sizeof lane->kernel_name);
    return 0;
}

/* ---- what the machine says ---- */

typedef struct {
    pthread_t thread;
    int number;  /* policy, priority; or unused */
    void *given; /* what is handed over */
    size_t size;
    void *out; /* what is filled in: `size` bytes */
} Asked;

/* ctypes gives up the interpreter's lock, and a crossing needs it. */
static int
cross(const char *name, int (*really)(Asked *), Asked *asked)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Gate *gate = gate_named("libc", name);
    int rc = 0;
    if (gate == NULL || gate_passes())
        rc = really(asked);
    else {
        NativeCrossing crossing;
        const char *given = asked->given ? asked->given : "";
        if (native_begin(&crossing, gate, name, asked->number, (int64_t)asked->size, given,
                         asked->given ? asked->size : 0))
            rc = really(asked);
        rc = (int)native_end(&crossing, rc, asked->out, asked->out ? asked->size : 0);
    }
    PyGILState_Release(state);
    return rc;
}

static int
really_getaffinity(Asked *a)
{
    return pthread_getaffinity_np(pthread_self(), a->size, a->out);
}
static int
really_setaffinity(Asked *a)
{
    return pthread_setaffinity_np(pthread_self(), a->size, a->given);
}
static int
really_setschedparam(Asked *a)
{
    return pthread_setschedparam(pthread_self(), a->number, a->given);
}
static int
really_setschedprio(Asked *a)
{
    return pthread_setschedprio(pthread_self(), a->number);
}

typedef struct {
    int policy, priority;
} Scheduling;

static int
really_getschedparam(Asked *a)
{
    struct sched_param param = {0};
    Scheduling *s = a->out;
    int rc = pthread_getschedparam(pthread_self(), &s->policy, &param);
    s->priority = param.sched_priority;
    return rc;
}

static int
our_getaffinity(pthread_t thread, size_t size, cpu_set_t *set)
{
    if (was_lane(thread))
        return ESRCH;
    if (lane_of(thread) == NULL)
        return pthread_getaffinity_np(thread, size, set);
    memset(set, 0, size); /* it fills less than it could where it fails */
    return cross("pthread_getaffinity_np", really_getaffinity, &(Asked){.size = size, .out = set});
}

static int
our_setaffinity(pthread_t thread, size_t size, const cpu_set_t *set)
{
    if (was_lane(thread))
        return ESRCH;
    if (lane_of(thread) == NULL)
        return pthread_setaffinity_np(thread, size, set);
    return cross("pthread_setaffinity_np", really_setaffinity, &(Asked){.size = size, .given = (void *)set});
}

static int
our_getschedparam(pthread_t thread, int *policy, struct sched_param *param)
{
    Scheduling found = {0};
    if (was_lane(thread))
        return ESRCH;
    if (lane_of(thread) == NULL)
        return pthread_getschedparam(thread, policy, param);
    int rc = cross("pthread_getschedparam", really_getschedparam, &(Asked){.size = sizeof found, .out = &found});
    if (rc == 0) {
        *policy = found.policy;
        param->sched_priority = found.priority;
    }
    return rc;
}

static int
our_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
    if (was_lane(thread))
        return ESRCH;
    if (lane_of(thread) == NULL)
        return pthread_setschedparam(thread, policy, param);
    Asked asked = {.number = policy, .given = (void *)param, .size = sizeof param->sched_priority};
    return cross("pthread_setschedparam", really_setschedparam, &asked);
}

static int
our_setschedprio(pthread_t thread, int priority)
{
    if (was_lane(thread))
        return ESRCH;
    if (lane_of(thread) == NULL)
        return pthread_setschedprio(thread, priority);
    return cross("pthread_setschedprio", really_setschedprio, &(Asked){.number = priority});
}

/* ---- what a lane has ---- */

/* The clock of whoever asks it: its number is the same in every run, that of another thread has the kernel's number of
 * it in it. */
static int
our_getcpuclockid(pthread_t thread, clockid_t *clock)
{
    if (was_lane(thread))
        return ESRCH;
    if (lane_of(thread) == NULL)
        return pthread_getcpuclockid(thread, clock);
    *clock = CLOCK_THREAD_CPUTIME_ID;
    return 0;
}

/* C code that asks for its own stack runs on a lane's, though pthread_self() is the thread on which all lanes run. */
static int
our_getattr(pthread_t thread, pthread_attr_t *attributes)
{
    Lane *lane = lane_of(thread);
    if (was_lane(thread))
        return ESRCH;
    if (lane == NULL && on_lanes && lanes.running && pthread_equal(thread, pthread_self()))
        lane = lanes.running;
    int rc = pthread_getattr_np(lane ? pthread_self() : thread, attributes);
    if (rc == 0 && lane && lane->stack)
        rc = pthread_attr_setstack(attributes, lane->stack, lane->stack_size);
    return rc;
}

static int
our_sigqueue(pthread_t thread, int signum, const union sigval value)
{
    if (was_lane(thread))
        return ESRCH;
    return pthread_sigqueue(lane_of(thread) ? pthread_self() : thread, signum, value);
}

/* The interpreter detaches its threads, and 3.13 joins them by itself: to join one is an error, as it is without the
 * tool. */
static int
our_not_joined(pthread_t thread, void **result)
{
    return was_lane(thread) ? ESRCH : lane_of(thread) ? EINVAL : pthread_join(thread, result);
}
static int
our_not_tried(pthread_t thread, void **result)
{
    return was_lane(thread) ? ESRCH : lane_of(thread) ? EINVAL : pthread_tryjoin_np(thread, result);
}
static int
our_not_detached(pthread_t thread)
{
    return was_lane(thread) ? ESRCH : lane_of(thread) ? EINVAL : pthread_detach(thread);
}

static int
our_not_joined_until(pthread_t thread, void **result, const struct timespec *time)
{
    return was_lane(thread) ? ESRCH : lane_of(thread) ? EINVAL : pthread_timedjoin_np(thread, result, time);
}

/* A lane cannot be made to end in the middle of what it does. */
static int
our_cancel(pthread_t thread)
{
    static const char what[] = "pthread_cancel() on a thread of the program";
    if (lane_of(thread) == NULL)
        return was_lane(thread) ? ESRCH : pthread_cancel(thread);
    PyGILState_STATE state = PyGILState_Ensure();
    if (core.mode == REPLAY)
        cross_at_end() ? diverge("end", NULL, NULL, "") : diverge("unsupported", NULL, NULL, what);
    if (core.mode == RECORD) {
        note("unsupported", what);
        log_fail(4);
    }
    PyGILState_Release(state);
    return ENOSYS;
}

static pthread_t
our_own_ident(void)
{
    return on_lanes && lanes.running ? (pthread_t)lane_ident(lanes.running) : pthread_self();
}

/* ---- who gets them ---- */

static const Relink functions[] = {{"pthread_setname_np", (void *)our_setname},
                                   {"pthread_getname_np", (void *)our_getname},
                                   {"pthread_getaffinity_np", (void *)our_getaffinity},
                                   {"pthread_setaffinity_np", (void *)our_setaffinity},
                                   {"pthread_getschedparam", (void *)our_getschedparam},
                                   {"pthread_setschedparam", (void *)our_setschedparam},
                                   {"pthread_setschedprio", (void *)our_setschedprio},
                                   {"pthread_getattr_np", (void *)our_getattr},
                                   {"pthread_sigqueue", (void *)our_sigqueue},
                                   {"pthread_cancel", (void *)our_cancel},
                                   {NULL, NULL}};

/* Of these the interpreter has others, in threads.c, or those of libcalls.c are linked already; in C libraries
 * pthread_self() stays the thread that libraries know. */
static const Relink by_name[] = {{"pthread_self", (void *)our_own_ident},
                                 {"pthread_getcpuclockid", (void *)our_getcpuclockid},
                                 {"pthread_join", (void *)our_not_joined},
                                 {"pthread_tryjoin_np", (void *)our_not_tried},
                                 {"pthread_timedjoin_np", (void *)our_not_joined_until},
                                 {"pthread_detach", (void *)our_not_detached},
                                 {"pthread_sigmask", (void *)our_sigmask},
                                 {"sigprocmask", (void *)our_sigprocmask},
                                 {NULL, NULL}};

void *
thread_call(const char *name)
{
    for (const Relink *r = functions; r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r->function;
    for (const Relink *r = by_name; r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r->function;
    return NULL;
}

void
thread_calls_relink(void)
{
    static Relinking all = {.functions = functions};
    relink(&all);
}
