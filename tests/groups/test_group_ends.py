"""The descriptors that a process holds by its event log are those that the kernel says it has."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from replaydbg.distributed.descriptors import ChannelEnd, DescriptorTable
from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.children import PROGRAMS, completed
from tests.harness.process import run

pytestmark = pytest.mark.slow

ACTS = """\
import fcntl, json, os, random, select, socket, subprocess, sys

choose = random.Random(int(sys.argv[1]))
sockets, files = [], []


def links():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            pass
    return {fd: text for fd, text in found.items() if text.startswith(("pipe:", "socket:")) and fd > 2}


def act():
    known = sorted(links())
    kind = choose.choice(["pipe", "pair", "dup", "dup2", "close", "file", "closed file", "socket", "range", "pass"])
    if kind == "pipe":
        os.pipe()
    elif kind == "pair":
        sockets.extend(socket.socketpair())
    elif kind == "socket":
        server = socket.create_server(("127.0.0.1", 0))
        sockets.extend([server, socket.create_connection(server.getsockname()), server.accept()[0]])
    elif not known:
        return
    elif kind == "dup":
        os.dup(choose.choice(known))
    elif kind == "dup2":
        os.dup2(choose.choice(known), choose.choice([*known, 60]))
    elif kind == "close":
        os.close(choose.choice(known))
    elif kind == "file":
        with open(os.dup(choose.choice(known)), "rb", buffering=0, closefd=choose.random() < 0.5) as file:
            pass
    elif kind == "closed file":
        files.append(open(choose.choice(known), "rb", buffering=0))
        files.pop().close()
    elif kind == "range":
        at = choose.choice(known)
        os.closerange(at, at + 2)
    elif kind == "pass":
        one, other = socket.socketpair()
        socket.send_fds(one, [b"x"], [choose.choice(known)])
        socket.recv_fds(other, 10, 4)
        one.close()
        other.close()


for _ in range(60):
    act()
    print(json.dumps([os.stat("/").st_mode and 0, links()]), flush=True)
    if choose.random() < 0.1:
        subprocess.run([sys.executable, "-c", "pass"], pass_fds=sorted(links())[:2])
os._exit(0)
"""


@pytest.mark.parametrize("seed", range(4))
def test_descriptors_by_the_log_are_those_of_the_kernel(seed: int, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(ACTS)
    command = tool.record(sys.executable, tmp_path / "made", ["prog.py", str(seed)], options=PROGRAMS)
    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
    assert done.status == 0, done.stderr
    group = tmp_path / "made.rdbgs"
    path = group / "1.rdbg" if group.exists() else tmp_path / "made.rdbg"
    if group.exists():
        completed(group)
    shown = [{int(fd): link for fd, link in json.loads(line)[1].items()} for line in done.stdout.splitlines()]

    known = list(_channels_at_marks(path))

    assert len(known) == len(shown) == 60
    names: dict[ChannelEnd, str] = {}
    for (ends, perhaps), links in zip(known, shown, strict=True):
        # A file that is open is in the table as well; what the kernel calls a pipe or socket has to be there.
        assert set(links) <= set(ends) | set(perhaps)
        for fd, link in links.items():
            # Both ends of a pipe have one name; each end has one name all the time.
            assert names.setdefault(ends.get(fd) or perhaps[fd], link) == link
        assert {fd for fd, end in ends.items() if end.kind in ("pipe", "pair")} <= set(links)


def _channels_at_marks(path: Path) -> list[tuple[dict[int, ChannelEnd], dict[int, ChannelEnd]]]:
    """Return the descriptors at each line that the program printed, and those that it may have had."""
    table = DescriptorTable({}, lambda event: 1)
    found = []
    with open_recording(path) as recording:
        for entry in recording.events(controls=False):
            if isinstance(entry, Event):
                table.apply(entry)
                if entry.gate == "posix.stat" and entry.arguments == ("/",):
                    found.append((dict(table.ends), dict(table.perhaps)))
    return found
