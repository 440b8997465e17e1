"""The pytest plugin: which tests are kept, how they are reported, and that their recordings belong to them.

Each test here runs pytest in a directory of its own, as a user does.
"""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.events.records import Control
from replaydbg.heap.storage.recorded_snapshots import snapshots_of
from replaydbg.log.reader import open_recording
from replaydbg.log.sources import sources_of
from replaydbg.replay.launcher import replay
from tests.harness.plugin_runs import ORDERED_AND_APART, RANDOM, line_of_failure, rerun_pytest, run_pytest

pytestmark = pytest.mark.slow


class TestModes:
    def test_off_by_default(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, RANDOM, mode="")

        assert ran.counts == {"failed": 1, "passed": 2}
        assert "replaydbg:" not in ran.output
        assert not (tmp_path / "test-results").exists()

    def test_a_failure_is_kept_replays_and_opens_at_its_line(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, RANDOM)

        assert ran.status == 1
        assert ran.counts == {"failed": 1, "passed": 2}
        assert ran.kept() == ["test_it.py-test_bad"]
        assert line_of_failure(ran.recording("test_it.py-test_bad")) == "assert doubled == 3"
        meta = ran.meta("test_it.py-test_bad")
        assert meta["verified"] is True
        assert [each["name"] for each in meta["writes"]] == ["doubled"]
        assert meta["writes"][0]["source"] == "doubled = 2 * drawn"
        assert meta["size"] < 100 << 10
        summary = (tmp_path / "test-results" / "test_it.py-test_bad" / "summary.md").read_text()
        assert "`doubled = 2 * drawn`" in summary

    def test_reports_of_passed_phases_are_marked_briefly(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, RANDOM, mode="on")

        with open_recording(ran.recording("test_it.py-test_after")) as recording:
            marks = [each.name or "" for _, each in recording.records() if isinstance(each, Control)]
        reports = [json.loads(each)["report"] for each in marks if '"report": ' in each]

        assert [each[0] for each in reports if isinstance(each, list)] == [
            "setup", "call", "teardown",  # test_good
            "setup",  # test_bad
            "setup", "call",  # test_after
        ]  # fmt: skip
        assert [each["outcome"] for each in reports if isinstance(each, dict)] == ["failed", "passed"]  # test_bad

    def test_what_is_said(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, RANDOM, PYTHONHASHSEED="77")

        assert "replaydbg: retain-on-failure, recordings in test-results, hash seed 77" in ran.output
        assert "replaydbg debug test-results/test_it.py-test_bad/rec.rdbg" in ran.output
        assert "doubled = " in ran.output
        assert "= replaydbg =" in ran.output

    def test_on_keeps_all(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, RANDOM, mode="on")

        assert ran.kept() == ["test_it.py-test_after", "test_it.py-test_bad", "test_it.py-test_good"]
        for name in ran.kept():
            assert replay(ran.recording(name), stdout=2, stderr=2).divergence is None, name
        index = json.loads((tmp_path / "test-results" / "index.json").read_text())
        assert [(each["directory"], each["outcome"]) for each in index["results"]] == [
            ("test_it.py-test_bad", "failed")
        ]
        assert index["passed"] == [
            {"directory": f"test_it.py-test_{name}", "outcome": "passed", "nodeid": f"test_it.py::test_{name}"}
            for name in ("after", "good")
        ]
        assert not (tmp_path / "test-results" / "test_it.py-test_good" / "meta.json").exists()

    def test_on_keeps_what_is_imported_between_tests(self, tmp_path: Path) -> None:
        (tmp_path / "late.py").write_text("import random\nVALUE = random.random()\n")
        source = """
            def test_before(): print(1)
            def test_import():
                import late
                assert late.VALUE != 2
            def test_after(): print(2)
        """

        ran = run_pytest(tmp_path, source, mode="on")

        (tmp_path / "late.py").write_text("raise SystemExit('edited')")
        assert len(ran.kept()) == 3
        for name in ran.kept():
            assert replay(ran.recording(name), stdout=2, stderr=2).divergence is None, name
            with open_recording(ran.recording(name)) as recording:
                assert not recording.problems
                assert (str(tmp_path / "late.py") in sources_of(recording)) == (name != "test_it.py-test_before")

    def test_what_failed_before_is_not_said_of_a_test_that_passes(self, tmp_path: Path) -> None:
        run_pytest(tmp_path, "def test_it(): assert 0", mode="on")
        results = tmp_path / "test-results" / "test_it.py-test_it"
        assert (results / "meta.json").exists()

        run_pytest(tmp_path, "def test_it(): pass", mode="on")

        assert [path.name for path in results.iterdir()] == ["rec.rdbg"]

    def test_configuration_file(self, tmp_path: Path) -> None:
        (tmp_path / "pytest.ini").write_text("[pytest]\nreplaydbg = retain-on-failure\nreplaydbg_dir = kept\n")

        ran = run_pytest(tmp_path, RANDOM, mode="")

        assert "replaydbg: retain-on-failure, recordings in kept" in ran.output
        assert (tmp_path / "kept" / "test_it.py-test_bad" / "rec.rdbg").is_file()

    def test_the_option_wins_over_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "pytest.ini").write_text("[pytest]\nreplaydbg = on\n")

        ran = run_pytest(tmp_path, RANDOM, mode="off")

        assert "replaydbg:" not in ran.output

    def test_nonsense_in_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "pytest.ini").write_text("[pytest]\nreplaydbg = sometimes\n")

        ran = run_pytest(tmp_path, RANDOM, mode="")

        assert ran.status == pytest.ExitCode.USAGE_ERROR
        assert "'sometimes' is not a mode" in ran.output

    @pytest.mark.parametrize("options", [[], ["-n", "1"]])
    def test_the_environment_is_the_users(self, tmp_path: Path, options: list[str]) -> None:
        source = """
            import os
            import subprocess
            def test_it():
                names = subprocess.run(["env"], capture_output=True, text=True).stdout.splitlines()
                assert not [name for name in [*os.environ, *names] if name.startswith("REPLAYDBG")]
        """

        assert run_pytest(tmp_path, source, *options).counts == {"passed": 1}

    def test_marker(self, tmp_path: Path) -> None:
        source = """
            import pytest
            @pytest.mark.replaydbg("off")
            def test_not_kept(): assert 0
            @pytest.mark.replaydbg("on")
            def test_kept(): pass
        """

        ran = run_pytest(tmp_path, source)

        assert ran.counts == {"failed": 1, "passed": 1}
        assert ran.kept() == ["test_it.py-test_kept"]

    def test_a_marker_that_means_nothing(self, tmp_path: Path) -> None:
        source = """
            import pytest
            @pytest.mark.replaydbg("bogus")
            def test_it(): pass
            def test_after(): pass
        """

        ran = run_pytest(tmp_path, source)

        assert ran.counts == {"passed": 1, "error": 1}
        assert "test_it.py::test_it: the marker replaydbg has no mode 'bogus'" in ran.output
        assert "KeyError" not in ran.output

    @pytest.mark.parametrize("seconds", ["-1", "nan", "soon"])
    def test_no_time_to_wait(self, tmp_path: Path, seconds: str) -> None:
        ran = run_pytest(tmp_path, RANDOM, wait=seconds)

        assert ran.status == pytest.ExitCode.USAGE_ERROR
        assert f"ERROR: replaydbg_wait = '{seconds}'" in ran.output

    def test_fixture(self, tmp_path: Path) -> None:
        source = """
            def test_it(replaydbg_recording):
                replaydbg_recording.mark("half")
                replaydbg_recording.snapshot("half")
                replaydbg_recording.keep()
                assert replaydbg_recording.path.name == "rec.rdbg"
        """

        ran = run_pytest(tmp_path, source)

        assert ran.kept() == ["test_it.py-test_it"]
        with open_recording(ran.recording("test_it.py-test_it")) as recording:
            assert recording.end is not None
            assert "half" in [each["name"] for each in recording.end.raw["marks"]]

    @pytest.mark.parametrize("mode", ["on", "retain-on-failure"])
    def test_snapshots(self, tmp_path: Path, mode: str) -> None:
        """Only those of the test, with their original numbers, wherever its recording begins."""
        source = """
            import replaydbg
            def test_before():
                replaydbg.snapshot("before")
            def test_it(replaydbg_recording):
                counted = [1]
                replaydbg_recording.snapshot("first")
                counted.append(2)
                replaydbg.snapshot("second")
                assert counted == [1]
        """

        ran = run_pytest(tmp_path, source, *ORDERED_AND_APART, mode=mode)

        assert ran.meta("test_it.py-test_it")["left_out"] == 1
        with Session(ran.recording("test_it.py-test_it")) as session:
            assert [(each.number, each.name) for each in session.heap.taken] == [
                (2, "first"),
                (3, "second"),
                (4, "failure"),
            ]
            assert all(each.event <= session.index.events for each in session.heap.taken)
            for name, line in (("@#first", "first"), ("@#3", "second")):
                caller = next(each for each in session.seek(name).stack if each.function == "test_it")
                assert f'snapshot("{line}")' in session.source_line(caller.file, caller.line)
            assert session.heap.stored(3).taken.event == session.heap.taken[1].event

    def test_the_last_of_many_snapshots(self, tmp_path: Path) -> None:
        source = """
            import replaydbg
            def test_it(replaydbg_recording):
                for number in range(30):
                    replaydbg_recording.snapshot(f"at{number}")
                replaydbg_recording.keep()
        """

        ran = run_pytest(tmp_path, source)

        listed = [each.name for each in snapshots_of(ran.recording("test_it.py-test_it"))]
        assert listed == [f"at{number}" for number in range(10, 30)]

    def test_marks_stand_where_they_were_made(self, tmp_path: Path) -> None:
        """There is no event between them: the log alone could not distinguish them."""
        source = """
            def named_before(recording):
                recording.mark("twice")
            def test_before(replaydbg_recording):
                replaydbg_recording.mark("one")
            def test_it(replaydbg_recording):
                named_before(replaydbg_recording)
                counted = 1
                replaydbg_recording.mark("one")
                counted += 1
                for _ in range(3):
                    replaydbg_recording.mark("twice")
                replaydbg_recording.mark("half a word")
                assert counted == 3
        """

        ran = run_pytest(tmp_path, source)

        assert ran.meta("test_it.py-test_it")["left_out"] == 1
        with Session(ran.recording("test_it.py-test_it")) as session:
            for name in ("one", "half a word", "twice"):
                top = session.seek(f"@{name}").stack[0]
                assert session.source_line(top.file, top.line) == f'replaydbg_recording.mark("{name}")'
                if name == "twice":
                    assert [each.text for each in session.ask.variables() if each.name == "_"] == ["2"]
            counts = [session.count_of(f"@{name}") for name in ("test", "one", "twice", "half a word", "failure")]
            assert counts == sorted(counts)

    @pytest.mark.parametrize("mode", ["", "on"])
    def test_names_that_mean_something_else(self, tmp_path: Path, mode: str) -> None:
        source = """
            import pytest, sys
            TAKEN = "start end exc last test failure collected 0 #3 out:1 t+2s t1".split()
            @pytest.mark.parametrize("name", [*TAKEN, "", " x", 5])
            def test_refused(replaydbg_recording, name):
                with pytest.raises(pytest.UsageError, match="cannot name a moment"):
                    replaydbg_recording.mark(name)
            def test_it():
                sys.audit("replaydbg.mark", "test")
                sys.audit("replaydbg.mark", "own")
        """

        ran = run_pytest(tmp_path, source, mode=mode)

        assert ran.counts == {"passed": 16}
        if mode:
            with open_recording(ran.recording("test_it.py-test_it")) as recording:
                assert recording.end is not None
                assert [each["name"] for each in recording.end.raw["marks"]] == ["collected", "test", "own"]

    def test_fixture_without_a_recording(self, tmp_path: Path) -> None:
        source = """
            def test_it(replaydbg_recording):
                replaydbg_recording.mark("half")
                replaydbg_recording.keep()
                assert replaydbg_recording.path is None
        """

        assert run_pytest(tmp_path, source, mode="").counts == {"passed": 1}


