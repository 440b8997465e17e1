/* What a replay of edited code found otherwise than it was recorded, kept for the launcher. See lenient.h. */
#include "base/core.h"
#include "code/code.h"
#include "crossing/crossing.h"
#include "lenient/inside.h"
#include <stdlib.h>

#define MOST_KEPT 2000 /* more are counted */
#define MOST_TEXT 1500

typedef struct {
    LibertyKind kind;
    uint64_t event, loose;
    bool is_open; /* WRITTEN: the event that it stands for is not known yet */
    Gate *gate;
    Buf what; /* the rest of it, encoded: arguments, bytes, detail, lane, file, line, function */
} Liberty;

static const char *const names[LIBERTY_KINDS] = {"skipped", "reordered",  "repeated", "written", "accepted", "spare",
                                                 "signal",  "preemption", "thread",   "unused",  "follows"};
static Liberty kept[MOST_KEPT];
static size_t kept_count;
static uint64_t counts[LIBERTY_KINDS], taken;

uint64_t
liberties_taken(void)
{
    return taken;
}

/* The innermost place in code of the program's own. */
static void
put_place(Buf *b)
{
    PyThreadState *thread = report_thread();
    _PyInterpreterFrame *top = thread ? compat_top_frame(thread) : NULL, *frame = top;
    while (frame && code_is_library(compat_frame_code(frame)))
        frame = compat_previous_frame(frame);
    if (frame == NULL)
        frame = top;
    PyCodeObject *code = frame ? compat_frame_code(frame) : NULL;
    int line = code ? PyCode_Addr2Line(code, compat_frame_lasti(frame)) : 0;
    report_name(b, code ? code->co_filename : NULL);
    report_number(b, line > 0 ? line : 0);
    report_name(b, code ? code->co_qualname : NULL);
}

void
liberty(LibertyKind kind, uint64_t event, Crossing *c, const char *detail)
{
    taken++;
    if (core.outcome_is_known) /* what follows shows the exception, and cleans up */
        return;
    counts[kind]++;
    if (kept_count == MOST_KEPT)
        return;
    Liberty *l = &kept[kept_count++];
    const Buf *arguments = cross_arguments(c);
    *l = (Liberty){.kind = kind, .event = event, .gate = c ? c->gate : NULL};
    if (arguments && arguments->used < MOST_TEXT)
        buf_bytes(&l->what, arguments->data, arguments->used);
    else
        buf_byte(&l->what, TAG_NONE);
    buf_byte(&l->what, TAG_BYTES);
    buf_str(&l->what, c && c->leaving ? (const char *)c->leaving : "",
            !c || !c->leaving         ? 0
            : c->leaving_length < 200 ? c->leaving_length
                                      : 200);
    report_text(&l->what, detail, strlen(detail));
    report_number(&l->what, core.lane);
    put_place(&l->what);
}

void
liberty_written(Crossing *c, uint64_t loose)
{
    size_t at = kept_count;
    liberty(WRITTEN, 0, c, "");
    if (kept_count > at) {
        kept[at].loose = loose;
        kept[at].is_open = true;
    }
}

bool
liberty_fold(uint64_t event, uint64_t loose)
{
    for (size_t i = 0; i < kept_count; i++)
        if (kept[i].is_open && kept[i].loose == loose) {
            kept[i].is_open = false;
            kept[i].event = event;
            return true;
        }
    return false;
}

void
liberties_report(Buf *b)
{
    report_key(b, "liberties");
    report_list(b, kept_count);
    for (size_t i = 0; i < kept_count; i++) {
        Liberty *l = &kept[i];
        char gate[160] = "";
        if (l->gate)
            snprintf(gate, sizeof gate, "%s.%s", l->gate->module, l->gate->name);
        report_list(b, 10);
        report_key(b, names[l->kind]);
        report_number(b, (int64_t)l->event);
        report_key(b, gate);
        buf_bytes(b, l->what.data, l->what.used); /* seven values */
    }
    report_key(b, "counts");
    report_dict(b, LIBERTY_KINDS);
    for (int i = 0; i < LIBERTY_KINDS; i++) {
        report_key(b, names[i]);
        report_number(b, (int64_t)counts[i]);
    }
}

void
lenient_handler_is_late(int signum)
{
    liberty(SIGNALLED, 0, NULL, strsignal(signum));
}
