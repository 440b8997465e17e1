"""The debugger's prompt: every command, over real recordings."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.commands.whole_run import parse_log
from replaydbg.debugger import Session
from tests.harness.recording import record_file
from tests.harness.typed import FAILS, Typed


@pytest.fixture(scope="module")
def with_lanes(recordings: dict[str, Path]) -> Iterator[Session]:
    with Session(recordings["lanes"]) as session:
        yield session


@pytest.fixture
def lanes(with_lanes: Session) -> Typed:
    return Typed.at("@end", with_lanes)


def line_of(typed: Typed) -> int:
    top = typed.prompt.view.here.top
    assert top is not None
    return top.line


def test_it_opens_at_the_failure_and_says_where_that_is(typed: Typed) -> None:
    shown = typed.out.getvalue()

    assert re.search(r"^\d+:\d+  \d+%  thread 0 MainThread  .*ends_by_an_exception.py:30 <module>$", shown, re.M)
    assert "raises RuntimeError: hidden" in shown
    assert "-> 30  raise RuntimeError(results[-1])" in shown


@pytest.mark.parametrize(
    ("names", "line"),
    [
        ("rn reverse-next N", 28),
        ("rs reverse-step S", 28),
        ("rc reverse-continue C", 1),
    ],
)
def test_every_name_for_going_back(typed: Typed, names: str, line: int) -> None:
    for name in names.split():
        typed("seek @exc", name)
        assert line_of(typed) == line, name


@pytest.mark.parametrize("name", ["n", "next", "s", "step"])
def test_steps_forward_undo_those_back(typed: Typed, name: str) -> None:
    typed("rn", name)

    assert line_of(typed) == 30


@pytest.mark.parametrize("moment", ["@out:1", "THERE", "71%", "@start", "rdbg://x@THERE"])
def test_a_moment_alone_goes_there(typed: Typed, moment: str) -> None:
    typed(f"seek {moment}")
    wanted = typed.prompt.view.here.count
    typed("seek @exc")

    typed(moment)

    assert typed.prompt.view.here.count == wanted


def test_what_is_no_moment_is_python(typed: Typed) -> None:
    assert typed("120") == "120\n"
    assert typed("71 % 3") == "2\n"
    assert "No such moment '@nowhere'" in typed("@nowhere")


def test_places_in_generated_code(tmp_path: Path) -> None:
    program = tmp_path / "generates.py"
    code = "def double(n):\\n    m = n * 2\\n    return m\\n"
    program.write_text(f'exec(compile("{code}", "<generated code>", "exec"))\nprint(double(3))\nprint()\n')
    with Session(record_file(program, tmp_path)) as session:
        typed = Typed.at("@end", session)

        assert "Breakpoint 1: <generated code>:2" in typed("break <generated code>:2")
        assert "<generated code>:2 double" in typed("start", "c")
        assert "<generated code>:3 double" in typed("advance <generated code>:3")
        assert "No line of '<other>' ran." in typed("tbreak <other>:1")
        assert typed("n < 2") == "False\n"


@pytest.mark.parametrize("name", ["finish", "fin", "return", "r"])
def test_out_of_a_function(typed: Typed, name: str) -> None:
    typed("start", "b 12", "c", name)

    assert line_of(typed) == 21
    assert "the exception" not in typed("F")


@pytest.mark.parametrize("name", ["c", "cont", "continue"])
def test_on_to_a_breakpoint(typed: Typed, name: str) -> None:
    shown = typed("start", "break twice if n > 2", name)

    assert re.search(r"^breakpoint \d+$", shown, re.M), shown
    assert line_of(typed) == 12
    assert typed("p n") == "3\n"


def test_back_out_of_a_function(typed: Typed) -> None:
    for name in ("reverse-finish", "rf", "F"):
        typed("start", "b twice", "c", name)
        assert line_of(typed) == 22


def test_numbers_say_how_often(typed: Typed) -> None:
    typed("rn 3")

    assert line_of(typed) == 24
    typed("n 2")
    assert line_of(typed) == 28


def test_an_empty_line_repeats_the_last_motion(typed: Typed) -> None:
    typed("rn", "", "")
    assert line_of(typed) == 24

    typed("p 1", "")
    assert line_of(typed) == 24


def test_direction_turns_the_plain_commands(typed: Typed) -> None:
    assert "backwards" in typed("direction")
    typed("n")
    assert line_of(typed) == 28
    assert "forwards" in typed("set exec-direction forward")
    typed("n")
    assert line_of(typed) == 30
    assert "backwards" in typed("set exec-direction reverse")
    assert "got 'up'" in typed("direction up")


def test_until_leaves_a_loop(typed: Typed) -> None:
    typed("start", "advance 22", "until")

    assert line_of(typed) == 23
    typed("start", "unt 27")
    assert line_of(typed) == 27
    assert not typed.prompt.view.session.breakpoints


def test_moments_of_every_kind(typed: Typed) -> None:
    index = typed.prompt.view.session.index
    # Their number, and the lines after which they ran, depend on the interpreter's start.
    event = next(each for each in range(index.events // 2, index.events) if index.lines_after(each))
    for moment in ("@exc", "exc", "@start", "50%", "@end", "end", "@out:1", "THERE", f"{event}"):
        assert "No such moment" not in typed(f"seek {moment}"), moment
    typed("seek THERE")
    assert line_of(typed) == 12
    for order in ("start", "restart", "run"):
        typed(order)
        assert line_of(typed) == 1
    typed("end")
    assert line_of(typed) == 30
    typed(f"run {event}")
    assert typed.prompt.view.here.moment.event == event
    count = typed.prompt.view.here.count + 100
    typed(f"seek-ticks {count}")
    assert typed.prompt.view.here.count == count
    assert "rdbg://ends_by_an_exception@" in typed("when")


def test_marks_and_checkpoints(typed: Typed) -> None:
    assert "@here" in typed("seek THERE", "mark here")
    assert "Checkpoint 1" in typed("seek @exc", "checkpoint")
    assert f"@here  {typed.there}" in typed("marks")
    assert "@c1" in typed("info checkpoints")
    typed("restart here")
    assert line_of(typed) == 12
    typed("restart 1")
    assert line_of(typed) == 30
    typed("seek @here")
    assert line_of(typed) == 12
    assert "cannot name a moment" in typed("mark end")


def test_navigation_can_be_undone(typed: Typed) -> None:
    typed("rn", "seek THERE", "back")
    assert line_of(typed) == 28
    typed("back")
    assert line_of(typed) == 30
    assert "No earlier position" in typed("back")
    typed("fwd 2")
    assert line_of(typed) == 12
    typed("ugo undo")
    assert line_of(typed) == 28
    typed("ugo redo")
    assert line_of(typed) == 12
    assert "No later position" in typed("fwd")


def test_breakpoints_and_what_changes_them(typed: Typed) -> None:
    assert "No breakpoints" in typed("b")
    shown = typed("b ends_by_an_exception.py:12, n > 1", "tbreak hidden", "b 7", "b")
    assert shown.count("ends_by_an_exception.py:12 if n > 1") == 2
    assert "(once)" in shown
    numbers = [each.number for each in typed.prompt.view.session.breakpoints]
    first = numbers[0]
    assert "if n == 4" in typed(f"condition {first} n == 4")
    assert "ignores the next 1" in typed(f"ignore {first} 1")
    assert "disabled" in typed(f"disable {first}")
    assert "disabled" not in typed(f"enable {first}")
    assert "Removed" in typed("clear ends_by_an_exception.py:7")
    assert "Removed" in typed(f"delete {first}")
    typed("start", "c")
    assert line_of(typed) == 16
    assert "No breakpoints" in typed("info breakpoints")
    typed("b 12", "b 13")
    assert typed("cl").count("Removed") == 2


def test_a_line_that_never_ran_moves_on(typed: Typed) -> None:
    assert "Line 11 never ran; using 12, the next line that did." in typed("b 11")
    assert "nor did any after it" in typed("b 99")


def test_exceptions_stop_it_in_both_directions(typed: Typed) -> None:
    assert "exception RuntimeError" in typed("start", "catch RuntimeError")
    assert "raises RuntimeError: hidden" in typed("c")
    assert line_of(typed) == 30
    typed("delete")
    assert "exception KeyError" in typed("b KeyError")
    assert "raises KeyError" in typed("rc")
    assert "No ValueError was raised" in typed("catch ValueError")


def test_conditions_of_exceptions_and_of_watched_values(typed: Typed) -> None:
    assert "exception RuntimeError if not results" in typed("start", "catch RuntimeError if not results")
    assert "end: " in typed("c")
    number = next(iter(typed.prompt.view.session.breakpoints)).number
    assert "exception RuntimeError if nothing" in typed("start", f"condition {number} nothing")
    assert "raises RuntimeError: hidden; its condition raised NameError: name 'nothing'" in typed("c")
    typed("delete", "watch results")
    number = next(iter(typed.prompt.view.session.breakpoints)).number
    typed(f"condition {number} len(results) == 2")
    assert "results has changed" in typed("rc")
    assert typed("p results") == "[0, 2]\n"
    typed("delete", "seek @exc", "watch results")
    number = next(iter(typed.prompt.view.session.breakpoints)).number
    typed(f"ignore {number} 2", "rc")
    assert typed("p len(results)") == "4\n"


def test_the_stack_and_its_frames(typed: Typed) -> None:
    typed("start", "b 12", "c")

    for name in ("where", "w", "bt", "backtrace"):
        shown = typed(name)
        assert "-> #0" in shown
        assert "#1" in shown
        assert "results.append(twice(number))" in shown
    assert "#1" in typed("up")
    assert "22" in typed("p 22")
    assert "0" in typed("p number")
    assert "#0" in typed("d")
    assert "innermost" in typed("down")
    assert "No frame #9" in typed("frame 9")
    assert "#1" in typed("f 1")
    assert "n = 0" in typed("f 0", "info frame")
    assert "1 more" in typed("bt 1")


def test_source_is_shown_with_hits_and_an_arrow(typed: Typed) -> None:
    shown = typed("seek THERE", "l")
    assert "5x -> 12      doubled = n * 2" in shown
    assert "28" in typed("l", "l")
    assert "def __init__" in typed("l 5")
    assert typed("l 5,6").count("\n") == 2
    assert "import time" in typed("l .", "l -")
    assert typed("ll").splitlines()[0].endswith("def twice(n):")
    assert "def twice(n):" in typed("source twice")
    assert "class Account" in typed("source Account")
    assert "def __init__" in typed("seek @exc", "source account.__init__")
    assert "has 30 lines" in typed("l 500")
    assert "got 'x,y'" in typed("l x,y")


def test_values(typed: Typed) -> None:
    for name in ("p", "print"):
        assert typed(f"{name} results[:2]") == "[0, 2]\n"
    assert typed("results[:2]") == "[0, 2]\n"
    assert typed("!print(len(results))") == "6\n"
    assert typed("whatis results") == "list, 6 parts\n"
    assert "[0, 2, 4, 6, 8, 'hidden']" in typed("pp results")
    assert ".balance = 7" in typed("pp account")
    assert "throw-away copy" in typed("!results = 1")
    assert "number = 4" in typed("info locals")
    assert "number = 4" in typed("locals")
    assert "n = 0" in typed("start", "b twice", "c", "a")
    assert "n = 0" in typed("info args")
    assert "No arguments" in typed("f 1", "args")
    assert "results = [0]" in typed("c", "info globals")
    assert "raised ZeroDivisionError" in typed("p 1 / 0")
    assert typed("p None") == ""


def test_displayed_values_come_at_each_stop(typed: Typed) -> None:
    assert "1: len(results) = 6" in typed("display len(results)")
    assert "1: len(results) = 6" in typed("rn")
    assert "1: len(results)" in typed("info display")
    assert "len(results)" in typed("display")
    typed("undisplay 1")
    assert "len(results)" not in typed("rn")
    assert "not displayed" in typed("undisplay 7")


def test_who_wrote_a_value(typed: Typed) -> None:
    shown = typed("why results")
    assert "ends_by_an_exception.py:16 hidden" in shown
    assert "before  [0, 2, 4, 6, 8]\n" in shown
    assert "after   [0, 2, 4, 6, 8, 'hidden']\n" in shown
    assert re.search(r"Next: seek \d+:\d+, then why items", shown)
    assert "from time.time(), from event" in typed("why started")
    typed("last account.balance")
    assert line_of(typed) == 27
    assert "cannot be tracked" in typed("why nothing_of_that_name")
    assert "is computed" in typed("why 1 + 1")


def test_all_values_of_something(typed: Typed) -> None:
    for name in ("watch", "watch -l"):
        assert "change of account.balance" in typed(f"{name} account.balance")
        assert "account.balance has changed" in typed("rc")
        typed("delete")
        typed("seek @exc")
    for name in ("history",):
        shown = typed(f"{name} account.balance")
        assert re.search(r":23 <module>  10\n.*:27 <module>  7\n", shown), shown
    assert "more follow" not in shown
    assert "more follow" not in typed("history account.balance 2")
    shown = typed("history account.balance 1")
    assert "Showing the first 1 changes. Use `history account.balance 10` for more." in shown
    assert ":27 <module>" not in shown
    assert "N must be at least 1 (got 0)." in typed("history account.balance 0")


def test_printing_in_the_past(typed: Typed) -> None:
    shown = typed("log ends_by_an_exception.py:12 'f\"{n=}\"' if n > 2")
    assert re.findall(r"'n=(\d)'", shown) == ["3", "4"]
    assert "2 times" in shown
    typed("seek THERE")
    assert "5 times" in typed("log 12 n")
    assert "FILE:LINE expected" in typed("log twice n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.py:3 x", ("a.py:3", "x", "")),
        ("3 x if y", ("3", "x", "y")),
        ("3 x if y else z", ("3", "x if y else z", "")),
        ("3 'x, y' if z > 1", ("3", "x, y", "z > 1")),
        ("3 f'{x}' if z", ("3", "f'{x}'", "z")),
    ],
)
def test_what_log_is_told(text: str, expected: tuple[str, str, str]) -> None:
    assert parse_log(text) == expected


def test_what_went_in_and_out(typed: Typed) -> None:
    assert "next event" in typed("seek THERE", "events 2")
    assert "time.time()" in typed("events 2")
    assert "No output" in typed("output")
    assert "balance 7" in typed("seek @exc", "output")
    assert "RuntimeError: hidden, which ended the program" in typed("exceptions")
    assert "No exception is being handled" in typed("info exceptions")


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("line", ":30 in <module>; it ran 1 times"),
        ("source", "ends_by_an_exception.py, 30 lines"),
        ("files", "ends_by_an_exception.py"),
        ("functions twice", ":10 twice"),
        ("recording", "ended with status 1"),
        ("program", "ended with status 1"),
        ("stack", "-> #0"),
        ("threads", "-> thread 0  MainThread  runs"),
        ("threads", "-> thread 0  MainThread  runs"),
        ("tasks", "No asyncio tasks"),
        ("marks", ""),
        ("b", "No breakpoints"),
        ("", "info locals"),
        ("bre", "No breakpoints"),
        ("nothing", "is unknown"),
        ("f", "ends_by_an_exception.py:30"),
    ],
)
def test_info(typed: Typed, subject: str, expected: str) -> None:
    assert expected in typed(f"info {subject}")


def test_help_names_every_command(typed: Typed) -> None:
    shown = typed("help")
    for command in typed.prompt.vocabulary.commands:
        assert command.names[0] in shown
        more = typed(f"help {command.names[0]}")
        assert command.help in more
        assert all(name in more for name in command.names)
    assert "Unknown command 'nxet' (did you mean 'next'?)" in typed("help nxet")


@pytest.mark.parametrize("name", ["lane", "lanes"])
def test_words_of_the_implementation_are_no_commands(typed: Typed, name: str) -> None:
    assert typed.prompt.vocabulary.find(name) is None
    assert f"info '{name}' is unknown" in typed(f"info {name}")


def test_lanes_can_be_looked_at(lanes: Typed) -> None:
    shown = lanes("start", "b work", "c", "threads")
    assert re.search(r"-> thread 1  worker  runs", shown), shown
    assert "thread 0  MainThread" in shown
    assert "#0" in lanes("thread 0", "where")
    assert "self = " in lanes("locals")
    assert "Event.wait" in lanes("why self")
    assert "No such thread: '7'" in lanes("thread 7")
    assert "-> thread 1" in lanes("thread worker")
    assert "work" in lanes("thread", "bt")


def test_what_another_lane_holds_can_be_followed_and_changed(lanes: Typed) -> None:
    lanes("start", "b work", "c", "thread 0")

    assert "self was passed as an argument at" in lanes("why self")
    assert "differs from the recording" in lanes("set var self = 5")
    assert lanes("p self") == "5\n"


@pytest.mark.parametrize("step", ["s", "n", "fin", "rs", "rn", "rf", "until"])
def test_steps_go_in_the_lane_that_is_looked_at(lanes: Typed, step: str) -> None:
    lanes("start", "b work", "c")
    before = lanes.prompt.view.session.here
    assert before.lane == 1
    waiting = lanes.prompt.view.session.ask.stack(0)

    lanes("thread 0", step)

    here = lanes.prompt.view.session.here
    assert here.lane == 0
    assert (here.count > before.count) == (step in ("s", "n", "fin", "until"))
    if step in ("rs", "rn"):
        assert here.count == waiting[0].last
    if step == "rf":
        assert here.count == next(each.last for each in waiting[1:] if each.last)
    if step == "n":
        assert (here.stack[0].started, here.stack[0].before) == (waiting[0].started, waiting[0].last)


def test_commands_are_done_wherever_a_breakpoint_stops(typed: Typed) -> None:
    typed("start", "b 12", "commands", "silent", "p n", "p n + 100", "end")
    number = next(iter(typed.prompt.view.session.breakpoints)).number

    assert typed("c").splitlines()[-2:] == ["0", "100"]
    assert typed("c").splitlines()[-2:] == ["1", "101"]
    assert typed("rc").splitlines()[-2:] == ["0", "100"]
    assert "runs p n; p n + 100" in typed("info breakpoints")
    # What moves it ends them, as in gdb; those of the next breakpoint follow.
    typed(f"commands {number}", "p n", "c", "p 'never'", "end", "b 13", "commands", "p 'there'", "end")
    shown = typed("start", "c")
    assert "never" not in shown
    assert shown.splitlines()[-1] == "'there'"
    assert "No breakpoint 777" in typed("commands 777")
    assert "p n" not in typed(f"clear {number}", "info breakpoints")


def test_tasks_and_handled_exceptions(lanes: Typed) -> None:
    lanes("start", "advance 40")
    shown = lanes("tasks")
    assert "waits  waits for" in shown
    assert "inner" in shown
    assert "being handled: KeyError: 'missing'" in lanes("exceptions")


def test_a_change_makes_another_run(typed: Typed) -> None:
    typed("start", "b 12", "c")

    shown = typed("set var n = 100")

    assert "differs from the recording" in shown
    assert typed("p n") == "100\n"
    assert "(changed" in typed("n")
    assert typed("p doubled") == "200\n"
    typed("seek THERE")
    assert typed("p n") == "3\n"
    assert "usage: set var" in typed("set width 80")


def test_a_statement_that_raises_tells_what(typed: Typed) -> None:
    typed("start", "b 12", "c")

    assert "ZeroDivisionError: division by zero" in typed("!n / 0")
    assert "ZeroDivisionError: division by zero" in typed("set var n = n / 0")
    assert "(changed" not in typed("when")
    assert typed("p n") == "0\n"


def test_abbreviations_count_when_nothing_else_begins_like_that(typed: Typed) -> None:
    assert typed("pri results[:2]") == "[0, 2]\n"
    assert "is ambiguous" in typed("reverse")
    assert "-> #0" in typed("backt")


def test_python_that_begins_like_a_command(typed: Typed) -> None:
    assert "throw-away copy" in typed("n = 3")
    assert "usage: print EXPRESSION" in typed("print")
    assert typed("list(results)[:1]") == "[0]\n"
    assert typed("max(1, 2)") == "2\n"


def test_a_place_may_be_an_absolute_path(typed: Typed) -> None:
    assert typed(f"break {FAILS}:12").startswith("Breakpoint ")
