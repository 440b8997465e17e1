"""Recordings of failing tests with other plugins: same results as without us, verified, opened at their line."""

import json
import re
from pathlib import Path

import pytest

from replaydbg.events.verdict import Verdict
from replaydbg.replay.edited_code import Judge
from tests.harness.plugin_runs import Ran, line_of_failure, rerun_pytest, run_pytest

pytest.importorskip("trio", reason="the other plugins are installed by `tox -e plugins`")
pytestmark = pytest.mark.slow

# Plugins that change every run are enabled where they are tested.
_QUIET = ("-p", "no:randomly", "-p", "no:random_order")


def check(tmp_path: Path, source: str, *options: str, line: str, test: str = "test_bad", **env: str) -> Ran:
    """Run `source` without us and with us: same results, and the failed test is kept, and opens at `line`."""
    plain = run_pytest(tmp_path, source, *_QUIET, *options, mode="", **env)

    ran = rerun_pytest(tmp_path, *_QUIET, *options, **env)

    assert ran.counts == plain.counts, ran.output
    assert ran.status == plain.status == 1
    name = f"test_it.py-{test}"
    assert ran.kept() == [name], ran.output
    meta = ran.meta(name)
    assert meta["verified"] is True, meta
    assert line_of_failure(ran.recording(name)) == line
    assert verdict_of_same_code(ran.recording(name)) is Verdict.BAD
    return ran


def verdict_of_same_code(recording: Path) -> Verdict:
    """Return the result of a replay of edited code, for unedited code."""
    found = Judge(recording, stdout=2, stderr=2, is_replayed_unchanged=True).judge()
    print(found.sentence)
    return found.verdict


def test_asyncio(tmp_path: Path) -> None:
    source = """
        import asyncio, random, pytest
        @pytest.fixture
        async def numbers():
            await asyncio.sleep(0.001)
            yield [random.random()]
            await asyncio.sleep(0.001)
        async def test_good(numbers):
            assert numbers
        async def test_bad(numbers):
            async def add():
                await asyncio.sleep(random.random() / 100)
                numbers.append(random.random())
            await asyncio.gather(*[add() for _ in range(5)])
            assert len(numbers) == 5
    """

    check(tmp_path, source, "-o", "asyncio_mode=auto", line="assert len(numbers) == 5")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio(tmp_path: Path, backend: str) -> None:
    source = f"""
        import anyio, pytest, random
        @pytest.fixture
        def anyio_backend():
            return "{backend}"
        @pytest.mark.anyio
        async def test_bad():
            found = []
            async def work():
                await anyio.sleep(random.random() / 100)
                found.append(random.random())
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(work)
            assert sorted(found) == found == 0
    """

    check(tmp_path, source, line="assert sorted(found) == found == 0")


def test_trio(tmp_path: Path) -> None:
    source = """
        import trio, pytest, random
        @pytest.mark.trio
        async def test_bad(nursery):
            send, receive = trio.open_memory_channel(0)
            async def work():
                await send.send(random.random())
            nursery.start_soon(work)
            got = await receive.receive()
            assert got == 2
    """

    check(tmp_path, source, line="assert got == 2")


def test_hypothesis(tmp_path: Path) -> None:
    """Its last run of the test, with the smallest example, is the one that fails."""
    source = """
        from hypothesis import given, settings, strategies
        @given(strategies.lists(strategies.integers()))
        def test_bad(numbers):
            total = sum(numbers)
            assert total < 1000
    """

    ran = check(tmp_path, source, line="assert total < 1000")

    assert [each["value"] for each in ran.meta("test_it.py-test_bad")["writes"]] == ["1000"]


def test_clocks_that_are_frozen(tmp_path: Path) -> None:
    source = """
        import datetime, time, freezegun
        @freezegun.freeze_time("2020-01-01")
        def test_bad():
            began = time.time()
            day = datetime.date.today()
            assert (day.year, began) == 0
    """

    check(tmp_path, source, line="assert (day.year, began) == 0")


def test_gated_functions_that_are_replaced(tmp_path: Path) -> None:
    source = """
        import os, time, random, io, builtins
        from unittest import mock
        def test_good(monkeypatch):
            monkeypatch.setattr(os, "stat", None)
            monkeypatch.setattr(os, "open", None)
            monkeypatch.setattr(builtins, "open", None)
            monkeypatch.setattr(time, "sleep", None)
        def test_bad(monkeypatch, mocker):
            monkeypatch.setattr(time, "time", lambda: 7)
            monkeypatch.setattr(os, "getcwd", lambda: "/nowhere")
            mocker.patch("os.urandom", return_value=b"x")
            with mock.patch("os.listdir", return_value=["a"]), mock.patch.dict(os.environ, {"A": "1"}, clear=True):
                found = [time.time(), os.listdir("."), os.urandom(3)]
                assert found == random.random()
    """

    check(tmp_path, source, line="assert found == random.random()")


