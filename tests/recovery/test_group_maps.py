"""Maps of files in a group: stores of one process are written, maps into which several store are refused."""

from pathlib import Path

import pytest

from tests.recovery.killed_groups import record_killed, replaydbg

pytestmark = pytest.mark.slow

_PROGRAM = """import mmap, os, sys
with open("data", "wb") as file:
    file.write(bytes(4096))
begin, go = os.pipe()
told, tell = os.pipe()
if not os.fork():
    os.close(go)
    with open("data", "{mode}") as file:
        shared = mmap.mmap(file.fileno(), 0, access=mmap.{access})
    os.write(tell, b"x")
    os.read(begin, 1)
    print(shared[0], flush=True)
    os._exit(0)
with open("data", "r+b") as file:
    shared = mmap.mmap(file.fileno(), 0)
shared[0] = 7
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
os.close(go)
os.wait()
"""


def test_maps_into_which_several_processes_store_are_refused(tmp_path: Path) -> None:
    record_killed(tmp_path, _PROGRAM.format(mode="r+b", access="ACCESS_WRITE"))

    refused = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert refused.status == 2, refused
    assert b"process 2 maps it for writing, too" in refused.stderr


def test_stores_of_one_process_are_there_for_all(tmp_path: Path) -> None:
    record_killed(tmp_path, _PROGRAM.format(mode="rb", access="ACCESS_READ"))
    (tmp_path / "data").write_bytes(bytes(4096))

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"7\n"), resumed
