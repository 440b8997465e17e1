"""Both stages of the tests together are all of them, and the first one leaves out no mechanism."""

from __future__ import annotations

from pathlib import Path

from tests.harness.stages import chosen, long_tests, read

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


def test_each_file_and_each_parametrized_test_keeps_a_case(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)

    found = chosen(
        [
            *read(tmp_path / "report.xml"),
            *(each._replace(seconds=0.1) for each in read(tmp_path / "report.xml")[1:2] * 40),
        ]
    )

    assert found == {"tests/one/test_one.py::test_slow", "tests/one/test_one.py::test_cases[b]"}


def test_the_list_names_tests_that_exist() -> None:
    missing = set()
    for node in long_tests():
        file, *_, name = node.partition("[")[0].split("::")
        path = ROOT / file
        if not path.exists() or f"def {name}(" not in path.read_text(encoding="utf-8"):
            missing.add(node)

    assert not missing, "python -m tests.harness.stages REPORT.xml writes the list anew"
