"""`replaydbg bisect recordings` reports how a good and a bad run differ in input, behaviour and memory."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from replaydbg.bisect.twins import BehaviourKind, InputKind, compare
from replaydbg.config import Settings, load_settings
from replaydbg.hunt.hunter import HuntRequest, hunt
from replaydbg.hunt.reading import open_twins
from replaydbg.log.edit.standalone import write_standalone
from replaydbg.log.reader import open_recording
from tests.hunt.test_hunt import FLAKY

FIXTURES = Path(__file__).parents[2] / "fixtures"

Pair = tuple[Path, Path]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings()._replace(store=tmp_path_factory.mktemp("store"))


def _hunted(settings: Settings, program: str, *, chaos: bool = False) -> Pair:
    caught = hunt(HuntRequest([str(FLAKY / f"{program}.py")], runs=300, jobs=2, is_chaotic=chaos), settings)
    assert caught.passed is not None and caught.failed is not None
    return caught.passed.path, caught.failed.path


def _recorded(path: Path, *words: str, env: Mapping[str, str] | None = None, options: Sequence[str] = ()) -> Path:
    command = [sys.executable, "-m", "replaydbg", "record", "-q", *options, "-o", str(path), "--", *words]
    subprocess.run(command, cwd=path.parent, env={**os.environ, **(env or {})}, check=False, timeout=60)
    return path


@pytest.fixture(scope="module")
def by_set(settings: Settings) -> Pair:
    return _hunted(settings, "order_of_a_set")


@pytest.fixture(scope="module")
def by_clock(settings: Settings) -> Pair:
    return _hunted(settings, "clock_across_midnight")


@pytest.fixture(scope="module")
def by_listing(settings: Settings) -> Pair:
    return _hunted(settings, "order_of_listdir")


@pytest.fixture(scope="module")
def by_race(settings: Settings) -> Pair:
    return _hunted(settings, "race_on_a_counter", chaos=True)


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replaydbg", "bisect", "recordings", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def _facts(*words: object) -> dict[str, Any]:
    done = _run("--json", *words)
    assert done.returncode in (1, 3), done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.mark.slow
def test_a_hash_seed_is_the_only_difference(by_set: Pair) -> None:
    with open_twins(*by_set) as twins:
        comparison = compare(twins.good_side, twins.bad_side)

    assert [each.kind for each in comparison.inputs] == [InputKind.HASH_SEED]
    assert comparison.first is not None and comparison.first.kind is BehaviourKind.WROTE


@pytest.mark.slow
def test_the_line_is_found_at_which_memory_differs(by_set: Pair) -> None:
    state = _facts(*by_set)["states"][0]

    assert state["source"] == "first = next(iter(names))"
    assert [(each["path"], each["bad"]) for each in state["changed"]] == [("first", "'beta'")]


def _told_apart(tmp_path: Path, program: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Compare a run with the input `good` to one with `bad`: the differences in memory, and in control flow."""
    path = str(FIXTURES / "apart" / program)
    facts = _facts(*(_recorded(tmp_path / f"{word}.rdbg", path, word) for word in ("good", "bad")))
    return facts["states"], facts["control_flow"]


@pytest.mark.slow
def test_another_order_is_a_difference(tmp_path: Path) -> None:
    (state,), turn = _told_apart(tmp_path, "another_order.py")

    assert state["source"] == 'order = sorted(["a", "b"], reverse=sys.argv[1] == "bad")'
    assert [(each["path"], each["kind"]) for each in state["changed"]] == [("order", "reordered")]
    assert turn["source"] == 'if order[0] == "b":'
    shown = _run(tmp_path / "good.rdbg", tmp_path / "bad.rdbg").stdout
    assert "the same items in a different order in the bad run" in shown


@pytest.mark.slow
def test_texts_differ_behind_what_is_shown_of_them(tmp_path: Path) -> None:
    (state,), _ = _told_apart(tmp_path, "long_text.py")

    assert state["source"] == 'text = "x" * 5000 + sys.argv[1]'
    assert (
        "a different value with the same beginning in the bad"
        in _run(tmp_path / "good.rdbg", tmp_path / "bad.rdbg").stdout
    )


@pytest.mark.slow
def test_who_had_called_what_returned_the_difference(tmp_path: Path) -> None:
    (state,), turn = _told_apart(tmp_path, "stored_by_the_caller.py")

    assert state["source"] == "return str(sys.argv[1])"
    assert state["returned_to"]["source"] == 'settings["mode"] = word()'
    assert turn["source"] == 'if settings["mode"] == "bad":'
    assert turn["good"] is None


