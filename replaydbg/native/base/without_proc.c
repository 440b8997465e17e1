/* What /proc shows, by other means: see without_proc.h. */
#define _GNU_SOURCE
#include "base/core.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- descriptors ---- */

#define FIRST_TABLE 64 /* of descriptors, in each process */
#define LARGEST_TABLE (1 << 30)

/* Whether the kernel's table of this process's descriptors has an entry `fd`, which may be empty. select() refuses
 * closed descriptors, and ignores those behind the end of the table. Returns -1 without memory, or where select() is
 * not allowed. */
static int
is_in_table(int fd)
{
    size_t bits = 8 * sizeof(unsigned long);
    unsigned long *set = calloc((size_t)fd / bits + 1, sizeof *set);
    if (set == NULL)
        return -1;
    set[(size_t)fd / bits] = 1ul << (size_t)fd % bits;
    struct timespec at_once = {0, 0};
    long rc = syscall(SYS_pselect6, fd + 1, set, NULL, NULL, &at_once, NULL);
    int is_in = rc >= 0 ? fcntl(fd, F_GETFD) >= 0 : errno == EBADF ? 1 : -1;
    free(set);
    return is_in;
}

/* The table grows in powers of two, and a limit on descriptors may be a billion: so what is looked at depends on how
 * many there were. */
static int
end_of_table(void)
{
    for (int end = FIRST_TABLE; end < LARGEST_TABLE; end *= 2) {
        int is_in = is_in_table(end);
        if (is_in == 0)
            return end;
        if (is_in < 0)
            break;
    }
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1 << 20 ? (int)limit.rlim_cur : 1 << 20;
}

PyObject *
without_proc_descriptors(PyObject *module, PyObject *unused)
{
    PyObject *found = PyList_New(0);
    int end = end_of_table();
    for (int fd = 0; found && fd < end; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        PyObject *number = PyLong_FromLong(fd);
        if (number == NULL || PyList_Append(found, number) < 0)
            Py_CLEAR(found);
        Py_XDECREF(number);
    }
    return found;
}

/* ---- the environment ---- */

/* The kernel puts the words of the command line and the environment on the stack: their number, the words, NULL, the
 * variables, NULL. The dynamic linker of the GNU C library knows where; setenv() leaves this list as it is when it adds
 * a variable. */
PyObject *
without_proc_environment(PyObject *module, PyObject *unused)
{
    void **end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    PyObject *found = PyList_New(0);
    if (end == NULL || *end == NULL)
        return found;
    const long *count = *end;
    for (char **variable = (char **)(count + 1) + *count + 1; found && *variable; variable++) {
        PyObject *text = PyBytes_FromString(*variable);
        if (text == NULL || PyList_Append(found, text) < 0)
            Py_CLEAR(found);
        Py_XDECREF(text);
    }
    return found;
}

/* ---- memory ---- */

static bool
is_room_for_a_page(size_t page)
{
    void *at = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED)
        munmap(at, page);
    return at != MAP_FAILED;
}

/* The stack may not grow while the limit is low. */
static __attribute__((noinline)) void
touch_stack(void)
{
    volatile char room[16384];
    room[0] = room[8192] = 0;
}

/* The limit below which no page is granted any more is what the process has. */
uint64_t
without_proc_address_space(void)
{
    struct rlimit limit;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (getrlimit(RLIMIT_AS, &limit) < 0)
        return 0;
    uint64_t least = 0, most = (limit.rlim_max < (rlim_t)1 << 47 ? limit.rlim_max : (rlim_t)1 << 47) / page;
    touch_stack();
    while (least < most) {
        uint64_t pages = least + (most - least) / 2;
        if (setrlimit(RLIMIT_AS, &(struct rlimit){pages * page, limit.rlim_max}) == 0 && is_room_for_a_page(page))
            most = pages;
        else
            least = pages + 1;
    }
    setrlimit(RLIMIT_AS, &limit);
    return most * page;
}

static int
find_address_space(void *found)
{
    *(uint64_t *)found = without_proc_address_space();
    return 0;
}

/* Other threads of the program need memory at the same moment, so a process of its own asks: it shares the memory, and
 * not the limit. What has been given back was in use, most likely: the largest amount of memory in use is added. */
uint64_t
without_proc_peak(void)
{
    enum { STACK = 1 << 16 };
    uint64_t found = 0;
    int saved = errno;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* the program's handlers must not run in the other process */
    int pid = clone(find_address_space, stack + STACK, CLONE_VM | CLONE_VFORK, &found);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid > 0)
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
            continue;
    munmap(stack, STACK);
    struct rusage used;
    if (found && getrusage(RUSAGE_SELF, &used) == 0)
        found += (uint64_t)used.ru_maxrss << 10;
    errno = saved;
    return found;
}

/* ---- files ---- */

bool
without_proc_is_memory(int fd)
{
    struct stat file, shared;
    if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode))
        return false;
    if (file.st_nlink == 0 && fcntl(fd, F_GET_SEALS) >= 0)
        return true; /* a memory file has no name, and only what is in memory has seals */
    return fcntl(fd, F_GET_SEALS) >= 0 && stat("/dev/shm", &shared) == 0 && file.st_dev == shared.st_dev;
}
