"""The live directory of a forked child is read with its parent's recording before it; nothing in either is trusted."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from replaydbg.errors import Corrupt, NotARecording, ReplaydbgError
from replaydbg.events.records import Event
from replaydbg.log.container import seal
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.group import Group, GroupProcess, new_page, page_rows, read_group, write_group
from replaydbg.log.live_cuts import LiveCut
from replaydbg.log.live_directory import LiveDirectory
from replaydbg.log.reader import open_recording
from tests.harness.build import Example, LogBuilder, end_json, header_json, with_header

_PIECE = 1 << 20


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A group: process 1 has three events, its child 2 left it after two and has one more, whose child 3 has another.

    All are live. The header of each is that of the first.
    """
    group = tmp_path / "run-1.rdbgs"
    group.mkdir()
    first, second, third = (_log(number) for number in (1, 2, 3))
    header = header_json(name="run-1/1", group="ab", process=1)
    after_two = _log(1, events=2)
    parts = {1: (first, None), 2: (second, (1, 3, len(after_two))), 3: (third, (2, 4, len(after_two) + _own(second)))}
    for number, (log, branch) in parts.items():
        content = b"%d" % number * 10
        live = Example(header=header, log=log, content=content).write_live(group, str(number))
        (live / "log").write_bytes(log)
        if branch is not None:
            _write_branch(live, number, *branch, content=10 * (number - 1))
    return group


def _log(number: int, events: int = 0) -> bytes:
    log = LogBuilder()
    for each in range(events or {1: 3, 2: 1, 3: 1}[number]):
        log.crossing(0, float(10 * number + each), has_frame=False, line=2 * number + each)
    return log.to_bytes()


def _own(log: bytes) -> int:
    return len(log) - LOG_HEADER


def _write_branch(live: Path, number: int, parent: int, event: int, log: int, **changes: Any) -> None:
    world = LogBuilder().to_bytes()
    data = {"process": number, "parent": parent, "event": event, "log": log, "world": len(world), "content": 0}
    (live / "branch.json").write_text(json.dumps(data | changes))


def _change_branch(live: Path, **changes: Any) -> None:
    data = json.loads((live / "branch.json").read_text())
    (live / "branch.json").write_text(json.dumps(data | changes))


def _section(path: Path, name: str) -> bytes:
    with open_recording(path) as recording:
        return recording.section(name)


def test_a_child_is_its_parent_up_to_the_fork_and_then_itself(directory: Path) -> None:
    with open_recording(directory / "3.rdbg-live") as recording:
        log = recording.section("log")
        content = recording.section("content")
        header = recording.header
        name = recording.name

    one, two, three = ((directory / f"{number}.rdbg-live" / "log").read_bytes() for number in (1, 2, 3))
    assert log[LOG_HEADER:] == _log(1, events=2)[LOG_HEADER:] + two[LOG_HEADER:] + three[LOG_HEADER:]
    assert one.startswith(_log(1, events=2)[LOG_HEADER:][:8], LOG_HEADER)
    assert content == b"1" * 10 + b"2" * 10 + b"3" * 10
    assert (name, header.name, header.process, header.group) == ("run-1/3", "run-1/3", 3, "ab")
    assert header.branch is not None and (header.branch.process, header.branch.event) == (2, 4)


def test_the_parent_may_be_sealed_first(directory: Path) -> None:
    before = _section(directory / "3.rdbg-live", "log")
    for number in (1, 2):
        seal(directory / f"{number}.rdbg-live", directory / f"{number}.rdbg", end_json())

    assert _section(directory / "3.rdbg-live", "log") == before
    seal(directory / "3.rdbg-live", directory / "3.rdbg", end_json())
    for each in (directory / "1.rdbg", directory / "2.rdbg"):
        each.unlink()
    assert _section(directory / "3.rdbg", "log") == before
    with open_recording(directory / "3.rdbg") as recording:
        assert recording.header.branch is not None
        assert not recording.damage


