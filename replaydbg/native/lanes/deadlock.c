/* What is said when every lane waits for another one: who waits for what, who has it, and where each stands. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "lanes/inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOLDERS = 4096, MOST_FRAMES = 40 };
static struct {
    const void *semaphore;
    int lane;
} holders[HOLDERS]; /* the latest of those that share a place: good enough for a message */

static size_t
place_of(const void *semaphore)
{
    return ((uintptr_t)semaphore >> 5 ^ (uintptr_t)semaphore >> 17) % HOLDERS;
}

void
deadlock_taken(const void *semaphore)
{
    size_t i = place_of(semaphore);
    holders[i].semaphore = semaphore;
    holders[i].lane = lanes.running->id;
}

void
deadlock_given(const void *semaphore)
{
    size_t i = place_of(semaphore);
    if (holders[i].semaphore == semaphore)
        holders[i].semaphore = NULL;
}

static void
append(Buf *b, const char *text)
{
    buf_bytes(b, text, strlen(text));
}

static void
append_name(Buf *b, const Lane *lane)
{
    char number[40];
    append(b, lane->name ? lane->name : "a thread");
    snprintf(number, sizeof number, " (thread %d)", lane->id);
    append(b, number);
}

static void
append_text(Buf *b, PyObject *text)
{
    for (Py_ssize_t i = 0; text && PyUnicode_Check(text) && i < PyUnicode_GET_LENGTH(text); i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(text, i);
        buf_byte(b, c < 128 ? (uint8_t)c : '?');
    }
}

static void
append_stack(Buf *b, const Lane *lane)
{
    char line[40];
    int n = 0;
    _PyInterpreterFrame *frame = lane->tstate ? compat_top_frame(lane->tstate) : NULL;
    for (; frame && n < MOST_FRAMES; frame = compat_previous_frame(frame), n++) {
        PyCodeObject *code = compat_frame_code(frame);
        append(b, "\n    ");
        append_text(b, code->co_filename);
        snprintf(line, sizeof line, ":%d in ", PyCode_Addr2Line(code, compat_frame_lasti(frame)));
        append(b, line);
        append_text(b, code->co_qualname);
    }
}

static void
append_lane(Buf *b, const Lane *lane)
{
    append(b, "\n  ");
    append_name(b, lane);
    append(b, " waits for ");
    append(b, lane->waits_for ? lane->waits_for : "nothing");
    size_t i = place_of(lane->key);
    const Lane *holder =
        lane->waits_for == waits_for_lock && holders[i].semaphore == lane->key ? lanes.at[holders[i].lane] : NULL;
    if (holder) {
        append(b, ", which ");
        append_name(b, holder);
        append(b, " holds");
    }
    append_stack(b, lane);
}

void
report_deadlock(void)
{
    Buf b = {0};
    append(&b, lanes.alive == 1 ? "the only thread waits for something that no other thread can provide"
                                : "every thread waits for another one");
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] && !lanes.at[i]->ended)
            append_lane(&b, lanes.at[i]);
    buf_byte(&b, 0);
    dprintf(2, "replaydbg: deadlock: %s\n", (const char *)b.data);
    note("deadlock", (const char *)b.data);
    free(b.data);
}
