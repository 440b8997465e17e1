/* Waiting for processes of the group that are children of this one. They are no children of it for the system, and how
 * they have ended is in the page of the turns. */
#include "future/layer.h"
#include "future/turns.h"
#include "signals/signals.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

typedef struct {
    pid_t pid;
    int member; /* -1: it had ended at the moment, with `status` */
    int status; /* as wait() has it */
    int life;   /* can be read when it has ended */
    bool is_reaped;
} Child;
static Child *children;
static int child_count;
static bool is_group;
static pid_t member_pids[MOST_MEMBERS];
static int member_count;

bool
family_prepare(PyObject *list, PyObject *pids)
{
    is_group = true;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pids) && i < MOST_MEMBERS; i++)
        member_pids[member_count++] = (pid_t)PyLong_AsLong(PyList_GET_ITEM(pids, i));
    children = calloc((size_t)PyList_GET_SIZE(list) + 1, sizeof *children);
    for (Py_ssize_t i = 0; children && i < PyList_GET_SIZE(list); i++) {
        Child *c = &children[child_count++];
        PyObject *each = PyList_GET_ITEM(list, i);
        if (!PyTuple_Check(each) || !PyArg_ParseTuple(each, "iii", &c->pid, &c->member, &c->status))
            return false;
    }
    return children != NULL;
}

void
family_join(const int lives[])
{
    for (int i = 0; i < child_count; i++)
        children[i].life = lives[i];
}

bool
family_takes(const Crossing *c)
{
    const char *name = c->gate->name;
    return is_group && strcmp(c->gate->module, "posix") == 0 &&
           (strcmp(name, "waitpid") == 0 || strcmp(name, "wait") == 0 || strcmp(name, "wait3") == 0 ||
            strcmp(name, "wait4") == 0);
}

/* os.kill(pid, signal): to another process of the group. */
Taken
call_kill(Crossing *c)
{
    long pid = number_of(argument_of(c, 0, "pid"), 0), signum = number_of(argument_of(c, 1, "signal"), -1);
    if (!is_group || c->nargs != 2 || pid <= 0 || signum < 0 || signum > 64 || signals_names_itself(c->args[0]))
        return NOT_HERE;
    for (int i = 0; i < child_count; i++)
        if (children[i].pid == pid && children[i].is_reaped)
            return fails_with(ESRCH, NULL, NULL);
    for (int i = 0; i < member_count; i++)
        if (member_pids[i] == pid) {
            turns_send(i, (int)signum);
            return answered(Py_NewRef(Py_None));
        }
    return NOT_HERE;
}

/* ---- of lanes_hooks ---- */

bool
children_are_known(void)
{
    return is_group;
}

static bool
has_ended(const Child *c, int *status)
{
    *status = c->status;
    return c->member < 0 || turn_has_ended(c->member, status);
}

/* The one of which the parent hears first: those that had ended at the moment, then in the order of their ends. */
static Child *
first_ended(pid_t pid, int *status)
{
    Child *first = NULL;
    int its;
    for (int i = 0; i < child_count; i++) {
        Child *c = &children[i];
        if (c->is_reaped || (pid > 0 && c->pid != pid) || !has_ended(c, &its))
            continue;
        uint64_t order = c->member < 0 ? 0 : turn_ended_as(c->member);
        if (first == NULL || order < (first->member < 0 ? 0 : turn_ended_as(first->member))) {
            first = c;
            *status = its;
        }
    }
    return first;
}

pid_t
child_ended(pid_t pid, int *status, int fds[], int *n)
{
    *n = 0;
    if (pid == 0 || pid < -1)
        diverge("outside", NULL, NULL, "waiting for children by their process group");
    Child *ended = first_ended(pid, status);
    if (ended) {
        ended->is_reaped = true;
        return ended->pid;
    }
    for (int i = 0; i < child_count; i++)
        if (!children[i].is_reaped && (pid < 0 || children[i].pid == pid))
            fds[(*n)++] = children[i].life;
    errno = ECHILD;
    return *n ? 0 : -1;
}
