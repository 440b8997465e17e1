"""A fifo between processes of a group is a channel: it has the bytes in flight again when they go on."""

import os
from pathlib import Path

import pytest

from tests.recovery.killed_groups import record_killed, replaydbg

pytestmark = pytest.mark.slow

# Each process opens one side. The reader takes one line, and the others when its group goes on.
_FIFO = """import os, sys
os.mkfifo("fifo")
begin, go = os.pipe()
told, tell = os.pipe()
{work}
is_child = os.fork() == 0
os.close(go if is_child else begin)
os.close(told if is_child else tell)
read() if is_child == {child_reads} else write()
if is_child:
    os._exit(0)
os.wait()
"""
_READ = """
def wait():
    if is_child:
        os.read(begin, 1)
    else:
        {ready}
        sys.stdin.readline()
        os.close(go)

def read():
    fifo = open("fifo", "rb", buffering=0)
    {pause}
    print(fifo.read(6), flush=True)
    {tell}
    wait()
    print(fifo.read(12), fifo.read(1), flush=True)
"""
_WRITE = """
def write():
    fifo = open("fifo", "wb", buffering=0)
    for number in range(3):
        fifo.write(b"line %d" % number)
    {wait}
"""
_READY = "os.read(told, 1); open('ready', 'w').close()"


def _program(*, child_reads: bool, writer_waits: bool = True) -> str:
    """Return a program; the writer waits with its end open until the group goes on, or has closed it."""
    if child_reads:
        read = _READ.format(pause="", tell="os.write(tell, b'.')", ready=_READY)
        write = _WRITE.format(wait="wait()" if writer_waits else "fifo.close(); wait()")
    else:
        read = _READ.format(pause="os.read(told, 1)", tell="", ready="open('ready', 'w').close()")
        write = _WRITE.format(wait="os.write(tell, b'.'); wait()" if writer_waits else "os.write(tell, b'.')")
    return _FIFO.format(work=read + write, child_reads=child_reads)


@pytest.mark.parametrize("child_reads", [False, True], ids=["child writes", "child reads"])
def test_bytes_in_flight_are_there_again(child_reads: bool, tmp_path: Path) -> None:
    record_killed(tmp_path, _program(child_reads=child_reads))
    reader, writer = (2, 1) if child_reads else (1, 2)

    plan = replaydbg(tmp_path, "resume", "one", "--plan").stdout.decode()
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert f"fifos: {tmp_path / 'fifo'}, shared with process {reader}, 12 bytes in flight" in plan
    assert f"in flight  fifo from process {writer} to process {reader}: 12 bytes" in plan
    assert (resumed.status, resumed.stdout) == (0, b"b'line 1line 2' b''\n"), resumed


@pytest.mark.parametrize("child_reads", [False, True], ids=["child writes", "child reads"])
def test_the_continued_group_matches_from_the_first_byte(child_reads: bool, tmp_path: Path) -> None:
    record_killed(tmp_path, _program(child_reads=child_reads))

    replaydbg(tmp_path, "resume", "one", "-o", "two")
    channels = replaydbg(tmp_path, "channels", "two").stdout.decode()
    replayed = replaydbg(tmp_path, "replay", "two")

    fifo = next(line for line in channels.splitlines() if "fifo" in line)
    assert fifo.split()[-2:] == ["all", "received"], channels
    assert replayed.stdout == b"b'line 0'\nb'line 1line 2' b''\n", replayed


@pytest.mark.parametrize("child_reads", [False, True], ids=["child has ended", "parent has closed"])
def test_what_a_closed_end_sent_is_there_again(child_reads: bool, tmp_path: Path) -> None:
    record_killed(tmp_path, _program(child_reads=child_reads, writer_waits=False))

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"b'line 1line 2' b''\n"), resumed


_SEVERAL = """import os, sys
os.mkfifo("fifo")
begin, go = os.pipe()
told, tell = os.pipe()
for name in (b"one", b"two"):
    if not os.fork():
        os.close(go)
        fifo = os.open("fifo", os.O_WRONLY)
        os.write(fifo, name)
        os.write(tell, b".")
        os.read(begin, 1)
        os.write(fifo, name)
        os._exit(0)
    if name == b"one":
        fifo = os.open("fifo", os.O_RDONLY)
    os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
print(os.read(fifo, 6))
os.close(go)
rest = b""
while data := os.read(fifo, 6):
    rest += data
print(sorted([rest[:3], rest[3:]]))
"""


def test_several_processes_write_to_one_fifo(tmp_path: Path) -> None:
    record_killed(tmp_path, _SEVERAL)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"b'onetwo'\n[b'one', b'two']\n"), resumed


# The log of the writer shows neither that its file is a fifo nor that another process has made it.
_OTHER_PROGRAM = """import os, subprocess, sys
if len(sys.argv) > 1:
    fifo = os.open("fifo", os.O_WRONLY)
    os.write(fifo, b"first" + b"second")
    os.write(1, b".")
    os.read(0, 1)
    os._exit(0)
os.mkfifo("fifo")
writer = subprocess.Popen([sys.executable, __file__, "writer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
fifo = os.open("fifo", os.O_RDONLY)
writer.stdout.read(1)
os.read(fifo, 5)
open("ready", "w").close()
sys.stdin.readline()
writer.stdin.close()
print(os.read(fifo, 100), os.read(fifo, 100))
writer.wait()
"""


def test_a_program_that_did_not_make_the_fifo_goes_on(tmp_path: Path) -> None:
    record_killed(tmp_path, _OTHER_PROGRAM)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"b'second' b''\n"), resumed


def test_a_fifo_with_bytes_of_others_is_refused(tmp_path: Path) -> None:
    record_killed(tmp_path, _program(child_reads=False))
    fd = os.open(tmp_path / "fifo", os.O_RDWR)
    os.write(fd, b"of somebody else")

    refused = replaydbg(tmp_path, "resume", "one", "-o", "two")

    os.close(fd)
    assert refused.status == 2, refused
    assert b"fifo: a process outside of the group has it open, and there are bytes in it" in refused.stderr