@pytest.mark.slow
@pytest.mark.parametrize("program", ["one_ends.py", "one_ends_and_threading_shuts_down.py"])
def test_one_goes_on_where_the_other_ends(tmp_path: Path, program: str) -> None:
    states, turn = _told_apart(tmp_path, program)

    assert states == []  # the interpreter's clean-up of the ended script does not count
    assert turn["source"] == 'if sys.argv[1] == "bad":'
    assert turn["bad"]["file"].endswith(program)


@pytest.mark.slow
def test_a_clock_that_answered_otherwise_is_found(by_clock: Pair) -> None:
    facts = _facts(*by_clock)

    answer = facts["first_answer"]
    assert (answer["callee"], answer["source"]) == ("time.time", "return int(time.time() / DAY)")
    assert answer["bad"] != answer["good"]


@pytest.mark.slow
def test_an_order_of_names_is_found_though_the_directory_has_another_name(by_listing: Pair) -> None:
    facts = _facts("--no-state", *by_listing)

    listed = [each for each in facts["inputs"] if each.get("callee") == "posix.listdir"]
    assert [each["source"] for each in listed] == ["listed = os.listdir(place)"]


@pytest.mark.slow
def test_switches_of_threads_are_told(by_race: Pair) -> None:
    with open_twins(*by_race) as twins:
        comparison = compare(twins.good_side, twins.bad_side)
        preempted = twins.bad_side.preemptions

    assert InputKind.SCHEDULE in [each.kind for each in comparison.inputs]
    names = {each.lane[0][0] if each.lane else "main" for each in preempted}
    assert names <= {"main", "Thread-1 (more)", "Thread-2 (more)"}


@pytest.mark.slow
def test_recordings_with_checksums_are_mixed(tmp_path: Path) -> None:
    """The checksums of `--durable` are of bytes that a mixed log does not have."""
    code = "import os, time\nfor i in range(9): print(time.time(), flush=True)\nassert os.environ['WORD'] == 'fine'"
    paths = [
        _recorded(tmp_path / f"{word}.rdbg", "-c", code, env={"WORD": word}, options=["--durable"])
        for word in ("fine", "wrong")
    ]

    facts = _facts(*paths)

    assert [each["name"] for each in facts["flip"]["inputs"]] == ["WORD"]
    assert facts["flip"]["is_confirmed"]


@pytest.mark.slow
def test_a_variable_of_the_environment_is_told(tmp_path: Path) -> None:
    program = str(FLAKY / "environment_variable.py")
    good = _recorded(tmp_path / "good.rdbg", program, env={"WORKERS": "3"})
    bad = _recorded(tmp_path / "bad.rdbg", program)

    done = _run(good, bad)

    assert "environment variable WORKERS: '3' in the good run, not set in the bad run" in done.stdout
    assert "workers: 3 in the good run, (not set) in the bad run" in done.stdout
    assert f"replaydbg debug {bad} --at " in done.stdout