def test_the_parent_is_sealed_while_it_is_opened(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _section(directory / "3.rdbg-live", "log")
    live, sealed = directory / "2.rdbg-live", directory / "2.rdbg"
    shutil.copytree(live, directory / "copy.rdbg-live")
    seal(live, directory / "sealed", end_json())
    (directory / "copy.rdbg-live").rename(live)

    class Sealed(LiveDirectory):
        """Files of the parent's live directory go before it is read."""

        def __init__(self, path: Path) -> None:
            if path == live and not sealed.exists():
                (directory / "sealed").rename(sealed)
                (live / "log").unlink()
            super().__init__(path)

    monkeypatch.setattr("replaydbg.log.branch.LiveDirectory", Sealed)
    seal(directory / "3.rdbg-live", directory / "3.rdbg", end_json())

    assert _section(directory / "3.rdbg", "log") == before


def test_a_prefix_of_many_blocks_is_sealed_in_whole_blocks(directory: Path) -> None:
    (directory / "1.rdbg-live" / "content").write_bytes(b"x" * (3 * _PIECE))
    _change_branch(directory / "2.rdbg-live", content=3 * _PIECE)

    seal(directory / "2.rdbg-live", directory / "2.rdbg", end_json())

    with open_recording(directory / "2.rdbg") as recording:
        lengths = [len(piece) for piece in recording.pieces("content")]
    assert lengths == [_PIECE] * 3 + [10]


@pytest.mark.parametrize("name", ["log", "world"])
def test_a_prefix_longer_than_the_parent(name: str, directory: Path) -> None:
    _change_branch(directory / "2.rdbg-live", **{name: 1 << 40})

    with open_recording(directory / "2.rdbg-live") as recording:
        entries = list(recording.events())
        damage = " ".join(recording.damage)

    assert f"begins after 1,099,511,627,776 bytes of its parent's section {name!r}" in damage
    if name == "log":
        assert entries == []
    with pytest.raises(Corrupt, match="a part of its parent's recording is missing"):
        seal(directory / "2.rdbg-live", directory / "2.rdbg", end_json())
    assert (directory / "2.rdbg-live" / "log").exists() and not (directory / "2.rdbg").exists()


def test_the_parent_is_missing(directory: Path) -> None:
    shutil.rmtree(directory / "1.rdbg-live")

    for number in (2, 3):
        with open_recording(directory / f"{number}.rdbg-live") as recording:
            assert list(recording.events()) == []
            assert any("missing or damaged" in each or "has only" in each for each in recording.damage)


def test_the_parent_is_cut(directory: Path) -> None:
    seal(directory / "1.rdbg-live", directory / "1.rdbg", end_json())
    data = (directory / "1.rdbg").read_bytes()
    (directory / "1.rdbg").write_bytes(data[: len(data) // 3])

    with open_recording(directory / "2.rdbg-live") as recording:
        events = [each for each in recording.events() if isinstance(each, Event)]
        assert recording.damage
    assert events == []


def test_the_parent_belongs_to_another_group(directory: Path) -> None:
    header = json.loads((directory / "1.rdbg-live" / "header.json").read_text())
    (directory / "1.rdbg-live" / "header.json").write_text(json.dumps(header | {"group": "cd"}))

    with pytest.raises(Corrupt, match="belongs to another group"):
        open_recording(directory / "2.rdbg-live")


@pytest.mark.parametrize(
    "changes",
    [
        {"parent": 2},  # itself
        {"parent": 3},  # its own child: a cycle
        {"parent": 0},
        {"parent": -1},
        {"parent": "1"},
        {"process": 0},
        {"process": 1 << 40},
        {"event": 0},
        {"event": 1 << 70},
        {"log": 10},
        {"log": -1},
        {"log": None},
        {"world": 1.5},
        {"content": True},
    ],
    ids=str,
)
def test_a_forged_branch(changes: dict[str, Any], directory: Path) -> None:
    _change_branch(directory / "2.rdbg-live", **changes)

    with pytest.raises(Corrupt, match=r"branch\.json"):
        open_recording(directory / "2.rdbg-live")


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 10_000, '{"process": NaN}'], ids=range(6))
def test_a_branch_that_is_no_branch(text: str, directory: Path) -> None:
    (directory / "2.rdbg-live" / "branch.json").write_text(text)

    with pytest.raises(Corrupt):
        open_recording(directory / "2.rdbg-live")


def test_too_many_ancestors(directory: Path) -> None:
    for number in range(4, 80):
        shutil.copytree(directory / "3.rdbg-live", directory / f"{number}.rdbg-live")
        _change_branch(directory / f"{number}.rdbg-live", process=number, parent=number - 1)

    with open_recording(directory / "79.rdbg-live") as recording:
        assert list(recording.events()) == []
        assert recording.damage
    with open_recording(directory / "20.rdbg-live") as recording:
        assert not any("ancestors" in each for each in recording.damage)


@pytest.mark.parametrize(
    "branch",
    [
        {"process": 2, "event": 3, "log": 99, "world": 99, "content": 0},
        {"process": 1, "event": 0, "log": 99, "world": 99, "content": 0},
        {"process": 1, "event": 3, "log": 9, "world": 99, "content": 0},
        {"process": 1, "event": 3, "log": 99, "world": 99, "content": -1},
        {"event": 3},
        [],
        7,
    ],
    ids=str,
)
def test_a_forged_branch_in_the_header_of_a_sealed_recording(branch: Any, directory: Path, tmp_path: Path) -> None:
    seal(directory / "2.rdbg-live", directory / "2.rdbg", end_json())
    forged = with_header(directory / "2.rdbg", tmp_path / "f.rdbg", lambda header: header.update(branch=branch))

    with pytest.raises(Corrupt, match="in its header"):
        open_recording(forged)


def test_verify_finds_a_branch_event_that_is_no_fork(directory: Path) -> None:
    seal(directory / "2.rdbg-live", directory / "2.rdbg", end_json())

    with open_recording(directory / "2.rdbg") as recording:
        recording.check()
        assert "Its header says that it was forked at event 3, which is no such fork." in recording.damage


# ---- the rows ----

_ROWS = [
    GroupProcess(1, 100, 0, 0, "program", ["p.py"], True, 0, "launcher", "1.rdbg", ""),
    GroupProcess(2, 101, 1, 5, "fork", ["p.py"], True, -9, "parent", "2.rdbg", ""),
    GroupProcess(4, 102, 2, 7, "other", None, False, None, "", None, "another program"),
]


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    group = Group("ab", _ROWS, 3, True)

    write_group(tmp_path, group)

    assert read_group(tmp_path) == group
    assert (tmp_path / "group.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 1},
        {"number": 0},
        {"number": True},
        {"parent": 2},
        {"parent": 3},
        {"parent": -1},
        {"pid": "7"},
        {"event": None},
        {"how": 1},
        {"argv": "p.py"},
        {"argv": [1]},
        {"ended": 1},
        {"status": "0"},
        {"recording": "../../2.rdbg"},
        {"recording": "1.rdbg"},
        {"why_not": None},
    ],
    ids=str,
)
def test_a_forged_row(changes: dict[str, Any], tmp_path: Path) -> None:
    write_group(tmp_path, Group("ab", _ROWS, 0, True))
    data = json.loads((tmp_path / "group.json").read_text())
    data["processes"][1].update(changes)
    (tmp_path / "group.json").write_text(json.dumps(data))

    with pytest.raises(Corrupt):
        read_group(tmp_path)


