/* One call of a function of the C library by C code of others: see libc.h. */
#define _GNU_SOURCE
#include "base/core.h"
#include "clock/clock.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include "lanes/lanes.h"
#include "libc/inside.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- is it a crossing? ---- */

/* The thread state of the lane that runs, whether it has the interpreter's lock or not; false: some other thread's, or
 * none is left. */
static bool
is_program(void)
{
    PyThreadState *attached = compat_attached();
    if (attached)
        return attached == core.tstate || lane_adopt();
    return core.tstate && PyGILState_GetThisThreadState() == core.tstate;
}

bool
libc_records(LibcRow *row)
{
    return on_lanes && core.mode != OBSERVE && core.depth <= core.ground && row->gate && core.tstate && lanes.is_on &&
           is_program();
}

/* ---- arguments and results as bytes ---- */

void
libc_put_number(Buf *b, int64_t number)
{
    buf_byte(b, TAG_INT);
    buf_varint(b, ((uint64_t)number << 1) ^ (uint64_t)(number >> 63));
}

void
libc_put_text(Buf *b, const char *text)
{
    enum { LONGEST = 4096 };
    size_t n = text ? strnlen(text, LONGEST) : 0;
    bool is_ascii = true;
    for (size_t i = 0; i < n; i++)
        is_ascii = is_ascii && !((unsigned char)text[i] & 0x80);
    buf_byte(b, text == NULL ? TAG_NONE : is_ascii ? TAG_STR : TAG_BYTES);
    if (text)
        buf_str(b, text, n);
}

void
libc_put_piece(Buf *b, const void *data, size_t n)
{
    buf_varint(b, n);
    buf_bytes(b, data, n);
}

bool
libc_take_piece(LibcBytes *from, const uint8_t **data, size_t *n)
{
    bool ok = true;
    uint64_t length = read_varint(&from->at, from->end, &ok);
    if (!ok || length > (uint64_t)(from->end - from->at))
        return false;
    *data = from->at;
    *n = length;
    from->at += length;
    return true;
}

static void
put_arguments(Buf *b, const LibcCall *call)
{
    const char *kinds = call->row->args;
    size_t known = 0;
    for (const char *p = kinds; *p; p++)
        known += *p != 'p';
    b->used = 0;
    buf_byte(b, TAG_TUPLE);
    buf_varint(b, known);
    for (int i = 0; kinds[i]; i++)
        switch (kinds[i]) {
        case 'i':
            libc_put_number(b, (int)call->a[i]);
            break;
        case 'l':
            libc_put_number(b, call->a[i]);
            break;
        case 's':
            libc_put_text(b, (const char *)call->a[i]);
            break;
        case 'm': /* absent otherwise */
            libc_put_number(b, call->a[i - 1] & O_CREAT || (call->a[i - 1] & O_TMPFILE) == O_TMPFILE
                                   ? (int)(call->a[i] & 07777)
                                   : 0);
            break;
        }
}

/* ---- the memory that a call is given ---- */

/* Each stretch of it in turn: `most` bytes in all. `data` NULL: they are appended to `b`; else they are filled from
 * there. */
static size_t
move_pieces(const struct iovec *pieces, size_t count, size_t most, Buf *b, const uint8_t *data)
{
    size_t done = 0;
    for (size_t i = 0; i < count && done < most; i++) {
        size_t n = pieces[i].iov_len < most - done ? pieces[i].iov_len : most - done;
        if (b)
            buf_bytes(b, pieces[i].iov_base, n);
        else
            memcpy(pieces[i].iov_base, data + done, n);
        done += n;
    }
    return done;
}

static size_t
pieces_length(const struct iovec *pieces, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += pieces[i].iov_len;
    return n;
}

