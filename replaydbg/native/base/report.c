/* Values reported to the launcher when a replay ends, in the form of format.md. Written without Python's memory: a
 * replay may end in a signal handler, and the step clock makes no Python object. */
#include "base/core.h"
#include <stdlib.h>
#include <unistd.h>

void
report_dict(Buf *b, uint64_t items)
{
    buf_byte(b, TAG_DICT);
    buf_varint(b, items);
}

void
report_list(Buf *b, uint64_t items)
{
    buf_byte(b, TAG_LIST);
    buf_varint(b, items);
}

void
report_text(Buf *b, const char *text, size_t n)
{
    buf_byte(b, TAG_STR);
    buf_str(b, text, n);
}

void
report_key(Buf *b, const char *key)
{
    report_text(b, key, strlen(key));
}

void
report_number(Buf *b, int64_t number)
{
    buf_byte(b, TAG_INT);
    buf_varint(b, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

size_t
put_character(uint8_t *to, Py_UCS4 c)
{
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xC0, 0xE0, 0xF0};
    to[0] = (uint8_t)(first[more] | c >> 6 * more);
    for (int i = 1; i <= more; i++)
        to[i] = (uint8_t)(0x80 | (c >> 6 * (more - i) & 0x3F));
    return 1 + (size_t)more;
}

void
report_name(Buf *b, PyObject *text)
{
    uint8_t name[4096];
    size_t n = 0;
    Py_ssize_t length = text && PyUnicode_CheckExact(text) ? PyUnicode_GET_LENGTH(text) : 0;
    for (Py_ssize_t i = 0; i < length && n + 4 <= sizeof name; i++)
        n += put_character(name + n, PyUnicode_READ_CHAR(text, i));
    if (n == 0)
        name[n++] = '?';
    report_text(b, (const char *)name, n);
}

/* A thread that ends loses its state before its lane does: what is left of it then runs C code alone. */
PyThreadState *
report_thread(void)
{
    PyThreadState *each = core.tstate ? PyInterpreterState_ThreadHead(PyInterpreterState_Main()) : NULL;
    while (each && each != core.tstate)
        each = PyThreadState_Next(each);
    return each;
}

void
report_stack(Buf *b)
{
    uint64_t n = 0;
    PyThreadState *thread = report_thread();
    _PyInterpreterFrame *top = thread ? compat_top_frame(thread) : NULL, *frame;
    for (frame = top; frame && n < 60; frame = compat_previous_frame(frame))
        n++;
    report_list(b, n);
    for (frame = top; frame && n > 0; frame = compat_previous_frame(frame), n--) {
        PyCodeObject *code = compat_frame_code(frame);
        int line = PyCode_Addr2Line(code, compat_frame_lasti(frame));
        buf_byte(b, TAG_TUPLE);
        buf_varint(b, 3);
        report_name(b, code->co_filename);
        report_number(b, line > 0 ? line : 0);
        report_name(b, code->co_qualname);
    }
}

void
report_send(int fd, Buf *b)
{
    for (size_t done = 0; fd >= 0 && done < b->used;) {
        ssize_t n = write(fd, b->data + done, b->used - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (b->is_fixed) {
        b->used = 0;
        return;
    }
    free(b->data);
    *b = (Buf){0};
}