@pytest.mark.slow
def test_events_are_told_apart_by_the_text_of_a_line_that_has_moved(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    text = "import os, time\ntime.time()\nos.getpid()\nos.listdir('.')\n"
    program.write_text(text)
    good = _recorded(tmp_path / "good.rdbg", str(program))
    program.write_text("# a line more\n" + text.replace("os.getpid()", "os.getppid()") + "raise SystemExit(1)\n")
    bad = _recorded(tmp_path / "bad.rdbg", str(program))

    with open_twins(good, bad) as twins:
        comparison = compare(twins.good_side, twins.bad_side)
        gates = [twins.bad_side.events[each.bad - 1].gate for each in comparison.pairs if each.is_exact]
        sites = twins.bad_side.events[-4:]

    assert {"time.time", "posix.listdir"} <= set(gates)
    assert "posix.getppid" not in gates
    assert comparison.first is not None and comparison.first.kind is BehaviourKind.ONLY_GOOD
    assert len(sites) == 4


@pytest.mark.slow
def test_what_cannot_be_compared_is_refused_in_one_sentence(by_set: Pair, by_clock: Pair, tmp_path: Path) -> None:
    good, bad = by_set
    same = _recorded(tmp_path / "same.rdbg", str(FLAKY / "order_of_a_set.py"), env={"PYTHONHASHSEED": "0"})
    cut = tmp_path / "cut.rdbg"
    with open_recording(bad) as recording:
        write_standalone(recording, cut)  # its blocks are in the store
    os.truncate(cut, cut.stat().st_size - 2000)
    cases = [
        ((bad, good), 3, "which should be the good one, failed"),
        ((good, good), 3, "the same recording"),
        ((good, same), 3, "which should be the bad one, passed"),
        ((good, by_clock[1]), 3, "of two different programs"),
        ((good, tmp_path / "none.rdbg"), 2, "No recording"),
        ((good, cut), 3, "is incomplete"),
        ((good, bad, "--md", "--json"), 2, "cannot be used together"),
        ((good, bad, "--fails", "("), 2, "is not a valid regular expression"),
    ]
    for words, status, sentence in cases:
        done = _run(*words)
        assert (done.returncode, sentence in done.stderr) == (status, True), (words, done.stderr)
        # A recording that was cut has lost its owner's mark.
        assert len([line for line in done.stderr.splitlines() if "was not recorded by you" not in line]) == 1


@pytest.mark.slow
def test_a_pattern_makes_a_failure_of_a_run_that_ended_well(tmp_path: Path) -> None:
    code = "import os; print('word', os.environ.get('WORD'))"
    good = _recorded(tmp_path / "good.rdbg", "-c", code, env={"WORD": "fine"})
    bad = _recorded(tmp_path / "bad.rdbg", "-c", code, env={"WORD": "wrong"})

    facts = _facts("--no-state", "--fails", "word wr.*", good, bad)

    assert facts["bad"]["ended"] == "exit code 0, and wrote 'word wrong'"
    assert [each["name"] for each in facts["inputs"] if each["kind"] == "environment variable"] == ["WORD"]


# ---- the cause of the difference ----


def _flip(*words: object) -> dict[str, Any]:
    facts = _facts("--no-state", *words)
    assert facts["outcome"] == "found", facts["reason"]
    flip: dict[str, Any] = facts["flip"]
    return flip


@pytest.mark.slow
def test_the_hash_seed_alone_flips_an_order_of_a_set(by_set: Pair) -> None:
    flip = _flip(*by_set)

    assert [each["kind"] for each in flip["inputs"]] == ["hash seed"]


@pytest.mark.slow
def test_the_answers_of_the_clock_flip_what_happened_at_midnight(by_clock: Pair) -> None:
    flip = _flip(*by_clock)

    assert {(each["call"], each["source"]) for each in flip["inputs"]} == {
        ("time.time()", "return int(time.time() / DAY)")
    }


@pytest.mark.slow
def test_the_order_of_a_directory_flips_and_is_told_before_what_led_to_it(by_listing: Pair) -> None:
    flip = _flip(*by_listing)

    assert [each["source"] for each in flip["inputs"]] == ["listed = os.listdir(place)"]


@pytest.mark.slow
def test_a_variable_of_the_environment_flips(tmp_path: Path) -> None:
    program = str(FLAKY / "environment_variable.py")
    good = _recorded(tmp_path / "good.rdbg", program, env={"WORKERS": "3"})
    bad = _recorded(tmp_path / "bad.rdbg", program, env={"OTHER": "3"})

    flip = _flip(good, bad)

    assert [(each["kind"], each["name"]) for each in flip["inputs"]] == [("environment variable", "WORKERS")]


@pytest.mark.slow
def test_of_the_switches_those_are_told_that_lose_an_update(by_race: Pair) -> None:
    with open_twins(*by_race) as twins:
        most = len(twins.bad_side.preemptions)

    flip = _flip(*by_race)

    assert [each["kind"] for each in flip["inputs"]] == ["thread switches"]
    assert 1 <= len(flip["preemptions"]) <= most
    sources = {each["source"] for each in flip["preemptions"]}
    assert sources & {"seen = count", "following = seen + 1", "count = following"}, sources


@pytest.mark.slow
def test_a_pattern_is_what_is_flipped(tmp_path: Path) -> None:
    code = "import os; print('word', os.environ.get('WORD'))"
    good = _recorded(tmp_path / "good.rdbg", "-c", code, env={"WORD": "fine"})
    bad = _recorded(tmp_path / "bad.rdbg", "-c", code, env={"WORD": "wrong"})

    flip = _flip("--fails", "word wr.*", good, bad)

    assert [each["name"] for each in flip["inputs"]] == ["WORD"]


@pytest.mark.slow
def test_where_no_answer_decides_it_is_the_program(tmp_path: Path) -> None:
    """The program itself differs: no exchange of answers makes it pass."""
    program = tmp_path / "program.py"
    program.write_text("import time\ntime.time()\n")
    good = _recorded(tmp_path / "good.rdbg", str(program))
    program.write_text("import time\ntime.time()\nraise SystemExit(3)\n")
    bad = _recorded(tmp_path / "bad.rdbg", str(program))

    done = _run("--no-state", good, bad)

    assert done.returncode == 1
    assert "Cause of the difference: the code" in done.stdout
    assert "program.py:3: (no text) in the good run, raise SystemExit(3) in the bad run" in done.stdout
    assert "With the sources of the good run, the bad run passes." in done.stdout


@pytest.mark.slow
def test_a_file_that_one_run_imported(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time\ntime.time()\n")
    good = _recorded(tmp_path / "good.rdbg", str(program))
    (tmp_path / "extra.py").write_text("")
    program.write_text("import extra, time\ntime.time()\nraise SystemExit(3)\n")
    bad = _recorded(tmp_path / "bad.rdbg", str(program))

    done = _run("--no-state", good, bad)

    assert "extra.py: (not imported) in the good run, (imported) in the bad run" in done.stdout


@pytest.mark.slow
def test_a_hunt_goes_on_by_itself(tmp_path: Path) -> None:
    program = str(FLAKY / "order_of_a_set.py")
    command = [sys.executable, "-m", "replaydbg", "hunt", "-q", "--bisect", "-n", "200", program]
    environment = {**os.environ, "REPLAYDBG_STORE": str(tmp_path / "store")}

    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)

    assert done.returncode == 1, done.stderr
    assert "Cause of the difference" in done.stdout
    assert "  hash seed: " in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("race", "functions"),
    [
        ("check_then_act", {"withdraw"}),
        ("missed_notify", {"consume", "Condition.__enter__", "Condition.wait"}),
    ],
)
def test_races_are_told_by_where_threads_gave_way(race: str, functions: set[str], settings: Settings) -> None:
    """In the second one a wait times out: without the preemption it gets what it waits for.

    The notification is missed between the check and the wait (as the condition is entered, too), or inside the wait
    before it is registered.
    """
    program = str(FLAKY.parent / "races" / f"{race}.py")
    caught = hunt(HuntRequest([program], runs=1000, jobs=2, is_chaotic=True), settings)
    assert caught.passed is not None and caught.failed is not None

    flip = _flip(caught.passed.path, caught.failed.path)

    assert [each["kind"] for each in flip["inputs"]] == ["thread switches"]
    assert functions & {each["function"] for each in flip["preemptions"]}


