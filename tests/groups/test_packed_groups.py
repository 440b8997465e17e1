"""`pack` makes one file of a group, which `unpack` makes a group of again; hostile files write nothing."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.errors import Corrupt, NotARecording, ReplaydbgError
from replaydbg.log.container import seal
from replaydbg.log.edit.group_pack import PackedFile, _head, add_file, pack_group, packed_files, unpack_group
from replaydbg.log.files import DataFile
from replaydbg.log.group import Group, GroupProcess, read_group, write_group
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.group_blocks import Common, GroupBlocks
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.record.hiding import hiding_of
from tests.harness.build import example, header_json

_GATES = [{"name": f"gate.number_{number}", "shape": 0, "kind": "regular"} for number in range(400)]
_END = example().end | {"packages": {f"package-{number}": "1.0" for number in range(200)}}
_ROWS = [
    GroupProcess(1, 100, 0, 0, "program", ["prog.py"], True, 0, "launcher", "1.rdbg", ""),
    GroupProcess(2, 101, 1, 5, "python", ["prog.py"], True, -9, "parent", "2.rdbg", ""),
    GroupProcess(3, 102, 1, 7, "other", None, False, None, "", None, "another program"),
    GroupProcess(4, 103, 1, 9, "python", ["prog.py"], False, None, "", "4.rdbg", "it could not be sealed"),
]


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A group in a store: two sealed recordings that share blocks, another program, and one that was not sealed."""
    directory = tmp_path / "store" / "run-2.rdbgs"
    directory.mkdir(parents=True)
    for number in (1, 2, 4):
        live = _example(number).write_live(directory, str(number))
        (live / "end.json").write_text(json.dumps(_END))
        if number < 4:
            common = Common(GroupBlocks(BlockPlaces(directory)), has_forked=False)
            seal(live, directory / f"{number}.rdbg", _END, common=common)
    write_group(directory, Group("ab", _ROWS, 2, False))
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    return directory


def _example(number: int, group: str = "ab") -> Any:
    made = example()
    made.header = header_json(group=group, process=number, name=f"run-2/{number}")
    made.header["gates"] += _GATES
    return made


@pytest.fixture
def packed(group: Path, tmp_path: Path) -> Path:
    pack_group(group, tmp_path / "one.tar", hiding_of)
    return tmp_path / "one.tar"


def _everything(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in read_group(directory).processes:
        if each.recording is not None:
            path = directory / each.recording
            with open_recording(path if path.exists() else path.with_name(f"{path.name}-live")) as recording:
                found[each.recording] = {name: recording.section(name) for name in recording.sections if name != "end"}
                found[each.recording]["events"] = list(recording.events())
    return found


def test_there_and_back(group: Path, packed: Path, tmp_path: Path) -> None:
    made = unpack_group(packed, tmp_path / "other.rdbgs")

    assert made == read_group(group)._replace(is_complete=True)
    assert read_group(tmp_path / "other.rdbgs") == made
    assert _everything(tmp_path / "other.rdbgs") == _everything(group)
    names = {str(each.relative_to(group)) for each in group.rglob("*")}
    live = {each for each in names if each.startswith("4.rdbg")}
    assert {str(each.relative_to(tmp_path / "other.rdbgs")) for each in (tmp_path / "other.rdbgs").rglob("*")} == (
        names - live | {"4.rdbg"}
    )
    for each in (tmp_path / "other.rdbgs").rglob("*"):
        assert each.stat().st_mode & 0o077 == 0


def test_the_same_group_gives_the_same_bytes(group: Path, packed: Path, tmp_path: Path) -> None:
    for each in group.rglob("*"):
        os.utime(each, (0, 0))
    unpack_group(packed, tmp_path / "other.rdbgs")
    pack_group(tmp_path / "other.rdbgs", tmp_path / "two.tar", hiding_of)
    pack_group(tmp_path / "other.rdbgs", tmp_path / "three.tar", hiding_of)

    assert (tmp_path / "two.tar").read_bytes() == (tmp_path / "three.tar").read_bytes()
    assert packed.stat().st_mode & 0o077 == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "one.tar",
        "other.rdbgs",
        "store",
        "three.tar",
        "two.tar",
    ]


def test_other_tools_read_it(packed: Path, tmp_path: Path) -> None:
    with tarfile.open(packed) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "by-tar", filter="data")

    assert names[:4] == [f"group.rdbgs/{name}" for name in ("group.json", "1.rdbg", "2.rdbg", "4.rdbg")]
    assert all(name.startswith(f"group.rdbgs/{DIRECTORY}/") for name in names[4:]) and len(names) > 4
    assert len(_everything(tmp_path / "by-tar" / "group.rdbgs")) == 3


