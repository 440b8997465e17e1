"""A recording of a process in a group is named by the group and its number; `ps`, `ls` and `rm` know groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.cli.main import main
from replaydbg.errors import NoSuchRecording
from replaydbg.log.group import Group, GroupProcess, write_group
from replaydbg.store.directory import Store
from tests.harness.build import example, header_json
from tests.harness.log_writer import log_writer

_ROWS = [
    GroupProcess(1, 100, 0, 0, "program", ["prog.py", "a b"], True, 0, "launcher", "1.rdbg", ""),
    GroupProcess(2, 101, 1, 5, "fork", ["prog.py", "a b"], True, -9, "parent", "2.rdbg", ""),
    GroupProcess(3, 102, 2, 7, "other", None, False, None, "", None, "another program"),
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with a plain recording, `run-1`, and a group of three processes, `run-2`, of which two are recorded."""
    directory = tmp_path / "store"
    group = directory / "run-2.rdbgs"
    group.mkdir(parents=True)
    example().write(directory, "run-1")
    for number in (1, 2):
        made = example()
        made.header = header_json(group="ab", process=number, name=f"run-2/{number}")
        made.write(group, str(number))
    write_group(group, Group("ab", _ROWS, 2, True))
    monkeypatch.setenv("REPLAYDBG_STORE", str(directory))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    return Store(directory)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("run-1", "run-1.rdbg"),
        ("run-2", "run-2.rdbgs/1.rdbg"),
        ("run-2/1", "run-2.rdbgs/1.rdbg"),
        ("run-2/2", "run-2.rdbgs/2.rdbg"),
        ("run-2/2/", "run-2.rdbgs/2.rdbg"),
        ("latest", "run-2.rdbgs/1.rdbg"),
        ("latest/2", "run-2.rdbgs/2.rdbg"),
        ("store/run-2.rdbgs", "run-2.rdbgs/1.rdbg"),
        ("store/run-2.rdbgs/2", "run-2.rdbgs/2.rdbg"),
        ("store/run-2/2", "run-2.rdbgs/2.rdbg"),
        ("store/run-2.rdbgs/2.rdbg", "run-2.rdbgs/2.rdbg"),
    ],
)
def test_names_of_processes(name: str, file: str, store: Store) -> None:
    found = store.resolve(name)

    assert found.resolve() == (store.directory / file).resolve()
    assert found.is_file()


@pytest.mark.parametrize("name", ["run-2/3", "run-2/0", "run-2/999999999999", "run-2/x", "run-1/1", "run-2/-1"])
def test_no_such_process(name: str, store: Store) -> None:
    with pytest.raises(NoSuchRecording):
        store.resolve(name)


def test_the_name_of_a_process_resolves_to_it(store: Store) -> None:
    path = store.resolve("run-2/2")

    assert store.name_of(path) == "run-2/2"


def test_the_numbers_of_groups_and_of_recordings_are_not_given_twice(store: Store) -> None:
    assert store.create().name == "run-3.rdbg-live"
    assert store.create_group().name == "run-4.rdbgs"
    assert store.create().name == "run-5.rdbg-live"