@pytest.mark.slow
def test_the_line_is_told_after_which_the_run_took_another_way(settings: Settings, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import random\nn = random.random()\nkind = 'high'\nif n < 0.5:\n    exit(1)\nprint(kind)\n")
    caught = hunt(HuntRequest([str(program)], runs=100, jobs=2), settings)
    assert caught.passed is not None and caught.failed is not None

    facts = _facts(caught.passed.path, caught.failed.path)

    assert {each["callee"] for each in facts["flip"]["inputs"]} == {"_random.Random.seed"}
    assert (facts["control_flow"]["source"], facts["control_flow"]["line"]) == ("if n < 0.5:", 4)
    assert [each["path"] for each in facts["states"][0]["changed"]] == ["n"]
    assert facts["states"][0]["source"] == "n = random.random()"


@pytest.mark.slow
def test_the_order_of_threads_that_wait_is_told_as_a_whole(settings: Settings) -> None:
    """Process ids differ, too, but are only identifiers: exchanged they would identify nothing."""
    flip = _flip(*_hunted(settings, "order_of_children"))

    assert [each["kind"] for each in flip["inputs"]] == ["thread switches"]


# ---- the culprit, and the confidence in it ----

PROGRAMS = Path(__file__).parents[1] / "flaky" / "programs"


def _hunted_program(settings: Settings, name: str, *, chaos: bool = False, failures: int = 1) -> list[Path]:
    wanted = HuntRequest([str(PROGRAMS / f"{name}.py")], runs=500, jobs=2, is_chaotic=chaos, failures=failures)
    caught = hunt(wanted, settings)
    assert caught.passed is not None and caught.failed is not None
    return [caught.passed.path, caught.failed.path, *(each.path for each in caught.more)]


@pytest.mark.slow
def test_the_order_of_threads_that_sleep_is_told_with_the_lines_of_both(settings: Settings) -> None:
    runs = _hunted_program(settings, "random_sleeps")

    flip = _flip(*runs)

    assert [each["kind"] for each in flip["inputs"]] == ["thread switches"]
    (turn,) = flip["switches"]
    assert turn["instead_name"] == "writer"
    assert "read" in {each["function"] for each in turn["first"]}
    assert {each["function"] for each in turn["then"]} == {"write"}
    assert flip["is_confirmed"]
    told = _run("--no-state", *runs).stdout
    assert "reader continued before writer" in told
    assert "Confirmed by 2 more replays: the bad run as recorded fails; with the other thread first, it passes." in told


@pytest.mark.slow
def test_a_race_is_named_before_the_random_numbers_that_its_threads_draw(settings: Settings) -> None:
    runs = _hunted_program(settings, "race_beside_random", chaos=True, failures=2)

    flip = _flip(*runs)

    assert [each["kind"] for each in flip["inputs"]] == ["thread switches"]
    assert flip["explained"] == {"runs": len(runs) - 1, "of": len(runs) - 1}
    assert [each["what"] for each in flip["replays"]] == [
        "the bad run as recorded",
        "with no thread preempted",
        "with these preemptions and no others",
    ]
    assert flip["is_confirmed"]
    assert flip["preemptions"]
    for each in flip["preemptions"]:
        # A thread that is interrupted in its last line, in the standard library, does not go on with another one.
        assert each["resumed"] is not None or each["file"].endswith("threading.py"), each
        assert each["thread"] not in {ran["thread"] for ran in each["meanwhile"]}


@pytest.mark.slow
def test_random_numbers_are_named_though_there_are_threads(settings: Settings) -> None:
    flip = _flip(*_hunted_program(settings, "draws_in_threads"))

    assert [each.get("callee") for each in flip["inputs"]] == ["_random.Random.seed"]
    assert flip["is_confirmed"]
    assert [each["ended"] for each in flip["replays"]] == ["fails", "passes", "passes", "fails"]


@pytest.mark.slow
def test_a_deadlock_is_a_failure_like_any_other(settings: Settings) -> None:
    flip = _flip(*_hunted_program(settings, "deadlock", chaos=True))

    assert [each["kind"] for each in flip["inputs"]] == ["thread switches"]
    assert flip["preemptions"]
    assert flip["is_confirmed"]


@pytest.mark.slow
def test_a_wait_whose_time_is_over_is_a_matter_of_order(settings: Settings) -> None:
    """No clock is named: an answer of another run's `time.monotonic` would be a jump that no run has ever seen."""
    flip = _flip(*_hunted_program(settings, "late_producer"))

    assert [each["kind"] for each in flip["inputs"]] == ["thread switches"]
    assert [each["instead_name"] for each in flip["switches"]] == ["producer"]


@pytest.mark.slow
def test_what_a_replay_contradicts_is_not_confirmed(tmp_path: Path) -> None:
    """The failure needs two inputs: one of them from the bad run alone does not make the good run fail."""
    program = tmp_path / "program.py"
    program.write_text("import os, sys\nsys.exit('A' in os.environ and int(os.environ.get('B', 0)) > 1)\n")
    good = _recorded(tmp_path / "good.rdbg", str(program))
    bad = _recorded(tmp_path / "bad.rdbg", str(program), env={"A": "1", "B": "2"})

    told = _run("--no-state", good, bad).stdout
    flip = _flip(good, bad)

    assert not flip["is_confirmed"]
    assert "Possible cause of the difference (not confirmed)" in told
    assert "Not confirmed: the good run with this input from the bad run passes: exit code 0." in told


@pytest.mark.slow
def test_no_reason_speaks_of_an_edited_program(tmp_path: Path) -> None:
    """The bad run then asks for something that neither run has: nothing was edited."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, random\nn = random.random()\n"
        "os.listdir('/') if n < 0.5 else os.getloadavg()\n"
        "raise SystemExit(os.environ.get('BAD'))\n"
    )
    good = _recorded(tmp_path / "good.rdbg", str(program))
    bad = _recorded(tmp_path / "bad.rdbg", str(program), env={"BAD": "yes"})

    assert "edited" not in _run("--no-state", good, bad).stdout


def test_trials_say_why_they_have_no_answer(tmp_path: Path) -> None:
    from replaydbg.errors import Divergence
    from replaydbg.hunt.bench import why_inconclusive
    from replaydbg.replay.result import ReplayResult

    for kind, words in (("unanswered", "in neither recording"), ("stuck", "threads deadlock")):
        diverged = Divergence(
            recording="r", thread="main", event=1, recorded="", observed="time.time()", where="", stack=(),
            last_agreeing="", cause="The edited program asks.", kind=kind,
        )  # fmt: skip
        said = why_inconclusive(ReplayResult(4, diverged, 1, "", cannot_test="The edited program asks"))
        assert words in said
        assert "time.time()" in said
        assert "edited" not in said
