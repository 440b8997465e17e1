/* libzmq, as pyzmq calls it: each of its functions is a crossing, as those of the C library are (libc.c has the engine).
 *
 * Its sockets live in threads of its own, which read and write unseen: what the program knows of them it learns by these
 * calls alone. So these are recorded, and not what the threads do. Where libzmq waits, it calls poll(), which lets other
 * lanes run. In a replay nothing of it is called but what concerns a message in memory, so it has no thread there; the
 * addresses of contexts and sockets are the recorded numbers, which nobody follows.
 *
 * A message that is received in a replay has the recorded bytes. What libzmq knows of it besides is asked for by
 * functions, which are crossings too. One that is sent is empty afterwards. */
#define _GNU_SOURCE
#include "base/core.h"
#include "crossing/crossing.h"
#include "lanes/lanes.h"
#include "libc/inside.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>

#define NONE {0, 0, 0, 0}
#define OUT(place) {place, NONE, NONE}, NONE
#define IN(place) {NONE, NONE, NONE}, place
#define NOTHING {NONE, NONE, NONE}, NONE
#define PLACE(...) {__VA_ARGS__}
enum { POLL_ITEM = 16, CURVE_KEY = 41 }; /* bytes of a zmq_pollitem_t; of a key as text */

/* A length is a size_t there and a socklen_t here: the machine is little-endian, and no option has 4 GiB. */
#define ZMQ_ROWS(X)                                                                                                    \
    X(zmq_ctx_new, "", PLAIN_ERRNO, 0, NOTHING)                                                                        \
    X(zmq_init, "i", PLAIN_ERRNO, 0, NOTHING)                                                                          \
    X(zmq_ctx_term, "p", OF_INT, MAY_WAIT, NOTHING)                                                                    \
    X(zmq_ctx_destroy, "p", OF_INT, MAY_WAIT, NOTHING)                                                                 \
    X(zmq_term, "p", OF_INT, MAY_WAIT, NOTHING)                                                                        \
    X(zmq_ctx_shutdown, "p", OF_INT, 0, NOTHING)                                                                       \
    X(zmq_ctx_set, "pii", OF_INT, 0, NOTHING)                                                                          \
    X(zmq_ctx_get, "pi", OF_INT, 0, NOTHING)                                                                           \
    X(zmq_socket, "pi", PLAIN_ERRNO, 0, NOTHING)                                                                       \
    X(zmq_close, "p", OF_INT, 0, NOTHING)                                                                              \
    X(zmq_setsockopt, "pipl", OF_INT, 0, IN(PLACE(BY_ARGUMENT, 2, 3, 1)))                                              \
    X(zmq_getsockopt, "pipp", OF_INT, 0, OUT(PLACE(BY_LENGTH, 2, 3, 1)))                                               \
    X(zmq_bind, "ps", OF_INT, MAY_WAIT, NOTHING)                                                                       \
    X(zmq_connect, "ps", OF_INT, MAY_WAIT, NOTHING)                                                                    \
    X(zmq_unbind, "ps", OF_INT, MAY_WAIT, NOTHING)                                                                     \
    X(zmq_disconnect, "ps", OF_INT, MAY_WAIT, NOTHING)                                                                 \
    X(zmq_socket_monitor, "psi", OF_INT, 0, NOTHING)                                                                   \
    X(zmq_join, "ps", OF_INT, 0, NOTHING)                                                                              \
    X(zmq_leave, "ps", OF_INT, 0, NOTHING)                                                                             \
    X(zmq_send, "ppli", OF_INT, MAY_WAIT, IN(PLACE(BY_ARGUMENT, 1, 2, 1)))                                             \
    X(zmq_recv, "ppli", OF_INT, MAY_WAIT, OUT(PLACE(BY_RESULT, 1, 0, 1)))                                              \
    X(zmq_poll, "pil", OF_INT, MAY_WAIT, OUT(PLACE(BY_ARGUMENT, 0, 1, POLL_ITEM)))                                     \
    X(zmq_proxy, "ppp", OF_INT, MAY_WAIT, NOTHING)                                                                     \
    X(zmq_proxy_steerable, "pppp", OF_INT, MAY_WAIT, NOTHING)                                                          \
    X(zmq_device, "ipp", OF_INT, MAY_WAIT, NOTHING)                                                                    \
    X(zmq_msg_more, "p", PLAIN_INT, 0, NOTHING)                                                                        \
    X(zmq_msg_get, "pi", OF_INT, 0, NOTHING)                                                                           \
    X(zmq_msg_routing_id, "p", PLAIN_INT, 0, NOTHING)                                                                  \
    X(zmq_curve_keypair, "pp", OF_INT, 0, {PLACE(FIXED, 0, 0, CURVE_KEY), PLACE(FIXED, 1, 0, CURVE_KEY), NONE}, NONE)

/* Those whose results have a form of their own. */
#define ZMQ_FORMS(X) X(zmq_msg_recv) X(zmq_msg_send) X(zmq_msg_gets)

