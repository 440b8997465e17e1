"""The keeper: a small process that is the parent of all processes of a session.

They end with it, however it ends, and it ends when the debugger's end of its socket is closed. It does not run in the
debugger's process: a thread there may end, and with it, by the kernel's rule, everything that it started.
Its orders are its one argument; see `engine_start.py`.
"""

from __future__ import annotations

import ast
import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypedDict

from replaydbg.engine.keeping import ANY_KIND, NO, ORDER, YES, KeeperOrders, descriptors_of, is_own_child, was_own_child
from replaydbg.engine.protocol import VERSION
from replaydbg.errors import ReplaydbgError
from replaydbg.launch.proc import has_proc
from replaydbg.launch.process import start_process
from replaydbg.log.reader import open_recording
from replaydbg.replay.launcher import inheritable, prepare
from replaydbg.replay.result import ended_by_itself, why_it_ends

_WRITTEN = ("fd", "output_fd", "raises_fd", "course_fd")
"""Files that the first process of the session writes; the last one only on request."""


def main() -> int:
    """Start the replay, report that, and stay until the debugger has gone."""
    orders: KeeperOrders = ast.literal_eval(sys.argv[1])
    for fd in descriptors_of(orders).values():
        os.set_inheritable(fd, False)  # or the program had them, and a process that ended would not seem to have
    debugger = socket.socket(fileno=orders["keeper_fd"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A process that ignores it never waits for children, and cannot know whether a process ID was reused.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        if orders["version"] != VERSION:
            raise ReplaydbgError(
                f"Protocol mismatch: the debugger has version {orders['version']}, the keeper has {VERSION}."
            )
        with ExitStack() as stack:
            started = _start(Path(orders["path"]), orders, stack)
    except (ReplaydbgError, OSError) as error:
        _tell(debugger, b"E" + str(error).encode("utf-8", "surrogatepass"))
        return 1
    _tell(debugger, b"R" + repr(started).encode() + b"\0")
    _stay(debugger)
    return 0


def _tell(debugger: socket.socket, text: bytes) -> None:
    with suppress(OSError):  # it has gone, which `_stay` notices
        debugger.sendall(text)


def _start(path: Path, orders: KeeperOrders, stack: ExitStack) -> tuple[int, str]:
    with open_recording(path) as recording:
        given = descriptors_of(orders)
        fds = {name: inheritable(stack, given[name]) for name in _WRITTEN if name in given}
        clock = {name: inheritable(stack, given[f"clock_{name}"]) for name in ("fd", "steps_fd")}
        null = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, null)
        more = {
            "current_source": orders["current_source"],
            "clock": clock | {"hits": True, "activations": True, "breakpoints": []},
            "engine": fds | probe_sources() | {"last_line": orders["last_line"]},
        }
        start = prepare(recording, stack, more, stdout=null, stderr=null, follows=orders["follows"])
        pid = start_process(start.command, start.env, fds=start.streams, ignored=start.ignored)
        is_whole = orders["follows"] or (not start.is_cut and ended_by_itself(recording))
        why = "" if is_whole else why_it_ends(recording, start.is_cut)
    for name in (*_WRITTEN, "clock_fd", "clock_steps_fd"):
        if name in given:
            os.close(given[name])
    return pid, why


class ProbeSources(TypedDict):
    """The sources of the probe (see `replaydbg.engine.probe`)."""

    probe_loader: str
    """The script that the core runs for each query."""
    probe_modules: dict[str, str]
    """The modules, by full name."""


def probe_sources() -> ProbeSources:
    """Return the sources of the probe for the core."""
    folder = Path(__file__).with_name("probe")
    sources = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    loader = sources.pop("loader")
    package = "replaydbg.engine.probe"
    return {"probe_loader": loader, "probe_modules": {f"{package}.{name}": text for name, text in sources.items()}}


def _stay(debugger: socket.socket) -> None:
    """Kill the processes that the debugger names, and all when it has gone. Those that have ended are waited for."""
    poll = select.poll()  # the debugger may have too many descriptors for select()
    poll.register(debugger, select.POLLIN)
    orders = b""
    while True:
        if poll.poll(500):
            data = _received(debugger)
            if not data:
                break
            orders += data
            while len(orders) >= ORDER.size:
                _obey(debugger, ORDER.unpack_from(orders)[0])
                orders = orders[ORDER.size :]
        _wait_for_ended()
    _kill_all()


def _received(debugger: socket.socket) -> bytes:
    try:
        return debugger.recv(4096)
    except OSError:
        return b""


def _obey(debugger: socket.socket, order: int) -> None:
    if order >= 0:
        _kill(order)
    else:
        with suppress(OSError):
            debugger.send(YES if was_own_child(-order) else NO, socket.MSG_NOSIGNAL)


def _kill(pid: int) -> None:
    # Whatever the number came from: while this process has not waited for its child, the number is that child's.
    if is_own_child(pid):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _kill_all() -> None:
    """Kill every process of the session. The kernel does, too, when this one ends, unless the program forbade it."""
    until = time.monotonic() + 5
    me = os.getpid()
    while time.monotonic() < until:
        children = _children(me)
        if children is None:
            _kill_group()
            return
        for pid in children:
            _kill(pid)
        if not _wait_for_ended():
            return
        time.sleep(0.001)


def _children(me: int) -> list[int] | None:
    """Return the process ids of the children; None: /proc does not show them."""
    try:
        text = Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii")
    except OSError:  # not every kernel has this file
        return None
    return [int(word) for word in text.split()] if has_proc() else None


def _kill_group() -> None:
    # The children are in the process group that began with this process, and the fence lets none of them leave it.
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)


def _wait_for_ended() -> bool:
    """Wait for the children that have ended; return whether there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG | ANY_KIND)[0]:
            pass
    except ChildProcessError:
        return False
    return True
