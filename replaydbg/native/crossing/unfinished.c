/* Calls that have begun and not ended: of a replay that is compared with another one. What a finished call asked for has
 * been compared with its event. One that is open where the process ends has none: a signal that it sends itself, another
 * program that takes its place, what another thread waits for. */
#include "base/core.h"
#include "crossing/inside.h"
#include <stdlib.h>

typedef struct Unfinished {
    struct Unfinished *before, *after;
    Buf call; /* a tuple: gate, arguments, file, line, function */
} Unfinished;

static Unfinished *first, *last; /* in the order in which they began, of all lanes */

static void
describe(Buf *b, Crossing *c)
{
    char name[160];
    _PyInterpreterFrame *frame = compat_top_frame(core.tstate);
    PyCodeObject *code = frame ? compat_frame_code(frame) : NULL;
    int line = code ? PyCode_Addr2Line(code, compat_frame_lasti(frame)) : 0;
    const Buf *arguments = cross_arguments(c);
    int n = snprintf(name, sizeof name, "%s.%s", c->gate->module, c->gate->name);
    buf_byte(b, TAG_TUPLE);
    buf_varint(b, 5);
    report_text(b, name, n < (int)sizeof name ? (size_t)n : sizeof name - 1);
    if (arguments)
        buf_bytes(b, arguments->data, arguments->used);
    else
        buf_byte(b, TAG_NONE);
    report_name(b, code ? code->co_filename : NULL);
    report_number(b, line > 0 ? line : 0);
    report_name(b, code ? code->co_qualname : NULL);
}

/* Its arguments are encoded. */
void
unfinished_begin(Crossing *c)
{
    Unfinished *u = calloc(1, sizeof *u);
    if (u == NULL)
        Py_FatalError("replaydbg: out of memory for a call");
    describe(&u->call, c);
    u->before = last;
    *(last ? &last->after : &first) = u;
    last = u;
    c->unfinished = u;
}

void
unfinished_end(Crossing *c)
{
    Unfinished *u = c->unfinished;
    if (u == NULL)
        return;
    *(u->before ? &u->before->after : &first) = u->after;
    *(u->after ? &u->after->before : &last) = u->before;
    free(u->call.data);
    free(u);
    c->unfinished = NULL;
}

void
unfinished_each(void (*visit)(const Buf *call))
{
    for (Unfinished *u = first; u; u = u->after)
        visit(&u->call);
}
