"""A failing test that starts processes keeps their recordings, as a group beside its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.log.group import Group, read_group
from replaydbg.log.reader import open_recording
from replaydbg.pytest_plugin.parent.kept_groups import KeptGroups
from tests.harness import tool
from tests.harness.plugin_runs import Ran, run_pytest

pytestmark = pytest.mark.slow

_SUBPROCESS = """
    import subprocess, sys
    def test_good():
        assert subprocess.run([sys.executable, "-c", "print('of another test')"]).returncode == 0
    def test_bad():
        done = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True)
        assert done.stdout == "43\\n"
    def test_after():
        subprocess.run([sys.executable, "-c", "pass"], check=True)
"""
_FORK = """
    import os
    import pytest
    @pytest.mark.parametrize("count", [1, 2])
    def test_bad(count):
        for number in range(count):
            child = os.fork()
            if child == 0:
                os.write(1, b"child %d\\n" % number)
                os._exit(number + 5)
            os.waitpid(child, 0)
        assert count == 0
"""
_POOL = """
    import multiprocessing
    def square(number):
        return number * number
    def test_bad():
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = pool.map(square, range(4))
        assert found == [0, 1, 4, 8]
"""


def _group(ran: Ran, name: str) -> tuple[Path, Group]:
    directory = ran.folder / "test-results" / name / "rec.rdbgs"
    group = read_group(directory)
    assert group.is_complete, ran.output
    return directory, group


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replaydbg", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def _verified(directory: Path, group: Group) -> None:
    for each in group.processes:
        if each.recording:
            done = _run("verify", directory / each.recording)
            assert (done.returncode, done.stderr) == (0, ""), (each, done)


def test_a_subprocess(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, _SUBPROCESS, "--replaydbg-children=python")

    assert ran.counts == {"failed": 1, "passed": 2}, ran.output
    assert ran.kept() == ["test_it.py-test_bad"]
    directory, group = _group(ran, "test_it.py-test_bad")
    assert [(each.how, each.status) for each in group.processes] == [("program", 1), ("python", 0)]
    _verified(directory, group)
    child = directory / str(group.processes[1].recording)
    replayed = _run("replay", "-q", child)
    assert (replayed.stdout, replayed.returncode) == ("42\n", 0), replayed
    assert ran.meta("test_it.py-test_bad")["processes"] == 1
    assert "1 process that it started is recorded: replaydbg ps test-results/test_it.py-test_bad/rec\n" in ran.output
    assert "verified: the whole replay matched" in ran.output
    listed = _run("ps", "--json", directory)
    assert listed.returncode == 0, listed
    assert json.loads(listed.stdout)["processes"][1]["argv"][1:] == ["-c", "print(6 * 7)"]
    channels = _run("channels", directory)
    assert "pipe" in channels.stdout, channels


def test_forked_children_of_each_test(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, _FORK, "--replaydbg-children=fork")

    assert ran.counts == {"failed": 2}, ran.output
    for count in (1, 2):
        directory, group = _group(ran, f"test_it.py-test_bad-{count}")
        assert [each.status for each in group.processes] == [1, *range(5, 5 + count)], group
        _verified(directory, group)
        for number, each in enumerate(group.processes[1:]):
            assert each.how == "fork" and each.recording is not None
            with open_recording(directory / each.recording) as recording:
                assert recording.header.branch is not None and recording.header.branch.process == 1
            replayed = _run("replay", "-q", directory / each.recording)
            assert replayed.returncode == number + 5, replayed


def test_a_pool(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, _POOL, "--replaydbg-children=fork")

    directory, group = _group(ran, "test_it.py-test_bad")
    assert len([each for each in group.processes if each.recording]) >= 3, group
    _verified(directory, group)
    for each in group.processes[1:]:
        if each.recording:
            replayed = _run("replay", "-q", directory / each.recording)
            assert replayed.returncode in (each.status, tool.ENDS_EARLY), replayed


def test_what_they_have_in_common_is_stored_with_that_of_the_tests(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, _FORK, "--replaydbg-children=fork")

    directory, group = _group(ran, "test_it.py-test_bad-2")
    sizes = [(directory / str(each.recording)).stat().st_size for each in group.processes[1:]]
    assert max(sizes) < 100_000, sizes
    assert not (directory / "replaydbg-blocks").exists()
    cleared = _run("gc", tmp_path / "test-results")
    assert cleared.returncode == 0, cleared
    _verified(directory, group)
    packed = _run("pack", directory, "-o", tmp_path / "one.tar")
    assert packed.returncode == 0, packed
    assert _run("unpack", tmp_path / "one.tar", "-o", tmp_path / "elsewhere").returncode == 0
    _verified(tmp_path / "elsewhere.rdbgs", read_group(tmp_path / "elsewhere.rdbgs"))


def test_a_later_session_replaces_it(tmp_path: Path) -> None:
    run_pytest(tmp_path, _FORK, "--replaydbg-children=fork")
    ran = run_pytest(tmp_path, _FORK, "--replaydbg-children=fork")
    _group(ran, "test_it.py-test_bad-1")

    ran = run_pytest(tmp_path, _FORK)

    assert len(ran.kept()) == 2
    assert not list((tmp_path / "test-results").glob("*/rec.rdbgs"))
    assert "recorded: replaydbg ps" not in ran.output


def test_a_test_without_processes_has_no_group(tmp_path: Path) -> None:
    source = "def test_bad():\n    assert 1 == 2\n"

    ran = run_pytest(tmp_path, source, "--replaydbg-children=python")

    assert ran.kept() == ["test_it.py-test_bad"]
    assert not list((tmp_path / "test-results").glob("*/rec.rdbgs"))
    assert [each.name for each in (tmp_path / "test-results").iterdir() if each.name.startswith(".")] == []


def test_a_server_that_outlives_the_test(tmp_path: Path) -> None:
    """It belongs to each test during which it was started, or had not ended when it began."""
    source = """
        import subprocess, sys
        import pytest
        @pytest.fixture(scope="module")
        def server():
            started = subprocess.Popen(
                [sys.executable, "-c", "import sys\\nfor line in sys.stdin: print(int(line) + 1, flush=True)"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            yield started
            started.kill()
            started.wait()
            started.stdin.close()
            started.stdout.close()
        def ask(server, number):
            server.stdin.write(f"{number}\\n")
            server.stdin.flush()
            return int(server.stdout.readline())
        def test_first():
            subprocess.run([sys.executable, "-c", "pass"], check=True)
        def test_good(server):
            assert ask(server, 1) == 2
        def test_bad(server):
            assert ask(server, 2) == 4
    """
    ran = run_pytest(tmp_path, source, "--replaydbg-children=python")

    directory, group = _group(ran, "test_it.py-test_bad")
    assert [each.how for each in group.processes] == ["program", "python"], group
    _verified(directory, group)
    replayed = _run("replay", "-q", directory / str(group.processes[1].recording))
    assert replayed.stdout == "2\n3\n", replayed


def test_the_processes_of_a_test_are_known_when_all_have_ended(tmp_path: Path) -> None:
    """The launcher may look at the last test after the whole group is complete."""
    child = "import sys; print(sys.stdin.read())"
    program = tmp_path / "program.py"
    program.write_text(
        "import os, subprocess, sys\n"
        f"server = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE)\n"
        "print(len(os.listdir('.')))\n"
        "server.communicate(b'bye')\n"
    )
    done = _run("record", "-q", "--children=python", "-o", tmp_path / "it", program)
    assert done.returncode == 0, done
    directory = tmp_path / "it.rdbgs"
    started = read_group(directory).processes[1]
    assert read_group(directory).is_complete and 0 < started.event < started.waited
    groups = KeptGroups(directory)

    assert [each.number for each in groups.of_test(started.waited - 1, started.waited + 10)] == [2]
    assert groups.of_test(started.waited, started.waited + 10) == []
    assert groups.of_test(0, started.event - 1) == []


def test_with_the_option_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nreplaydbg_children = fork\n")

    ran = run_pytest(tmp_path, _FORK)

    _, group = _group(ran, "test_it.py-test_bad-1")
    assert [each.how for each in group.processes] == ["program", "fork"]


def test_with_the_option_where_the_first_start_cannot_see_it(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, _FORK, "-o", "replaydbg_children=fork")

    _, group = _group(ran, "test_it.py-test_bad-1")
    assert [each.how for each in group.processes] == ["program", "fork"]


def test_an_unknown_value(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, _FORK, "-o", "replaydbg_children=all")

    assert ran.status == 4
    assert "replaydbg_children = 'all' is unknown: use one of none, fork, python" in ran.output


def test_a_test_in_which_the_process_ends(tmp_path: Path) -> None:
    source = """
        import os
        def test_bad():
            if os.fork() == 0:
                os._exit(3)
            os.wait()
            os._exit(9)
    """
    ran = run_pytest(tmp_path, source, "--replaydbg-children=fork")

    _, group = _group(ran, "test_it.py-test_bad")
    assert [each.status for each in group.processes] == [9, 3], ran.output


@pytest.mark.parametrize("mode", ["on", "retain-on-failure"])
def test_workers_of_xdist(tmp_path: Path, mode: str) -> None:
    pytest.importorskip("xdist")
    ran = run_pytest(tmp_path, _SUBPROCESS, "-n", "1", "--replaydbg-children=python", mode=mode)

    assert ran.counts == {"failed": 1, "passed": 2}, ran.output
    directory, group = _group(ran, "test_it.py-test_bad")
    assert len(group.processes) == 2
    _verified(directory, group)
    assert len(list((tmp_path / "test-results").glob("*/rec.rdbgs"))) == (3 if mode == "on" else 1)
