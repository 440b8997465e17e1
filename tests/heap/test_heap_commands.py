"""The heap commands report what a program did between two moments, who holds what, and what grows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.debugger import Session
from replaydbg.debugger.changed_values import last_writes
from replaydbg.debugger.object_history import created, holdings, last_written
from replaydbg.heap.comparison.snapshot_diff import diff
from replaydbg.heap.retention.path_lookup import find
from tests.harness.recording import record_file
from tests.harness.typed import Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "heap" / "transfers.py"
LINES = PROGRAM.read_text(encoding="utf-8").splitlines()


def line_of(text: str) -> int:
    (found,) = (number for number, line in enumerate(LINES, 1) if line.strip() == text)
    return found


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM, tmp_path_factory.mktemp("heap"))


@pytest.fixture(scope="module")
def session(recording: Path) -> Iterator[Session]:
    with Session(recording) as opened:
        yield opened


@pytest.fixture
def run(recording: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run_command(command: str, *words: str, code: int = 0) -> str:
        assert main([command, "-q", str(recording), *words]) == code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return captured.out or captured.err

    return run_command


def test_a_diff_of_two_moments_tells_what_was_done_and_where(session: Session) -> None:
    before, after = holdings(session, ["@out:1", "@out:3"])

    found = diff(before, after, most=None)

    assert {each.path: (each.kind, each.before, each.after) for each in found.changed.items if each.step[0] == "."} == {
        "accounts[0].balance": ("changed", "12", "0"),
        "backup.balance": ("changed", "5", "17"),
        "backup": ("replaced", "<Account>", "<Account>"),
        "number": ("added", "", "79"),
        "size": ("changed", "0", "790"),
    }
    assert [(each.path, each.before, each.after) for each in found.grown.items] == [("server.cache", 0, 80)]
    assert {each.type: each.added for each in found.types.items}["__main__.Request"] == 80
    assert {(each.kind, each.name, each.others) for each in found.aliases.items} == {
        ("joined", "backup", ("accounts[1]",)),
        ("parted", "backup", ("accounts[0]",)),
    }
    session.seek("@out:3")
    why = last_written(session, "accounts[0].balance")
    assert why is not None
    assert (why.line, why.function, why.before, why.after) == (
        line_of("source.balance -= amount"),
        "transfer",
        "12",
        "0",
    )


def test_an_object_is_there_since_the_line_that_made_it(session: Session) -> None:
    (held,) = holdings(session, ["@out:3"])
    count = session.count_of("@out:3")

    def made(source: str) -> set[int]:
        found = created(session, held.snapshot.address[find(held, source)], count)
        assert found is not None
        return {each.line for each in (found.place, found.returned_to) if each is not None}

    accounts = line_of('accounts = [Account("ann", 12), Account("bob", 5)]')
    assert made("server.cache") == {line_of("self.cache = {}"), line_of("server = Server()")}
    assert made("server") == {line_of("server = Server()")}
    assert made("accounts[1]") == {accounts}
    assert made("accounts") == {accounts, line_of("self.name, self.balance = name, balance")}
    assert made("server.cache[(60, '/orders/60')]") == {line_of("request = Request(number)")}


def test_diff_shows_tables(run: Any) -> None:
    shown = run("diff", "@out:1", "@out:3", code=1)

    assert "accounts[0].balance" in shown
    assert "12 -> 0" in shown
    assert f"transfers.py:{line_of('source.balance -= amount')}" in shown
    assert "0 -> 80" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_diff_is_data_and_markdown_too(run: Any) -> None:
    facts = json.loads(run("diff", "@out:1", "@out:2", "--json", "--no-writes", code=1))
    text = run("diff", "@out:1", "@out:2", "--md", "--no-writes", "--limit", "1", code=1)

    assert facts["is_same_run"]
    assert facts["grown"]["items"][0]["path"] == "server.cache"
    assert facts["before"]["objects"] < facts["after"]["objects"]
    assert "| `server.cache` | `dict` | 0 -> 40 |" in text
    assert "more: --all shows them" in text


def test_a_moment_does_not_differ_from_itself(run: Any) -> None:
    assert "No differences." in run("diff", "@out:2", "@out:2")


def test_a_recording_does_not_differ_from_itself(run: Any, recording: Path) -> None:
    assert "No differences." in run("diff", str(recording))


def test_heap_tells_types_and_what_holds_most(run: Any) -> None:
    shown = run("heap", "@out:3")

    assert "Request" in shown
    assert shown.index("server.cache") > shown.index("Largest retained sizes")
    facts = json.loads(run("heap", "@out:3", "--json"))
    assert {each["type"]: each["objects"] for each in facts["types"]}["__main__.Request"] == 80


def test_heap_tells_all_about_one_object(run: Any) -> None:
    shown = run("heap", "@out:3", "--of", "accounts[0]")

    assert "created at" in shown
    assert "Last written at" in shown
    facts = json.loads(run("heap", "@out:3", "--of", "accounts[0]", "--json"))
    assert facts["type"] == "__main__.Account"
    assert facts["created"]["place"]["line"] == line_of('accounts = [Account("ann", 12), Account("bob", 5)]')
    assert [each["path"] for each in facts["holders"]] == ["accounts[0]"]
    assert facts["holders"][0]["frees"] == facts["retained"]


def test_heap_names_what_grows(run: Any) -> None:
    shown = run("heap", "--growth", "6", code=1)

    assert shown.startswith("Grows steadily:")
    assert "Held by server.cache (dict)" in shown
    facts = json.loads(run("heap", "--growth", "--json", code=1))
    assert facts["leaks"][0]["path"] == "server.cache"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("diff", "nothing", "@end"), "usage: diff REC MOMENT MOMENT, or diff REC REC"),
        (("diff", "nothing", "other"), "'nothing' is not a moment (such as 120:35, 71% or @end)."),
        (("diff", "1", "2", "--at", "3"), "--at needs two recordings"),
        (("diff", "1", "2", "--md", "--json"), "--md and --json cannot be used together."),
        (("heap", "--all", "--limit", "3"), "--limit must be at least 1"),
        (("heap", "--growth", "3"), "--growth needs N of at least 4"),
        (("heap", "--of", "nothing"), "'nothing' is neither a variable nor a module"),
    ],
)
def test_what_makes_no_sense_is_said(run: Any, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in run(*words, code=2)


def test_the_prompt_has_the_same(session: Session) -> None:
    typed = Typed.at("@end", session)

    assert "accounts[0].balance" in typed("diff @out:1")
    assert "server.cache" in typed("heap")
    shown = typed("holders accounts[1]")
    assert "backup" in shown
    assert "created at" in shown
    assert "usage: diff" in typed("diff")


def test_the_prompts_diff_names_the_lines_that_wrote(session: Session) -> None:
    typed = Typed.at("@out:1", session)
    here = session.here

    shown = typed("diff @out:1 @out:3")

    assert shown.index("Names that changed") < shown.index("Written at")
    assert f"transfers.py:{line_of('source.balance -= amount')} transfer" in shown
    assert session.here == here
    assert "Written at" not in typed("diff @out:1 @out:3 within 0")
    assert "were not found within 1e-06 s. Use `diff ... within 1e-05` to search longer." in typed(
        "diff @out:1 @out:3 within 0.000001"
    )
    assert "SECONDS must be a number from 0 to 1,000,000 (got 'soon')" in typed("diff @out:1 @out:3 within soon")


def test_variables_of_other_modules_are_written_somewhere_too(tmp_path: Path) -> None:
    program = PROGRAM.parent / "two_modules" / "main.py"
    lines = program.with_name("cart.py").read_text().splitlines()
    with Session(record_file(program, tmp_path)) as session:
        before, after = holdings(session, ["@out:1", "@out:2"])
        found = diff(before, after)
        session.seek("@out:2")
        total = last_written(session, "cart.total", after.modules)
        price = last_written(session, "cart.items[0].price", after.modules)
        paths = ["cart.total", "cart.items[0].price", "cart.missing"]
        together = dict(last_writes(session, paths, session.here.count, after.modules, math.inf))

    assert together["cart.missing"] is None
    assert [(each.count, each.line) for each in together.values() if each is not None] == [
        (each.count, each.line) for each in (total, price) if each is not None
    ]
    assert [each.path for each in found.changed.items if each.kind == "changed"] == ["cart.total"]
    assert total is not None
    assert (lines[total.line - 1].strip(), total.before, total.after) == ("total += price", "5", "12")
    assert price is not None
    assert (lines[price.line - 1].strip(), price.before, price.after) == ("items[0].price = 1", "5", "1")


# ---- snapshots in the recording ----


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM.with_name("asks_for_snapshots.py"), tmp_path_factory.mktemp("kept"))


def shown_by(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    captured = capsys.readouterr()
    return captured.out or captured.err


def test_snapshots_are_listed(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown_by(capsys, "snapshots", str(kept)).splitlines()

    assert [(line.split("\t")[0], line.split("\t")[4]) for line in lines] == [
        ("@#1", "before"),
        ("@#2", "half"),
        ("@#3", "all"),
    ]
    facts = json.loads(shown_by(capsys, "snapshots", str(kept), "--json"))
    assert [each["name"] for each in facts["snapshots"]] == ["before", "half", "all"]
    assert "3 snapshots are too few" in shown_by(capsys, "snapshots", str(kept), "--growth")


def test_kept_snapshots_are_compared_without_a_replay(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_by(capsys, "diff", str(kept), "@#1", "@#all", code=1)

    assert "0 -> 59" in shown
    assert "replaying" not in shown
    facts = json.loads(shown_by(capsys, "diff", str(kept), "@#2", "@#3", "--json", code=1))
    assert facts["is_same_run"]
    assert {each["type"]: (each["added"], each["removed"]) for each in facts["types"]["items"]}["__main__.Request"] == (
        30,
        1,
    )
    assert "CACHE" in shown_by(capsys, "heap", str(kept), "@#3", "--of", "CACHE[5]")
    assert "the recording has no such snapshot; it has @#1 to @#3" in shown_by(
        capsys, "diff", str(kept), "@#1", "@#9", code=2
    )


def test_a_kept_snapshot_names_a_moment(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_by(capsys, "diff", "-q", str(kept), "@#half", "@end", "--no-writes", code=1)

    assert "CACHE" in shown


def test_a_run_is_compared_with_a_golden_one(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = str(tmp_path / "golden.snapshot")

    assert shown_by(capsys, "heap", str(kept), "@#2", "-o", golden) == ""
    assert Path(golden).stat().st_mode & 0o777 == 0o600
    assert "No differences." in shown_by(capsys, "diff", golden, str(kept), "--at", "@#2")
    shown = shown_by(capsys, "diff", golden, str(kept), "--at", "@#3", "--ignore", "n", code=1)
    assert "30 -> 59" in shown
    assert "Two runs" in shown
    assert "No differences." in shown_by(capsys, "diff", golden, str(kept), "--at", "@#3", "--ignore", "*")
    assert "30" in shown_by(capsys, "heap", golden, "--of", "CACHE")


def test_a_web_application_that_keeps_every_request_is_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = str(record_file(PROGRAM.with_name("keeps_every_request.py"), tmp_path))

    kept = shown_by(capsys, "snapshots", recording, "--growth", code=1)
    replayed = json.loads(shown_by(capsys, "heap", "-q", recording, "--growth", "--json", code=1))

    assert "held by application.sessions.seen" in " ".join(kept.split())
    assert "40 -> 240 Request over 6 snapshots" in " ".join(kept.split())
    leak = replayed["leaks"][0]
    assert (leak["path"], leak["type"]) == ("application.sessions.seen", "builtins.dict")
    assert leak["types"][0]["type"] == "__main__.Request"
    assert leak["items"][-1] == 240