static size_t
plain_length(const Place_of_bytes *p, const LibcCall *call, int64_t result)
{
    switch ((Amount)p->amount) {
    case FIXED:
        return p->unit;
    case BY_RESULT: {
        size_t most = (size_t)call->a[p->arg + 1];
        return result <= 0 ? 0 : ((size_t)result < most ? (size_t)result : most) * p->unit;
    }
    case BY_ARGUMENT:
        return (strchr("im", call->row->args[p->by]) ? (size_t)(unsigned)call->a[p->by] : (size_t)call->a[p->by]) *
               p->unit;
    case IN_TEXT: {
        size_t most = (size_t)call->a[p->by], n = strnlen((const char *)call->a[p->arg], most);
        return n < most ? n + 1 : most;
    }
    case IN_SET:
        return ((size_t)(int)call->a[0] + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
    default:
        return 0;
    }
}

static void
put_message(Buf *b, const struct msghdr *m, size_t length)
{
    Buf bytes = {0};
    int64_t facts[2] = {m->msg_flags, (int64_t)m->msg_controllen};
    move_pieces(m->msg_iov, m->msg_iovlen, length, &bytes, NULL);
    libc_put_piece(b, bytes.data, bytes.used);
    libc_put_piece(b, m->msg_name, m->msg_name ? m->msg_namelen : 0);
    libc_put_piece(b, facts, sizeof facts);
    libc_put_piece(b, m->msg_control, m->msg_control ? m->msg_controllen : 0);
    free(bytes.data);
}

static void
take_message(LibcBytes *from, struct msghdr *m)
{
    const uint8_t *data;
    size_t n;
    int64_t facts[2];
    if (!libc_take_piece(from, &data, &n))
        return;
    move_pieces(m->msg_iov, m->msg_iovlen, n, NULL, data);
    if (!libc_take_piece(from, &data, &n))
        return;
    if (m->msg_name && n <= m->msg_namelen) {
        memcpy(m->msg_name, data, n);
        m->msg_namelen = (socklen_t)n;
    }
    if (!libc_take_piece(from, &data, &n) || n != sizeof facts)
        return;
    memcpy(facts, data, n);
    if (!libc_take_piece(from, &data, &n))
        return;
    m->msg_flags = (int)facts[0];
    if (m->msg_control && n <= m->msg_controllen) {
        memcpy(m->msg_control, data, n);
        m->msg_controllen = n;
    }
}

/* `room`: what a socklen_t said before the call. */
static void
put_out(Buf *b, const Place_of_bytes *p, const LibcCall *call, int64_t result, size_t room)
{
    void *at = (void *)call->a[p->arg];
    if (at == NULL && p->amount != BY_LENGTH)
        return;
    switch ((Amount)p->amount) {
    case NOWHERE:
        break;
    case BY_LENGTH: {
        socklen_t *length = (socklen_t *)call->a[p->by];
        size_t n = length == NULL ? 0 : *length < room ? *length : room;
        libc_put_piece(b, length, length ? sizeof *length : 0);
        libc_put_piece(b, at, at ? n : 0);
        break;
    }
    case IN_PIECES: {
        Buf bytes = {0};
        move_pieces((const struct iovec *)at, (size_t)(int)call->a[p->by], result < 0 ? 0 : (size_t)result, &bytes,
                    NULL);
        libc_put_piece(b, bytes.data, bytes.used);
        free(bytes.data);
        break;
    }
    case IN_MESSAGE:
        put_message(b, at, result < 0 ? 0 : (size_t)result);
        break;
    default:
        libc_put_piece(b, at, plain_length(p, call, result));
    }
}

static void
take_out(LibcBytes *from, const Place_of_bytes *p, const LibcCall *call, int64_t result, size_t room)
{
    const uint8_t *data;
    size_t n, most;
    void *at = (void *)call->a[p->arg];
    if (p->amount == NOWHERE || (at == NULL && p->amount != BY_LENGTH))
        return;
    if (p->amount == IN_MESSAGE) {
        take_message(from, at);
        return;
    }
    if (p->amount == BY_LENGTH) {
        socklen_t *length = (socklen_t *)call->a[p->by];
        if (libc_take_piece(from, &data, &n) && length && n == sizeof *length)
            memcpy(length, data, n);
        most = room;
    }
    else
        most = p->amount == IN_PIECES ? SIZE_MAX
               : p->amount == IN_TEXT ? (size_t)call->a[p->by]
                                      : plain_length(p, call, result);
    if (!libc_take_piece(from, &data, &n) || n > most || at == NULL)
        return;
    if (p->amount == IN_PIECES)
        move_pieces(at, (size_t)(int)call->a[p->by], n, NULL, data);
    else
        memcpy(at, data, n);
}

static const void *
leaving(const LibcCall *call, Buf *gathered, size_t *n)
{
    const Place_of_bytes *p = &call->row->in;
    void *at = (void *)call->a[p->arg];
    *n = 0;
    if (p->amount == NOWHERE || at == NULL)
        return "";
    if (p->amount != IN_PIECES && p->amount != IN_MESSAGE) {
        *n = plain_length(p, call, 0);
        return at;
    }
    const struct msghdr *m = at;
    const struct iovec *pieces = p->amount == IN_PIECES ? at : m->msg_iov;
    size_t count = p->amount == IN_PIECES ? (size_t)(int)call->a[p->by] : m->msg_iovlen;
    move_pieces(pieces, count, pieces_length(pieces, count), gathered, NULL);
    *n = gathered->used;
    return gathered->data ? gathered->data : (const void *)"";
}

/* ---- the crossing around one call ---- */

void
libc_begin(LibcEvent *e, LibcRow *row, const Buf *arguments, const void *leaves, size_t n, bool waits)
{
    e->attached = compat_attached() != NULL;
    e->released = false;
    e->result = -1;
    if (!e->attached)
        PyEval_RestoreThread(core.tstate);
    PyErr_Fetch(&e->error[0], &e->error[1], &e->error[2]);
    shared_crossing(true, row->gate->flags);
    e->perform = native_begin_encoded(&e->crossing, row->gate, arguments, leaves, n);
    if (e->perform && waits && !e->attached) {
        PyEval_SaveThread();
        e->released = true;
    }
}

LibcBytes
libc_end(LibcEvent *e, Buf *arrived)
{
    const void *bytes = arrived->data ? arrived->data : (const void *)"";
    size_t n = arrived->used;
    Gate *gate = e->crossing.cross.gate;
    if (e->released)
        PyEval_RestoreThread(core.tstate);
    if (engine.diverting)
        libc_hooks.asks_outside(gate->name);
    e->result = native_end_filled(&e->crossing, e->result, &bytes, &n);
    e->again = cross_again();
    shared_crossing(false, gate->flags);
    PyErr_Restore(e->error[0], e->error[1], e->error[2]);
    if (!e->attached)
        PyEval_SaveThread();
    return (LibcBytes){bytes, (const uint8_t *)bytes + n};
}

/* ---- a call ---- */

static long
call_real(const LibcCall *call)
{
    const long *a = call->a;
    if (call->number < 0)
        return call->row->real(a[0], a[1], a[2], a[3], a[4], a[5]);
    long result = syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return call->number == SYS_gettid && on_lanes ? result + lanes.running->id : result;
}

static ResultKind
result_kind(const LibcCall *call)
{
    return call->number < 0 ? call->row->result : OF_LONG;
}

/* As the event has it: a failure is the error number, made negative. */
static int64_t
coded_result(const LibcCall *call, long result, int error)
{
    switch (result_kind(call)) {
    case OF_INT:
        return (int)result == -1 ? -error : (int)result;
    case OF_LONG:
        return result == -1 ? -error : result;
    case OF_ERROR:
    case PLAIN_INT:
        return (int)result;
    default:
        return result;
    }
}

static bool
has_worked(const LibcCall *call, int64_t coded)
{
    switch (result_kind(call)) {
    case OF_INT:
    case OF_LONG:
        return coded >= 0;
    case OF_ERROR:
        return coded == 0;
    default:
        return true;
    }
}

static long
decoded_result(const LibcCall *call, int64_t coded)
{
    if (result_kind(call) != OF_INT && result_kind(call) != OF_LONG)
        return (long)coded;
    if (coded >= 0)
        return (long)coded;
    errno = (int)-coded;
    return -1;
}

/* Descriptors that are new: the replay has placeholders at their numbers. */
static void
follow_descriptors(const LibcCall *call, int64_t coded, bool replayed)
{
    unsigned flags = call->row->flags;
    int pair[2] = {(int)coded, -1}, source = flags & COPIES_FIRST ? (int)call->a[0] : -1;
    if (!(flags & (OPENS_ONE | OPENS_SOCKET | OPENS_PAIR)))
        return;
    if (flags & OPENS_PAIR)
        memcpy(pair, (void *)call->a[call->row->out[0].arg], sizeof pair);
    for (int i = 0; i < 2; i++) {
        if (pair[i] < 0)
            continue;
        if (replayed && flags & OPENS_SOCKET)
            fd_place_socket(pair[i]);
        else if (replayed)
            fd_place(pair[i], source);
        fd_opened(pair[i], source);
    }
}

static void
show_what_is_written(const LibcCall *call, const void *data, size_t n, int64_t coded)
{
    int stream = call->row->flags & SHOWN ? fd_stream((int)call->a[0]) : 0;
    if (stream && coded > 0)
        stream_show(stream, data, (size_t)coded < n ? (size_t)coded : n);
}

static void
put_results(Buf *b, const LibcCall *call, int64_t coded, int error, const size_t room[3])
{
    b->used = 0;
    if (result_kind(call) == PLAIN_ERRNO)
        libc_put_piece(b, &error, sizeof error);
    if (has_worked(call, coded) || call->row->flags & WHATEVER)
        for (int i = 0; i < 3; i++)
            put_out(b, &call->row->out[i], call, coded, room[i]);
}

static void
take_results(LibcBytes from, const LibcCall *call, int64_t coded, const size_t room[3])
{
    const uint8_t *data;
    size_t n;
    int error;
    if (result_kind(call) == PLAIN_ERRNO && libc_take_piece(&from, &data, &n) && n == sizeof error) {
        memcpy(&error, data, n);
        errno = error;
    }
    if (has_worked(call, coded) || call->row->flags & WHATEVER)
        for (int i = 0; i < 3; i++)
            take_out(&from, &call->row->out[i], call, coded, room[i]);
}

/* Most calls are short of memory: what is coded lies here. A call that waits has a buffer of its own, for other lanes
 * run meanwhile. */
static Buf shared_arguments, shared_results;

static long
cross(const LibcCall *call)
{
    LibcRow *row = call->row;
    LibcEvent event;
    Buf gathered = {0};
    size_t n, room[3] = {0};
    int error = errno;
    for (int i = 0; i < 3; i++)
        if (row->out[i].amount == BY_LENGTH && call->a[row->out[i].by])
            room[i] = *(socklen_t *)call->a[row->out[i].by];
    put_arguments(&shared_arguments, call);
    const void *data = leaving(call, &gathered, &n);
    libc_begin(&event, row, &shared_arguments, data, n, row->flags & MAY_WAIT);
    shared_results.used = 0;
    if (event.perform) {
        if (__builtin_expect(log_is_durable, 0) && row->gate->flags & GATE_UNLESS_FILE &&
            !output_stays((int)call->a[0]))
            log_sync();
        errno = error;
        long result = call_real(call);
        error = errno;
        if (core.mode == OBSERVE) { /* a child that it has forked, or the log is full */
            shared_results.used = 0;
            event.result = 0;
            libc_end(&event, &shared_results);
            free(gathered.data);
            errno = error;
            return result;
        }
        event.result = coded_result(call, result, error);
        if (has_worked(call, event.result))
            follow_descriptors(call, event.result, false);
        put_results(&shared_results, call, event.result, error, room);
        libc_end(&event, &shared_results);
        free(gathered.data);
        errno = error;
        return result;
    }
    LibcBytes arrived = libc_end(&event, &shared_results);
    errno = error;
    if (event.again) { /* the replay has become a recording meanwhile */
        free(gathered.data);
        return cross(call);
    }
    take_results(arrived, call, event.result, room);
    error = errno;
    if (has_worked(call, event.result))
        follow_descriptors(call, event.result, true);
    show_what_is_written(call, data, n, event.result);
    free(gathered.data);
    errno = error;
    return decoded_result(call, event.result);
}

static void
name_it(const LibcRow *row)
{
    char text[100];
    if (core.mode != RECORD)
        return;
    snprintf(text, sizeof text, "%s() called by C code", row->name);
    PyThreadState *attached = compat_attached();
    if (attached == NULL)
        PyEval_RestoreThread(core.tstate);
    note("uncovered", text);
    if (attached == NULL)
        PyEval_SaveThread();
}

long
libc_enter(LibcRow *row, long a, long b, long c, long d, long e, long f)
{
    LibcCall call = {row, {a, b, c, d, e, f}, -1};
    /* a question whether it was copied is answered no */
    bool is_copy = engine.diverting && row->name[0] == 'g' && row->args[0] == 0 && row->result == PLAIN_INT;
    if (is_copy || !libc_records(row))
        return call_real(&call);
    if (row->flags & ONLY_NAMED) {
        int saved = errno;
        name_it(row);
        errno = saved;
        return call_real(&call);
    }
    return cross(&call);
}

static long
read_clock(long clock, long into, long c, long d, long e, long f)
{
    if (core.is_future) {
        uint64_t now = simulated_clock((clockid_t)clock);
        *(struct timespec *)into = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
        return 0;
    }
    return clock_gettime((clockid_t)clock, (struct timespec *)into);
}

/* A row of no function that C code calls. Lenient replays have readings of their own. */
uint64_t
libc_interpreter_clock(void)
{
    static LibcRow row = {.name = "clock_of_locks",
                          .args = "i",
                          .result = OF_INT,
                          .out = {{FIXED, 1, 0, sizeof(struct timespec)}},
                          .real = read_clock};
    struct timespec now;
    if (row.gate == NULL)
        row.gate = gate_named("libc", row.name);
    if (engine.diverting || !libc_records(&row))
        return 0;
    if (libc_enter(&row, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
name_number(long number)
{
    char text[100];
    snprintf(text, sizeof text, "system call %ld made by C code", number);
    note("uncovered", text);
}

long
libc_by_number(long number, const long a[6])
{
    LibcCall call = {libc_row_numbered(number), {a[0], a[1], a[2], a[3], a[4], a[5]}, number};
    if (call.row && libc_records(call.row))
        return cross(&call);
    if (call.row == NULL && core.mode == RECORD && on_lanes && core.depth <= core.ground &&
        !libc_number_is_local(number) && libc_records(&libc_rows[0])) {
        int saved = errno;
        name_number(number);
        errno = saved;
    }
    return call_real(&call);
}
