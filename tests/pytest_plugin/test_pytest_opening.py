"""The opening position of a failed test's recording: its own line, even if a helper raised the exception."""

from pathlib import Path

import pytest

from replaydbg.debugger import Session
from tests.harness.plugin_runs import Ran, run_pytest
from tests.harness.seen import Seen, see
from tests.harness.typed import Typed

pytestmark = pytest.mark.slow

TESTS = """
    import json, unittest, pytest

    def test_fail():
        asked = 1
        pytest.fail("not so")  # own test_fail

    def test_raises():
        with pytest.raises(ValueError):  # own test_raises
            asked = 1

    def check(value):
        __tracebackhide__ = True
        assert value == 2

    def test_helper():
        check(1)  # own test_helper

    class TestIt(unittest.TestCase):
        def test_equal(self):
            self.assertEqual(1, 2)  # own test_equal

    def test_library():
        json.loads("{")

    def double(value):
        return value["x"] * 2  # own test_bug

    def test_bug():
        double({})
"""
OWN = {
    "test_fail": "test_fail",
    "test_raises": "test_raises",
    "test_helper": "test_helper",
    "TestIt-test_equal": "test_equal",
    "test_bug": "test_bug",
}

HELPERS = """
def verify(value):
    assert value == 2, value  # own test_helper_module
"""
MANNERS = """
    import asyncio, contextlib, threading, unittest, xml.parsers.expat
    from concurrent.futures import ThreadPoolExecutor
    from unittest import mock
    import pytest
    import helpers

    def test_helper_module():
        helpers.verify(1)

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_parametrized(n):
        assert n != 2  # own test_parametrized

    def test_mismatch():
        with pytest.raises(ValueError, match="one thing"):  # own test_mismatch
            raise ValueError("another")

    @pytest.fixture
    def broken():
        value = {}
        return value["missing"]  # own test_fixture

    def test_fixture(broken):
        pass

    @pytest.fixture
    def torn():
        yield 1
        assert not "torn down"  # own test_teardown

    def test_teardown(torn):
        pass

    class TestCase(unittest.TestCase):
        def test_several(self):
            for n in range(3):
                with self.subTest(n=n):
                    self.assertNotEqual(n, 1)  # own test_several

        def test_list(self):
            self.assertListEqual(
                [1],
                [2],
            )  # multi test_list

        def setUp(self):
            if self._testMethodName == "test_set_up":
                self.fail("not set up")  # own test_set_up

        def test_set_up(self):
            pass

    async def later(n):
        await asyncio.sleep(0)
        assert n == 2  # own test_task

    def test_task():
        async def main():
            await asyncio.gather(later(2), later(1))
        asyncio.run(main())

    class TestAsync(unittest.IsolatedAsyncioTestCase):
        async def test_awaits(self):
            await asyncio.sleep(0)
            self.assertEqual(await self.two(), 3)  # own test_awaits

        async def two(self):
            return 2

    def test_group():
        async def main():
            async with asyncio.TaskGroup() as group:
                group.create_task(later(2))
                group.create_task(wrong())
        async def wrong():
            raise ValueError(1)  # own test_group
        asyncio.run(main())

    def work():
        raise KeyError("in a thread")  # own test_future

    def test_future():
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work).result()

    def test_again():
        try:
            int("x")
        except ValueError as error:
            kept = error
        for _ in range(3):
            with contextlib.suppress(ValueError):
                raise kept
        raise LookupError("last") from kept  # own test_again

    def test_mock():
        failing = mock.Mock(side_effect=ValueError("kept"))
        for _ in range(3):
            with contextlib.suppress(ValueError):
                failing()
        assert not failing.called  # own test_mock

    def test_of_c_code():
        def start(name, attributes):
            assert name == "b"  # own test_of_c_code
        parser = xml.parsers.expat.ParserCreate()
        parser.StartElementHandler = start
        parser.Parse("<a>")

    def test_long():
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        total = 0
        for n in range(1_200_000):
            total += n
        assert total == 1  # own test_long

    def test_several_lines():
        found = [1, 2]
        assert sorted(
            found,
            reverse=True,
        ) == [
            1,
        ], found  # multi test_several_lines
"""
OWN_MANNERS = {
    "test_helper_module": "test_helper_module",
    "test_parametrized-2": "test_parametrized",
    "test_mismatch": "test_mismatch",
    "test_fixture": "test_fixture",
    "test_teardown": "test_teardown",
    "TestCase-test_several": "test_several",
    "TestCase-test_set_up": "test_set_up",
    "test_task": "test_task",
    "TestAsync-test_awaits": "test_awaits",
    "test_group": "test_group",
    "test_future": "test_future",
    "test_again": "test_again",
    "test_mock": "test_mock",
    "test_of_c_code": "test_of_c_code",
    "test_long": "test_long",
}