class TestWays:
    """Ways in which tests fail."""

    def test_setup_and_teardown(self, tmp_path: Path) -> None:
        source = """
            import pytest
            @pytest.fixture
            def broken():
                count = 3
                raise ValueError(count)
            def test_setup(broken): pass
            @pytest.fixture
            def late():
                yield
                left = [1]
                assert not left
            def test_teardown(late): pass
        """

        ran = run_pytest(tmp_path, source)

        assert ran.counts == {"passed": 1, "error": 2}
        assert ran.meta("test_it.py-test_setup")["failure"]["phase"] == "setup"
        assert line_of_failure(ran.recording("test_it.py-test_setup")) == "raise ValueError(count)"
        assert ran.meta("test_it.py-test_teardown")["failure"]["phase"] == "teardown"
        assert line_of_failure(ran.recording("test_it.py-test_teardown")) == "assert not left"

    def test_last_writes(self, tmp_path: Path) -> None:
        """For the names in the line, with their values at the failure; without modules, functions and classes."""
        source = """
            import enum, sys
            class Color(enum.Enum):
                RED = 1
            def double(number): return 2 * number
            def test_item():
                db = {"rows": []}
                db["rows"].append(1)
                db["rows"].append(2)
                assert db["rows"] == [2]
            def test_name_as_key():
                key = "rows"
                db = {key: 1, 2.5: 3}
                db[key] += 1
                assert db[key] == 1 or db[2.5] == 1
            def test_no_data():
                limit = 3
                assert (sys, Color, double, limit) is None
        """

        ran = run_pytest(tmp_path, source)

        written = {
            name: [(each["name"], each["value"], each["source"]) for each in ran.meta(f"test_it.py-{name}")["writes"]]
            for name in ("test_item", "test_name_as_key", "test_no_data")
        }
        assert written == {
            "test_item": [("db['rows']", "[1, 2]", 'db["rows"].append(2)')],
            "test_name_as_key": [
                ("db[key]", "2", "db[key] += 1"),
                ("key", "'rows'", 'key = "rows"'),
                ("db", "{'rows': 2, 2.5: 3}", "db[key] += 1"),
            ],
            "test_no_data": [("limit", "3", "limit = 3")],
        }

    def test_several_failures_of_one_test(self, tmp_path: Path) -> None:
        """The recording is examined for the first failure only, and its results are not shown for others."""
        source = """
            import pytest
            @pytest.fixture
            def late():
                yield
                left = [1]
                assert not left
            def test_it(late):
                number = 1
                assert number == 2
        """

        ran = run_pytest(tmp_path, source)

        assert ran.counts == {"failed": 1, "error": 1}
        assert ran.output.count("number = 1  written at") == 1
        first, second = (
            ran.output.index("number = 1  written at"),
            ran.output.index("analysis: see this test's first failure"),
        )
        failed, error = (ran.output.index(f"= {each} =") for each in ("FAILURES", "ERRORS"))
        assert (first > failed, second > failed) == (failed > error, failed < error)

    def test_expected_failures(self, tmp_path: Path) -> None:
        source = """
            import pytest
            @pytest.mark.xfail
            def test_expected(): assert 0
            @pytest.mark.xfail(strict=True)
            def test_passes(): pass
            def test_skipped(): pytest.skip()
        """

        ran = run_pytest(tmp_path, source)

        assert ran.counts == {"failed": 1, "skipped": 1, "xfailed": 1}
        assert ran.kept() == ["test_it.py-test_passes"]
        folder = ran.recording("test_it.py-test_passes").parent
        assert "In call: no exception, at test_it.py:5\n" in (folder / "summary.md").read_text()
        check = [sys.executable, "-m", "replaydbg", "check", str(folder / "rec.rdbg")]
        told = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert told.stdout.startswith("still fails: [XPASS(strict)] at test_it.py:5 ")

    def test_unittest_classes(self, tmp_path: Path) -> None:
        source = """
            import unittest
            class Case(unittest.TestCase):
                def setUp(self):
                    self.stock = {"a": 1}
                def test_it(self):
                    self.stock["a"] += 1
                    self.assertEqual(self.stock["a"], 3)
        """

        ran = run_pytest(tmp_path, source)

        assert ran.kept() == ["test_it.py-Case-test_it"]
        meta = ran.meta("test_it.py-Case-test_it")
        assert meta["verified"] is True
        assert [(each["name"], each["source"]) for each in meta["writes"]] == [
            ("self.stock['a']", 'self.stock["a"] += 1')
        ]

    def test_a_crash_is_kept(self, tmp_path: Path) -> None:
        source = """
            import os
            def test_first(): pass
            def test_crash():
                os._exit(9)
        """

        ran = run_pytest(tmp_path, source)

        assert ran.status == 9
        assert ran.kept() == ["test_it.py-test_crash"]
        assert ran.meta("test_it.py-test_crash")["outcome"] == "crashed"
        assert replay(ran.recording("test_it.py-test_crash"), stdout=2, stderr=2).divergence is None

    @pytest.mark.parametrize("options", [[], ["-n1"]])
    @pytest.mark.parametrize("line", ["raise KeyboardInterrupt", "pytest.exit('enough')"])
    def test_an_interrupted_test_is_kept_and_listed(self, tmp_path: Path, line: str, options: list[str]) -> None:
        source = f"""
            import pytest
            def test_first(): pass
            def test_it():
                counted = 1
                {line}
        """

        ran = run_pytest(tmp_path, source, *options)

        assert ran.kept() == ["test_it.py-test_it"]
        meta = ran.meta("test_it.py-test_it")
        assert (meta["outcome"], meta["verified"], meta["failure"]["phase"]) == ("interrupted", True, "call")
        assert "test_it.py::test_it: verified: the whole replay matched" in ran.output
        assert "| test_it.py::test_it | interrupted |" in (tmp_path / "test-results" / "index.md").read_text()
        with Session(ran.recording("test_it.py-test_it")) as session:
            lines = [session.source_line(each.file, each.line) for each in session.ask.stack()]
            assert line in lines

    def test_the_first_failure_ends_it(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, "def test_a(): assert 0\ndef test_b(): assert 0\n", "-x")

        assert ran.counts == {"failed": 1}
        assert ran.kept() == ["test_it.py-test_a"]

    def test_last_failed(self, tmp_path: Path) -> None:
        run_pytest(tmp_path, RANDOM, mode="")

        ran = rerun_pytest(tmp_path, "--lf")

        assert ran.counts == {"failed": 1}
        assert line_of_failure(ran.recording("test_it.py-test_bad")) == "assert doubled == 3"

    def test_debugger_of_pytest(self, tmp_path: Path) -> None:
        (tmp_path / "test_it.py").write_text(textwrap.dedent(RANDOM))

        ran = rerun_pytest(tmp_path, "--pdb", stdin="p doubled < 2\nc\n")

        assert "True" in ran.output
        assert ran.meta("test_it.py-test_bad")["verified"] is True

    def test_the_tests_of_xdist(self, tmp_path: Path) -> None:
        source = RANDOM + "\n    def test_worse():\n        drawn = random.random()\n        assert drawn == 5\n"

        ran = run_pytest(tmp_path, source, "-n", "2")

        assert ran.counts == {"failed": 2, "passed": 2}
        assert ran.kept() == ["test_it.py-test_bad", "test_it.py-test_worse"]
        for name in ran.kept():
            assert ran.meta(name)["verified"] is True, name
            assert ran.meta(name)["leftovers"] == "", name
            assert f"replaydbg debug test-results/{name}/rec.rdbg" in ran.output

    def test_a_worker_of_xdist_that_crashes(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, "import os\n\ndef test_crash():\n    os._exit(9)\n", "-n", "1")

        assert ran.counts == {"failed": 1}
        index = json.loads((tmp_path / "test-results" / "index.json").read_text())
        assert [(each["nodeid"], each["outcome"]) for each in index["results"]] == [
            ("test_it.py::test_crash", "crashed")
        ]
        assert "test_crash: not verified: the process ended during the test, and such" in ran.output

    def test_a_hang(self, tmp_path: Path) -> None:
        source = """
            import time
            def test_hang():
                turns = 0
                while True:
                    turns += 1
                    time.sleep(0.01)
        """

        ran = run_pytest(tmp_path, source, "--timeout=1")

        assert ran.counts == {"failed": 1}
        assert ran.meta("test_it.py-test_hang")["verified"] is True

    def test_a_hang_that_ends_the_process(self, tmp_path: Path) -> None:
        source = "import time\ndef test_hang():\n    while True:\n        time.sleep(0.01)\n"

        ran = run_pytest(tmp_path, source, "--timeout=1", "--timeout-method=thread")

        assert ran.kept() == ["test_it.py-test_hang"]
        assert ran.meta("test_it.py-test_hang")["outcome"] == "crashed"
        assert replay(ran.recording("test_it.py-test_hang"), stdout=2, stderr=2).divergence is None
