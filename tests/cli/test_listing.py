"""`ls` filters and sorts, `tag` gives recordings words, and `verify` leaves what it has found."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.bisecting.ci_cases import add_selection, find_cases
from replaydbg.cli.main import main
from replaydbg.errors import UsageError
from tests.harness.build import example, header_json

RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "run-1": ({"created": "2026-01-02T00:00:00Z", "commit": "ab" * 20}, {"status": 0, "seconds": 3.0}),
    "run-2": ({"created": "2026-01-03T00:00:00Z", "argv": ["a", "b c"]}, {"status": 1, "exception": "app.Lost"}),
    "run-3": ({"created": "2026-01-04T00:00:00Z", "commit": "cd" * 20}, {"status": -9, "seconds": 1.0}),
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with recordings of three runs."""
    directory = tmp_path / "store"
    directory.mkdir()
    for name, (header, end) in RUNS.items():
        made = example()
        made.header = header_json(name=name, **header)
        made.end |= end
        made.write(directory, name)
    monkeypatch.setenv("REPLAYDBG_STORE", str(directory))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    return directory


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["ls", *words]) == 0
    return [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ("", "123"),
        ("--reverse", "321"),
        ("--limit 2", "23"),
        ("--sort time", "321"),
        ("--sort ended --reverse", "213"),
        ("--failed", "23"),
        ("--passed", "1"),
        ("--exception Lost", "2"),
        ("--exception other.Lost", "2"),
        ("--exception ValueError", ""),
        ("--command=--fast", "13"),
        ("--command 'b c'", "2"),
        ("--commit CDCD", "3"),
        ("--since 2026-01-03T00:00:00+00:00", "23"),
        ("--until 2026-01-03T00:00:00+00:00", "1"),
        ("--since 1d", ""),
        ("--validity unchecked", "123"),
        ("--validity sound", ""),
    ],
)
def test_ls_filters_and_sorts(store: Path, capsys: pytest.CaptureFixture[str], words: str, numbers: str) -> None:
    assert "".join(name[-1] for name in listed(capsys, *shlex.split(words))) == numbers


