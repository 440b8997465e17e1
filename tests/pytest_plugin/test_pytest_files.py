"""The pytest plugin: the files that a session writes, and its surroundings."""

import os
import shutil
import stat
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

from replaydbg.errors import BlocksMissing
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.recorded_snapshots import load_series, load_stored, stored_snapshots
from replaydbg.log.edit.standalone import write_standalone
from replaydbg.log.reader import open_recording
from replaydbg.pytest_plugin.report.report_text import nothing_text
from replaydbg.pytest_plugin.shared.shared_names import slug
from replaydbg.replay.launcher import replay
from replaydbg.store.clearing import clear
from tests.harness.plugin_runs import RANDOM, line_of_failure, rerun_pytest, run_pytest

pytestmark = pytest.mark.slow


class TestFiles:
    def test_they_are_their_owners_alone(self, tmp_path: Path) -> None:
        """Whatever the umask: they contain values and arguments, as recordings do."""
        before = os.umask(0)
        try:
            run_pytest(tmp_path, RANDOM)
        finally:
            os.umask(before)

        results = tmp_path / "test-results"
        found = {path: stat.S_IMODE(path.stat().st_mode) for path in [results, *results.rglob("*")]}
        assert {path.name for path in found} > {"rec.rdbg", "meta.json", "summary.md", "index.md", "index.json"}
        assert {path: mode for path, mode in found.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}

    def test_junit(self, tmp_path: Path) -> None:
        run_pytest(tmp_path, RANDOM, "--junitxml=out.xml")

        root = xml.etree.ElementTree.parse(tmp_path / "out.xml")
        found = {each.get("name"): each.get("value") for each in root.iter("property")}
        assert found == {"replaydbg_recording": "test-results/test_it.py-test_bad/rec.rdbg"}

    def test_step_summary(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, RANDOM, GITHUB_STEP_SUMMARY=str(tmp_path / "step.md"))

        text = (tmp_path / "step.md").read_text()
        assert "| test_it.py::test_bad | failed |" in text
        assert (ran.folder / "test-results" / "index.md").read_text() == text

    def test_elsewhere_with_other_sources(self, tmp_path: Path) -> None:
        """The directory of results is copied, and the sources are edited: nothing changes."""
        first = tmp_path / "first"
        first.mkdir()
        ran = run_pytest(first, RANDOM)
        (first / "test_it.py").write_text("raise SystemExit\n")
        moved = tmp_path / "moved"
        (first / "test-results").rename(moved)

        recording = moved / "test_it.py-test_bad" / "rec.rdbg"

        assert line_of_failure(recording) == "assert doubled == 3"
        assert replay(recording, stdout=2, stderr=2).divergence is None
        assert ran.kept() == []

    def test_alone_it_says_what_is_missing(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, RANDOM)
        packed = tmp_path / "alone" / "one" / "file" / "one.rdbg"
        packed.parent.mkdir(parents=True)
        recording = ran.recording("test_it.py-test_bad")
        command = [sys.executable, "-m", "replaydbg", "pack", str(recording), "-o", str(packed)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        copied = packed.with_name("copied.rdbg")
        copied.write_bytes(recording.read_bytes())

        with pytest.raises(BlocksMissing):
            open_recording(copied)
        assert line_of_failure(packed) == "assert doubled == 3"

    def test_a_test_that_fails_again_takes_its_place(self, tmp_path: Path) -> None:
        run_pytest(tmp_path, RANDOM)
        source = RANDOM.replace("doubled == 3", "doubled == 4")

        ran = run_pytest(tmp_path, source)

        assert line_of_failure(ran.recording("test_it.py-test_bad")) == "assert doubled == 4"

    @pytest.mark.parametrize("options", [[], ["-n2"]])
    def test_what_an_earlier_session_found_is_not_said_again(self, tmp_path: Path, options: list[str]) -> None:
        for name in ("first", "second"):
            source = f"""
                def test_bad():
                    {name} = 5
                    assert {name} == 2
            """
            ran = run_pytest(tmp_path, source, *options)
            assert f"\n{name} = 5  written at" in ran.output

    def test_the_list_of_an_earlier_session_goes(self, tmp_path: Path) -> None:
        run_pytest(tmp_path, RANDOM)
        index = tmp_path / "test-results" / "index.md"
        rerun_pytest(tmp_path, "--collect-only")
        assert "test_bad" in index.read_text()

        run_pytest(tmp_path, "import os\ndef test_dies(): os._exit(3)\n")

        assert not index.exists()
        assert not index.with_suffix(".json").exists()

    def test_one_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "test-results" / "test_it.py-test_bad" / "rec.rdbg" / "in the way").mkdir(parents=True)

        ran = run_pytest(tmp_path, RANDOM)

        said = "its recording could not be written: Is a directory"
        assert f"test-results/test_it.py-test_bad: {said}\n" in ran.output
        assert f"test_it.py::test_bad: {said}\n" in ran.output
        assert "replaydbg debug" not in ran.output
        assert ran.meta("test_it.py-test_bad")["unwritten"] == "Is a directory"
        assert said in (tmp_path / "test-results" / "test_it.py-test_bad" / "summary.md").read_text()
        assert "| no recording |" in (tmp_path / "test-results" / "index.md").read_text()

    def test_what_is_no_text_is_escaped(self, tmp_path: Path) -> None:
        source = """
            def test_first():
                name = "caf\\udce9.txt"
                assert name == "tea"
            def test_second():
                number = 1
                assert number == 3
        """
        ran = run_pytest(tmp_path, source, GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))

        assert "Exception in thread" not in ran.output
        assert "\nnumber = 1  written at" in ran.output
        assert ran.kept() == ["test_it.py-test_first", "test_it.py-test_second"]
        summary = ran.recording("test_it.py-test_first").with_name("summary.md").read_text()
        assert "assert 'caf\\udce9.txt' == 'tea'" in summary

    def test_one_that_cannot_be_kept(self, tmp_path: Path) -> None:
        (tmp_path / "test-results").mkdir()
        (tmp_path / "test-results" / "test_it.py-test_bad").write_text("in the way")

        ran = run_pytest(tmp_path, RANDOM)

        said = "test-results/test_it.py-test_bad: its recording could not be written: Not a directory\n"
        assert ran.output.count(said) == 2  # in the report of the failure, and at the end
        assert "replaydbg debug" not in ran.output


