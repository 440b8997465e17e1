/* The fence: what the kernel keeps a replay from, whatever code runs in it, and with which nothing of the program begins before it is up.
 *
 *   descriptors   everything is closed that the launcher did not open for this replay
 *   privileges    none is left, and none can be gained
 *   limits        memory, by what the recorded run needed
 *   files         Landlock, see landlock.c, where the kernel has it
 *   calls         the filter of system calls, see filter.c; without it there is no replay
 *
 * It holds for C libraries too. guard.c is the net inside the interpreter. */
#include "guard/inside.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static bool is_up;

static PyObject *
item(PyObject *boot, const char *key)
{
    PyObject *v = PyDict_GetItemString(boot, key);
    return v ? v : Py_None;
}

/* ---- descriptors ---- */

typedef struct {
    int fds[64];
    int n;
} Kept;

/* What the launcher opened for this replay is named in what it asks for: numbers under keys that end in `fd`. */
static void
find_kept(Kept *kept, PyObject *asked)
{
    PyObject *key, *value;
    Py_ssize_t place = 0;
    while (PyDict_Next(asked, &place, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : NULL;
        size_t n = name ? strlen(name) : 0;
        if (PyDict_CheckExact(value))
            find_kept(kept, value);
        else if (n >= 2 && strcmp(name + n - 2, "fd") == 0 && PyLong_CheckExact(value) && kept->n < 64)
            kept->fds[kept->n++] = (int)PyLong_AsLong(value);
    }
}

static int
by_size(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static void
close_between(int first, int last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    struct rlimit limit; /* before Linux 5.9 */
    int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1 << 20 ? (int)limit.rlim_cur : 1 << 20;
    for (int fd = first; fd <= last && fd < end; fd++)
        close(fd);
}

void
fence_close_descriptors(PyObject *boot)
{
    Kept kept = {.fds = {0, 1, 2}, .n = 3};
    find_kept(&kept, boot);
    qsort(kept.fds, (size_t)kept.n, sizeof *kept.fds, by_size);
    int next = 0;
    for (int i = 0; i < kept.n; i++) {
        if (kept.fds[i] < next)
            continue;
        close_between(next, kept.fds[i] - 1);
        next = kept.fds[i] + 1;
    }
    close_between(next, INT_MAX);
}

/* ---- privileges ---- */

static int
drop_privileges(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        /* an ordinary user may not, and has nothing that could be gained */
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    prctl(PR_SET_SECUREBITS, SECURE_ALL_BITS | SECURE_ALL_LOCKS, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_capset, &header, none);
}

/* ---- limits ---- */

static void
lower_limit(int resource, rlim_t most)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return;
    limit.rlim_max = most < limit.rlim_max ? most : limit.rlim_max;
    limit.rlim_cur = limit.rlim_max < limit.rlim_cur ? limit.rlim_max : limit.rlim_cur;
    setrlimit(resource, &limit);
}

/* The address space of a process under a sanitizer is some 20 TB, whatever the program needs. */
static bool
is_sanitized(void)
{
    return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init") ||
           dlsym(RTLD_DEFAULT, "__hwasan_init");
}

/* RLIMIT_FSIZE and RLIMIT_NPROC are left alone: standard output may be a file of any size, and the other counts all
 * processes of the user. */
static void
limit_resources(PyObject *boot)
{
    PyObject *memory = item(boot, "memory");
    lower_limit(RLIMIT_CORE, 0);
    if (!PyLong_Check(memory) || is_sanitized())
        return;
    rlim_t most = PyLong_AsUnsignedLongLong(memory);
    if (PyErr_Occurred())
        PyErr_Clear();
    else if (most > 0)
        lower_limit(RLIMIT_AS, most);
}

/* ---- all of it ---- */

int
fence_raise(PyObject *boot)
{
    if (item(boot, "fence") == Py_False)
        return 0;
    limit_resources(boot);
    if (refused_prepare() < 0 || drop_privileges() < 0)
        return -1;
    landlock_restrict(); /* the filter holds without it */
    if (filter_install(PyDict_CheckExact(item(boot, "engine")), core.has_futures) < 0)
        return -1;
    is_up = true;
    return 0;
}

int
fence_seal(void)
{
    return is_up ? filter_seal() : 0;
}