_CUT: dict[str, Any] = {"ticket": 8, "time": 1, "process": 1, "position": 3, "name": "x"}


def test_cuts_are_kept(tmp_path: Path) -> None:
    write_group(tmp_path, Group("ab", _ROWS, 0, True, (LiveCut(**_CUT),)))

    assert read_group(tmp_path).cuts == (LiveCut(**_CUT),)


@pytest.mark.parametrize(
    "cuts",
    [[{}], [1], [_CUT | {"ticket": -1}], [_CUT | {"time": 1 << 64}], [_CUT | {"name": 1}], [_CUT | {"process": True}]],
)
def test_a_forged_cut(cuts: list[Any], tmp_path: Path) -> None:
    write_group(tmp_path, Group("ab", _ROWS, 0, True))
    data = json.loads((tmp_path / "group.json").read_text())
    (tmp_path / "group.json").write_text(json.dumps(data | {"cuts": cuts}))

    with pytest.raises(Corrupt, match="invalid cut"):
        read_group(tmp_path)


@pytest.mark.parametrize("name", ["number", "argv", "status", "recording", "why_not"])
def test_a_row_without_a_field(name: str, tmp_path: Path) -> None:
    write_group(tmp_path, Group("ab", _ROWS, 0, True))
    data = json.loads((tmp_path / "group.json").read_text())
    del data["processes"][1][name]
    (tmp_path / "group.json").write_text(json.dumps(data))

    with pytest.raises(Corrupt, match=f"invalid {name!r}"):
        read_group(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"format": 2}', '{"format": 1}', "[" * 99_999, " " * (5 << 20)], ids=range(8)
)
def test_rows_that_are_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "group.json").write_text(text)

    with pytest.raises(Corrupt):
        read_group(tmp_path)


def test_there_are_no_rows(tmp_path: Path) -> None:
    with pytest.raises(ReplaydbgError):
        read_group(tmp_path)
    (tmp_path / "group.json").mkdir()
    with pytest.raises(NotARecording):
        read_group(tmp_path)


def test_a_new_page_has_one_row(tmp_path: Path) -> None:
    new_page(tmp_path / "page", 0)

    rows, more = page_rows(tmp_path)

    assert [(each.number, each.how, each.pid, each.has_ended) for each in rows] == [(1, "program", 0, False)]
    assert more == 0


@pytest.mark.parametrize("size", [0, 10, 63, 64, 1000])
def test_a_page_that_is_cut(size: int, tmp_path: Path) -> None:
    new_page(tmp_path / "page", 0)
    (tmp_path / "page").write_bytes((tmp_path / "page").read_bytes()[:size])

    with pytest.raises(Corrupt):
        page_rows(tmp_path)
