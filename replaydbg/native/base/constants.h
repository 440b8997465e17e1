/* Written by tests/native/constants.py from the Python side, which has the same numbers: do not edit it.
 * After a change there: python -m tests.native.constants */
#ifndef REPLAYDBG_CONSTANTS_H
#define REPLAYDBG_CONSTANTS_H

/* clang-format off */
#define FORMAT_NUMBER 4

/* What a value begins with: docs/reference/format.md, section 3. */
enum {
    TAG_NONE = 0,
    TAG_FALSE = 1,
    TAG_TRUE = 2,
    TAG_INT = 3,
    TAG_BIG_INT = 4,
    TAG_FLOAT = 5,
    TAG_STR = 6,
    TAG_BYTES = 7,
    TAG_TUPLE = 8,
    TAG_LIST = 9,
    TAG_DICT = 10,
    TAG_STRUCT = 11,
    TAG_STAT = 12,
    TAG_ARGUMENT = 13,
    TAG_BYTEARRAY = 14,
    TAG_COMPLEX = 15,
    TAG_SET = 16,
    TAG_FROZENSET = 17,
    TAG_EXCEPTION = 18,
    TAG_CONTENT = 19,
    TAG_OPAQUE = 20,
    TAG_CUT = 21,
    TAG_DIR_ENTRY = 22,
    TAG_FILE = 23,
    TAG_BUFFER_LEAVES = 24,
    TAG_BUFFER_FILLED = 25,
    TAG_SMALL_INT = 64,
    TAG_SMALL_INT_END = 128,
};

/* Records that define what later ones refer to. */
enum {
    DEFINES_CODE = 0,
    DEFINES_SITE = 1,
    DEFINES_ARGUMENTS = 2,
    DEFINES_TYPE = 3,
};

/* Control records. */
enum {
    CONTROL_SIGNAL_INSIDE = 0,
    CONTROL_SIGNAL_BETWEEN = 1,
    CONTROL_TIME = 2,
    CONTROL_END = 3,
    CONTROL_NOTE = 4,
    CONTROL_LANE = 5,
    CONTROL_CHILD = 6,
    CONTROL_COLLECTOR = 7,
    CONTROL_MEMORY = 8,
    CONTROL_LANE_STARTED = 9,
    CONTROL_CALLBACK = 10,
    CONTROL_MARK = 11,
    CONTROL_SERIALS = 12,
    CONTROL_STREAM = 13,
    CONTROL_NO_MEMORY = 20,
    CONTROL_CHECKSUM = 21,
    CONTROL_CHAOS = 22,
    CONTROL_WORLD = 16,
    CONTROL_KINDS = 32,
};

/* How many fingerprints a place in pure computation has at most. */
#define PLACE_LEVELS 6
#define PLACE_WITH_CONTENTS 7

/* What a row of the gate table says besides its name. */
enum {
    GATE_ARGS = 1, /* Arguments are logged and checked */
    GATE_DIGEST = 2, /* Bytes leave the program: their digest is logged and checked */
    GATE_FILLS = 4, /* The call fills a buffer of the caller, which is logged */
    GATE_SHAPE = 7,
    GATE_BOTH = 8, /* Also executed in replay: its effect is local to the process */
    GATE_PATH = 16, /* Arguments may be path-like objects */
    GATE_OPENS = 32, /* The result is a descriptor or a tuple of them */
    GATE_CLOSES = 64, /* The first argument is a descriptor that is closed */
    GATE_COPIES = 128, /* With OPENS: the new descriptor is a copy of the first argument's */
    GATE_WRITES_FD = 256, /* Bytes go to the descriptor in the first argument */
    GATE_SELF = 512, /* For a method: the object is one of the arguments */
    GATE_FILLS_ALL = 1024, /* With FILLS: all of the buffer is filled, whatever number is returned */
    GATE_READS = 2048, /* Bytes come from the current position of a file */
    GATE_ALWAYS = 4096, /* The handler is also called where nothing is a crossing: in other threads, and after the end of the recording */
    GATE_MAKES_NOTHING = 8192, /* Neither the C function nor its result is, or temporarily uses, an object that the collector tracks */
    GATE_HEARS = 16384, /* It waits for other processes, or receives from them: after it, their actions can be known */
    GATE_REPEATS = 32768, /* For edited code: a clock, or a constant of the process. Its last outcome can be repeated */
    GATE_ACCEPTED = 65536, /* For edited code: it returns nothing, and nothing later depends on whether it was done */
    GATE_WRITTEN = 131072, /* For edited code: bytes leave; other ones than recorded count as written, all of them. With ACCEPTED: it returns no number */
    GATE_DESCRIPTOR = 262144, /* For edited code: the first argument is a descriptor */
    GATE_OPENS_FIRST = 524288, /* For edited code: the outcome begins with a new descriptor */
    GATE_OUTPUT = 1048576, /* For `record --durable`: others see its effect, so the log is synchronised before it */
    GATE_AT_ONCE = 2097152, /* With OUTPUT: no other thread runs meanwhile */
    GATE_UNLESS_FILE = 4194304, /* With OUTPUT: not if its descriptor leads to a regular file that is not synchronised by each write */
    GATE_NAMES = 8388608, /* It makes, moves or removes a name of a file, or an attribute. The time is logged before it, for `resume` */
    GATE_STAYS = 16777216, /* In a future: made, since it stays inside the process */
    GATE_IF_INSIDE = 33554432, /* In a future: made if the descriptors that it is given lead to nothing but the program itself */
    GATE_DRAWN = 67108864, /* In a future: answered with numbers that are drawn from its seed */
    GATE_ASKS = 134217728, /* In a future: it asks the outside, and is told what the recorded run was told */
};

/* What a process of a group sends and receives: section 4.6. */
#define TRANSFERS_FORMAT 1
#define TRANSFER_SLOT 48
#define TRANSFER_ADDRESS 0
#define TRANSFER_PASSED 255
enum {
    TRANSFER_RECEIVES = 1, /* A receive; otherwise a send */
    TRANSFER_PEEKS = 2, /* MSG_PEEK */
    TRANSFER_URGENT = 4, /* MSG_OOB */
    TRANSFER_PARTLY_KNOWN = 8, /* The call raised after it had moved bytes: the length is a lower bound. Had not ended: it reads until the end */
    TRANSFER_TO_OUTPUT = 16, /* Through a descriptor of the program's standard output */
    TRANSFER_TO_ERROR = 32, /* Through one of its standard error */
    TRANSFER_PASSES = 64, /* Descriptors came or went with it (SCM_RIGHTS) */
    TRANSFER_DEFINES = 128, /* Not a transfer: a definition of an endpoint or an address */
};

enum {
    ENDPOINT_PIPE = 1,
    ENDPOINT_FIFO = 2,
    ENDPOINT_TCP = 3,
    ENDPOINT_UDP = 4,
    ENDPOINT_UNIX = 5,
    ENDPOINT_UNIX_DATAGRAM = 6,
    ENDPOINT_OUTPUT = 7,
    ENDPOINT_SEMAPHORE = 8,
    ENDPOINT_PROCESS = 9,
    ENDPOINT_SIGNAL = 10,
    ENDPOINT_FILE = 11,
    ENDPOINT_CALL = 12,
    ENDPOINT_EVENTFD = 13,
    ENDPOINT_FILE_LOCK = 14,
    ENDPOINT_STREAM = 15,
};
/* clang-format on */

#endif
