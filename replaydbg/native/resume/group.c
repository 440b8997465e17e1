/* A process of a group goes live as one of a group, whose page and files the launcher has made. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include "gates/gates.h"
#include "log/log.h"
#include "resume/inside.h"
#include <stdlib.h>

static struct {
    char *page, *library; /* NULL: no group; no program is asked to join */
    unsigned process;
    uint32_t endpoints, addresses;
} group;

void
group_prepare(PyObject *boot)
{
    group.page = boot_bytes(boot, "group");
    group.library = boot_bytes(boot, "joins");
    group.process = (unsigned)boot_number(boot, "process");
    group.endpoints = (uint32_t)boot_number(boot, "endpoints");
    group.addresses = (uint32_t)boot_number(boot, "addresses");
    sent_prepare(PyDict_GetItemString(boot, "resume_sent"));
}

const char *
group_process_ends(void)
{
    if (group.page && group_continue(group.page, group.process, group.endpoints, group.addresses) < 0)
        return "its recording as a process of a group cannot be written";
    return NULL;
}

/* Recordings of one process have none of this, so gates learn it only now. */
void
group_hears(void)
{
    Gate *g;
    if (!group_is_on())
        return;
    for (int id = 1; (g = gate_numbered(id)) != NULL; id++)
        channel_gate_loaded(g);
    waits_hear();
}

const char *
group_goes_live(void)
{
    const char *problem = group_process_ends();
    if (group.page == NULL || problem)
        return problem;
    group_hears();
    if (group.library)
        group_lets_join(group.library);
    return NULL;
}
