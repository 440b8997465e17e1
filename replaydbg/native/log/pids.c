/* Process ids of a group of processes that goes on in other processes. The programs of the group have the ids that the
 * processes had when they were recorded, and go on with these: what the program says is translated for the kernel, and
 * what the kernel says for the program. A process that is born later has one id, that of the kernel. */
#include "log/log.h"
#include <stdlib.h>

typedef struct {
    pid_t recorded, today;
    bool is_reaped; /* its id may be that of another process by now */
} Known;
static Known *known;
static size_t known_count;

void
pid_stands_for(pid_t recorded, pid_t today)
{
    known = grown(known, known_count + 1, sizeof *known);
    known[known_count++] = (Known){recorded, today, false};
}

pid_t
pid_today(pid_t recorded)
{
    for (size_t i = 0; i < known_count; i++)
        if (known[i].recorded == recorded)
            return known[i].today;
    return recorded;
}

pid_t
pid_recorded(pid_t today)
{
    for (size_t i = 0; i < known_count; i++)
        if (known[i].today == today && !known[i].is_reaped)
            return known[i].recorded;
    return today;
}

void
pid_reaped(pid_t today)
{
    for (size_t i = 0; i < known_count; i++)
        if (known[i].today == today)
            known[i].is_reaped = true;
}

bool
pid_is_past(pid_t id)
{
    for (size_t i = 0; i < known_count; i++)
        if (known[i].recorded == id && known[i].today != id)
            return true;
    return false;
}