def test_captured_descriptors_and_files(tmp_path: Path) -> None:
    source = """
        import os, sys, logging
        def test_bad(capfd, tmp_path, caplog):
            os.system("echo from a child")
            print("from python")
            os.write(2, b"from a descriptor")
            (tmp_path / "a.txt").write_text("x")
            logging.warning("w")
            out, err = capfd.readouterr()
            seen = (out, err, os.listdir(tmp_path), caplog.text, tmp_path.name)
            assert seen == ()
        def test_good(capsys, tmp_path_factory):
            print("x", tmp_path_factory.mktemp("y"))
            assert capsys.readouterr().out.startswith("x")
    """

    check(tmp_path, source, line="assert seen == ()")


def test_coverage(tmp_path: Path) -> None:
    source = "import random\ndef test_bad():\n    drawn = random.random()\n    assert drawn == 2\n"

    ran = check(tmp_path, source, "--cov=test_it", "--cov-branch", line="assert drawn == 2")

    assert re.search(r"test_it.py\s+4\s+0\s+0\s+0\s+100%", ran.output), ran.output


@pytest.mark.parametrize("plugin", ["-p randomly", "-p random_order --random-order"])
def test_random_order(tmp_path: Path, plugin: str) -> None:
    source = """
        seen = []
        def test_a(): seen.append("a")
        def test_b(): seen.append("b")
        def test_c(): seen.append("c")
        def test_d(): seen.append("d")
        def test_bad():
            order = "".join(seen)
            assert order == "x"
    """
    (tmp_path / "test_it.py").write_text(source.replace("\n        ", "\n"))
    order = plugin.split() if "order" in plugin else []

    ran = rerun_pytest(tmp_path, *order)

    meta = ran.meta("test_it.py-test_bad")
    assert meta["verified"] is True
    assert [each["name"] for each in meta["writes"]] == ["order"]
    assert line_of_failure(ran.recording("test_it.py-test_bad")) == 'assert order == "x"'


class TestRepeated:
    SOURCE = """
        import pathlib
        def test_bad():
            file = pathlib.Path("count")
            count = int(file.read_text()) if file.exists() else 0
            file.write_text(str(count + 1))
            assert count == 2
    """

    def test_the_attempts_that_failed(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, self.SOURCE, *_QUIET, "--reruns=3")

        assert ran.counts == {"passed": 1, "rerun": 2}
        assert ran.kept() == ["test_it.py-test_bad", "test_it.py-test_bad-retry1"]
        assert ran.meta("test_it.py-test_bad-retry1")["attempt"] == 1
        for name in ran.kept():
            assert line_of_failure(ran.recording(name)) == "assert count == 2"
            assert verdict_of_same_code(ran.recording(name)) is Verdict.BAD

    def test_a_good_one_beside_the_bad(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, self.SOURCE, *_QUIET, "--reruns=3", mode="retry")

        assert ran.kept() == [f"test_it.py-test_bad{each}" for each in ("", "-retry1", "-retry2")]
        index = json.loads((tmp_path / "test-results" / "index.json").read_text())
        assert [each["directory"] for each in index["passed"]] == ["test_it.py-test_bad-retry2"]

    def test_together_with_xdist(self, tmp_path: Path) -> None:
        ran = run_pytest(tmp_path, self.SOURCE, *_QUIET, "--reruns=3", "-n", "4")

        assert ran.counts == {"passed": 1, "rerun": 2}
        assert ran.kept() == ["test_it.py-test_bad", "test_it.py-test_bad-retry1"]


def test_html_links_the_page_of_each_failure(tmp_path: Path) -> None:
    source = """
        def test_good():
            pass
        def test_bad():
            value = 1
            assert value == 2
    """

    check(tmp_path, source, "--html=reports/all tests/index.html", "--replaydbg-html", line="assert value == 2")

    report = (tmp_path / "reports" / "all tests" / "index.html").read_text()
    link = "../../test-results/test_it.py-test_bad/failure.html"
    assert report.count("failure.html") and link in report
    assert (tmp_path / "reports" / "all tests" / link).resolve().exists()
