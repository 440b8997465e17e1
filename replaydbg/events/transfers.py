"""Sends and receives of a recorded process, and the ends of channels that they used. Only groups record them."""

from __future__ import annotations

from replaydbg.classes import NamedTuple

KINDS = (
    "pipe",
    "fifo",
    "tcp",
    "udp",
    "unix",
    "unix-datagram",
    "output",
    "semaphore",
    "process",
    "signal",
    "file",
    "call",
    "eventfd",
    "file-lock",
    "stream",
)
"""The kinds of an endpoint. `output`: a standard stream that is not one of the others, such as a terminal or a file.
`process`: a receive is a wait for its end; `signal`: a send is a call that sends it, a receive that its handler begins;
`file`: a send is the close of one that could be written, a receive is an open to read it; `call`: a call that waits for
something else, and had not ended; `eventfd`: a send adds to its counter, a receive takes from it; `file-lock`: a send
releases a lock of a file, a receive acquires it; `stream`: a send is a call that ends a stream or begins a connection
(close, shutdown, connect), a receive one that found a stream broken, or accepted a connection. All streams have one.
"""

DIGEST_MODULUS = (1 << 61) - 1
DIGEST_BASE = 0x9E3779B97F4A7C5


class Endpoint(NamedTuple):
    """One end of a channel, as one recorded process has it."""

    number: int
    """From 1, per recording, in the order of first use. Copies of a descriptor usually have the same number."""
    kind: str
    """One of `KINDS`."""
    own: str
    """The identity of this end. pipe, fifo: `device:inode` (both ends of a pipe have the same); tcp, udp: `host:port`
    (`[host]:port` for IPv6; `::ffff:1.2.3.4` is written `1.2.3.4`); unix, unix-datagram: the inode of the socket;
    output: `device:inode`; semaphore: its name, or the address of one without a name; process: its number in the
    group, empty for any child (of a wait that had not ended); file: `device:inode`; signal: `process:signal` by the
    number of the process that gets it, or `-id:signal` for all processes of a process group (-1: all); call: its name;
    eventfd: the number that the kernel gave it; file-lock: `device:inode`; stream: empty.
    """
    peer: str
    """The identity of the other end. pipe, fifo: as `own`; semaphore: the value with which it was made; signal that was
    received: the number of the process that sent it; call: `timed` if it
    ends by itself; file-lock: `exclusive` or `shared`, then `flock` or `lockf` (fcntl, too), then `part` if it is one
    of some bytes of the file. Empty: unknown, or there is none (udp without connect()).
    """
    cookie: int
    """SO_COOKIE of a socket: it tells apart uses of the same port; 0: there is none."""
    path: str
    """Of a fifo, or of a unix socket that is bound (`@name` in the abstract namespace); otherwise empty."""
    peer_path: str = ""
    """The path of a unix socket that it is connected to, if that is bound."""
    peer_pid: int = 0
    """The process that connected to a unix socket, or that it is connected to; 0: unknown. It is known even if that
    end was closed before this one was accepted, when `peer` is not.
    """


class Transfer(NamedTuple):
    """A send or a receive of some bytes."""

    event: int
    """The number of its event in this process; 0: it had not ended when the recording ended."""
    begun: int
    """Number of events committed when it began: a send counts from `begun` + 1, a receive from `event`."""
    ticket: int
    """The clock of the group: a send takes its ticket before the call, a receive after it; 0: an open receive."""
    endpoint: int
    """The number of the endpoint."""
    way: str
    """`send` or `receive`."""
    length: int
    """Bytes moved. Of an open send: those known to be sent. A receive of 0 bytes is the end of a stream."""
    digest: int
    """`digest_of()` the bytes; 0 if there are none, or if they are not known (sendfile, splice)."""
    address: str
    """Of a datagram: the other end's address, if the call names it: as `Endpoint.own`, or the path of a unix socket."""
    peeks: bool
    """MSG_PEEK: it takes nothing."""
    urgent: bool
    """MSG_OOB: a channel apart."""
    is_partly_known: bool = False
    """The call raised after it had moved bytes: `length` is a lower bound."""
    stream: int = 0
    """1: the program's standard output, 2: standard error; 0: neither."""
    passes: bool = False
    """Descriptors came or went with it."""


def digest_of(data: bytes) -> int:
    """Return the digest of bytes: sum of (b_i + 1) * K^(n - i) modulo P, for i from 1 to n."""
    digest = 0
    for byte in data:
        digest = (digest * DIGEST_BASE + byte + 1) % DIGEST_MODULUS
    return digest


def joined_digest(first: int, second: int, length: int) -> int:
    """Return the digest of two pieces, the second of `length` bytes, one behind the other."""
    return (first * pow(DIGEST_BASE, length, DIGEST_MODULUS) + second) % DIGEST_MODULUS
