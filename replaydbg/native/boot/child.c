/* Children that the program forks: what becomes of the core there. One function does it all, in the order that it needs:
 * the C library would call several in the order in which they were registered. */
#include "base/core.h"
#include "boot/inside.h"
#include "files/files.h"
#include "heap/heap.h"
#include "lanes/lanes.h"
#include "log/log.h"
#include <pthread.h>

/* Also where C code forks, or the interpreter does for a function of the program's (`preexec_fn`): such a child is not
 * recorded. */
static void
in_child(void)
{
    bool is_recorded = group_child_begins();
    lanes_forked(is_recorded);
    if (is_recorded) {
        stream_children_forked();
        heap_record_forked();
    }
    else
        log_stop_in_child();
}

void
children_prepare(void)
{
    pthread_atfork(lanes_fork_begins, NULL, in_child);
}