@pytest.mark.parametrize(
    "words", [("--since", "yesterday"), ("--limit", "0"), ("--tag", "a b"), ("--until", "99999999w")]
)
def test_bad_words_get_one_sentence(store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert main(["ls", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--exception", "."),
            "--exception must be the name of a class, such as ValueError or shop.OutOfStock (got '.').",
        ),
        (
            ("--exception", "shop."),
            "--exception must be the name of a class, such as ValueError or shop.OutOfStock (got",
        ),
        (("--exception", ""), "--exception is empty, as if a variable of the shell were not set."),
        (("--command", ""), "--command is empty, as if a variable of the shell were not set."),
    ],
)
def test_an_option_that_can_match_nothing_is_named(
    store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert main(["ls", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_full_stop_is_a_part_of_a_command(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys, "--command", ".") == ["run-1", "run-3"]


@pytest.mark.parametrize("words", ["--since 2000-01-01", "--until 1h"])
def test_what_cannot_be_read_has_no_time(store: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    (store / "run-4.rdbg").write_bytes(b"nothing")

    assert listed(capsys) == ["run-1", "run-2", "run-3", "run-4"]
    assert listed(capsys, *words.split()) == ["run-1", "run-2", "run-3"]


def test_commands_are_sorted_as_they_are_printed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, argv in enumerate((["z"], ["b c"], ["a", "z"], ["a!"], ["ä"]), 4):
        made = example()
        made.header = header_json(name=f"run-{number}", target=argv[0], argv=argv)
        made.write(store, f"run-{number}")

    assert main(["ls", "--sort", "command"]) == 0

    printed = [line.split("\t")[6] for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == 8
    assert printed == sorted(printed)


def test_one_process_whose_recorder_was_killed_is_not_counted(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = example()
    live = made.write_live(store, "run-4")
    (live / "end.json").write_text(json.dumps(made.end | {"status": 4}))

    assert main(["ls"]) == 0

    assert capsys.readouterr().out.splitlines()[-1].split("\t")[2] == "exit code 4, not sealed"


def test_tags(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tag", "run-2", "slow", "pinned"]) == 0
    assert main(["tag", "latest", "slow"]) == 0
    capsys.readouterr()
    assert main(["tag", "run-2", "--remove", "pinned", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tags"] == ["slow"]
    assert main(["tag", "run-2"]) == 0
    assert capsys.readouterr().out == "run-2: slow\n"

    assert listed(capsys, "--tag", "slow") == ["run-2", "run-3"]
    assert main(["ls"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(" [slow]")

    assert main(["rm", "run-3"]) == 0
    example().write(store, "run-3")  # of the same name
    assert listed(capsys, "--tag", "slow") == ["run-2"]


@pytest.mark.parametrize("command", [["rm", "copy"], ["gc", "--recordings", "--keep", "pinned", "--keep", "last"]])
def test_a_copy_that_is_removed_leaves_the_tags_to_the_original(
    store: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    shutil.copy(store / "run-2.rdbg", store / "copy.rdbg")
    assert main(["tag", "run-2", "pinned"]) == 0

    assert main(command) == 0
    capsys.readouterr()
    assert main(["tag", "run-2"]) == 0
    assert capsys.readouterr().out == "run-2: pinned\n"

    assert main(["rm", *({"run-2", "copy"} & {path.stem for path in store.glob("*.rdbg")})]) == 0
    assert not [path for path in (store / ".tags").iterdir() if not path.name.startswith(".")]


def test_a_future_has_none_of_the_tags_of_its_recording(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, future = {"run": "ab" * 16}, {"from": "run-4", "event": 70, "seed": 1}
    for name, more in {"run-4": {}, "run-5": {"future": future}, "run-6": {"future": future}}.items():
        made = example()
        made.header = header_json(name=name, **header, **more)
        made.write(store, name)

    for name in ("run-4", "run-5"):
        assert main(["tag", name, name]) == 0
    capsys.readouterr()

    assert listed(capsys, "--tag", "run-4") == ["run-4"]
    assert listed(capsys, "--tag", "run-5") == ["run-5"]


def test_a_recording_has_none_of_the_tags_of_an_earlier_one(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tag", "run-3", "slow"]) == 0
    made = example()
    made.header = header_json(name="run-3", created="2026-01-05T00:00:00Z")
    made.write(store, "run-3")
    capsys.readouterr()

    assert listed(capsys, "--tag", "slow") == []


@pytest.mark.parametrize(
    "words", [("run-9", "x"), ("run-1", "a/b"), ("run-1", "../x"), ("run-1", *map(str, range(60)))]
)
def test_bad_tags_get_one_sentence(store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert main(["tag", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("words", [("ls", "--json"), ("ls",), ("ls", "--tag", "pinned")])
def test_a_listing_names_the_tags_that_it_cannot_read(
    store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    for name in ("run-1", "run-2"):
        main(["tag", name, "pinned"])
    files = sorted((store / ".tags").glob("[0-9a-f]*"))
    for each in files:
        each.write_bytes(b"")
    capsys.readouterr()

    assert main(list(words)) == 0
    printed = capsys.readouterr()
    warning = f"replaydbg: Cannot read the tags in '{files[0]}': the recording counts as untagged."
    assert [line for line in printed.err.splitlines() if "Cannot" in line] == [warning]
    if "--json" in words:
        assert len(json.loads(printed.out)["recordings"]) == 3


@pytest.mark.parametrize(("options", "warnings"), [(("--tag", "pinned"), 1), ((), 0)])
def test_ci_names_the_tags_that_it_cannot_read_if_it_selects_by_them(
    store: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], warnings: int
) -> None:
    main(["tag", "run-1", "pinned"])
    next((store / ".tags").glob("[0-9a-f]*")).write_bytes(b"")
    capsys.readouterr()

    parser = argparse.ArgumentParser()
    parser.add_argument("recordings", nargs="*")
    add_selection(parser)
    with pytest.raises(UsageError, match="nothing to test"):
        find_cases(parser.parse_args(["--exception", "none", *options]))
    assert capsys.readouterr().err.count("Cannot read the tags in") == warnings


@pytest.mark.parametrize("words", [("ls", "--json"), ("tag", "run-1", "x"), ("tag", "run-1")])
def test_the_directory_of_tags_is_named_if_it_cannot_be_read(
    store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    (store / ".tags").write_text("a file is where the directory should be")

    assert main(list(words)) == int(words[0] == "tag")
    result = "no tag was changed. Restore it." if words[0] == "tag" else "all recordings count as untagged."
    place = f"replaydbg: Cannot read the directory of all tags, '{store}/.tags': "
    assert capsys.readouterr().err.startswith(f"{place}{result}")


@pytest.mark.parametrize("words", [("x",), ()])
def test_tag_changes_nothing_that_it_cannot_read(
    store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    main(["tag", "run-1", "pinned"])
    (file,) = (store / ".tags").glob("[0-9a-f]*")
    file.write_bytes(b"")
    capsys.readouterr()

    assert main(["tag", "run-1", *words]) == 1
    assert capsys.readouterr().err == (
        f"replaydbg: Cannot read the tags in '{file}': no tag was changed. Restore the file. If you delete it, the "
        "recording loses its tags, also `pinned`.\n"
    )


def test_verify_leaves_what_it_has_found(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = (store / "run-2.rdbg").read_bytes()
    (store / "run-2.rdbg").write_bytes(data[:-300] + bytes(10) + data[-290:])
    example().write_live(store, "run-4")
    for name in ("run-1", "run-2", "run-4"):
        main(["verify", name])
    capsys.readouterr()

    assert main(["ls", "--json"]) == 0
    facts: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["recordings"]
    assert [each["validity"] for each in facts] == ["sound", "damaged", "unchecked", "cut"]
    assert facts[0]["checked"]
    assert listed(capsys, "--validity", "damaged") == ["run-2"]