typedef long (*Function)(long, long, long, long, long, long);
#define NUMBER(name, ...) ROW_##name,
enum { ZMQ_ROWS(NUMBER) ZMQ_FORMS(NUMBER) COUNT };

/* In a replay, contexts and sockets are numbers that lead nowhere, also once it has become a recording. */
static bool are_numbers;
static Function real[COUNT];
static LibcRow rows[COUNT];

/* What frees a message in a replay may send another one, from where libzmq's thread would have: pyzmq passes over this
 * error, since its socket may be closed. */
static long
call_real(int row, long a, long b, long c, long d, long e, long f)
{
    bool makes = row == ROW_zmq_ctx_new || row == ROW_zmq_init || row == ROW_zmq_socket;
    if (!are_numbers && core.mode != REPLAY)
        return real[row](a, b, c, d, e, f);
    errno = ENOTSOCK;
    return makes ? 0 : -1;
}

static long
enter(int row, long a, long b, long c, long d, long e, long f)
{
    are_numbers = are_numbers || (core.mode == REPLAY && on_lanes);
    if (!libc_records(&rows[row]))
        return call_real(row, a, b, c, d, e, f);
    return libc_enter(&rows[row], a, b, c, d, e, f);
}

#define FUNCTIONS(name, ...)                                                                                           \
    static long real_##name(long a, long b, long c, long d, long e, long f)                                            \
    {                                                                                                                  \
        return call_real(ROW_##name, a, b, c, d, e, f);                                                                \
    }                                                                                                                  \
    static long our_##name(long a, long b, long c, long d, long e, long f)                                             \
    {                                                                                                                  \
        return enter(ROW_##name, a, b, c, d, e, f);                                                                    \
    }
ZMQ_ROWS(FUNCTIONS)

#define ROW(name, args, result, flags, ...) [ROW_##name] = {#name, args, result, flags, __VA_ARGS__, NULL, real_##name},
#define FORM(function) [ROW_##function] = {.name = #function, .args = ""},
static LibcRow rows[COUNT] = {ZMQ_ROWS(ROW) ZMQ_FORMS(FORM)};

/* ---- messages in memory: these are called in both modes ---- */

typedef struct {
    uint8_t bytes[64];
} __attribute__((aligned(8))) Message;

static struct {
    int (*init)(Message *);
    int (*init_size)(Message *, size_t);
    int (*init_data)(Message *, void *, size_t, void (*)(void *, void *), void *);
    int (*close)(Message *);
    void *(*data)(Message *);
    size_t (*size)(const Message *);
} message;

/* Who frees what a message holds, and when, differs in a replay: it is memory of no crossing's order. And what is called
 * when it is freed may send a message itself, in any thread. */
#define UNSEEN(call)                                                                                                   \
    if (!on_lanes)                                                                                                     \
        return call;                                                                                                   \
    core.depth++;                                                                                                      \
    int rc = call;                                                                                                     \
    core.depth--;                                                                                                      \
    return rc

static int
our_msg_init_size(Message *m, size_t size)
{
    UNSEEN(message.init_size(m, size));
}

static int
our_msg_init_data(Message *m, void *data, size_t size, void (*free_it)(void *, void *), void *hint)
{
    UNSEEN(message.init_data(m, data, size, free_it, hint));
}

static int
our_msg_close(Message *m)
{
    UNSEEN(message.close(m));
}

/* ---- messages that are sent and received ---- */

typedef struct {
    LibcEvent event;
    Buf arguments, arrived;
    int error;
} Call;

static void
begin(Call *c, int row, int64_t argument, const void *leaves, size_t n, bool waits)
{
    memset(c, 0, sizeof *c);
    buf_byte(&c->arguments, TAG_TUPLE);
    buf_varint(&c->arguments, 1);
    libc_put_number(&c->arguments, argument);
    libc_begin(&c->event, &rows[row], &c->arguments, leaves, n, waits);
}

/* `rc` is of the real call, if it was made; returns what the program gets. */
static LibcBytes
end(Call *c, long rc)
{
    if (c->event.perform)
        c->event.result = rc < 0 ? -errno : rc;
    LibcBytes bytes = libc_end(&c->event, &c->arrived);
    if (c->event.result < 0)
        c->error = (int)-c->event.result;
    free(c->arguments.data);
    return bytes;
}

static int
result_of(Call *c)
{
    free(c->arrived.data);
    if (c->event.result >= 0)
        return (int)c->event.result;
    errno = c->error;
    return -1;
}

static int
our_msg_recv(Message *m, void *socket, int flags)
{
    const uint8_t *data;
    size_t n;
    long rc = -1;
    Call c;
    if (!libc_records(&rows[ROW_zmq_msg_recv]))
        return (int)call_real(ROW_zmq_msg_recv, (long)m, (long)socket, flags, 0, 0, 0);
    begin(&c, ROW_zmq_msg_recv, flags, "", 0, true);
    bool performed = c.event.perform;
    if (performed)
        rc = call_real(ROW_zmq_msg_recv, (long)m, (long)socket, flags, 0, 0, 0);
    if (rc >= 0) {
        int error = errno;
        libc_put_piece(&c.arrived, message.data(m), message.size(m));
        errno = error;
    }
    LibcBytes bytes = end(&c, rc);
    are_numbers = are_numbers || !performed;
    if (c.event.again) {
        result_of(&c);
        return our_msg_recv(m, socket, flags);
    }
    if (!performed && c.event.result >= 0 && libc_take_piece(&bytes, &data, &n)) {
        our_msg_close(m);
        if (our_msg_init_size(m, n) == 0)
            memcpy(message.data(m), data, n);
    }
    return result_of(&c);
}

static int
our_msg_send(Message *m, void *socket, int flags)
{
    long rc = -1;
    Call c;
    if (!libc_records(&rows[ROW_zmq_msg_send]))
        return (int)call_real(ROW_zmq_msg_send, (long)m, (long)socket, flags, 0, 0, 0);
    begin(&c, ROW_zmq_msg_send, flags, message.data(m), message.size(m), true);
    bool performed = c.event.perform;
    if (performed)
        rc = call_real(ROW_zmq_msg_send, (long)m, (long)socket, flags, 0, 0, 0);
    end(&c, rc);
    are_numbers = are_numbers || !performed;
    if (c.event.again) {
        result_of(&c);
        return our_msg_send(m, socket, flags);
    }
    if (!performed && c.event.result >= 0) {
        our_msg_close(m);
        message.init(m);
    }
    return result_of(&c);
}

/* What it returned is part of the message there: here the latest one stays. */
static const char *
our_msg_gets(Message *m, const char *property)
{
    static char *latest;
    const uint8_t *data;
    const char *found = NULL;
    size_t n;
    Call c;
    if (!libc_records(&rows[ROW_zmq_msg_gets]))
        return core.mode == REPLAY || are_numbers
                   ? NULL
                   : (const char *)real[ROW_zmq_msg_gets]((long)m, (long)property, 0, 0, 0, 0);
    begin(&c, ROW_zmq_msg_gets, 0, "", 0, false);
    bool performed = c.event.perform;
    if (performed && !are_numbers)
        found = (const char *)real[ROW_zmq_msg_gets]((long)m, (long)property, 0, 0, 0, 0);
    if (found)
        libc_put_piece(&c.arrived, found, strlen(found) + 1);
    else
        errno = EINVAL;
    LibcBytes bytes = end(&c, found ? 0 : -1);
    if (!performed && c.event.result >= 0 && libc_take_piece(&bytes, &data, &n)) {
        free(latest);
        found = latest = malloc(n);
        if (latest)
            memcpy(latest, data, n);
    }
    result_of(&c);
    return found;
}

/* ---- who gets them ---- */

#define LED(name, ...) {#name, (void *)our_##name},
const LibcForm zmq_forms[] = {ZMQ_ROWS(LED){"zmq_msg_recv", (void *)our_msg_recv},
                              {"zmq_msg_send", (void *)our_msg_send},
                              {"zmq_msg_gets", (void *)our_msg_gets},
                              {"zmq_msg_init_size", (void *)our_msg_init_size},
                              {"zmq_msg_init_data", (void *)our_msg_init_data},
                              {"zmq_msg_close", (void *)our_msg_close},
                              {NULL, NULL}};

static int
find_zmq(struct dl_phdr_info *info, size_t size, void *found)
{
    const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (name == NULL || strncmp(name + 1, "libzmq", 6) != 0)
        return 0;
    *(void **)found = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return *(void **)found != NULL;
}

void
zmq_library_loaded(void)
{
    static bool is_bound;
    void *library = NULL;
    if (is_bound || gate_named("libzmq", rows[0].name) == NULL)
        return; /* a recording from before has no such events */
    dl_iterate_phdr(find_zmq, &library);
    if (library == NULL)
        return;
    is_bound = true;
    for (int i = 0; i < COUNT; i++) {
        rows[i].gate = gate_named("libzmq", rows[i].name);
        rows[i].address = dlsym(library, rows[i].name);
        real[i] = (Function)rows[i].address;
    }
    message.init = (int (*)(Message *))dlsym(library, "zmq_msg_init");
    message.init_size = (int (*)(Message *, size_t))dlsym(library, "zmq_msg_init_size");
    message.init_data =
        (int (*)(Message *, void *, size_t, void (*)(void *, void *), void *))dlsym(library, "zmq_msg_init_data");
    message.close = (int (*)(Message *))dlsym(library, "zmq_msg_close");
    message.data = (void *(*)(Message *))dlsym(library, "zmq_msg_data");
    message.size = (size_t (*)(const Message *))dlsym(library, "zmq_msg_size");
}
