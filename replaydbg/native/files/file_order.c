/* Regular files that the program opens to read; closes.c has those that it closes after it could write to them. Another
 * process of its group that reads a file after it has been written comes after that, in most cases: a weaker order than
 * that by messages. No bytes are counted, and imports, which the world log has, are left out. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static const struct {
    const char *module, *name;
} calls[] = {{"posix", "open"}, {"_io", "FileIO.__init__"}};

uint8_t
file_call_of(const Gate *g)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, g->name) == 0 && strcmp(calls[i].module, g->module) == 0)
            return (uint8_t)(FILE_CALLS + i);
    return 0;
}

uint32_t
file_endpoint(int fd, bool for_writing)
{
    struct stat st;
    int saved = errno, flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;
    bool is_for_that = flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != (for_writing ? O_RDONLY : O_WRONLY);
    bool is_file = is_for_that && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 0;
    errno = saved;
    return is_file ? endpoint_of_file(st.st_dev, st.st_ino) : 0;
}

static bool
is_method(const Crossing *c)
{
    return strcmp(c->gate->module, "posix") != 0;
}

static int
opened(const Crossing *c, PyObject *number)
{
    if (is_method(c))
        return file_fd(c->self);
    int overflow;
    long fd = PyLong_Check(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    return fd < 0 || fd > INT32_MAX ? -1 : (int)fd;
}

void
file_call_begins(Crossing *c)
{
    if (!group_is_alone()) /* what a process does before another one begins comes before all of that */
        c->transfers[0] =
            (Moving){transfer_begin(endpoint_of_file(0, 0), TRANSFER_RECEIVES, -1), -1, TRANSFER_RECEIVES};
}

void
file_call_ends(const Crossing *c, PyObject *result)
{
    const Moving *moving = &c->transfers[0];
    TransferEnd end = {.flags = moving->flags, .address = ""};
    if (result && !(is_method(c) && c->nargs > 0 && PyLong_Check(c->args[0]))) /* that opens nothing */
        end.endpoint = file_endpoint(opened(c, result), false);
    if (end.endpoint)
        transfer_end(moving->number, &end);
    else
        transfer_undo(moving->number);
}
