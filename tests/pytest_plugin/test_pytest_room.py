"""The pytest plugin where nothing can be written: the tests run, and the lack of a recording is explained."""

import re
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import small_disk as small_disks
from tests.harness.plugin_runs import run_pytest

pytestmark = pytest.mark.slow

SOURCE = """
    STATE = {"count": 1}
    def test_1():
        STATE["count"] = 7
    def test_2():
        assert STATE["count"] == 1, "dirty"
"""
IN_ORDER = ("-p", "no:randomly", "-p", "no:random_order")


@pytest.fixture
def small_files() -> Iterator[None]:
    """Limit the file size to the initial size of a log."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory on a file system of a given size."""
    with small_disks.small_disk(tmp_path / "small", request.param):
        yield tmp_path / "small"


def said(folder: Path, reason: str) -> str:
    return f"replaydbg: Nothing can be recorded in {str(folder)!r}: {reason}. The tests run unrecorded.\n"


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, SOURCE, *IN_ORDER, "--replaydbg-dir=/proc/nope")

    assert ran.output.count(said(Path("/proc/nope"), "No such file or directory")) == 1
    assert (ran.status, ran.counts) == (1, {"failed": 1, "passed": 1})
    assert "replaydbg debug" not in ran.output


def test_a_log_that_cannot_be_made(tmp_path: Path, small_files: None) -> None:
    ran = run_pytest(tmp_path, SOURCE, *IN_ORDER)

    assert ran.output.count(said(tmp_path / "test-results", "File too large")) == 1
    assert (ran.status, ran.counts) == (1, {"failed": 1, "passed": 1})
    assert list((tmp_path / "test-results").iterdir()) == []


def test_workers_that_cannot_be_recorded(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    ran = run_pytest(tmp_path, SOURCE, *IN_ORDER, "-n1", "--replaydbg-dir=/proc/nope")

    assert said(Path("/proc/nope"), "No such file or directory") in ran.output
    assert (ran.status, ran.counts) == (1, {"failed": 1, "passed": 1})


@pytest.mark.parametrize("small_disk", ["1m"], indirect=True)
def test_a_full_disk(tmp_path: Path, small_disk: Path) -> None:
    ran = run_pytest(tmp_path, SOURCE, *IN_ORDER, f"--replaydbg-dir={small_disk}")

    assert ran.output.count(said(small_disk, "No space left on device")) == 1
    assert (ran.status, ran.counts) == (1, {"failed": 1, "passed": 1})
    assert list(small_disk.iterdir()) == []


FILLS = """
    import os
    def test_full():
        fd = os.open(os.environ["SMALL"] + "/filler", os.O_WRONLY | os.O_CREAT)
        room = os.fstatvfs(fd)
        os.posix_fallocate(fd, 0, room.f_bavail * room.f_frsize)
        os.close(fd)
        assert room is None
"""


@pytest.mark.parametrize("options", [(), ("-n1",)])
@pytest.mark.parametrize("small_disk", ["60m"], indirect=True)
def test_a_disk_that_gets_full_in_a_test(tmp_path: Path, small_disk: Path, options: tuple[str, ...]) -> None:
    """Nothing more can be written to it, not even the reason. Whether the log has room is a matter of its length."""
    if options:
        pytest.importorskip("xdist")
    ran = run_pytest(tmp_path, FILLS, *options, f"--replaydbg-dir={small_disk}", SMALL=str(small_disk))

    sentence = r"test_full: its recording could not be written: (No space left on device|the disk was full)$"
    assert len(re.findall(sentence, ran.output, re.MULTILINE)) == 2
    assert (ran.status, ran.counts) == (1, {"failed": 1})


@pytest.mark.parametrize("small_disk", ["8m"], indirect=True)
def test_a_disk_that_is_full_before_a_test_begins(tmp_path: Path, small_disk: Path) -> None:
    """There is no room for the log."""
    ran = run_pytest(tmp_path, SOURCE, *IN_ORDER, f"--replaydbg-dir={small_disk}")

    assert ran.output.count("test_2: its recording could not be written: the disk was full") == 2
    assert "--replaydbg-wait" not in ran.output
    assert (ran.status, ran.counts) == (1, {"failed": 1, "passed": 1})


def test_a_log_that_reaches_its_limit(tmp_path: Path) -> None:
    """The same without permission to mount."""
    ran = run_pytest(tmp_path, SOURCE, *IN_ORDER, REPLAYDBG_MAX_SIZE="100KiB")

    assert ran.output.count("test_2: its recording could not be written: the recording reached its size limit") == 2
    assert (ran.status, ran.counts) == (1, {"failed": 1, "passed": 1})
