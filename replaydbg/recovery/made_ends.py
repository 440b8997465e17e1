"""Make the channels of a group that goes on, and fill them with the bytes that were in flight."""

from __future__ import annotations

import fcntl
import os
import select
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack

from replaydbg.distributed.descriptors import PAIR, ChannelEnd
from replaydbg.recovery.bytes_in_flight import FlyingPiece
from replaydbg.recovery.shared_ends import FIFO, SharedChannel, SharedEnds
from replaydbg.resources.kinds import OpenedPipe, OpenedSocket, OpenResource
from replaydbg.resume.plan_rows import CannotReopen, Fate
from replaydbg.resume.reopening.patience import Waits, reopen_patiently
from replaydbg.resume.reopening.reopen_others import set_pipe_mode
from replaydbg.resume.reopening.reopen_sockets import address_text, set_mode
from replaydbg.resume.reopening.rules import RULES

_PATIENCE = 5.0
"""Seconds after which a listening socket counts as full."""
_WITHOUT_NAMES = ("pipe", PAIR, "connection", "waiting")
"""Kinds of channels that are made of nothing but themselves."""
_WIDE = 4 << 20
_SMALL = 1 << 16
"""Bytes that each channel holds anyway."""


class MadeEnds:
    """The launcher's descriptors of what processes share; all are closed with `stack`."""

    def __init__(self, shared: SharedEnds, stack: ExitStack, waits: Waits | None, *, over_pairs: bool = False) -> None:
        """Make all of them, empty; `waits` hears which address is waited for.

        `over_pairs`: without the network and the file system, so connections are pairs of sockets, and what has a name
        is not made. Raises CannotReopen.
        """
        self._over_pairs = over_pairs
        self._waits = waits
        self._shared = shared
        self._stack = stack.enter_context(ExitStack())
        self.fds: dict[ChannelEnd, int] = {}
        self.waiting: dict[ChannelEnd, int] = {}
        """Over pairs: what is to be accepted, by the end that has connected."""
        self._inlets: dict[ChannelEnd, int] = {}
        """Where to put what was sent through an end of a fifo: that end need not be open any more."""
        for channel in shared.channels:
            if not over_pairs or channel.kind in _WITHOUT_NAMES:
                _MAKERS[channel.kind](self, channel)

    def close(self) -> None:
        """Close our descriptors: those of the processes shall be the last ones."""
        self._stack.close()

    def copy(self, end: ChannelEnd | None, opened: OpenResource) -> int | None:
        """Return a new descriptor for an end that a process has as `opened`; None: it is not shared."""
        fd = self.fds.get(end) if end is not None else None
        if fd is None:
            return None
        if isinstance(opened, OpenedPipe):
            set_pipe_mode(fd, opened)
        elif isinstance(opened, OpenedSocket):
            set_mode(fd, opened)
        return os.dup(fd)

    def fill(self, sent: Mapping[tuple[int, int], bytes]) -> None:
        """Put the bytes in flight into the channels, and shut down what was; `sent` has the data of sends by event.

        Raises CannotReopen.
        """
        for channel in self._shared.channels:
            if channel.flying and not all(end in self.fds or end in self._inlets for end in channel.flying):
                raise CannotReopen(f"bytes were in flight in a {channel.kind}")
            for end, pieces in channel.flying.items():
                name = f"the {channel.kind} of process {end.process}, event {end.event}"
                contents = [_data(each, sent) for each in pieces]
                if _keeps_bounds(channel):
                    _send_messages(self.fds[end], contents, name)
                else:
                    inlet = self._inlets[end] if end in self._inlets else self.fds[end]
                    _send(inlet, b"".join(contents), name)
            if channel.kind in ("pair", "connection", "waiting") and channel.ends[0] in self.fds:
                self._shut(channel)

    def _shut(self, channel: SharedChannel) -> None:
        for end in channel.ends:
            receives, sends = self._shared.shut(end)
            if receives or sends:
                how = socket.SHUT_RDWR if receives and sends else socket.SHUT_RD if receives else socket.SHUT_WR
                with socket.socket(fileno=os.dup(self.fds[end])) as made:
                    made.shutdown(how)

    def _add(self, end: ChannelEnd, fd: int) -> None:
        self._stack.callback(os.close, fd)
        self.fds[end] = fd

    # ---- each kind ----

    def _pipe(self, channel: SharedChannel) -> None:
        reader, writer = os.pipe()
        for end, fd in zip(channel.ends, (reader, writer), strict=True):
            self._add(end, fd)
        _make_room_in_pipe(writer, channel)

    def _fifo(self, channel: SharedChannel) -> None:
        """Open a fifo for both first: after that, opening one side neither waits nor fails without the other one."""
        opened = [channel.opened[end] for end in channel.ends]
        path = next(each.path for each in opened if isinstance(each, OpenedPipe) and each.path is not None)
        try:
            both = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise CannotReopen(f"{path}: {error.strerror}") from error
        self._stack.callback(os.close, both)
        waiting = select.poll()  # select() knows no descriptors from 1,024 on
        waiting.register(both, select.POLLIN)
        if waiting.poll(0):
            raise CannotReopen(f"{path}: a process outside of the group has it open, and there are bytes in it")
        _make_room_in_pipe(both, channel)
        self._inlets |= dict.fromkeys(channel.flying, both)
        for end, each in zip(channel.ends, opened, strict=True):
            self._add(end, RULES[type(each)].reopen(each))

    def _pair(self, channel: SharedChannel) -> None:
        self._add_sockets(channel, socket.socketpair(socket.AF_UNIX, _type(channel)))

    def _connection(self, channel: SharedChannel) -> None:
        family = _family(channel)
        if family == socket.AF_UNIX or self._over_pairs:
            self._add_sockets(channel, wide_pair() if self._over_pairs else socket.socketpair())
            return
        try:
            with socket.socket(family, socket.SOCK_STREAM) as listener:
                listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
                listener.listen(1)
                made = _connected(family, listener.getsockname(), channel)
                accepted, _ = listener.accept()
            _make_room(accepted, channel)
        except OSError as error:
            raise CannotReopen(f"a connection over loopback: {error.strerror or error}") from error
        self._add_sockets(channel, (made, accepted))

    def _waiting(self, channel: SharedChannel) -> None:
        """Connect to the listening socket of the group; whoever has that accepts it."""
        (end,) = channel.ends
        assert channel.listener is not None, channel
        if self._over_pairs:
            made, accepted = wide_pair()
            self._add_sockets(channel, (made,))
            self._stack.callback(accepted.close)
            self.waiting[end] = accepted.fileno()
            return
        if channel.listener not in self.fds:
            raise CannotReopen("a connection that was not accepted yet: its listening socket is missing")
        with socket.socket(fileno=os.dup(self.fds[channel.listener])) as listener:
            address, family = listener.getsockname(), listener.family
        try:
            made = _connected(family, address, channel)
        except OSError as error:
            raise CannotReopen(f"a connection to {address_text(address)}: {error.strerror or error}") from error
        self._add_sockets(channel, (made,))
        assert end in self.fds

    def _file(self, channel: SharedChannel) -> None:
        (end,) = channel.ends
        opened = channel.opened[end]
        rule = RULES[type(opened)]
        if rule.plan(opened).fate is not Fate.REFUSED:  # otherwise the plan of each process has the reason
            self._add(end, reopen_patiently(opened, self._waits))

    def _add_sockets(self, channel: SharedChannel, made: Iterable[socket.socket]) -> None:
        for end, each in zip(channel.ends, made, strict=True):
            opened = channel.opened.get(end)
            for option in opened.options if isinstance(opened, OpenedSocket) else ():
                try:
                    each.setsockopt(option.level, option.option, option.value)
                except (OSError, TypeError):
                    continue  # one of another kind of socket
            self._add(end, each.detach())


