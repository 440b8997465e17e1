"""The log of a mixed run: exchanged parts are exchanged, all others are unchanged byte for byte."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.bisect.twins import Input, InputKind, compare, elapsed
from replaydbg.errors import NotComparable
from replaydbg.events.records import Control, ControlKind, Event, Site, SwitchReason
from replaydbg.events.values import ContentRef, ExceptionValue, StatResult, TypeName, Value
from replaydbg.hunt.mixture import mixture
from replaydbg.hunt.reading import open_twins
from replaydbg.log.coding.encode import varint
from replaydbg.log.edit.mix import Mixer
from replaydbg.log.edit.schedule import OtherTurns, choices, possible_choices, without_preemptions
from replaydbg.log.entries.raw import RawRecord
from replaydbg.log.reader import open_recording
from tests.harness.build import Example, LogBuilder, end_json, header_json

WHYS = list(SwitchReason)
SITE = Site("time.time", None, None, None, 0)
TURNS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3), st.integers(0, 9)), max_size=20)


# ---- orders of lanes ----


def _schedule(turns: Iterable[tuple[int, int, int, int]]) -> list[RawRecord]:
    """Return a log of three lanes: after some events one gives way to another one, for a reason, after some ticks."""
    records: list[RawRecord] = []
    lane, number = 0, 0
    for events, to, why, ticks in turns:
        for _ in range(events):
            number += 1
            records.append(
                RawRecord(b"%d/%d" % (lane, number), Event(number, lane, SITE, None, False, 1.0, None, None, 0))
            )
        if to != lane:
            data = varint(5 << 2 | 2) + varint(to) + varint(why) + varint(ticks)
            records.append(RawRecord(data, Control(ControlKind.LANE, number, lane, 0, to, why=WHYS[why], ticks=ticks)))
            lane = to
    return records


def _by_lane(data: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for each in data:
        if b"/" in each:
            found[each.partition(b"/")[0]].append(each)
    return found


def _switches(data: Iterable[bytes]) -> list[tuple[int, int]]:
    """Return why lanes gave way, and the ticks."""
    return [(each[2] & 3, each[3]) for each in data if b"/" not in each]


@given(turns=TURNS)
def test_nothing_left_out_changes_nothing(turns: list[tuple[int, int, int, int]]) -> None:
    records = _schedule(turns)

    assert list(without_preemptions(records, ())) == [raw.data for raw in records]


@given(turns=TURNS, chosen=st.sets(st.integers(0, 8)))
def test_each_lane_does_what_it_did_without_what_is_left_out(
    turns: list[tuple[int, int, int, int]], chosen: set[int]
) -> None:
    records = _schedule(turns)

    written = list(without_preemptions(records, chosen))

    assert _by_lane(written) == _by_lane(raw.data for raw in records)
    before = [why for why, _ in _switches(raw.data for raw in records)]
    after = [why for why, _ in _switches(written)]
    preempted = WHYS.index(SwitchReason.PREEMPTED)
    assert all(after.count(why) <= before.count(why) for why in range(4))
    assert after.count(preempted) <= before.count(preempted)


@given(turns=TURNS, chosen=st.sets(st.integers(0, 8)), at=st.frozensets(st.integers(0, 12)), seed=st.integers(0, 5))
def test_each_lane_does_what_it_did_in_another_order(
    turns: list[tuple[int, int, int, int]], chosen: set[int], at: frozenset[int], seed: int
) -> None:
    records = _schedule(turns)
    other = OtherTurns(at, lambda lane, marks: (lane * 7 + marks * 3 + seed) % 5)

    written = list(without_preemptions(records, chosen, other))

    assert _by_lane(written) == _by_lane(raw.data for raw in records)
    made = choices(records, chosen, other)
    assert {each.switch for each in made} <= at
    assert all(each.chosen != each.recorded for each in made)


@given(turns=TURNS, seed=st.integers(0, 5))
def test_each_possible_choice_is_made_when_it_is_asked_for(turns: list[tuple[int, int, int, int]], seed: int) -> None:
    records = _schedule(turns)
    none = OtherTurns(frozenset(), lambda lane, marks: (lane * 7 + marks * 3 + seed) % 5)

    for each in possible_choices(records, (), none):
        made = choices(records, (), OtherTurns(frozenset({each.switch}), none.rank))
        assert made == [each]


def test_who_waits_for_a_lock_is_not_let_go_on_before_its_turn() -> None:
    lock, crossing = WHYS.index(SwitchReason.LOCK), WHYS.index(SwitchReason.CROSSING)
    start = RawRecord(b"start", Control(ControlKind.LANE_STARTED, 0, 0, 0, 1, name="a"))
    for why, number in ((lock, 0), (crossing, 1)):
        records = [
            start,
            *_schedule([(1, 1, crossing, 0), (1, 0, why, 0), (1, 2, crossing, 0), (1, 1, crossing, 0), (1, 1, 0, 0)]),
        ]
        found = possible_choices(records, (), OtherTurns(frozenset(), lambda lane, marks: -lane if lane < 2 else 9))
        assert len([each for each in found if each.chosen == 1]) == number


def test_ticks_are_added_up_where_a_lane_goes_on() -> None:
    preempted, ended = WHYS.index(SwitchReason.PREEMPTED), WHYS.index(SwitchReason.ENDED)
    records = _schedule([(1, 1, preempted, 5), (1, 0, preempted, 3), (0, 1, ended, 4), (1, 1, 0, 0)])

    written = list(without_preemptions(records, {0}))

    assert [each for each in written if b"/" in each] == [b"0/1", b"1/2", b"1/3"]
    assert _switches(written)[0] == (ended, 9)


# ---- answers ----

STAT = StatResult(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
MISSING = ExceptionValue(TypeName("builtins", "FileNotFoundError"), (2, "gone"), (2, "gone", "x", None))


def _run(stat: Value, filled: Value, *, clock: float, more: bool, status: int, seed: int) -> Example:
    log, world = LogBuilder(), LogBuilder()
    log.crossing(0, clock, line=3)
    log.crossing(4, stat, line=4, arguments=("x",))
    log.crossing(3, 4, line=5, filled=filled)
    if more:
        log.crossing(1, b"1234", line=6, arguments=(4,))
        world.answer("stat", "/src/more.py", 1, MISSING)
    log.control(3, varint(status))
    world.answer("getcwd", "", 1, "/home/user/project")
    return Example(
        header=header_json(hash_seed=seed, env={"NAME": "good"} if more else {}),
        end=end_json(events=log.crossings, status=status),
        log=log.to_bytes(),
        world=world.to_bytes(),
        content=b"good" if more else b"evil",
    )


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    good = _run(STAT, ContentRef(0, 4), clock=1.0, more=True, status=0, seed=1)
    bad = _run(MISSING, ContentRef(0, 4), clock=2.0, more=False, status=1, seed=2)
    return good.write(tmp_path, "good"), bad.write(tmp_path, "bad")


def _mixed(both: tuple[Path, Path], place: Path, *, kinds: set[InputKind], gate: str = "") -> tuple[list[Event], Path]:
    with open_twins(*both) as twins:
        changes: list[Input] = [
            each
            for each in compare(twins.good_side, twins.bad_side).inputs
            if each.kind in kinds and gate in ("", each.gate)
        ]
        shared = place / "shared"
        shared.mkdir()
        target = place / "mixed.rdbg-live"
        Mixer(twins.bad, twins.good, shared).write(target, mixture(changes, is_bad_base=True))
    with open_recording(target) as recording:
        events = [entry for entry in recording.events() if isinstance(entry, Event)]
        assert recording.damage == ()
    return events, target


def test_what_is_told_otherwise_is_found(both: tuple[Path, Path]) -> None:
    with open_twins(*both) as twins:
        inputs = compare(twins.good_side, twins.bad_side).inputs

    assert [(each.kind, each.name or each.gate) for each in inputs] == [
        (InputKind.HASH_SEED, ""),
        (InputKind.ENVIRONMENT, "NAME"),
        (InputKind.ANSWER, "time.time"),
        (InputKind.ANSWER, "os.stat"),
        (InputKind.ANSWER, "_io.FileIO.readinto"),
    ]


def test_an_answer_of_the_other_run_stands_in_its_place(both: tuple[Path, Path], tmp_path: Path) -> None:
    events, _ = _mixed(both, tmp_path, kinds={InputKind.ANSWER}, gate="os.stat")

    assert [event.outcome for event in events[:2]] == [2.0, STAT]
    assert [event.raised for event in events[:2]] == [False, False]


def test_contents_come_along(both: tuple[Path, Path], tmp_path: Path) -> None:
    events, target = _mixed(both, tmp_path, kinds={InputKind.ANSWER}, gate="_io.FileIO.readinto")

    with open_recording(target) as recording:
        assert recording.content(events[2].filled) == b"good"
        assert {answer.path for answer in recording.world()} == {"", "/src/more.py"}


def test_the_events_of_the_other_run_stand_behind_the_end(both: tuple[Path, Path], tmp_path: Path) -> None:
    events, _ = _mixed(both, tmp_path, kinds=set())

    with open_recording(both[0]) as good, open_recording(both[1]) as bad:
        wanted = [each for each in (*bad.events(), *good.events()) if isinstance(each, Event)]
    assert [(each.site, each.arguments, each.raised) for each in events] == [
        (each.site, each.arguments, each.raised) for each in wanted
    ]
    assert [each.outcome for each in events] == [each.outcome for each in wanted]


def test_what_holds_from_the_start_is_exchanged_in_the_header(both: tuple[Path, Path], tmp_path: Path) -> None:
    _, target = _mixed(both, tmp_path, kinds={InputKind.HASH_SEED, InputKind.ENVIRONMENT})

    with open_recording(target) as recording:
        assert recording.header.hash_seed == 1
        assert dict(recording.header.env) == {"NAME": "good"}


def test_a_clock_can_answer_as_if_both_runs_had_begun_at_once() -> None:
    answers = [
        Input(InputKind.ANSWER, "", good, bad, number, number, "time.time")
        for number, (good, bad) in enumerate([(10.0, 50.0), (10.5, 50.5), (11.0, 53.0)], 1)
    ]

    (only,) = elapsed(answers)

    assert (only.good, only.bad, only.good_event, only.is_elapsed) == (51.0, 53.0, 3, True)


def test_what_is_no_clock_has_not_begun() -> None:
    assert elapsed([Input(InputKind.ANSWER, "", 1, 2, 1, 1, "os.getpid")]) == []
    assert elapsed([Input(InputKind.ANSWER, "", "a", "b", 1, 1, "time.ctime")]) == []
    assert elapsed([]) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"target": "other.py"}, "of two different programs, 'prog.py' and 'other.py'"),
        ({"kind": "module", "target": "prog"}, "of two different programs"),
        (
            {"python": header_json()["python"] | {"hexversion": 0x030C01F0, "version": "3.12.1"}},
            "Python 3.11.7 and with 3",
        ),
    ],
)
def test_what_was_recorded_otherwise_is_not_compared(
    change: dict[str, Value], sentence: str, both: tuple[Path, Path], tmp_path: Path
) -> None:
    other = Example(header=header_json(**change), log=LogBuilder().to_bytes()).write(tmp_path, "other")

    with pytest.raises(NotComparable, match=sentence):
        open_twins(both[0], other)
