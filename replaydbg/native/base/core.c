/* The state of the core: one extension, one program. */
#include "base/core.h"

Core core = {.mode = OBSERVE, .report_fd = -1, .null_fd = -1, .socket_fd = -1, .heap_due = UINT64_MAX};
Engine engine = {.fd = -1};

static void
choose_way(void)
{
    static const Way by_mode[] = {[OBSERVE] = OBSERVED, [RECORD] = RECORDED, [REPLAY] = REPLAYED};
    if (engine.diverting)
        core.way = core.lenient ? DIVERTED_LENIENTLY : DIVERTED;
    else
        core.way = core.mode == REPLAY && core.lenient ? LENIENTLY : by_mode[core.mode];
}

void
set_mode(Mode mode)
{
    core.mode = mode;
    choose_way();
}

void
set_lenient(bool is_lenient)
{
    core.lenient = is_lenient;
    choose_way();
}

void
set_diverting(bool is_diverting)
{
    engine.diverting = is_diverting;
    choose_way();
}

_Noreturn void
diverge(const char *kind, Gate *gate, Crossing *c, const char *detail)
{
    base_hooks.diverged(kind, gate, c, detail);
    __builtin_unreachable();
}