def test_the_commands(group: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    assert run("pack", "run-2", "-o", "g.tar")[:2] == (0, "g.tar\n")
    assert run("unpack", "g.tar")[:2] == (0, "run-3\n")
    assert run("verify", "run-3/2")[0] == 0
    assert run("ps", "run-3")[0] == 0
    facts = json.loads(run("unpack", "g.tar", "-o", "mine.rdbg", "--json")[1])
    assert (facts["name"], len(facts["processes"]), facts["group"]) == ("mine.rdbgs", 4, "ab")
    assert run("unpack", "g.tar", "-o", "mine")[0] == 2
    assert "exists already" in run("pack", "run-2", "-o", "g.tar")[2]
    assert json.loads(run("pack", "run-2", "-o", "h.tar", "--json")[1])["is_group"] is True
    assert run("pack", "run-3/2", "-o", "one.rdbg")[0] == 0  # one process, without the blocks
    assert run("verify", "one.rdbg")[0] == 0
    code, _, err = run("verify", "g.tar")
    assert code == 1 and "`replaydbg unpack`" in err
    code, _, err = run("unpack", "one.rdbg")
    assert code == 1 and "`pack`" in err
    assert run("unpack", "nowhere.tar")[0] == 2
    assert sorted(each.name for each in (tmp_path / "store").iterdir()) == ["run-2.rdbgs", "run-3.rdbgs"]


@pytest.mark.parametrize("what", ["missing", "cut", "other", "block", "source"])
def test_what_is_damaged_is_not_packed(group: Path, tmp_path: Path, what: str) -> None:
    path = group / "2.rdbg"
    if what == "missing":
        path.unlink()
    elif what == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif what == "other":
        path.unlink()
        _example(3).write(group, "2")
    else:
        for each in (group / DIRECTORY).iterdir():
            each.write_bytes(b"something")

    with pytest.raises(ReplaydbgError):
        pack_group(group, tmp_path / "bad.tar", hiding_of)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["store"]


def _parts(packed: Path) -> list[tuple[str, bytes]]:
    with DataFile(packed) as file:
        return [(each.name, file.read(each.offset, each.size)) for each in packed_files(file)[1]]


def _write(path: Path, parts: list[tuple[str, bytes]]) -> None:
    with path.open("wb") as out:
        for name, data in parts:
            add_file(out, name, len(data), [data])
        out.write(bytes(1024))


def _facts(change: Callable[[dict[str, Any]], object]) -> Callable[[list[tuple[str, bytes]]], list[tuple[str, bytes]]]:
    def changed(parts: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        data = json.loads(parts[0][1])
        change(data)
        return [(parts[0][0], json.dumps(data).encode()), *parts[1:]]

    return changed


_HOSTILE: dict[str, Callable[[list[tuple[str, bytes]]], list[tuple[str, bytes]]]] = {
    "a path above": lambda parts: [*parts[:2], ("../../evil", b"x"), *parts[2:]],
    "an absolute path": lambda parts: [*parts, ("/tmp/evil", b"x")],
    "a block above": lambda parts: [*parts, (f"{DIRECTORY}/../../evil", b"x")],
    "a block with another name": lambda parts: [*parts, (f"{DIRECTORY}/{'g' * 32}", b"x")],
    "a hidden file": lambda parts: [*parts, (".bashrc", b"x")],
    "the page": lambda parts: [*parts, ("page", b"x")],
    "a recording twice": lambda parts: [*parts[:2], parts[1], *parts[2:]],
    "a block twice": lambda parts: [*parts, parts[-1]],
    "blocks in another order": lambda parts: [*parts[:4], *reversed(parts[4:])],
    "no facts": lambda parts: parts[1:],
    "facts twice": lambda parts: [parts[0], *parts],
    "a recording is missing": lambda parts: [parts[0], *parts[2:]],
    "no blocks": lambda parts: parts[:4],
    "one recording in the place of another": lambda parts: [parts[0], ("1.rdbg", parts[2][1]), *parts[2:]],
    "no recording": lambda parts: [parts[0], ("1.rdbg", b"x" * 5000), *parts[2:]],
    "a large block": lambda parts: [*parts, (f"{DIRECTORY}/{'f' * 32}", bytes(2 << 21))],
    "large facts": lambda parts: [("group.json", b" " * (5 << 20)), *parts[1:]],
    "another group": _facts(lambda facts: facts.update(group="cd")),
    "a path as the name of a recording": _facts(lambda facts: facts["processes"][0].update(recording="../1.rdbg")),
    "a row twice": _facts(lambda facts: facts["processes"].insert(0, facts["processes"][0])),
    "a cycle": _facts(lambda facts: facts["processes"][0].update(parent=2)),
    "a newer format": _facts(lambda facts: facts.update(format=99)),
    "no JSON": lambda parts: [("group.json", b"{"), *parts[1:]],
    "nested": lambda parts: [("group.json", b"[" * 100_000), *parts[1:]],
}


@pytest.mark.parametrize("what", sorted(_HOSTILE))
def test_a_hostile_file_writes_nothing(packed: Path, tmp_path: Path, what: str) -> None:
    place = tmp_path / "a" / "b"
    place.mkdir(parents=True)
    _write(tmp_path / "hostile.tar", _HOSTILE[what](_parts(packed)))
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(ReplaydbgError):
        unpack_group(tmp_path / "hostile.tar", place / "made.rdbgs")

    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ((156, 157), b"1"),  # a hard link
        ((156, 157), b"2"),  # a symbolic link
        ((156, 157), b"3"),  # a device
        ((156, 157), b"5"),  # a directory
        ((156, 157), b"S"),  # a sparse file
        ((156, 157), b"x"),  # more attributes
        ((157, 168), b"/etc/passwd"),
        ((100, 108), b"0004755\0"),
        ((124, 136), b"77777777777\0"),
        ((124, 136), b"\x80" + b"\xff" * 11),
        ((124, 136), b"-0000000001\0"),
        ((124, 136), b"+0000000001\0"),
        ((345, 350), b"/tmp/"),
        ((0, 5), b"/etc/"),
        ((263, 265), b"99"),
    ],
)
@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_hostile_header(packed: Path, tmp_path: Path, field: tuple[int, int], value: bytes, number: int) -> None:
    data = bytearray(packed.read_bytes())
    with DataFile(packed) as file:
        start = packed_files(file)[1][number].offset - 512
    head = data[start : start + 512]
    head[slice(*field)] = value
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % (sum(head) & 0o777777)
    data[start : start + 512] = head
    (tmp_path / "hostile.tar").write_bytes(data)

    with pytest.raises((Corrupt, NotARecording)):
        unpack_group(tmp_path / "hostile.tar", tmp_path / "made.rdbgs")

    assert not list(tmp_path.glob("*made*"))