def test_one_of_which_nothing_came() -> None:
    assert nothing_text("d", 1.0, "") == "d: its recording was not finished within 1 s (--replaydbg-wait)"


class TestSurroundings:
    def test_pytest_inside_a_program(self, tmp_path: Path) -> None:
        """It cannot be restarted from its beginning: its side effects would be repeated."""
        (tmp_path / "program.py").write_text("import pytest\npytest.main(['--replaydbg=on', 'test_it.py'])\n")
        (tmp_path / "test_it.py").write_text("def test_it(): pass\n")

        ran = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )

        assert "replaydbg records nothing: pytest was started by 'program.py'" in ran.stdout
        assert "1 passed" in ran.stdout

    def test_pytest_inside_a_test(self, tmp_path: Path) -> None:
        source = """
            import pytest, subprocess, sys
            def test_inside(tmp_path):
                (tmp_path / "test_in.py").write_text("def test_in(): assert 0")
                assert pytest.main(["--replaydbg=on", str(tmp_path)]) == 1
                command = [sys.executable, "-m", "pytest", "-q", str(tmp_path)]
                assert subprocess.run(command).returncode == 1
                assert 0
        """

        ran = run_pytest(tmp_path, source)

        assert ran.kept() == ["test_it.py-test_inside"]
        assert ran.meta("test_it.py-test_inside")["verified"] is True

    def test_a_whole_session(self, tmp_path: Path) -> None:
        """`replaydbg record -m pytest` records the session; the plugin is not involved."""
        (tmp_path / "test_it.py").write_text("import random\ndef test_it(): assert random.random() == 3\n")
        command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "all.rdbg", "-m", "pytest", "test_it.py"]

        ran = subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, timeout=60, check=False)

        assert ran.returncode == 1
        assert replay(tmp_path / "all.rdbg", stdout=2, stderr=2).status == 1

    def test_what_off_costs(self) -> None:
        """Every pytest of the environment loads it: besides pytest itself it imports three small modules."""
        code = (
            "import pytest,sys;had={*sys.modules};import replaydbg.pytest_plugin.entry;"
            "print(*sorted({*sys.modules}-had))"
        )

        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

        package = "replaydbg.pytest_plugin"
        assert ran.stdout.split() == ["replaydbg", package, f"{package}.entry", f"{package}.settings"]