@pytest.fixture(scope="module")
def manners(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("manners")
    (folder / "helpers.py").write_text(HELPERS)
    ran = run_pytest(folder, MANNERS, "-p", "no:cacheprovider", wait="0")
    assert len(ran.kept()) == len(OWN_MANNERS) + 2, ran.output
    return ran


def recording_of(ran: Ran, name: str) -> Path:
    """Return the recording of a test; its directory may have a suffix that makes it unique."""
    kept = [each for each in ran.kept() if each == f"test_it.py-{name}" or each.startswith(f"test_it.py-{name}-")]
    assert len(kept) == 1, (name, ran.kept())
    return ran.recording(kept[0])


@pytest.mark.parametrize("name", OWN_MANNERS)
def test_whatever_the_manner_it_opens_at_the_line_that_failed(manners: Ran, name: str) -> None:
    with Session(recording_of(manners, name)) as session:
        typed = Typed(session)
        typed.prompt.open()
        shown = typed.out.getvalue()

        assert session.here.why == "exception", shown
        assert f"# own {OWN_MANNERS[name]}\n" in shown
        assert f"# own {OWN_MANNERS[name]}\n" in typed("seek @end", "seek @exc")


@pytest.mark.parametrize(
    ("name", "first"), [("test_several_lines", "assert sorted("), ("TestCase-test_list", "self.assert")]
)
def test_a_statement_of_several_lines(manners: Ran, name: str, first: str) -> None:
    with Session(recording_of(manners, name)) as session:
        typed = Typed(session)
        typed.prompt.open()

        assert session.here.why == "exception"
        assert first in typed("list")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    ran = run_pytest(tmp_path_factory.mktemp("opening"), TESTS, wait="0")
    assert ran.counts == {"failed": 6}
    return ran


@pytest.mark.parametrize("name", OWN)
def test_the_prompt(ran: Ran, name: str) -> None:
    with Session(ran.recording(f"test_it.py-{name}")) as session:
        typed = Typed(session)
        typed.prompt.open()
        shown = typed.out.getvalue()

        assert f"# own {OWN[name]}\n" in shown
        assert "raises " in shown
        typed("reverse-step", "step")
        assert typed("frame").startswith("#0  "), "whoever steps wants to see where that leads"
        assert f"# own {OWN[name]}\n" in typed("seek @exc")


def test_the_terminal_ui(ran: Ran) -> None:
    async def look(seen: Seen) -> None:
        assert seen.scene.at is not None
        assert seen.scene.at.text.endswith("# own test_equal")
        assert seen.scene.frame == 2
        assert "# own test_equal" in seen.text("source")

    see(ran.recording("test_it.py-TestIt-test_equal"), look)


def test_an_exception_of_a_library_is_shown_where_it_came_from(ran: Ran) -> None:
    with Session(ran.recording("test_it.py-test_library")) as session:
        typed = Typed(session)
        typed.prompt.open()

        assert "json/decoder.py" in typed("frame")