def test_ps(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ps", "run-2"])
    printed = capsys.readouterr()

    events = f"{example().end['events']:,}"
    assert code == 0
    assert printed.out.splitlines() == [
        f"1\t100\tprogram\texit code 0\t{events}\tprog.py 'a b'",
        f"2\t101\tfork of 1 at 5\tkilled by SIGKILL\t{events}\tprog.py 'a b'",
        "3\t102\tother of 2 at 7\tmay be running\t\t",
    ]
    assert "process 3 is not recorded: another program." in printed.err
    assert "2 more processes were started, and are not recorded." in printed.err


def test_ps_as_json(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ps", "--json", "run-2/2"])  # a process names its group
    data = json.loads(capsys.readouterr().out)

    assert code == 0
    assert (data["group"], data["complete"], data["more"], data["schema_version"]) == ("ab", True, 2, SCHEMA_VERSION)
    assert [each["status"] for each in data["processes"]] == [0, -9, None]
    assert data["processes"][2]["why_not"] == "another program"
    assert data["processes"][1]["events"] == example().end["events"]


def test_ps_of_one_process(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ps", "run-1"])

    assert code == 2
    said = "'run-1' is a recording of one process: the program had no children that were recorded."
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["/", "empty.rdbgs"])
def test_ps_of_what_is_no_recording(
    name: str, tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.rdbgs").mkdir()

    assert main(["ps", name]) == 1
    assert (
        capsys.readouterr().err == f"replaydbg: '{name}' is not a recording: it is a directory without header.json.\n"
    )


def test_verify_reads_the_recordings_of_all_processes(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "run-2"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "run-2/1 is sound",
        "run-2/2 is sound",
    ]

    made = example()
    made.header = header_json(group="ab", process=2, name="run-2/2")
    made.log = made.log[:-30]
    made.write(store.directory / "run-2.rdbgs", "2")
    assert main(["verify", "run-2"]) == 1
    printed = capsys.readouterr()
    assert [line.split(":")[0] for line in printed.out.splitlines()] == ["run-2/1 is sound", "run-2/2 is damaged"]
    assert "run-2/2: Its event log" in printed.err

    (store.directory / "run-2.rdbgs" / "2.rdbg").unlink()
    assert main(["verify", "run-2", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(each["process"], each["sound"]) for each in found["processes"]] == [(1, True), (2, False)]
    assert found["sound"] is False


@pytest.mark.parametrize("what", ["missing", "cut", "of another group", "of another process"])
def test_ps_reports_a_bad_member(what: str, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    path = store.directory / "run-2.rdbgs" / "2.rdbg"
    data = path.read_bytes()
    path.unlink()
    if what == "cut":
        path.write_bytes(data[:50])
    elif what != "missing":
        made = example()
        made.header = header_json(group="cd" if what == "of another group" else "ab", process=3)
        made.write(path.parent, "2")

    code = main(["ps", "run-2"])
    printed = capsys.readouterr()

    assert code == 1
    assert len(printed.out.splitlines()) == 3
    assert "process 2: " in printed.err


def test_info_names_the_fork(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    made = example()
    branch = {"process": 1, "event": 5, "log": 64, "world": 64, "content": 0}
    made.header = header_json(group="ab", process=2, branch=branch)
    made.write(store.directory / "run-2.rdbgs", "2")

    assert main(["info", "run-2/1"]) == 0
    assert "process:    1 of its group\n" in capsys.readouterr().out
    assert main(["info", "run-2/2"]) == 0
    assert "process:    2 of its group, forked by process 1 at event 5\n" in capsys.readouterr().out


def test_ls_lists_a_group_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["run-1", "run-2"]


def test_rm_removes_the_indexes_of_a_group(store: Store) -> None:
    for name in ("run-2.rdbgs/1.rdbg.index", "run-2.rdbgs/2.rdbg.index", "run-1.rdbg.index"):
        (store.directory / name).touch()

    assert main(["rm", "run-2", "run-1"]) == 0

    assert list(store.directory.iterdir()) == []


@pytest.mark.parametrize("of_group", [False, True])
def test_rm_leaves_what_is_being_recorded(store: Store, capsys: pytest.CaptureFixture[str], of_group: bool) -> None:
    path = example().write_live(store.directory / "run-2.rdbgs" if of_group else store.directory, "7")
    name = "run-2" if of_group else "7"
    with log_writer(path) as process:
        code = main(["rm", name])

    assert code == 2
    assert f"is still being recorded (process {process}). --force" in capsys.readouterr().err
    assert path.exists()
    assert main(["rm", name]) == 0
    assert not path.exists()


def test_rm_removes_a_group_or_one_process(store: Store) -> None:
    assert main(["rm", "run-2/2"]) == 0
    assert sorted(each.name for each in (store.directory / "run-2.rdbgs").iterdir()) == ["1.rdbg", "group.json"]

    assert main(["rm", "run-2"]) == 0
    assert [each.name for each in store.list()] == ["run-1"]
    assert not (store.directory / "run-2.rdbgs").exists()


def test_rm_leaves_what_is_not_of_a_group(store: Store) -> None:
    (store.directory / "run-2.rdbgs" / "mine.txt").write_text("mine")

    assert main(["rm", "run-2"]) == 0
    assert [each.name for each in (store.directory / "run-2.rdbgs").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("option", [["--chaos-runs", "3"], ["--keep-checkpoints"]])
@pytest.mark.parametrize("children", ["fork", "python"])
def test_options_that_do_not_go_together(children: str, option: list[str], store: Store, capsys: Any) -> None:
    assert main(["record", f"--children={children}", *option, "prog.py"]) == 2
    message = f"--children={children} cannot be combined with --chaos-runs or --keep-checkpoints."
    assert message in capsys.readouterr().err


def test_an_unknown_kind_of_children(store: Store) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["record", "--children=spawn", "prog.py"])

    assert ended.value.code == 2
