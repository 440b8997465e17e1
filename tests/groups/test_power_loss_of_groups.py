"""After a power cut, each process of a group that was recorded with --durable opens to a whole beginning.

What a process has done before it sends was synchronised first: so no recording depends on events that another one lost.
"""

import os
import random
import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.power_cuts import Copy, build_library, random_image, read_copies
from tests.harness.replays import passed_on, run
from tests.harness.sanitizer import preloading

pytestmark = pytest.mark.slow

IMAGES = 12

_PROGRAM = """import os, socket, subprocess, sys, time
if len(sys.argv) > 1:
    channel = socket.socket(fileno=int(sys.argv[1]))
else:
    ours, theirs = socket.socketpair()
    here, there = socket.socketpair()
    for number in range(30):
        time.time()
    child = os.fork()
    if child == 0:
        ours.close()
        for number in range(8):
            theirs.recv(1)
            os.urandom(100 * number)
            theirs.send(b"y")
        sys.exit()
    there.set_inheritable(True)
    other = subprocess.Popen([sys.executable, __file__, str(there.fileno())], pass_fds=[there.fileno()])
    for number in range(8):
        os.urandom(1000)
        os.getppid()
        for end in (ours, here):
            end.send(b"x")
        for end in (ours, here):
            end.recv(1)
    os.waitpid(child, 0)
    other.wait()
    sys.exit()
for number in range(8):
    channel.recv(1)
    os.urandom(500)
    channel.send(b"z")
"""


def test_no_process_has_received_what_its_sender_lost(tmp_path: Path) -> None:
    copies = _recorded(tmp_path)
    chance = random.Random(3)
    names = sorted({copy.live for copy in copies})
    assert names == ["1.rdbg-live", "2.rdbg-live", "3.rdbg-live"]

    for number in range(IMAGES):
        until = chance.choice(copies).time
        group = tmp_path / f"{number}.rdbgs"
        group.mkdir()
        (group / "page").write_bytes([copy for copy in copies if copy.time <= until][-1].files["page"])
        written = []
        for name in names:
            image = random_image([copy for copy in copies if copy.live == name], chance, until)
            if image is not None:
                image.write(group / name)
                written.append((group / name, image.least))
        found = {path.name: _moved(path, least) for path, least in written}
        sent, received = found["1.rdbg-live"]
        for name in found.keys() - {"1.rdbg-live"}:
            # Half of what the first process sent was for each of the others.
            assert found[name][1] <= (sent + 1) // 2, (number, found)
        # The first one has received no more than what both have sent.
        assert received <= sum(found[name][0] for name in found if name != "1.rdbg-live"), (number, found)
        for path, _ in written:
            replayed = run(tool.replay(sys.executable, path), cwd=tmp_path, env=_environment(tmp_path))
            # 0: the image has the end of the process, too.
            assert replayed.status in (0, tool.ENDS_EARLY), (number, path, replayed.stderr)


def _moved(path: Path, least: int) -> tuple[int, int]:
    """Return how many calls sent, and received; of a forked child those of its parent are not counted."""
    with open_recording(path) as recording:
        checked = recording.check()
        assert recording.damage == ()
        assert checked.events >= least
        first = recording.header.branch.event if recording.header.branch is not None else 0
        gates = [each.gate for each in recording.events(first=first) if isinstance(each, Event)]
    # A send is in the log after it was done: the last one may be missing there.
    return gates.count("_socket.socket.send") + 1, gates.count("_socket.socket.recv")


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.defpath, "HOME": str(folder), **passed_on()}


def _recorded(folder: Path) -> list[Copy]:
    library, copies = build_library(folder), folder / "copies"
    copies.mkdir()
    (folder / "program.py").write_text(_PROGRAM)
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "--durable", "-o", "g.rdbg", "program.py"]
    env = preloading(library) | {"POWER_CUTS": str(copies)}
    recorded = run(command, cwd=folder, env=_environment(folder) | env)
    assert recorded.status == 0, recorded.stderr
    return read_copies(copies)
