/* Descriptors of the core's own, which the program neither sees nor closes, and those that objects of the program hold.
 */
#include "base/core.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static int ours[MOST_OURS], ours_count;
static int room_above; /* numbers that are left free above ours */
PyTypeObject *fileio_type, *socket_type;
enum { MOST_WRAPPERS = 4 };
static struct {
    PyTypeObject *type;
    Py_ssize_t inner;
} wrappers[MOST_WRAPPERS];
static int wrapper_count;

bool
fd_is_ours(int fd)
{
    for (int i = 0; i < ours_count; i++)
        if (ours[i] == fd)
            return true;
    return false;
}

int
fd_ours(const int **fds)
{
    *fds = ours;
    return ours_count;
}

void
fd_leave_room(int numbers)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= 512 + (rlim_t)numbers)
        room_above = numbers;
}

int
fd_keep(int fd)
{
    struct rlimit limit;
    int base = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 128 && limit.rlim_cur < 1u << 20
                   ? (int)limit.rlim_cur - 64 - room_above
                   : 900;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, base);
    if (high < 0)
        return fd;
    close(fd);
    if (ours_count < MOST_OURS)
        ours[ours_count++] = high;
    return high;
}

void
fd_forget(int fd)
{
    for (int i = 0; i < ours_count; i++)
        if (ours[i] == fd)
            ours[i--] = ours[--ours_count];
    close(fd);
}

int
file_fd(PyObject *o)
{
    if (fileio_type == NULL || !PyObject_TypeCheck(o, fileio_type))
        return -2;
    int fd; /* the first field of the object on every version */
    memcpy(&fd, (char *)o + sizeof(PyObject), sizeof fd);
    return fd;
}

void
wrapper_known(PyTypeObject *type, Py_ssize_t inner)
{
    if (inner > 0 && wrapper_count < MOST_WRAPPERS) {
        wrappers[wrapper_count].type = type;
        wrappers[wrapper_count++].inner = inner;
    }
}

/* Subclasses are left out: what their `fileno()` returns is the program's matter. */
int
wrapper_fd(PyObject *o)
{
    for (int i = 0; i < wrapper_count; i++)
        if (Py_IS_TYPE(o, wrappers[i].type)) {
            PyObject *inner;
            memcpy(&inner, (char *)o + wrappers[i].inner, sizeof inner);
            int fd = inner ? file_fd(inner) : -2;
            return fd == -2 && inner ? wrapper_fd(inner) : fd;
        }
    return -2;
}

/* The first field of the C object. */
int
socket_fd(PyObject *o)
{
    int fd = -2;
    if (socket_type && PyObject_TypeCheck(o, socket_type))
        memcpy(&fd, (char *)o + sizeof(PyObject), sizeof fd);
    return fd;
}