_MAKERS: dict[str, Callable[[MadeEnds, SharedChannel], None]] = {
    "pipe": MadeEnds._pipe,
    FIFO: MadeEnds._fifo,
    PAIR: MadeEnds._pair,
    "connection": MadeEnds._connection,
    "waiting": MadeEnds._waiting,
    "file": MadeEnds._file,
}


def wide_pair() -> tuple[socket.socket, socket.socket]:
    """Return a pair of sockets with as much room as a connection may have."""
    made = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for each in made:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _WIDE)
    return made


def _family(channel: SharedChannel) -> int:
    families = [each.family for each in channel.opened.values() if isinstance(each, OpenedSocket)]
    return next((each for each in families if isinstance(each, int)), int(socket.AF_INET))


def _type(channel: SharedChannel) -> int:
    """Return the type of the sockets of a pair."""
    kinds = [each.type for each in channel.opened.values() if isinstance(each, OpenedSocket)]
    return next((each for each in kinds if isinstance(each, int)), int(socket.SOCK_STREAM))


def _keeps_bounds(channel: SharedChannel) -> bool:
    """Whether a receive takes exactly what one send gave."""
    return channel.kind == PAIR and _type(channel) != socket.SOCK_STREAM


def _make_room_in_pipe(writer: int, channel: SharedChannel) -> None:
    if channel.count() > _SMALL:
        try:
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, channel.count())
        except OSError as error:
            raise CannotReopen(f"a pipe for {channel.count():,} bytes in flight: {error.strerror}") from error


def _connected(family: int, address: object, channel: SharedChannel) -> socket.socket:
    """Return a socket that is connected to an address of our own. Raises OSError."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        _make_room(made, channel)
        made.settimeout(_PATIENCE)
        made.connect(address)  # type: ignore[arg-type]
        made.settimeout(None)
    except OSError:
        made.close()
        raise
    return made


def _make_room(made: socket.socket, channel: SharedChannel) -> None:
    if channel.count() > _SMALL:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            made.setsockopt(socket.SOL_SOCKET, option, 2 * channel.count())


def _data(piece: FlyingPiece, sent: Mapping[tuple[int, int], bytes]) -> bytes:
    if piece.data is not None:
        return piece.data
    whole = sent.get((piece.process, piece.event), b"")
    data = whole[piece.offset : piece.offset + piece.length]
    if len(data) != piece.length:
        raise CannotReopen(f"the replay of process {piece.process} did not report what it sent at event {piece.event}")
    return data


def _send(fd: int, data: bytes, name: str) -> None:
    was_blocking = os.get_blocking(fd)
    os.set_blocking(fd, False)
    try:
        at = 0
        while at < len(data):
            at += os.write(fd, data[at:])
    except BlockingIOError:
        raise CannotReopen(f"{len(data):,} bytes were in flight in {name}, and do not fit into it") from None
    except OSError as error:
        raise CannotReopen(f"{name}: {error.strerror}") from error
    finally:
        os.set_blocking(fd, was_blocking)


def _send_messages(fd: int, messages: Iterable[bytes], name: str) -> None:
    with socket.socket(fileno=os.dup(fd)) as made:
        for data in messages:
            try:
                made.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                raise CannotReopen(f"the messages in flight in {name} do not fit in it") from None
            except OSError as error:
                raise CannotReopen(f"{name}: {error.strerror}") from error
