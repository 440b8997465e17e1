"""Common data of a group's recordings is stored once, and each reads as if it had all of it itself."""

import errno
import json
import os
import random
import resource
import shutil
import signal
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest

from replaydbg.errors import BlocksMissing, ReplaydbgError
from replaydbg.log import container
from replaydbg.log.container import Writer, seal
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.group import Group, GroupProcess, size_of_group, write_group
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.group_blocks import Common, CommonPart, GroupBlocks, common_of
from replaydbg.log.sealed.shared import DIRECTORY, STEP, compressor
from replaydbg.log.used_blocks import block_files, restore_blocks
from replaydbg.store.clearing import blocks_in, clear
from tests.harness.build import Example, LogBuilder, end_json, header_json

_PIECE = 1 << 20
SMALL = b"print(1)\n"
_GATES = [{"name": f"gate.number_{number}", "shape": 0, "kind": "regular"} for number in range(400)]


@pytest.fixture
def group(tmp_path: Path) -> Path:
    directory = tmp_path / "run-1.rdbgs"
    directory.mkdir()
    return directory


def _bytes(size: int, seed: int = 1) -> bytes:
    """Return bytes that compress a little, and by nothing else than what they are."""
    return bytes(random.Random(seed).choices(b"abcdefgh", k=size))


def _world(size: int) -> bytes:
    world = LogBuilder()
    for number, start in enumerate(range(0, size, 50_000)):
        world.answer("read", f"/src/module_{number}.py", 1, _bytes(50_000, start))
    return world.to_bytes()


def _log(events: int, first: int = 0) -> bytes:
    log = LogBuilder()
    for number in range(events):
        log.crossing(1, _bytes(100, first + number), arguments=(8,))
    return log.to_bytes()


def _live(group: Path, number: int, *, world: int = 150_000, log: bytes = b"", content: bytes = b"") -> Path:
    header = header_json(name="run-1/1", group="ab", process=number, gates=_GATES[:5] + _GATES)
    header["gates"][:5] = header_json()["gates"]
    return Example(header=header, log=log or _log(3), world=_world(world), content=content).write_live(
        group, str(number)
    )


def _branch(group: Path, number: int, *, log: bytes, before: bytes, content: int = 0, own: bytes = b"") -> Path:
    """Write the live directory of a child of process 1 with `before` as the beginning of its log."""
    live = _live(group, number, world=0, log=log, content=own)
    (live / "world").write_bytes(LogBuilder().to_bytes())
    world = len((group / "1.rdbg-live" / "world").read_bytes()) - 1000
    data = {"process": number, "parent": 1, "event": 1, "log": len(before), "world": world, "content": content}
    (live / "branch.json").write_text(json.dumps(data))
    return live


def _seal(live: Path, *, has_forked: bool = False, sources: tuple[tuple[str, int, bytes], ...] = ()) -> Path:
    target = live.with_name(live.name.removesuffix("-live"))
    common = Common(GroupBlocks(BlockPlaces(live.parent)), has_forked)
    names = {f"/src/{number}.py": name for number, (name, _, _) in enumerate(sources)}
    seal(
        live,
        target,
        end_json(sources=names, packages={f"package-{n}": "1.0" for n in range(200)}),
        sources,
        common=common,
    )
    return target


def _files(group: Path) -> set[str]:
    return {path.name for path in (group / DIRECTORY).iterdir()}


def _own_size(recording: Path) -> int:
    return recording.stat().st_size


def _source(text: bytes) -> tuple[str, int, bytes]:
    return blake2b(text, digest_size=16).hexdigest(), len(text), compressor()(text)


@pytest.mark.parametrize("content", [0, 1000, _PIECE, _PIECE + STEP + 5, 3 * _PIECE])
@pytest.mark.parametrize("world", [0, 40_000, _PIECE, 2_300_000])
def test_each_reads_as_if_it_had_everything(group: Path, world: int, content: int) -> None:
    for number in (1, 2, 3):
        live = _live(group, number, world=world, log=_log(40, number), content=_bytes(content))
        with open_recording(live) as recording:
            before = {
                name: recording.section(name) for name in ("header", "world", "log", "content") if recording.size(name)
            }
        path = _seal(live)
        with open_recording(path) as recording:
            after = {name: recording.section(name) for name in before}
            assert recording.end is not None and len(recording.end.packages) == 200
            recording.check()
            assert recording.problems == ()
        end = LOG_HEADER if world == 0 else len(_world(world))
        assert after["world"] == before["world"][:end]
        assert {name: after[name] for name in after if name not in ("world", "log")} == {
            name: before[name] for name in before if name not in ("world", "log")
        }
        assert before["log"].startswith(after["log"])


