"""What is shown first of the recording of a test that failed: its own line, where a helper raised the exception."""

import pytest

from replaydbg.debugger import Session
from tests.harness.seen import Seen, see
from tests.harness.typed import Typed
from tests.plugin_runs import Ran, run_pytest

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
