"""Futures that ended alike are one group, and the share counts only those that have a verdict."""

from hypothesis import given
from hypothesis import strategies as st

from replaydbg.futures.future import Future, FutureVerdict
from replaydbg.futures.futures_text import FuturesReport, futures_lines, next_command
from replaydbg.futures.grouping import MOST_ENDINGS, grouped, share_of
from replaydbg.futures.launcher import Futures
from replaydbg.replay.ending import ExceptionFrame, Uncaught

_PASSED, _FAILED, _OPEN = FutureVerdict.PASSED, FutureVerdict.FAILED, FutureVerdict.INCONCLUSIVE


def future(
    seed: int, verdict: FutureVerdict = _PASSED, text: str | None = None, line: str = "", file: str = "bank.py"
) -> Future:
    """Return one; a text is that of the exception that ended it."""
    frame = ExceptionFrame(file, 12, "<module>", False)
    exception = Uncaught("ValueError", text, (frame,)) if text is not None else None
    why = "needs posix.unlink('x') at bank.py:9" if verdict is _OPEN else ""
    return Future(seed, verdict, int(verdict is _FAILED), exception, False, why, line, line, 90, 0.0)


def _found(futures: list[Future]) -> Futures:
    return Futures("run-1", 70, tuple(grouped(futures)), {}, share_of(futures), 1.5, 0.5)


def test_failures_come_first_and_inconclusive_ones_last() -> None:
    futures = [future(1, _OPEN), future(2), future(3, _FAILED, "a"), future(4), future(5, _FAILED, "b")]

    groups = grouped(futures)

    assert [(group.verdict, group.ending, len(group.futures)) for group in groups] == [
        (_FAILED, "ValueError: a at bank.py:12", 1),
        (_FAILED, "ValueError: b at bank.py:12", 1),
        (_PASSED, "exit code 0", 2),
        (_OPEN, "needs posix.unlink('x') at bank.py:9", 1),
    ]


def test_many_texts_at_one_line_are_one_group() -> None:
    futures = [future(seed, _FAILED, f"lost {seed}", f"line {seed}") for seed in range(MOST_ENDINGS + 1)]

    (group,) = grouped(futures)

    assert (group.ending, group.outputs, group.last_line) == ("ValueError at bank.py:12", MOST_ENDINGS + 1, "")


@given(st.lists(st.sampled_from([_PASSED, _FAILED, _OPEN]), max_size=60))
def test_each_future_is_in_one_group(verdicts: list[FutureVerdict]) -> None:
    futures = [future(seed, verdict) for seed, verdict in enumerate(verdicts)]

    seeds = sorted(each.seed for group in grouped(futures) for each in group.futures)
    share = share_of(futures)

    assert seeds == list(range(len(verdicts)))
    assert (share.failed, share.decided) == (verdicts.count(_FAILED), len(verdicts) - verdicts.count(_OPEN))


def test_a_file_is_named_without_its_directory() -> None:
    futures = [future(2, _FAILED, "x", file="/home/ann/b.py")]

    lines = list(futures_lines(FuturesReport(_found(futures), {})))

    assert any(line.endswith("ValueError: x at b.py:12 (seed 2)") for line in lines)


def test_the_answer_in_words() -> None:
    futures = [future(1), future(2, _FAILED, "no money"), future(3, _OPEN), future(4, line="paid")]
    report = FuturesReport(_found(futures), {1: "run-2", 2: "run-3"})

    lines = list(futures_lines(report))

    assert lines[0].startswith("4 futures of run-1 after event 70: 1 of 3 failed (33%; 95 % confidence interval: ")
    assert lines[0].endswith("; 1 inconclusive, in 1.5 s")
    assert "      1  ValueError: no money at bank.py:12 (seed 2: run-3)" in lines
    assert "      1  inconclusive: needs posix.unlink('x') at bank.py:9 (seed 3)" in lines
    assert "         | paid" in lines
    assert lines[-2:] == [
        "Open one: replaydbg debug run-3",
        "Find what decides: replaydbg bisect recordings run-2 run-3",
    ]


def test_nothing_decides_among_those_that_passed() -> None:
    report = FuturesReport(_found([future(1), future(2)]), {1: "run-2"})

    assert next_command(report) == ()
