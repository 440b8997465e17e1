"""Travelling through a recording: both directions, breakpoints, values, and who wrote them."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.engine.protocol import MOST_BREAKS, PathStep, RunOrder, Watch
from replaydbg.engine.queries import GetVariables
from replaydbg.engine.reports import Where
from replaydbg.errors import AskFailed, NoSuchMoment, UsageError
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "ends_by_an_exception.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(PROGRAM, tmp_path_factory.mktemp("travel"), status=1)
    with Session(recording, spacing=0.001) as opened:
        yield opened


def line(session: Session) -> int:
    top = session.here.top
    assert top is not None
    return top.line


def test_it_opens_at_the_exception_that_ended_the_program(session: Session) -> None:
    here = session.seek("@exc")
    assert line(session) == 30
    assert here.stack[0].function == "<module>"


def test_its_path_may_be_a_text(session: Session) -> None:
    with Session(str(session.path)) as other:
        assert other.index.end == session.index.end


def test_reverse_commands_undo_their_twins(session: Session) -> None:
    session.seek("@exc")
    for _ in range(8):
        session.reverse_step()
    for _ in range(8):
        before = session.here.count
        session.step()
        after = session.here.count
        session.reverse_step()
        assert session.here.count == before
        session.seek(after)


def test_a_call_is_passed_over_in_both_directions(session: Session) -> None:
    session.seek("@exc")
    point = session.breakpoints.add(Breakpoint(0, file=session.sources.file_named(PROGRAM.name), line=22))
    session.reverse_go()
    assert line(session) == 22
    session.next()
    assert line(session) == 21
    session.reverse_next()
    assert line(session) == 22
    session.breakpoints.remove(point.number)


def test_breakpoints_stop_in_both_directions(session: Session) -> None:
    session.seek("@exc")
    point = session.breakpoints.add(Breakpoint(0, function="twice", condition="n > 1"))
    seen = []
    while session.reverse_go().why == "breakpoint":
        value = session.ask.evaluate("n").value
        assert value is not None
        seen.append(value.text)
    forward = []
    while session.go().why == "breakpoint":
        value = session.ask.evaluate("n").value
        assert value is not None
        forward.append(value.text)
    session.breakpoints.remove(point.number)
    assert seen == ["4", "3", "2"]
    assert forward == ["2", "3", "4"]


def test_why_finds_the_write_through_another_name(session: Session) -> None:
    session.seek("@exc")
    told = session.run.why("results")
    assert (told.line, told.function) == (16, "hidden")
    assert told.before != told.after
    told = session.run.why("account.balance")
    assert told.line == 27
    assert (told.before, told.after) == ("10", "7")


def test_why_follows_the_object_and_not_the_name(session: Session) -> None:
    session.seek("@exc")
    point = session.breakpoints.add(Breakpoint(0, function="hidden"))
    session.reverse_go()
    session.breakpoints.remove(point.number)
    told = session.run.why("items")
    assert told.is_argument
    assert told.is_binding
    assert told.line == 24
    assert told.content is not None
    assert told.content.line == 22
    assert session.run.why("items[3]").line == 22


def test_why_names_the_crossing_that_a_value_came_from(session: Session) -> None:
    session.seek("@exc")
    told = session.run.why("started")
    assert told.line == 20
    assert len(told.events) == 1


def test_an_evaluation_changes_nothing(session: Session) -> None:
    session.seek("@exc")
    assert session.ask.evaluate("results.append('more')").error is None
    value = session.ask.evaluate("'more' in results").value
    assert value is not None
    assert value.text == "False"
    assert "not available in the past" in (session.ask.evaluate("__import__('time').time()").error or "")


def test_history_and_log_cover_the_whole_run(session: Session) -> None:
    session.seek("@exc")
    assert [each.text for each in session.run.history("account.balance")][-2:] == ["10", "7"]
    logged = [each.text for each in session.run.log(PROGRAM.name, 12, "n")]
    assert logged == ["0", "1", "2", "3", "4"]


def test_an_item_is_the_one_that_its_index_means_here(session: Session) -> None:
    session.seek("@exc")
    told = session.run.why("results[number]")
    assert (told.expression, told.after) == ("results[4]", "8")
    with pytest.raises(UsageError, match=r"a number or numbers, except in a dictionary \(account is <"):
        session.run.why("results[account]")
    with pytest.raises(UsageError, match="tracked: NameError: name 'absent'"):
        session.run.why("results[absent]")


def test_moments_that_are_not_there_are_refused(session: Session) -> None:
    last = session.index.events
    behind = session.index.lines_after(last) + 1
    for moment in ("@nowhere", "999999", "101%", "x", "@out:999", f"{last}:{behind}", f"{last}:99999999", "@t+99s"):
        with pytest.raises(NoSuchMoment):
            session.seek(moment)
    assert session.seek(f"{last}:{behind - 1}").count == session.index.total
    with pytest.raises(UsageError):
        session.run.why("1 + 1")
    assert session.seek("@out:1").count < session.seek("@end").count


def test_back_without_a_breakpoint_goes_to_the_programs_first_line(session: Session) -> None:
    session.seek("@exc")

    first = session.reverse_go()
    start = session.reverse_go()

    assert (first.why, first.count) == ("start", session.first_own)
    assert first.top is not None and first.top.file.endswith(PROGRAM.name)
    assert (start.why, start.count) == ("start", 1)


def test_objects_lie_at_one_address_whatever_checkpoint_one_comes_from(session: Session) -> None:
    generator = random.Random(1)
    counts = session.travel.timeline.counts()
    assert len(counts) > 1  # how many depends on the speed of the machine
    for _ in range(5):
        count = generator.randrange(session.index.end // 2, session.index.end)
        found = set()
        for first in [each for each in counts if each < count][:: max(1, len(counts) // 3)]:
            worker = session.travel.arrived(session.travel.timeline.before(first).clone(), count)  # type: ignore[union-attr]
            top = worker.look().stack[0]
            names = [each.name for each in worker.ask(GetVariables())][:20]
            watches = [Watch(name, started=top.started, first_line=top.first_line) for name in names]
            found.add(tuple(worker.locate(watch) for watch in watches))
            worker.kill()
        assert len(found) == 1


@pytest.mark.parametrize("length", [1, 7, 15, 30, 60, 120])
def test_objects_lie_at_one_address_whether_something_is_watched_or_not(session: Session, length: int) -> None:
    count = session.index.end
    path = tuple(PathStep(attribute=letter * length) for letter in "bcdefghijkluöx")
    watched = Watch("a" * length, module="__main__", steps=path, stops=False)
    found = set()
    for order in (RunOrder(until=count), RunOrder(until=count, watch=watched)):
        worker = session.travel.at(1)
        top = worker.run(order)
        assert isinstance(top, Where)
        names = [each.name for each in worker.ask(GetVariables())]
        here = top.stack[0]
        watches = [Watch(name, started=here.started, first_line=here.first_line) for name in names]
        found.add(tuple(worker.locate(watch) for watch in watches))
        worker.kill()
    assert len(found) == 1
    assert len(next(iter(found))) > 2


def test_why_tells_who_changed_what_a_waiting_coroutine_holds(tmp_path: Path) -> None:
    program = PROGRAM.with_name("changed_while_it_waits.py")
    with Session(record_file(program, tmp_path, status=1)) as session:
        told = session.run.why("results")
        assert (told.line, told.function) == (8, "worker")
        assert (told.before, told.after) == ("[1, 2]", "[1, 2, 3]")
        assert [each.line for each in session.run.history("results")] == [12, 8, 8, 8]


def test_a_watched_value_stops_in_both_directions(session: Session) -> None:
    session.seek("@exc")
    point = session.run.watch("results")
    back = []
    while session.reverse_go().why == "watch":
        back.append(session.here.count)
    forward = []
    while session.go().why == "watch":
        forward.append(session.here.count)
    session.breakpoints.remove(point.number)
    # It is bound, gets five numbers, and one more item under another name.
    assert len(back) == 7
    assert forward == back[::-1]


def test_what_is_too_many_for_one_run_is_refused(session: Session) -> None:
    session.seek("@exc")
    file = session.sources.file_named(PROGRAM.name)
    points = [session.breakpoints.add(Breakpoint(0, file=file, line=22)) for _ in range(MOST_BREAKS)]
    with pytest.raises(UsageError, match="At most 255 breakpoints"):
        session.breakpoints.add(Breakpoint(0, function="hidden"))
    other = session.breakpoints.add(Breakpoint(0, exception="KeyError"))
    assert session.reverse_go().breakpoint in [each.number for each in points]
    assert line(session) == 22
    for point in (*points, other):
        session.breakpoints.remove(point.number)


def test_a_change_that_raises_changes_nothing(session: Session) -> None:
    session.seek("@exc")
    with pytest.raises(AskFailed, match="ZeroDivisionError: division by zero"):
        session.change("results.append('more'); 1 / 0")
    assert not session.here.is_changed
    value = session.ask.evaluate("'more' in results").value
    assert value is not None
    assert value.text == "False"
    with pytest.raises(AskFailed, match="ended the process"):
        session.change("import _ctypes as c; c.call_function(c.dlsym(c.dlopen(None, 0), 'exit'), (3,))")
    assert session.ask.evaluate("1 + 1").error is None
    assert not session.here.is_changed


def test_threads_can_be_imported_in_the_past(session: Session) -> None:
    """It asks for the number of the thread."""
    session.seek("@exc")
    asked = ("'threading' in __import__('sys').modules", "__import__('threading').main_thread().name")
    values = [session.ask.evaluate(each).value for each in asked]
    assert [each.text if each is not None else None for each in values] == ["False", "'MainThread'"]


class _Unreadable(GetVariables):
    def encode(self) -> bytes:
        return repr(object()).encode()


def test_a_question_that_cannot_be_read_is_told_so(session: Session) -> None:
    session.seek("@exc")
    for changes in (False, True):
        with pytest.raises(AskFailed, match="invalid syntax"):
            session.cursor.ask(_Unreadable(), changes=changes)
    assert session.ask.evaluate("1 + 1").error is None


def test_the_text_of_an_exception_is_the_one_that_was_printed(tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "fixtures" / "travel" / "fails_with_a_number_first.py"
    with Session(record_file(program, tmp_path, status=1)) as session:
        assert session.here.message == "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'"
        session.seek("@start")
        assert session.seek("@exc").count == session.index.end
