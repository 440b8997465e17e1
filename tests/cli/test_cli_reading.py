"""The reading commands: data on stdout, messages on stderr, the documented exit codes, no traceback."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.common.output import print_json
from replaydbg.cli.main import COMMANDS, main
from replaydbg.events import values
from replaydbg.events.show import printable, show_value, to_json
from replaydbg.events.values import ExceptionValue, StructSequence, TypeName, Value
from replaydbg.log.coding.encode import encode_value
from tests.harness.build import LogBuilder, example, header_json

READING = ("info", "events", "verify")


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return its data."""
        return json.loads(self.out)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a sealed recording, an unsealed one, and a file that is not a recording."""
    directory = tmp_path / "store"
    directory.mkdir()
    example().write(directory, "run-1")
    example().write_live(directory, "run-2")
    (directory / "run-3.rdbg").write_bytes(b"junk")
    monkeypatch.setenv("REPLAYDBG_STORE", str(directory))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    return directory


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command line in this process."""

    def run_command(*words: str) -> Done:
        code = main(words)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Done(code, captured.out, captured.err)

    return run_command


def test_ls(store: Path, run: Any) -> None:
    done = run("ls")

    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["run-1", "run-2", "run-3"]
    assert "exit code 0" in lines[0]
    assert "not sealed" in lines[1]
    assert "is not a recording" in lines[2]


def test_ls_as_json(store: Path, run: Any) -> None:
    facts = run("ls", "--json").json()

    assert facts["schema_version"] == 2
    assert [one["sealed"] for one in facts["recordings"]] == [True, False, True]
    assert [one.get("events") for one in facts["recordings"]] == [18, 18, None]


def test_ls_of_an_empty_store(tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path / "none"))

    done = run("ls")

    assert (done.code, done.out) == (0, "")
    assert "No recordings in" in done.err


def test_info(store: Path, run: Any) -> None:
    done = run("info", "run-1")

    assert (done.code, done.err) == (0, "")
    assert "prog.py --fast" in done.out
    assert "exit code 0, after 1.5 s" in done.out
    assert "a thread was started (thread, 2 times)" in done.out


@pytest.mark.parametrize(
    ("kind", "target", "argv", "command"),
    [
        ("module", "shop.orders", ["-m", "today"], "-m shop.orders today"),
        ("command", "print(1)", ["-c", "a b"], "-c 'print(1)' 'a b'"),
        ("script", "/srv/prog.py", ["prog.py", "1"], "prog.py 1"),
    ],
)
def test_the_command_is_shown_as_it_was_given(
    store: Path, run: Any, kind: str, target: str, argv: list[str], command: str
) -> None:
    made = example()
    made.header |= {"kind": kind, "target": target, "argv": argv}
    made.write(store, "run-4")

    assert f"command:    {command}\n" in run("info", "run-4").out
    assert run("ls").out.splitlines()[-1].endswith(command)


def test_info_has_what_decided_the_schedule(store: Path, run: Any) -> None:
    made = example()
    made.header |= {"chaos": 7, "future": {"from": "run-1", "event": 70, "seed": 3}}
    made.write(store, "run-4")

    shown = run("info", "run-4").out

    assert "chaos:      seed 7\n" in shown
    assert "future:     of run-1, after event 70, with seed 3\n" in shown
    assert "chaos:" not in run("info", "run-1").out


def test_info_as_json(store: Path, run: Any) -> None:
    facts = run("info", "run-1", "--json").json()

    assert facts["ok"]
    assert facts["header"] == header_json()
    assert facts["log"]["stopped"] == "not_stopped"


def test_a_bare_recording_is_opened(store: Path, run: Any) -> None:
    assert run("run-1").out == run("info", "run-1").out
    assert run(str(store / "run-1.rdbg")).out == run("info", "run-1").out


def test_an_unsealed_recording_is_not_damaged(store: Path, run: Any) -> None:
    for command in READING:
        done = run(command, "run-2")
        assert done.code == 0
        assert "was not sealed" in done.err


