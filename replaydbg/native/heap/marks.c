/* Marks: the program names the place where it stands, with the audit event `replaydbg.mark`. The record is one of the
 * log's own, so the place is exact; and a line of a small file says where in the log it is: who waits for the program
 * can cut the recording there without decoding it. Neither is a crossing. With False as second argument the line is
 * left out: nobody waits for that mark. A replay passes over the record. Behind it stands the next serial of identity:
 * a recording out of which earlier parts were cut gives its objects the serials that they had. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "heap/inside.h"
#include "identity/identity.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LONGEST 60000u

static bool
send_all(int fd, const Buf *b)
{
    for (size_t done = 0; done < b->used;) {
        ssize_t n = write(fd, b->data + done, b->used - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void
tell_in_file(const char *text, size_t n)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/marks", core.live_dir);
    int saved = errno, fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool is_told = false;
    if (fd >= 0) {
        char numbers[100];
        int used = snprintf(numbers, sizeof numbers, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
                            (uint64_t)(event_log.wp - event_log.base), (uint64_t)(world_log.wp - world_log.base),
                            core.crossings, heap_taken());
        Buf b = {0};
        buf_bytes(&b, numbers, (size_t)used);
        for (size_t i = 0; i < n; i++)
            buf_byte(&b, text[i] == '\n' ? '\v' : (uint8_t)text[i]); /* one line each */
        buf_byte(&b, '\n');
        is_told = send_all(fd, &b);
        free(b.data);
        close(fd);
    }
    if (!is_told) /* whoever waits for it must not wait in vain */
        log_fail_by(errno);
    errno = saved;
}

void
mark_asked(PyObject *args)
{
    PyObject *given = args && PyTuple_CheckExact(args) && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (given == NULL || !PyUnicode_CheckExact(given))
        return;
    int is_told = !(PyTuple_GET_SIZE(args) > 1 && PyTuple_GET_ITEM(args, 1) == Py_False);
    /* Its UTF-8 would stay with the text if Python made it: this one is ours. */
    size_t length = (size_t)PyUnicode_GET_LENGTH(given), n = 0;
    uint8_t *text = malloc(4 * length + 1);
    if (text == NULL)
        return;
    for (size_t i = 0; i < length && n < LONGEST; i++)
        n += put_character(text + n, PyUnicode_READ_CHAR(given, (Py_ssize_t)i));
    Buf b = {0};
    buf_varint(&b, CONTROL_MARK << 2 | 2u);
    buf_byte(&b, TAG_STR);
    buf_str(&b, (const char *)text, n);
    uint8_t *p = log_room(&event_log, b.used);
    if (p) {
        memcpy(p, b.data, b.used);
        log_commit(&event_log, p + b.used);
        uint64_t serials = identity_serials();
        cross_control(CONTROL_SERIALS, &serials, 1);
        if (is_told)
            tell_in_file((const char *)text, n);
    }
    free(b.data);
    free(text);
}

void
cut_asked(PyObject *args)
{
    PyObject *given = args && PyTuple_CheckExact(args) && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    uint8_t name[LONGEST_NAME_OF_CUT + 4];
    name[given ? text_of_name(name, LONGEST_NAME_OF_CUT, given) : 0] = 0;
    group_take_cut((const char *)name);
}
