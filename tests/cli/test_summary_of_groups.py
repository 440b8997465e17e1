"""The summary of `record` counts children and programs that joined apart, and only those that there are."""

from pathlib import Path

import pytest

from replaydbg.log.group import Group, GroupProcess
from replaydbg.record.result import RecordResult
from replaydbg.render.record_summary import summary_lines


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (["fork"], "1 child process recorded"),
        (["python", "fork"], "2 child processes recorded"),
        (["joined"], "1 process joined"),
        (["joined", "joined", "fork"], "1 child process recorded, 2 processes joined"),
    ],
)
def test_processes_are_counted_by_how_they_came(how: list[str], expected: str) -> None:
    first = GroupProcess(1, 100, 0, 0, "program", ["prog.py"], True, 0, "launcher", "1.rdbg", "")
    others = [first._replace(number=number, how=each, recording=f"{number}.rdbg") for number, each in enumerate(how, 2)]
    group = Group("ab", [first, *others], 0, True)
    result = RecordResult(Path("r.rdbgs/1.rdbg"), 0, 5, 1000, [], None, None, None, group)

    lines = summary_lines(result, "r", is_held=False, output=None)

    assert lines[1] == f"replaydbg: {expected}: replaydbg ps r"


def test_a_group_whose_others_have_no_recording() -> None:
    first = GroupProcess(1, 100, 0, 0, "program", ["prog.py"], True, 0, "launcher", "1.rdbg", "")
    missed = first._replace(number=2, how="fork", recording=None, why_not="forked more than 50 levels deep")
    group = Group("ab", [first, missed], 0, True)
    result = RecordResult(Path("r.rdbgs/1.rdbg"), 0, 5, 1000, [], None, None, None, group, {missed.why_not: 1})

    lines = summary_lines(result, "r", is_held=False, output=None)

    assert lines[1] == "replaydbg: 1 process not recorded: forked more than 50 levels deep"
    assert len(lines) == 3