def test_events(store: Path, run: Any) -> None:
    done = run("events", "run-1", "--from", "2", "--to", "2")

    assert (done.code, done.err) == (0, "")
    first = done.out.splitlines()[0].split("\t")
    assert first == [
        "2",
        "-",
        "0",
        "os.urandom(8)",
        r"-> b'\x00\x01\x02\x03\x04\x05\x06\x07'",
        "/src/prog.py:4 in main",
    ]


def test_events_filtered(store: Path, run: Any) -> None:
    lines = run("events", "run-1", "--call", "os.stat", "--limit", "2").out.splitlines()

    assert [line.split("\t")[0] for line in lines] == ["6", "12"]
    assert "raised FileNotFoundError(2, 'gone')" in lines[0]


def test_events_as_json(store: Path, run: Any) -> None:
    facts = run("events", "run-1", "--json").json()

    assert facts["problems"] == []
    events = [entry for entry in facts["entries"] if "event" in entry]
    controls = [entry for entry in facts["entries"] if "control" in entry]
    assert [event["event"] for event in events] == list(range(1, 19))
    assert events[1]["outcome"] == {"kind": "bytes", "base64": "AAECAwQFBgc="}
    assert events[5]["outcome"]["kind"] == "ExceptionValue"
    assert controls[-2]["note"] == {"kind": "thread", "text": "a thread was started"}


def test_no_events_as_json(store: Path, run: Any) -> None:
    assert run("events", "run-1", "--json", "--limit", "0").json()["entries"] == []


