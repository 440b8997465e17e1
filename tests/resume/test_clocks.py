"""The clocks of a resumed program go on, also once its log has no room any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.events.stops import StopReason
from replaydbg.log.reader import open_recording
from tests.resume.going_on import record_in, resume_in

pytestmark = pytest.mark.slow

_FULL = """import os, resource, threading, time
READ = (time.monotonic, time.perf_counter, lambda: time.monotonic_ns() / 1e9, lambda: time.clock_gettime(1))
first = [read() for read in READ]

def look(who):
    begun = [read() for read in READ]
    time.sleep(0.05)
    threading.Event().wait(0.05)
    ended = [read() for read in READ]
    print(who, [0.1 <= b - a < 20 and 0 <= a - f < 50 for f, a, b in zip(first, begun, ended)], flush=True)

waiting = threading.Thread(target=threading.Event().wait, args=(0.5,))
waiting.start()
os.getppid()
os.getppid()
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
os.urandom(3 << 20)
look("a thread from before")
later = threading.Thread(target=look, args=("a new one",))
later.start()
later.join()
waiting.join()
"""


def test_the_log_is_full(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_FULL)
    record_in(tmp_path, "whole")
    with open_recording(tmp_path / "whole.rdbg") as whole:
        mark = next(e.number for e in whole.events() if isinstance(e, Event) and e.gate == "posix.getppid")
    record_in(tmp_path, "one", killed_at=mark)

    resumed = resume_in(tmp_path, "one")

    fine = [True] * 4
    assert resumed.stdout.decode() == f"a thread from before {fine}\na new one {fine}\n", resumed
    assert resumed.status == 0
    with open_recording(tmp_path / "one-on.rdbg") as made:
        assert made.log_header is not None
        assert made.log_header.stopped is StopReason.FILE_LIMIT