def test_a_file_that_is_cut_anywhere(packed: Path, tmp_path: Path) -> None:
    data = packed.read_bytes()
    for end in (*range(0, len(data), 509), len(data) - 1):
        (tmp_path / "cut.tar").write_bytes(data[:end])
        with pytest.raises((Corrupt, NotARecording)):
            unpack_group(tmp_path / "cut.tar", tmp_path / "made.rdbgs")
    (tmp_path / "longer.tar").write_bytes(data + b"\0")
    with pytest.raises(Corrupt, match="it does not end at byte"):
        unpack_group(tmp_path / "longer.tar", tmp_path / "made.rdbgs")
    assert not list(tmp_path.glob("*made*"))


def test_a_hole_takes_no_room(packed: Path, tmp_path: Path) -> None:
    """A large file that is a hole is a few kilobytes of the disk, and so is what is made of it."""
    parts = _parts(packed)
    size = 256 << 20
    with (tmp_path / "bomb.tar").open("wb") as out:
        add_file(out, parts[0][0], len(parts[0][1]), [parts[0][1]])
        out.write(_head("1.rdbg", size))
        out.write(parts[1][1])
        out.seek(size - len(parts[1][1]), os.SEEK_CUR)
        for name, data in parts[2:]:
            add_file(out, name, len(data), [data])
        out.write(bytes(1024))

    unpack_group(tmp_path / "bomb.tar", tmp_path / "made.rdbgs")

    made = (tmp_path / "made.rdbgs" / "1.rdbg").stat()
    assert made.st_size == size and made.st_blocks * 512 <= 1 << 20


def test_sizes_that_octal_digits_cannot_hold() -> None:
    for size in (0, 8**11 - 1, 8**11, 1 << 50):
        found = tarfile.TarInfo.frombuf(_head("1.rdbg", size), "utf-8", "strict")
        assert (found.name, found.size, found.type) == ("group.rdbgs/1.rdbg", size, tarfile.REGTYPE)
    assert PackedFile("x", 512, 513).end == 512 + 1024
