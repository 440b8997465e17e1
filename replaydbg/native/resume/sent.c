/* What the program has sent, of the calls that the launcher asks for. Bytes between processes of a group that nobody had
 * received when they ended are in no recording: only the replay of the sender has them. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "resume/inside.h"
#include <stdlib.h>

typedef struct {
    uint64_t event;
    uint8_t *data;
    size_t n;
} Sent;
static Sent *wanted; /* by event, ascending */
static size_t wanted_count, reached;

void
sent_prepare(PyObject *events)
{
    Py_ssize_t n = events && PyList_CheckExact(events) ? PyList_GET_SIZE(events) : 0;
    wanted = n ? calloc((size_t)n, sizeof *wanted) : NULL;
    for (Py_ssize_t i = 0; wanted && i < n; i++)
        wanted[wanted_count++].event = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(events, i));
}

void
sent_follow(const Crossing *c)
{
    while (reached < wanted_count && wanted[reached].event < core.crossings)
        reached++;
    if (reached == wanted_count || wanted[reached].event != core.crossings || !c->digested)
        return;
    Sent *s = &wanted[reached];
    const Buf *data = cross_sending();
    s->data = malloc(data->used + 1);
    if (s->data) {
        memcpy(s->data, data->data, data->used);
        s->n = data->used;
    }
}

const uint8_t *
sent_data(uint64_t event, size_t *n)
{
    for (size_t low = 0, high = wanted_count; low < high;) {
        size_t middle = (low + high) / 2;
        if (wanted[middle].event == event) {
            *n = wanted[middle].n;
            return wanted[middle].data;
        }
        *(wanted[middle].event < event ? &low : &high) = wanted[middle].event < event ? middle + 1 : middle;
    }
    return NULL;
}

void
sent_report(Buf *b)
{
    uint64_t count = 0;
    for (size_t i = 0; i < wanted_count; i++)
        count += wanted[i].data != NULL;
    report_list(b, count);
    for (size_t i = 0; i < wanted_count; i++) {
        if (wanted[i].data == NULL)
            continue;
        report_list(b, 2);
        report_number(b, (int64_t)wanted[i].event);
        buf_byte(b, TAG_BYTES);
        buf_str(b, (const char *)wanted[i].data, wanted[i].n);
        free(wanted[i].data);
    }
    free(wanted);
    wanted = NULL;
    wanted_count = reached = 0;
}
