/* Stretches of the tool's own work, in which nothing is a crossing and the program's collector stays where it is. */
#include "base/core.h"
#include "collector/collector.h"

void
own_work_begin(void)
{
    if (core.depth++ == 0)
        collector_pause(false);
    perturb();
}

void
own_work_end(void)
{
    work_end();
}

void
own_work_gives(PyObject *made)
{
    own_work_begin();
    if (made && core.depth == 1)
        collector_give(made);
    own_work_end();
}
