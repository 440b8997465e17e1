"""The keeper: a small process of its own, whose children all processes of a session are.

They end with it, however it ends, and it ends when the debugger's end of its socket is closed. It does not run in the
debugger's process: a thread there may end, and with it, by the kernel's rule, everything that it started.
Run as `python -m replaydbg.engine.keeper ORDERS`.
"""

from __future__ import annotations

import ast
import os
import resource
import select
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from replaydbg.engine.messages import VERSION
from replaydbg.errors import ReplaydbgError
from replaydbg.launch.process import start_process
from replaydbg.log.reader import open_recording
from replaydbg.replay.launcher import inheritable, prepare
from replaydbg.replay.result import ended_by_itself, why_it_ends


def main() -> int:
    """Start the replay, say so, and stay until the debugger has gone."""
    orders = ast.literal_eval(sys.argv[1])
    for name, fd in orders.items():
        if name.endswith("fd"):
            os.set_inheritable(fd, False)  # or the program had them, and a process that ended would not seem to have
    debugger = socket.socket(fileno=orders["keeper_fd"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        if orders["version"] != VERSION:
            raise ReplaydbgError(f"The debugger speaks version {orders['version']} of its protocol, this is {VERSION}.")
        with ExitStack() as stack:
            started = _start(Path(orders["path"]), orders, stack)
    except (ReplaydbgError, OSError) as error:
        debugger.sendall(b"E" + str(error).encode("utf-8", "surrogatepass"))
        return 1
    debugger.sendall(b"R" + repr(started).encode() + b"\0")
    _stay(debugger)
    return 0


def _start(path: Path, orders: dict[str, Any], stack: ExitStack) -> tuple[int, str]:
    with open_recording(path) as recording:
        parts = ("inside.py", "inside_search.py", "inside_stores.py", "inside_answer.py")
        inside = "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in parts)
        # The core sees to it: an import would fail at the program's end, even this one.
        inside = inside.replace("from __future__ import annotations\n", "\n")
        fds = {name: inheritable(stack, orders[name]) for name in ("fd", "output_fd", "raises_fd")}
        clock = {name: inheritable(stack, orders[f"clock_{name}"]) for name in ("fd", "steps_fd")}
        null = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, null)
        more = {
            "current_source": orders["current_source"],
            "clock": clock | {"hits": True, "activations": True, "breakpoints": []},
            "engine": fds | {"inside": inside, "last_line": orders["last_line"]},
        }
        start = prepare(recording, stack, more, stdout=null, stderr=null, follows=orders["follows"])
        pid = start_process(start.command, start.env, fds=start.streams, ignored=start.ignored)
        is_whole = orders["follows"] or (not start.is_cut and ended_by_itself(recording))
        why = "" if is_whole else why_it_ends(recording, start.is_cut)
    for name in ("fd", "output_fd", "raises_fd", "clock_fd", "clock_steps_fd"):
        os.close(orders[name])
    return pid, why


def _stay(debugger: socket.socket) -> None:
    # Nothing comes from the debugger but its end. Children that have ended are collected now and then.
    poll = select.poll()  # the debugger may have so many descriptors that select() does not know ours
    poll.register(debugger, select.POLLIN)
    while not poll.poll(500):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            continue


if __name__ == "__main__":
    sys.exit(main())
