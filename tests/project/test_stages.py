"""The stages of the tests together are all of them, and the first two leave out no test but its further cases."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.harness.stages import FIRST, LONGEST, SECOND, Timed, chosen, read, stages

ROOT = Path(__file__).parents[2]
REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.one.test_one" name="test_slow" time="30"/>
<testcase classname="tests.one.test_one.TestIt" name="test_quick" time="0.1"/>
<testcase classname="tests.one.test_one" name="test_cases[a]" time="3"/>
<testcase classname="tests.one.test_one" name="test_cases[b]" time="9"/>
<testcase classname="tests.two.test_two" name="test_alone" time="40"/>
<testcase classname="tests.two.test_two" name="test_skipped" time="99"><skipped/></testcase>
</testsuite></testsuites>
"""
TESTS = st.lists(
    st.tuples(st.floats(0.001, 100), st.integers(0, 3), st.integers(0, 5), st.integers(0, 5)),
    min_size=1,
    unique_by=lambda test: test[1:],
)


def test_a_report_is_read(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)

    found = read(tmp_path / "report.xml")

    assert found[:2] == [
        Timed(30, "tests/one/test_one.py::test_slow"),
        Timed(0.1, "tests/one/test_one.py::TestIt::test_quick"),
    ]
    assert len(found) == 5


@given(TESTS)
def test_only_what_takes_long_is_left_out_of_the_first_two_stages(drawn: list[tuple[float, int, int, int]]) -> None:
    tests = [Timed(seconds, f"{file}.py::test_{name}[{case}]") for seconds, file, name, case in drawn]

    found = chosen(tests)

    outside = found.long | found.exhaustive
    first = [test for test in tests if test.node not in outside]
    early = [test for test in tests if test.node not in found.exhaustive]
    assert not found.long & found.exhaustive
    assert {test.file for test in first} == {test.file for test in tests}
    quick = {test.function for test in tests if test.seconds <= LONGEST}
    assert {test.function for test in early} >= quick
    assert all(test.seconds <= LONGEST for test in early if test not in first)


@given(TESTS)
def test_what_is_not_needed_for_that_stays_within_its_share(drawn: list[tuple[float, int, int, int]]) -> None:
    tests = [Timed(seconds, f"{file}.py::test_{name}[{case}]") for seconds, file, name, case in drawn]
    total = sum(test.seconds for test in tests)

    found = chosen(tests)

    first = [test for test in tests if test.node not in found.long | found.exhaustive]
    second = [test for test in tests if test.node in found.long]
    assert sum(test.seconds for test in first) <= FIRST * total + 1e-6 or len(first) == len({t.file for t in tests})
    assert sum(test.seconds for test in second) <= SECOND * total + 1e-6 or len(second) <= len(
        {test.function for test in tests} - {test.function for test in first}
    )


def test_the_lists_name_tests_that_exist() -> None:
    missing = set()
    for node in stages().long | stages().exhaustive:
        file, *_, name = node.partition("[")[0].split("::")
        path = ROOT / file
        if not path.exists() or f"def {name}(" not in path.read_text(encoding="utf-8"):
            missing.add(node)

    assert not missing, "python -m tests.harness.stages REPORT.xml writes the lists anew"
