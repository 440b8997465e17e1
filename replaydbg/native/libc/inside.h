/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_LIBC_INSIDE_H
#define REPLAYDBG_LIBC_INSIDE_H
#include "base/core.h"
#include "crossing/crossing.h"
#include "libc/libc.h"
#include <signal.h>

typedef enum {
    OF_INT,      /* an int; -1: errno has the reason */
    OF_LONG,     /* the same of 64 bits */
    OF_ERROR,    /* an error number, 0 if it worked */
    PLAIN_INT,   /* any value */
    PLAIN_LONG,  /* any value of 64 bits */
    PLAIN_ERRNO, /* any value, and errno may have been set */
} ResultKind;

typedef enum {
    NOWHERE,
    FIXED,       /* `unit` bytes */
    BY_RESULT,   /* `unit` times the result, at most as often as the next argument says */
    BY_ARGUMENT, /* `unit` times argument `by` */
    BY_LENGTH,   /* argument `by` points to a socklen_t, which leaves too */
    IN_PIECES,   /* an array of struct iovec, as many as argument `by` says; as many bytes as the result */
    IN_MESSAGE,  /* a struct msghdr; as many bytes as the result */
    IN_TEXT,     /* a string with its final NUL, in room for argument `by` */
    IN_SET,      /* an fd_set for as many descriptors as argument `by` says */
} Amount;

typedef struct {
    uint8_t amount, arg, by;
    uint16_t unit;
} Place_of_bytes;

enum {
    OPENS_ONE = 1,    /* the result is a new descriptor */
    OPENS_SOCKET = 2, /* the same, of a socket */
    OPENS_PAIR = 4,   /* the first bytes that leave are two of them */
    COPIES_FIRST = 8, /* with OPENS_ONE: of the first argument */
    MAY_WAIT = 16,    /* others may run meanwhile */
    SHOWN = 32,       /* what it writes to a standard stream is shown in a replay */
    WHATEVER = 128,   /* bytes leave whatever the result is */
    ONLY_NAMED = 256, /* it cannot be repeated: the recording names it */
};
typedef struct LibcRow LibcRow;
struct LibcRow {
    const char *name;
    const char *args; /* one letter each: i int, l 64 bits, s string, p a pointer that tells nothing,
                          * m the mode of a file that the flags before it create */
    ResultKind result;
    unsigned flags;
    Place_of_bytes out[3]; /* what arrives */
    Place_of_bytes in;     /* what leaves: its digest is compared */
    /* filled in when the program begins */
    Gate *gate; /* NULL: calls go to the real function */
    long (*real)(long, long, long, long, long, long);
    void *stub, *address; /* ours; that of the C library */
};

typedef struct {
    LibcRow *row;
    long a[6];
    long number; /* of the system call, where it was asked for by number; else -1 */
} LibcCall;

/* rows.c */
extern LibcRow libc_rows[];
extern const int libc_row_count;
LibcRow *libc_row_named(const char *name); /* NULL: none */
LibcRow *libc_row_numbered(long number);   /* of a system call */
bool libc_number_is_local(long number);    /* it takes nothing from outside and does nothing there */

/* libc.c */
long libc_enter(LibcRow *row, long a, long b, long c, long d, long e, long f);
long libc_by_number(long number, const long a[6]); /* as syscall() */
bool libc_records(LibcRow *row);                   /* this call would be an event */

/* A call whose arguments and results are coded by the caller; see libc/forms.c. */
typedef struct {
    NativeCrossing crossing;
    PyObject *error[3];
    int64_t result;  /* to be set where perform is true */
    int saved_errno; /* the same */
    bool perform, attached, released;
    bool again; /* ended: the replay has become a recording meanwhile, and it is to be made once more */
} LibcEvent;

typedef struct {
    const uint8_t *at, *end; /* of what arrived */
} LibcBytes;
void libc_begin(LibcEvent *e, LibcRow *row, const Buf *arguments, const void *leaves, size_t n, bool waits);
LibcBytes libc_end(LibcEvent *e, Buf *arrived); /* arrived: while recording; it stays the caller's */
void libc_put_number(Buf *arguments, int64_t number);
void libc_put_text(Buf *arguments, const char *text); /* NULL is None */
void libc_put_piece(Buf *arrived, const void *data, size_t n);
bool libc_take_piece(LibcBytes *from, const uint8_t **data, size_t *n);

/* trap.c */
void libc_trap_range(uintptr_t start, uintptr_t end);    /* the C library's code; before the filter of a replay */
void libc_trap_library(const struct dl_phdr_info *info); /* it is new, and the program's */
typedef struct {
    const char *name;
    void *function;
} LibcForm;

/* forms.c */
/* functions whose results have a form of their own; the last has no name */
extern const LibcForm libc_forms[];

/* zmq.c */
extern const LibcForm zmq_forms[];
void zmq_library_loaded(void); /* libraries may be new: is it one of them? */

/* memory.c */
extern const LibcForm libc_memory[];
extern const Relink libc_freeing[]; /* for libraries that are not the program's */

#endif