def test_the_second_adds_only_what_is_its_own(group: Path) -> None:
    text = _bytes(30_000, 9)
    one = _seal(_live(group, 1, world=2_300_000, content=_bytes(2 * _PIECE)), sources=(_source(text),))
    files, size = _files(group), size_of_group(group)

    others = [
        _seal(_live(group, number, world=2_300_000, content=_bytes(2 * _PIECE)), sources=(_source(text),))
        for number in (2, 3)
    ]

    assert _files(group) == files
    assert size > 500_000
    assert all(_own_size(each) < 5_000 for each in (one, *others))
    for each in others:
        with open_recording(each) as recording:
            assert recording.section(f"source/{_source(text)[0]}") == text


def test_a_small_source_stays_in_the_recording(group: Path) -> None:
    path = _seal(_live(group, 1), sources=(_source(SMALL),))

    assert _source(SMALL)[0] not in _files(group)
    with open_recording(path) as recording:
        assert recording.section(f"source/{_source(SMALL)[0]}") == SMALL


def test_the_log_of_one_that_forked_nothing_is_its_own(group: Path) -> None:
    _seal(_live(group, 1, log=_log(20_000)))
    files = _files(group)

    _seal(_live(group, 2, log=_log(20_000)))

    assert _files(group) == files
    with open_recording(group / "2.rdbg") as recording:
        assert not recording.is_shared("log")


@pytest.mark.parametrize("events", [3, 400, 20_000])
def test_the_beginning_of_a_forked_child_is_stored_once(group: Path, events: int) -> None:
    before = _log(events)
    _live(group, 1, log=before, content=_bytes(2 * _PIECE))
    children = [_branch(group, number, log=_log(5, number), before=before, content=_PIECE) for number in (2, 3, 4)]
    expected = {}
    for each in children:
        with open_recording(each) as recording:
            expected[each.name] = {name: recording.section(name) for name in ("header", "world", "log", "content")}

    sealed = [_seal(children[0])]
    sealed.append(_seal(group / "1.rdbg-live", has_forked=True))
    files = _files(group)
    sealed += [_seal(each) for each in children[1:]]

    assert _files(group) == files
    assert max(map(_own_size, sealed)) < STEP + 12_000
    for number, each in ((2, sealed[0]), (3, sealed[2]), (4, sealed[3])):
        with open_recording(each) as recording:
            for name, live in expected[f"{number}.rdbg-live"].items():
                found = recording.section(name)
                # The files of a live directory are allocated ahead.
                assert live.startswith(found) and not live[len(found) :].strip(b"\0"), (number, name)
            assert recording.damage == ()
    for each in (sealed[1], sealed[0], sealed[2]):
        each.unlink()  # a sealed child needs no other recording, only the blocks
    with open_recording(sealed[3]) as recording:
        assert expected["4.rdbg-live"]["log"].startswith(recording.section("log"))


def test_large_content_stays_in_place_but_for_what_the_parent_wrote(
    group: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "COMPRESS_CONTENT_UP_TO", _PIECE)
    before = _log(5)
    _live(group, 1, log=before, content=_bytes(2 * _PIECE))
    child = _branch(group, 2, log=_log(5, 2), before=before, content=2 * _PIECE, own=_bytes(_PIECE, 7))

    _seal(child)
    _seal(group / "1.rdbg-live", has_forked=True)

    with open_recording(group / "1.rdbg") as parent, open_recording(group / "2.rdbg") as recording:
        assert parent.content_in_place() is not None
        assert recording.section("content") == _bytes(2 * _PIECE) + _bytes(_PIECE, 7)
    assert _own_size(group / "2.rdbg") < _PIECE + 50_000


def test_a_parent_that_is_sealed_is_read_with_its_blocks(group: Path) -> None:
    before = _log(2_000)
    _live(group, 1, log=before)
    child = _branch(group, 2, log=_log(5, 2), before=before)
    with open_recording(child) as recording:
        expected = recording.section("log")

    _seal(group / "1.rdbg-live", has_forked=True)

    with open_recording(child) as recording:
        assert recording.section("log") == expected
        assert recording.damage == ()
    shutil.rmtree(group / DIRECTORY)
    with open_recording(child) as recording:
        assert any("parent" in each for each in recording.damage)


def _moved(path: Path, target: Path) -> Recording:
    target.mkdir()
    shutil.copy(path, target)
    return open_recording(target / path.name)


def test_a_recording_without_the_blocks(group: Path, tmp_path: Path) -> None:
    _seal(_live(group, 1))

    with pytest.raises(BlocksMissing):
        _moved(group / "1.rdbg", tmp_path / "elsewhere")


