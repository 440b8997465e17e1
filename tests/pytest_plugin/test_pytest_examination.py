"""The pytest plugin: the examination of a failing test's recording, all failures together."""

import itertools
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Moment
from replaydbg.events.records import Event
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.reader import open_recording
from replaydbg.pytest_plugin.parent import examiner
from replaydbg.pytest_plugin.parent.examiner import Examiner
from replaydbg.pytest_plugin.report.report_text import write_about
from replaydbg.pytest_plugin.shared.results import parse_result
from replaydbg.render import texts
from replaydbg.replay.launcher import replay
from replaydbg.store.directory import index_path
from tests.harness.plugin_runs import ORDERED_AND_APART, Ran, line_of_failure, run_pytest
from tests.harness.sanitizer import usual_addresses

pytestmark = pytest.mark.slow


def bisected(recording: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replaydbg", "bisect", "snapshots", "-q", *options, str(recording)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class TestBisection:
    SOURCE = """
        class Order:
            total = 5
            def apply(self, discounts):
                for each in discounts:
                    self.total -= each
        def test_bad():
            order = Order()
            order.apply([1, 2, 4, 1])
            order.name = "x"
            assert order.total >= 0
    """

    def test_the_line_after_which_it_was_wrong(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, self.SOURCE, "--replaydbg-bisect")

        wrong = ran.meta("test_it.py-test_bad")["wrong"]
        assert wrong["source"] == "self.total -= each"
        assert wrong["values"] == ["order.total  2 -> -2"]
        assert "not (order.total >= 0) in test_bad(): after " in ran.output

    SHARED = """
        import pytest
        @pytest.fixture(scope="module")
        def shared():
            box = {"q": 2}
            yield box
            assert box["q"] > 0
        def test_one(shared):
            shared["q"] -= 2
        def test_two(shared):
            pass
    """

    def test_a_fixture_that_waits_while_tests_change_what_it_made(self, tmp_path: Path) -> None:
        in_order = ("-p", "no:randomly", "-p", "no:random_order")
        ran = run_pytest(tmp_path, self.SHARED, "--replaydbg-bisect", *in_order)

        wrong = ran.meta("test_it.py-test_two")["wrong"]
        assert wrong["source"] == 'shared["q"] -= 2'
        assert wrong["values"][0] == "box['q']  2 -> 0"
        asked = bisected(ran.recording("test_it.py-test_two"), "--linear")
        assert 'shared["q"] -= 2' in asked.stdout

    def test_the_command_asks_the_same(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, self.SOURCE)

        asked = bisected(ran.recording("test_it.py-test_bad"))
        assert asked.returncode == 1
        assert "not (order.total >= 0) in test_bad(): first true after " in asked.stdout
        assert "self.total -= each" in asked.stdout
        every = bisected(ran.recording("test_it.py-test_bad"), "--all")
        assert len([line for line in every.stdout.splitlines() if " bad " in line]) == 1

    def test_what_claims_nothing_must_be_said(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, "def test_bad():\n    raise ValueError\n")

        asked = bisected(ran.recording("test_it.py-test_bad"))
        assert asked.returncode == 2
        assert "Give an expression: the test failed in a line without an assertion" in asked.stderr

    def test_not_unless_asked_for(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, self.SOURCE)

        assert ran.meta("test_it.py-test_bad")["wrong"] is None


class TestAlone:
    """Earlier tests that a test does not need are left out of its recording."""

    SOURCE = """
        import random, time, pytest
        @pytest.fixture(scope="session")
        def store():
            opened = time.time()
            yield {"opened": opened}
        @pytest.fixture(scope="module")
        def kept():
            yield random.random()
        def test_uses(store): assert store
        @pytest.mark.parametrize("number", range(5))
        def test_other(number, tmp_path, kept):
            random.random()
            (tmp_path / "x").write_text(str(time.time()))
        def test_skipped(): pytest.skip("x")
        @pytest.mark.xfail
        def test_expected(): assert 0
        class TestClass:
            @pytest.fixture(scope="class", autouse=True)
            def around(self):
                yield time.time()
            def test_first(self): pass
            def test_bad(self, store):
                drawn = random.random()
                order = {object() for _ in range(9)}
                assert (drawn, store["opened"], len(order)) == 0
    """

    @pytest.mark.parametrize("options", [["-v"], ["-q", "-s"]])
    def test_others_are_left_out(self, tmp_path: Path, options: list[str]) -> None:
        with usual_addresses():
            ran = run_pytest(tmp_path, self.SOURCE, *options)

        meta = ran.meta("test_it.py-TestClass-test_bad")
        assert meta["verified"] is True
        # Tests that set up a fixture which still exists stay: of the session, of the module, and of the class.
        assert (meta["left_out"], meta["leftovers"]) == (6, "")
        recording = ran.recording("test_it.py-TestClass-test_bad")
        assert line_of_failure(recording).startswith("assert (drawn, ")
        assert replay(recording, stdout=2, stderr=2).divergence is None
        written = {each["name"]: each for each in meta["writes"]}
        assert written["drawn"]["source"] == "drawn = random.random()"
        assert written["drawn"]["value"] in ran.output
        with Session(recording) as session:
            assert str(written["drawn"]["moment"]) == texts.moment_text(session.run.why("drawn").moment or Moment(0, 0))

    def test_what_depends_on_an_earlier_one_says_so(self, tmp_path: Path) -> None:
        source = """
            seen = []
            def test_unrelated(): pass
            def test_leaves(): seen.append(1)
            def test_bad(): assert not seen
        """

        ran = run_pytest(tmp_path, source)

        meta = ran.meta("test_it.py-test_bad")
        assert meta["verified"] is True
        assert meta["left_out"] == 0
        assert meta["leftovers"].startswith("Replay diverged")
        assert "depends on state left by earlier tests" in ran.output
        assert line_of_failure(ran.recording("test_it.py-test_bad")) == "def test_bad(): assert not seen"
        (left,) = meta["left_behind"]
        assert (left["name"], left["value"], left["alone"]) == ("test_it.seen[0]", "1", "")
        assert left["test"] == "test_it.py::test_leaves"
        assert left["source"] == "def test_leaves(): seen.append(1)"

    @pytest.mark.parametrize(
        ("source", "options", "other"),
        [
            (
                """
                STATE = {"count": 1}
                def test_leaves(): STATE["count"] = 7
                def test_bad():
                    n = STATE["count"]
                    ok = n == 0
                    assert ok
                """,
                [],
                "test_it.STATE['count'] is 1 instead of 7; n is 1 instead of 7",
            ),
            (
                """
                STATE = {"count": 1}
                def test_leaves(): STATE["count"] = 7
                def test_bad(): assert not STATE["count"], "dirty"
                """,
                ["--assert=plain"],
                "test_it.STATE['count'] is 1 instead of 7",
            ),
            (
                """
                import pytest
                class Shop:
                    def __init__(self): self.sold = []
                @pytest.fixture(scope="session")
                def shop(): return Shop()
                def test_opens(shop): pass
                def test_leaves(shop): shop.sold.append(5)
                def test_bad(shop):
                    ok = not shop
                    assert ok
                """,
                [],
                "shop.sold[0] (5) is missing",
            ),
            (
                """
                class Bag:
                    seen = 1
                def test_leaves(): Bag.seen = 2
                def test_bad():
                    ok = Bag.seen > 5
                    assert ok
                """,
                [],
                "test_it.Bag.seen is 1 instead of 2",
            ),
        ],
    )
    def test_no_value_is_another_one(self, tmp_path: Path, source: str, options: list[str], other: str) -> None:
        """Without the test that left it the replay would agree, too: its output is equal."""
        ran = run_pytest(tmp_path, source, *options)

        meta = ran.meta("test_it.py-test_bad")
        assert (meta["verified"], meta["left_out"], meta["leftovers"]) == (True, 0, other)
        assert not list((tmp_path / "test-results" / "test_it.py-test_bad").glob("*alone*"))

    def test_packages_stay_set_up(self, tmp_path: Path) -> None:
        """The first test of a package imports it."""
        (tmp_path / "__init__.py").touch()
        source = """
            import random
            def test_first(): pass
            def test_other(): pass
            def test_bad(): assert random.random() == 2
        """

        ran = run_pytest(tmp_path, source)

        (meta,) = (ran.meta(name) for name in ran.kept())
        assert (meta["verified"], meta["left_out"], meta["leftovers"]) == (True, 1, "")

    def test_what_it_cannot_have_read_does_not_matter(self, tmp_path: Path) -> None:
        (tmp_path / "test_first.py").write_text("seen = []\nclass Bag: pass\ndef test_leaves(): seen.append(Bag())\n")

        ran = run_pytest(tmp_path, "import random\nclass Bag: pass\ndef test_bad(): assert random.random() == 2\n")

        meta = ran.meta("test_it.py-test_bad")
        assert (meta["verified"], meta["left_out"], meta["leftovers"]) == (True, 1, "")

    def test_after_another_failure(self, tmp_path: Path) -> None:
        """pytest's memory of the first failure affects its report of the second: the first one stays."""
        source = """
            import random
            def test_good(): pass
            def test_one(): assert random.random() == 2
            def test_two(): assert random.random() == 3
        """

        ran = run_pytest(tmp_path, source)

        meta = ran.meta("test_it.py-test_two")
        assert (meta["verified"], meta["left_out"]) == (True, 1)
        assert line_of_failure(ran.recording("test_it.py-test_two")).endswith("== 3")

    def test_what_a_report_reads_does_not_matter(self, tmp_path: Path) -> None:
        """pytest reads the source when it reports a failure, unless a test that is left out had it read before."""
        source = """
            import linecache, random, pytest
            @pytest.fixture
            def closing():
                yield
                assert random.random() == 4
            def test_reads(): assert linecache.getlines(__file__)
            def test_one(): assert random.random() == 2
            def test_two(closing): assert random.random() == 3
        """

        ran = run_pytest(tmp_path, source)

        for name, line in (("test_one", "== 2"), ("test_two", "== 3")):
            meta = ran.meta(f"test_it.py-{name}")
            assert (meta["verified"], meta["left_out"], meta["leftovers"]) == (True, 1, "")
            recording = ran.recording(f"test_it.py-{name}")
            assert line_of_failure(recording).endswith(line)
            with open_recording(recording) as opened:
                assert opened.end is not None
                assert opened.end.reason == "the test ended"
                assert len([each for each in opened.events() if isinstance(each, Event)]) == opened.end.events
            assert replay(recording, stdout=2, stderr=2).divergence is None

    def test_threads_stay(self, tmp_path: Path) -> None:
        """A thread has a number, and later ones have the next ones: earlier tests are kept."""
        source = """
            import threading, random
            def test_thread():
                thread = threading.Thread(target=print)
                thread.start()
                thread.join()
            def test_bad():
                found = []
                thread = threading.Thread(target=lambda: found.append(random.random()))
                thread.start()
                thread.join()
                assert found == thread.name
        """

        ran = run_pytest(tmp_path, source)

        meta = ran.meta("test_it.py-test_bad")
        assert (meta["verified"], meta["left_out"], meta["leftovers"]) == (True, 0, "")


class TestTogether:
    """One replay examines all failures of a session."""

    SOURCE = """
        import random, pytest
        STATE = {"count": 1}
        @pytest.mark.parametrize("number", range(3))
        def test_good(number): assert random.random() < 2
        def test_one():
            drawn = random.random()
            assert drawn == 2
        def test_leaves(): STATE["count"] = 7
        def test_other(): pass
        def test_two():
            count = STATE["count"]
            assert count == 0
    """
    LATER = """
        import random, pytest
        def test_again(): pass
        @pytest.mark.parametrize("number", range(2))
        def test_three(number):
            drawn = random.random()
            assert drawn == 3
    """

    @pytest.fixture
    def ran(self, tmp_path: Path) -> Ran:
        (tmp_path / "test_later.py").write_text(textwrap.dedent(self.LATER))
        return run_pytest(tmp_path, self.SOURCE, *ORDERED_AND_APART)

    NAMES = ("test_it.py-test_one", "test_it.py-test_two", "test_later.py-test_three-0", "test_later.py-test_three-1")
    LINES = ("drawn == 2", "count == 0", "drawn == 3", "drawn == 3")

    def test_those_that_differ_cost_the_others_nothing(self, ran: Ran) -> None:
        metas = {name: ran.meta(name) for name in self.NAMES}
        assert [(each["verified"], each["left_out"]) for each in metas.values()] == [
            (True, 3),
            (True, 0),
            (True, 6),
            (True, 6),
        ]
        assert "test_it.STATE['count'] is 1 instead of 7" in metas["test_it.py-test_two"]["leftovers"]
        assert [each["is_examined"] for each in metas.values()] == [True] * 4
        for name, line in zip(self.NAMES, self.LINES, strict=True):
            recording = ran.recording(name)
            assert replay(recording, stdout=2, stderr=2).divergence is None, name
            assert line_of_failure(recording) == f"assert {line}"
            (written,) = metas[name]["writes"]
            with Session(recording) as session:
                assert written["moment"] == texts.moment_text(session.run.why(written["name"]).moment or Moment(0, 0))

    def test_each_begins_as_the_next_one_does(self, ran: Ran) -> None:
        """So a replay of the last one passes all, and what they have in common is stored once."""
        logs = []
        for name in self.NAMES[:1] + self.NAMES[2:]:
            with open_recording(ran.recording(name)) as recording:
                logs.append(b"".join(recording.pieces("log"))[LOG_HEADER:])
        assert all(longer.startswith(shorter) for shorter, longer in itertools.pairwise(logs))

    def test_no_index_is_written_before_somebody_opens_one(self, ran: Ran) -> None:
        assert not list((ran.folder / "test-results").rglob("*.index"))
        line_of_failure(ran.recording(self.NAMES[0]))
        assert index_path(ran.recording(self.NAMES[0])).exists()


def add_again(examining: Examiner, folders: list[Path]) -> None:
    """Have recordings examined about which nothing is known."""
    for folder in folders:
        result = parse_result((folder / "meta.json").read_text())
        unknown = replace(result, is_examined=False, verified=None, verification="")
        write_about(folder, unknown)
        examining.add(folder, unknown)


def await_results(ran: Ran, folders: list[Path]) -> None:
    deadline = time.monotonic() + 60
    while not all(ran.meta(each.name)["is_examined"] for each in folders) and time.monotonic() < deadline:
        time.sleep(0.05)


class TestLimits:
    SOURCE = """
        import pytest, time
        @pytest.mark.parametrize("number", range(12))
        def test_bad(number):
            assert number < 0
        def test_last():
            time.sleep(4)  # until then the recordings are written; they wait for the end to be examined
    """

    def test_what_was_not_examined_in_time_says_so_once(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, self.SOURCE, "-p", "no:randomly", "-p", "no:random_order", wait="0")

        reason = "not verified: not analysed within 0 s (--replaydbg-wait)"
        path = "test-results/test_it.py-test_bad-11/rec.rdbg"
        late = [line for line in ran.output.splitlines() if line.startswith(path)]
        assert [line.endswith(reason) for line in late] == [True]
        assert ran.output.count("not verified") == ran.output.count(reason) == 12
        assert "\ntest_it.py::test_bad[11]\n" in ran.output
        assert f"verify it with: replaydbg replay {path}\n" in ran.output
        assert "12 of 12 recordings were not analysed" in ran.output
        assert replay(ran.recording("test_it.py-test_bad-11"), stdout=2, stderr=2).divergence is None

    def test_a_run_has_a_limit_for_all(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Failures after it are reported at once."""
        ran = run_pytest(tmp_path, self.SOURCE, wait="0")
        folders = [ran.recording(name).parent for name in ran.kept()]
        monkeypatch.setattr(examiner, "SECONDS", 0.0)

        examining = Examiner(bisects=False)
        add_again(examining, folders)
        examining.begin_last()
        await_results(ran, folders)
        examining.close()

        reasons = {(ran.meta(each.name)["is_examined"], ran.meta(each.name)["verification"]) for each in folders}
        assert reasons == {(True, "the time limit of 0 s for all analyses of this run was reached")}

    def test_it_waits_for_others_until_the_tests_are_over(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, self.SOURCE, "-k", "bad[3] or bad[4]", wait="0")
        folders = [ran.recording(f"test_it.py-test_bad-{number}").parent for number in (3, 4)]

        examining = Examiner(bisects=False)
        add_again(examining, folders)
        time.sleep(0.3)
        assert examining.is_idle
        examining.begin_last()
        await_results(ran, folders)
        examining.close()

        assert [ran.meta(each.name)["verified"] for each in folders] == [True, True]
