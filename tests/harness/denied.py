"""Commands for which the kernel refuses a system call, as some containers do."""

import sys
from collections.abc import Sequence

_NUMBERS = {"seccomp": (317, 277), "memfd_create": (319, 279), "pidfd_open": (434, 434)}
"""Of each call on x86-64, and on 64-bit ARM."""

_START = """
import ctypes, os, struct, sys

numbers = sys.argv[1:3]
number = int(numbers[os.uname().machine == "aarch64"])
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text)), 0, 0) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""


def denied(call: str, command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` without the system call: it fails with EPERM."""
    return [sys.executable, "-c", _START, *map(str, _NUMBERS[call]), *command]
