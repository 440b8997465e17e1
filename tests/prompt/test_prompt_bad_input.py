"""For any input at the debugger's prompt, the answer is a sentence, and the session goes on."""

import os

import pytest

from tests.harness.typed import Typed

BAD = [
    "nonsense",
    "b no_such_function",
    "b nofile.py:3",
    "b 0",
    "b 12 if n >",
    "b 12 if",
    "b 12 if ",
    "catch if",
    "tbreak",
    "condition",
    "condition 99 x",
    "condition x",
    "ignore 1 x",
    "enable 99",
    "disable x",
    "delete 99",
    "clear 99:99",
    "seek",
    "seek nowhere",
    "seek 999999",
    "seek 101%",
    "seek -1",
    "seek-ticks 99999999999",
    "run x",
    "restart 9",
    "restart nobody",
    "mark",
    "mark 1x",
    "up 100",
    "down 100",
    "frame x",
    "l 1,x",
    "p",
    "p )",
    "p no_such_name",
    "pp",
    "pp (",
    "whatis",
    "whatis x = 1",
    "source",
    "source 1",
    "source no_such_name",
    "n x",
    "n -1",
    "c 0",
    "advance",
    "sender",
    "sender x",
    "receiver 0",
    "jump-to-sender",
    "jump-to-receiver 1 2 3",
    "proc",
    "proc 2",
    "proc x",
    "log",
    "log 12",
    "log 12 )",
    "log nofile.py:1 x",
    "why",
    "why )",
    "last",
    "last no_such",
    "watch",
    "watch )",
    "events x",
    "exceptions 0",
    "output x",
    "thread x",
    "info x",
    "help x",
    "jump 3",
    "j 3",
    "commands 1",
    "stepi",
    "attach 1",
    "set",
    "set var x",
    "set var x =",
    "set var results = nothing_like_this",
    "set exec-direction sideways",
    "direction sideways",
    "display",
    "undisplay 9",
    "x = (",
    "!",
    "!)",
    "! import nothing_like_this",
    "!raise SystemExit(3)",
    "!exit()",
    "p/x 3",
    "re",
    "\x00",
    "p \x00",
    "p '\ud800'",
    ") (",
    "ünknown",
    "?" * 50,
    "(" * 5000,
    "p " + "(" * 500 + ")" * 500,
    "b " + "x" * 5000,
    "resources 1 2 3",
    "resources 99999999",
    "resources nonsense",
]


@pytest.mark.parametrize("line", BAD, ids=[ascii(line)[:30] for line in BAD])
def test_bad_input_is_answered_by_a_sentence(typed: Typed, line: str) -> None:
    said = typed(line)

    assert said.strip()
    assert "Traceback" not in said
    assert typed("p 1 + 1") == "2\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("break 11 if", "usage: 11 if CONDITION\n"),
        ("break if", "usage: if CONDITION\n"),
        ("catch KeyError if ", "usage: KeyError if CONDITION\n"),
        ("break ends_by_an_exception.py:-3", "Not a line of "),
        ("break ends_by_an_exception.py:+3", "Not a line of "),
        ("break ends_by_an_exception.py:0", "LINE must be at least 1 (got 0).\n"),
        ("frame 9", "No frame #9: there is 1 frame.\n"),
        ("snapshot 5", "The recording has no snapshots; "),
        ("snapshot #5", "The recording has no snapshots; "),
        ("snapshot", "The recording has no snapshots; "),
    ],
)
def test_the_sentence_says_what_is_wrong(typed: Typed, line: str, says: str) -> None:
    assert typed("seek @exc", line).splitlines(keepends=True)[-1].startswith(says)


def test_a_lost_process_is_made_again(typed: Typed) -> None:
    os.kill(typed.prompt.view.session.cursor.pid, 9)

    typed("rn")
    typed("seek @exc")

    assert typed("p 1 + 1") == "2\n"