def test_events_on_a_terminal_are_a_table(store: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    log = LogBuilder()
    for number in range(300):
        log.crossing(0, number)
    made = example()
    made.log = log.to_bytes()
    made.write(store, "run-4")

    done = run("events", "run-4")

    assert "outcome" in done.out
    assert "-> 199" in done.out
    assert "-> 200" not in done.out
    assert "Only the first 200" in done.err
    assert "run-4" in run("ls").out


def test_what_was_recorded_cannot_write_to_the_terminal(store: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = example()
    log = LogBuilder()
    log.crossing(4, "\x1b[2J", arguments=("\x1b]0;title\x07", {"\x1bkey": 1}))
    made.log = log.to_bytes()
    made.header["argv"] = ["\x1b[31m", "\udcff"]
    made.header["gates"][4]["name"] = "os.stat\x1b[1m[bold]"
    made.end["notes"] = [{"kind": "\x1b", "text": "\n\x1b[2J", "count": 1}]
    made.write(store, "run-4")

    for command in (("events", "run-4"), ("info", "run-4"), ("ls",), ("verify", "run-4")):
        for force in ("", "1"):
            monkeypatch.setenv("FORCE_COLOR", force)
            monkeypatch.setenv("NO_COLOR", "1")
            done = run(*command)
            assert "\x1b[2J" not in done.out + done.err
            assert "\x1b]" not in done.out + done.err


def test_verify(store: Path, run: Any) -> None:
    done = run("verify", "run-1")

    assert done.code == 0
    assert "run-1 is sound: 18 events" in done.out
    assert run("verify", "run-1", "--json").json()["sound"] is True


def test_verify_finds_damage_anywhere(store: Path, run: Any) -> None:
    data = (store / "run-1.rdbg").read_bytes()
    damaged = store / "run-4.rdbg"

    for place in range(0, len(data), 7):
        damaged.write_bytes(data[:place] + bytes((data[place] ^ 4,)) + data[place + 1 :])
        done = run("verify", "run-4", "--json")
        assert done.code == 1, place
        assert done.json().get("problems") or done.json()["error"]["slug"]


def test_damaged_events_are_shown_as_far_as_they_go(store: Path, run: Any) -> None:
    made = example()
    made.log = made.log[:-30]
    made.write(store, "run-4")

    done = run("events", "run-4")

    assert done.code == 1
    assert done.out
    assert "Its event log" in done.err


@pytest.mark.parametrize("command", READING)
def test_bad_input_gets_one_sentence(store: Path, run: Any, command: str) -> None:
    for name, code, said in [("run-3", 1, "is not a recording"), ("run-9", 2, "No recording 'run-9'")]:
        done = run(command, name)
        assert (done.code, done.out) == (code, "")
        assert said in done.err
        assert done.err.count("\n") == 1
    error = run(command, "run-9", "--json").json()["error"]
    assert (error["slug"], error["name"]) == ("no-such-recording", "run-9")


def test_rm(store: Path, run: Any) -> None:
    done = run("rm", "run-1", "run-2", "latest")

    assert done.code == 0
    assert list(store.iterdir()) == []


def test_rm_looks_before_it_removes(store: Path, run: Any) -> None:
    (store.parent / "thesis.txt").write_text("years of work")
    (store.parent / "photos").mkdir()

    for name in ("./thesis.txt", "photos", "run-9"):
        assert run("rm", "run-1", name).code in (1, 2)

    assert (store / "run-1.rdbg").exists()
    assert (store.parent / "thesis.txt").exists()
    assert (store.parent / "photos").exists()


def test_rm_does_not_follow_links(store: Path, run: Any) -> None:
    target = store.parent / "elsewhere"
    target.mkdir()
    (target / "log").write_text("mine")
    (store / "run-4.rdbg-live").symlink_to(target)

    assert run("rm", "run-4", "--json").json()["removed"] == [str(store / "run-4.rdbg-live")]
    assert (target / "log").exists()


def test_config(store: Path, run: Any) -> None:
    facts = run("config", "--json").json()["settings"]

    assert facts["store"] == {"value": str(store), "source": "the variable REPLAYDBG_STORE"}
    assert "the variable REPLAYDBG_STORE" in run("config").out


def test_a_bad_setting_is_a_usage_error(store: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_MAX_SIZE", "much")

    done = run("config")

    assert done.code == 2
    assert "'much' (from the variable REPLAYDBG_MAX_SIZE)" in done.err


def test_doctor(store: Path, run: Any) -> None:
    facts = run("doctor", "--json").json()

    names = {check["name"] for check in facts["checks"]}
    assert {"python", "native core", "compiler", "fence", "store", "strace"} <= names
    assert facts["not_covered"]
    assert "Not covered" in run("doctor").out
    assert not (store / "x").exists()


def test_doctor_names_installed_packages_that_are_not_covered(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gevent.py").write_text("raise AssertionError('it was imported')")
    monkeypatch.syspath_prepend(tmp_path)

    assert "- gevent has an event loop of its own" in run("doctor").out
    assert "gevent" in [package["module"] for package in run("doctor", "--json").json()["uncovered_packages"]]


def test_doctor_on_a_store_that_cannot_be_written(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", "/proc/store")

    done = run("doctor", "--json")

    assert done.code == 1
    assert [check["is_fine"] for check in done.json()["checks"] if check["name"] == "store"] == [False]


def test_the_overview_names_every_command(run: Any) -> None:
    done = run("--help")

    assert done.code == 0
    assert all(f"\n  {name} " in done.out for name in COMMANDS)
    assert run().code == 2
    assert run("--version").out.startswith("replaydbg ")


@pytest.mark.parametrize("word", ["--nope", "no-such-program.py", "levents"])
def test_what_is_no_command(store: Path, run: Any, word: str) -> None:
    done = run(word)

    assert (done.code, done.out) == (2, "")
    assert repr(word) in done.err


@pytest.mark.parametrize("words", [["events"], ["events", "latest", "--limit", "x"], ["ls", "--nope"]])
def test_argparse_speaks_for_itself(store: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(words)

    assert raised.value.code == 2


def test_a_negative_limit_is_a_usage_error(store: Path, run: Any) -> None:
    assert run("events", "run-1", "--limit", "-1").code == 2


@pytest.mark.slow
def test_a_reader_that_has_seen_enough(store: Path) -> None:
    made = example(3000)
    made.write(store, "run-4")
    script = f"{sys.executable} -m replaydbg events run-4 | head -1; exit ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[2])

    assert (done.returncode, done.stderr) == (0, "")


def test_the_way_to_a_recorded_program_is_short() -> None:
    """Every recorded program pays for main's imports."""
    script = "import sys; import replaydbg.cli.main; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": ""},
    )

    assert not {"argparse", "typing", "re", "rich", "zstandard", "pathlib", "json"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 << 300, "<int of 301 bits>"),
        ("x" * 100, "'" + "x" * 76 + "..."),
        ((1,), "(1,)"),
        ({"a": [1, {2}]}, "{'a': [1, {2}]}"),
        (list(range(20)), "[0, 1, 2, 3, 4, 5, 6, 7, ...]"),
        ([[[[[1]]]]], "[[[[[...]]]]]"),
        (values.Buffer(True), "<output bytes>"),
        (values.Buffer(False), "<buffer>"),
        (values.OpenFile(None), "<closed file>"),
        (values.OpenFile(3), "<file 3>"),
        (values.Opaque("\x1bx"), r"<\x1bx>"),
        (values.ContentRef(0, 9), "<9 bytes>"),
        (values.Cut(99, bytes(8), "ab"), "'ab'... (99 bytes)"),
        (values.Argument(1), "<argument 1>"),
        (values.DirectoryEntry("a", "b/a"), "<DirEntry 'a'>"),
        (values.StructSequence(TypeName("time", "struct_time"), (1, 2)), "time.struct_time(1, 2)"),
        (values.StatResult(0o100644, *range(1, 13)), "os.stat_result(mode=0o100644, size=6, ino=1, ...)"),
        (ExceptionValue(TypeName("builtins", "KeyError"), ("k",)), "KeyError('k')"),
    ],
)
def test_values_are_shown_shortly(value: object, text: str) -> None:
    assert show_value(value) == text
    assert json.loads(json.dumps(to_json(value))) is not None


@pytest.mark.parametrize(
    "wrap",
    [
        lambda value: [value],
        lambda value: {"a": value},
        lambda value: ExceptionValue(TypeName("builtins", "ValueError"), (value,)),
        lambda value: StructSequence(TypeName("time", "struct_time"), (value,)),
    ],
    ids=["list", "dict", "exception", "sequence"],
)
def test_values_as_deep_as_a_log_can_have_them_are_printed(
    wrap: Callable[[Value], Value], capsys: pytest.CaptureFixture[str]
) -> None:
    importlib.import_module("replaydbg.remote.fetched_files")  # addresses are put into what is printed from now on
    deeper: Value = None
    with pytest.raises(ValueError, match="nested deeper"):
        while encode_value(deeper, lambda _: 0):
            value, deeper = deeper, wrap(deeper)

    print_json({"value": to_json(value)})

    assert json.loads(capsys.readouterr().out)["value"] == to_json(value)


def test_an_integer_too_long_for_repr() -> None:
    assert show_value([10**5000]) == "[<int of 16610 bits>]"
    assert to_json(10**5000)["kind"] == "int"


def test_json_of_what_json_lacks() -> None:
    assert to_json(float("nan")) == {"kind": "float", "repr": "nan"}
    assert to_json({b"k": (1j, None)}) == {
        "kind": "dict",
        "items": [
            [
                {"kind": "bytes", "base64": "aw=="},
                {"kind": "tuple", "items": [{"kind": "complex", "repr": "1j"}, None]},
            ]
        ],
    }


def test_printable_text_stays() -> None:
    assert printable("naïve \u65e5") == "naïve \u65e5"
    assert printable("a\x1b\udcff\n") == r"a\x1b\udcff\n"


@pytest.mark.parametrize("name", sorted(name for name, row in COMMANDS.items() if row.replays))
def test_the_help_of_what_replays_names_the_way_around_the_fence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, *(["snapshots"] if name == "bisect" else []), "--help"])

    assert ended.value.code == 0
    assert "--no-fence" in capsys.readouterr().out


@pytest.mark.parametrize(("columns", "size", "longest"), [("60", 120, 58), ("", 60, 58), ("", 0, 78)])
def test_the_help_has_the_width_of_the_terminal(
    columns: str, size: int, longest: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((size, size)))

    with pytest.raises(SystemExit):
        main(["log", "--help"])

    lines = capsys.readouterr().out.splitlines()
    # argparse breaks between words: a line is no longer than that, and the longest one is nearly as long.
    assert longest - 12 <= max(map(len, lines)) <= longest