@pytest.mark.parametrize("damage", ["missing", "empty", "other", "cut", "directory", "link"])
def test_a_block_is_damaged(group: Path, damage: str) -> None:
    text = _bytes(30_000, 9)
    _seal(_live(group, 1, world=_PIECE), sources=(_source(text),))
    for path in (group / DIRECTORY).iterdir():
        data = path.read_bytes()
        path.unlink()
        if damage == "empty":
            path.touch()
        elif damage == "other":
            path.write_bytes(compressor()(_bytes(_PIECE, 99)))
        elif damage == "cut":
            path.write_bytes(data[: len(data) // 2])
        elif damage == "directory":
            path.mkdir()
        elif damage == "link":
            path.symlink_to("/etc/passwd")

    try:
        with open_recording(group / "1.rdbg") as recording:
            recording.check()
            damaged = " ".join(recording.damage)
    except ReplaydbgError as error:
        damaged = str(error)

    assert "missing" in damaged, damaged


def _refuse(*_: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize("damage", ["missing", "empty", "other"])
def test_a_block_is_read_from_the_store_if_that_of_the_group_is_damaged(
    group: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _bytes(30_000, 9)
    live = _live(group, 1, world=_PIECE)
    common = Common(GroupBlocks(BlockPlaces(group, group.parent)), has_forked=False)
    source = _source(text)
    seal(live, group / "1.rdbg", end_json(sources={"/src/0.py": source[0]}), (source,), common=common)
    for path in (group / DIRECTORY).iterdir():
        path.unlink()
        if damage == "empty":
            path.touch()
        elif damage == "other":
            path.write_bytes(compressor()(_bytes(_PIECE, 99)))

    with open_recording(group / "1.rdbg") as recording:
        recording.check()
        assert recording.problems == ()
        assert recording.stored("world") > 100_000
    files = block_files(group / "1.rdbg")
    assert files and {path.parent for path in files.values()} == {group.parent / DIRECTORY}
    with monkeypatch.context() as patch:
        patch.setattr("replaydbg.log.used_blocks.name_block", _refuse)
        refused = restore_blocks(group, [group / "1.rdbg"])
    assert refused == (0, len(files), "Read-only file system")
    assert restore_blocks(group, [group / "1.rdbg"]) == (len(files), 0, "")
    assert restore_blocks(group, [group / "1.rdbg"]) == (0, 0, "")
    shutil.rmtree(group.parent / DIRECTORY)
    with open_recording(group / "1.rdbg") as recording:
        recording.check()
        assert recording.problems == ()


def test_a_missing_source_is_reported(group: Path) -> None:
    text = _bytes(30_000, 9)
    path = _seal(_live(group, 1), sources=(_source(text),))
    (group / DIRECTORY / _source(text)[0]).unlink()

    with open_recording(path) as recording:
        recording.check()

        assert recording.damage == ("1 sources are missing or damaged, such as that of '/src/0.py'.",)


def test_what_compresses_very_well_can_be_read(group: Path) -> None:
    """A reader refuses what expands too far: the blocks that a section refers to count, each once."""
    with (group / "1.rdbg").open("wb") as file:
        writer = Writer(file)
        part = CommonPart(GroupBlocks(BlockPlaces(group)), is_steady=True)
        different = [b"%d" % number + bytes(_PIECE - len(b"%d" % number)) for number in range(70)]
        for name, content in (("header", [json.dumps(header_json()).encode()]), ("log", [_log(1)])):
            writer.section(name, content)
        writer.section("world", [_world(0)])
        writer.section("content", different, common=part)
        writer.section("end", [json.dumps(end_json()).encode()])
        writer.finish()

    with open_recording(group / "1.rdbg") as recording:
        recording.check()
        assert recording.problems == ()
        assert recording.section("content", limit=1 << 30) == b"".join(different)


def test_one_block_that_is_used_very_often_is_refused(group: Path) -> None:
    blocks = GroupBlocks(BlockPlaces(group))
    entry = blocks.entry(bytes(_PIECE))
    with (group / "1.rdbg").open("wb") as file:
        writer = Writer(file)
        for name, content in (("header", [json.dumps(header_json()).encode()]), ("log", [_log(1)])):
            writer.section(name, content)
        writer.shared("world", ((_PIECE, entry) for _ in range(200)))
        writer.section("end", [json.dumps(end_json()).encode()])
        writer.finish()

    with open_recording(group / "1.rdbg") as recording:
        recording.check()
        assert "claims 209,715,200 bytes, too many" in " ".join(recording.damage)


def _in_child(act: Callable[[], object]) -> int:
    """Run `act` in a process of its own and return its process id; the exit code is 1 if it raised OSError."""
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            act()
            code = 0
        except OSError:
            code = 1
        finally:
            os._exit(code)
    return pid


def _ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_several_seal_at_once(group: Path) -> None:
    lives = [_live(group, number, world=2_300_000) for number in range(1, 7)]

    started = [_in_child(lambda live=live: _seal(live)) for live in lives]  # type: ignore[misc]

    assert [_ended(each) for each in started] == [0] * 6
    for number in range(1, 7):
        with open_recording(group / f"{number}.rdbg") as recording:
            recording.check()
            assert recording.problems == ()
    assert not [path for path in group.rglob("*") if path.name.startswith(".") or path.name.endswith("-live")]


@pytest.mark.parametrize("after", [0, 1, 2, 4, 7, 11])
def test_killed_while_it_seals(group: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """It is killed before its Nth file gets its name: then either the directory or the file is complete."""
    live = _live(group, 1, world=_PIECE + 3 * STEP)
    with open_recording(live) as recording:
        expected = recording.section("header")
    real, left = os.replace, [after]

    def replace(*words: object) -> None:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        real(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", replace)
    ended = _ended(_in_child(lambda: _seal(live)))
    monkeypatch.undo()

    assert ended in (-signal.SIGKILL, 0)
    if ended:
        with open_recording(live) as recording:
            assert recording.section("header") == expected
        for path in group.iterdir():
            if path.name.endswith(".partial"):
                path.unlink()
        _seal(live)  # what is left of the first attempt hinders nothing
    with open_recording(group / "1.rdbg") as recording:
        recording.check()
        assert recording.problems == ()


@pytest.mark.parametrize("limit", [100, 3_000, 100_000, 300_000])
def test_the_disk_is_full(group: Path, limit: int) -> None:
    """A limit on the size of files has the same effects: a write is short, and the next one fails."""
    live = _live(group, 1, world=2 * _PIECE, log=_log(3_000))
    files = {path: path.read_bytes() for path in live.iterdir()}

    def with_limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        _seal(live)

    assert _ended(_in_child(with_limit)) == 1
    assert {path: path.read_bytes() for path in live.iterdir()} == files
    assert [path.name for path in group.iterdir() if path.is_file()] == []
    assert not [each for each in (group / DIRECTORY).glob(".*") if (group / DIRECTORY).is_dir()]
    _seal(live)
    with open_recording(group / "1.rdbg") as recording:
        recording.check()
        assert recording.problems == ()


def _rows(*how: str, parent: int = 1) -> list[GroupProcess]:
    first = GroupProcess(1, 100, 0, 0, "program", [], True, 0, "launcher", "1.rdbg", "")
    others = [
        GroupProcess(number, 100 + number, parent, 5, each, [], True, 0, "parent", f"{number}.rdbg", "")
        for number, each in enumerate(how, 2)
    ]
    return [first, *others]


def test_who_shares_what(group: Path) -> None:
    assert common_of(BlockPlaces(group), 1, _rows()) is None
    assert common_of(BlockPlaces(group), 1, [*_rows(), _rows("other")[1]._replace(recording=None)]) is None
    for how, has_forked in (("fork", True), ("python", False), ("exec", False)):
        found = common_of(BlockPlaces(group), 1, _rows(how))
        assert found is not None and found.has_forked == has_forked
    child = common_of(BlockPlaces(group), 2, _rows("fork"))
    assert child is not None and not child.has_forked


def test_blocks_of_a_removed_recording_are_cleared(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _seal(_live(group, 1, world=_PIECE))
    kept = _files(group)
    _seal(_live(group, 2, world=_PIECE, content=_bytes(_PIECE)))
    assert _files(group) > kept
    write_group(group, Group("ab", _rows("python"), 0, False))
    for path in (group / DIRECTORY).iterdir():
        os.utime(path, (0, 0))
    (group / "2.rdbg").unlink()

    running = clear(group)
    write_group(group, Group("ab", _rows("python"), 0, True))
    cleared = clear(group)

    assert (running.blocks, running.why_not) == (
        0,
        "Not all processes of the group have ended, or some could not be sealed.",
    )
    assert cleared.why_not == "" and cleared.blocks > 0
    assert {name for name in _files(group) if not name.startswith(".")} == kept
    with open_recording(group / "1.rdbg") as recording:
        recording.check()
        assert recording.problems == ()
    assert blocks_in(group.parent) == blocks_in(group) == [group]


def test_it_is_on_the_disk_before_it_counts(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks are written to the disk before the recording is marked as complete: also those of another process."""
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    for number in (1, 2):
        synced.clear()
        _seal(_live(group, number, world=_PIECE))
        last = max(at for at, name in enumerate(synced) if len(name) == 32 or name == DIRECTORY)
        assert {name for name in synced if len(name) == 32} == _files(group)
        assert synced[last] == DIRECTORY
        assert len([name for name in synced[last:] if name.endswith(".partial")]) >= 1
    for path in (group / DIRECTORY).iterdir():
        os.utime(path, (0, 0))
    synced.clear()
    _seal(_live(group, 3, world=_PIECE))
    assert not [name for name in synced if len(name) == 32]
