"""The output commit rule of `record --durable`: what others see waits until the disk has the log; nothing else does.

Each line of the program says of its call whether it waits. A call has waited if everything before it was synchronised
when it began: if a synchronisation ended with exactly the events before it.
"""

import os
import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.power_cuts import build_library, read_copies
from tests.harness.replays import passed_on, run
from tests.harness.sanitizer import preloading

pytestmark = pytest.mark.slow

_PROGRAM = r"""
import os, pty, signal, socket, sqlite3, subprocess, sys, time
reading, writing = os.pipe()
file = open("file", "wb", buffering=0)
synced = os.open("synced", os.O_WRONLY | os.O_CREAT | os.O_DSYNC)
null = open(os.devnull, "wb", buffering=0)
server = socket.create_server(("127.0.0.1", 0))
client = socket.socket()
terminal, other = pty.openpty()

file.write(b"bytes")  # goes on
os.write(file.fileno(), b"bytes")  # goes on
os.rename("file", "renamed")  # goes on
null.write(b"bytes")  # goes on
time.time()  # goes on
os.write(writing, b"bytes")  # waits
os.read(reading, 5)  # goes on
os.write(synced, b"bytes")  # waits
os.fsync(file.fileno())  # waits
os.write(other, b"bytes")  # waits
client.connect(server.getsockname())  # waits
accepted, _ = server.accept()  # goes on
client.send(b"bytes")  # waits
client.sendall(b"bytes")  # waits
client.sendmsg([b"bytes"])  # waits
accepted.recv(3)  # goes on
os.sendfile(client.fileno(), os.open("renamed", os.O_RDONLY), 0, 2)  # waits
os.writev(writing, [b"a", b"b"])  # waits
os.kill(os.getpid(), 0)  # waits
client.shutdown(socket.SHUT_WR)  # waits
child = os.fork()  # waits
if child == 0:
    os._exit(0)
os.waitpid(child, 0)  # goes on
os.system("true")  # waits
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)  # waits
database = sqlite3.connect("base")
database.execute("create table numbers (number)")  # waits
database.execute("insert into numbers values (1)")
database.commit()  # waits
database.execute("select * from numbers").fetchall()  # goes on
"""


def test_output_waits_for_the_log_and_nothing_else_does(tmp_path: Path) -> None:
    library, copies = build_library(tmp_path), tmp_path / "copies"
    copies.mkdir()
    (tmp_path / "program.py").write_text(_PROGRAM)
    command = tool.record(sys.executable, tmp_path / "r.rdbg", ["program.py"], options=["--durable"])
    env = {"PATH": os.defpath, "HOME": str(tmp_path), **passed_on()}
    library_env = preloading(library) | {"POWER_CUTS": str(copies)}

    recorded = run(command, cwd=tmp_path, env=env | library_env)
    replayed = run(tool.replay(sys.executable, tmp_path / "r.rdbg"), cwd=tmp_path, env=env)

    assert (recorded.status, replayed.status) == (0, 0), recorded.stderr + replayed.stderr
    synced = {copy.events for copy in read_copies(copies)}
    with open_recording(tmp_path / "r.rdbg") as recording:
        own = [
            each
            for each in recording.events()
            if isinstance(each, Event) and (each.site.file or "").endswith("program.py")
        ]
    lines = _PROGRAM.splitlines()
    expected = {number: line.endswith("# waits") for number, line in enumerate(lines, 1) if "  # " in line}
    waited = {line: False for line in expected}
    for event in own:
        if event.site.line in waited and event.number - 1 in synced:
            waited[event.site.line] = True
    assert {lines[line - 1]: waits for line, waits in waited.items()} == {
        lines[line - 1]: waits for line, waits in expected.items()
    }