class TestSlugs:
    @pytest.mark.parametrize(
        ("nodeid", "expected"),
        [
            ("tests/test_a.py::test_b", "tests-test_a.py-test_b"),
            ("test_a.py::T::test_b[1]", "test_a.py-T-test_b-1"),
        ],
    )
    def test_they_read_well(self, nodeid: str, expected: str) -> None:
        assert slug(nodeid) == expected
        assert slug(nodeid, 2) == f"{expected}-retry2"

    @pytest.mark.parametrize(
        "nodeid", ["t.py::f[a:b]", "t.py::f[a/b]", 't.py::f["<>|*?]', "t.py::f[\n\x00é]", "x" * 500]
    )
    def test_they_are_names_of_files_everywhere(self, nodeid: str) -> None:
        assert not set(slug(nodeid)) & set(':"<>|*?/\\\0\n')
        assert len(slug(nodeid)) < 200

    def test_no_two_are_equal(self) -> None:
        alike = ["t.py::f[a:b]", "t.py::f[a/b]", "t.py::f[a-b]", "t.py::f[a b]", "t.py::f[a::b]"]

        assert len({slug(each) for each in alike}) == len(alike)


FAILURES = """
    def test_first():
        values = [1, 2, 3]
        assert sum(values) == 7

    def test_second():
        drawn = {"x": 1}
        assert drawn["x"] == 2

    def test_third():
        drawn = {"x": 1}
        assert drawn["x"] == 3
"""


class TestSnapshots:
    """The snapshots of later tests are stored as differences from that of the first."""

    @pytest.mark.parametrize("wait", ["0", "60"])
    def test_each_recording_has_its_own(self, tmp_path: Path, wait: str) -> None:
        ran = run_pytest(tmp_path, FAILURES, wait=wait)

        for name in ("first", "second", "third"):
            path = ran.recording(f"test_it.py-test_{name}")
            assert path.stat().st_size < 50_000
            with open_recording(path) as recording:
                (taken,) = stored_snapshots(recording)
                snapshot = load_stored(recording, taken.number)
                failure = recording.end.raw["test"]["failure"]["event"] if recording.end is not None else 0
                (alone,) = load_series(recording, lambda _: None)
            assert (taken.name, taken.event) == ("failure", failure)
            assert len(snapshot) == len(alone) > 1000

    def test_one_is_whole_without_the_others(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, FAILURES)
        path = ran.recording("test_it.py-test_third")
        with open_recording(path) as recording:
            (taken,) = stored_snapshots(recording)
            before = _content(load_stored(recording, taken.number))

        for name in ("first", "second"):
            shutil.rmtree(ran.recording(f"test_it.py-test_{name}").parent)
        for each in (tmp_path / "test-results" / "replaydbg-blocks").iterdir():
            os.utime(each, (1, 1))
        assert clear(tmp_path / "test-results").why_not == ""
        with open_recording(path) as recording:
            write_standalone(recording, tmp_path / "alone.rdbg")

        for each in (path, tmp_path / "alone.rdbg"):
            with open_recording(each) as recording:
                (again,) = stored_snapshots(recording)
                assert again == taken
                assert _content(load_stored(recording, taken.number)) == before


def _content(snapshot: Snapshot) -> object:
    return snapshot.address, snapshot.type, snapshot.value, snapshot.target, snapshot.label, list(snapshot.strings)
