"""`replaydbg hunt` records until a run fails and one passes, keeps one of each, and reports the failure rate."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.config import Settings, load_settings
from replaydbg.errors import CannotHunt, UsageError
from replaydbg.hunt.hunter import HuntRequest, HuntRun, Until, hunt
from replaydbg.hunt.rate import interval
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.store.directory import Store
from tests.harness.replay_cases import Case, cases
from tests.harness.sanitizer import SLOWER
from tests.harness.waiting import wait_until

FLAKY = Path(__file__).parents[2] / "fixtures" / "flaky"
COUNTED = """
import os, sys
runs = int(open(sys.argv[1]).read())
open(sys.argv[1], "w").write(str(runs + 1))
print("this is run", runs)
sys.exit(int(runs % 3 == 2))
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings()._replace(store=tmp_path / "store")


@pytest.fixture
def counted(tmp_path: Path) -> list[str]:
    """Return a command of which every third run fails."""
    (tmp_path / "counted.py").write_text(COUNTED)
    (tmp_path / "runs").write_text("0")
    return [str(tmp_path / "counted.py"), str(tmp_path / "runs")]


@given(failures=st.integers(0, 200), more=st.integers(0, 200))
def test_the_interval_holds_what_was_seen(failures: int, more: int) -> None:
    runs = failures + more

    low, high = interval(failures, runs)

    assert 0.0 <= low <= (failures / runs if runs else 0.0) <= high <= 1.0
    assert interval(more, runs) == pytest.approx((1 - high, 1 - low)) or not runs


@pytest.mark.slow
def test_one_of_each_is_kept_and_nothing_else(counted: list[str], settings: Settings) -> None:
    seen: list[HuntRun] = []

    caught = hunt(HuntRequest(counted, runs=20), settings, seen=seen.append)

    assert [run.is_failure for run in seen] == [False, False, True]
    assert (caught.runs, caught.failures) == (3, 1)
    assert {each.name for each in Store(settings.store).list()} == {"hunt-1-fail", "hunt-1-pass"}
    assert not (settings.store / ".hunt-1").exists()
    assert caught.failed is not None and caught.failed.outside.output == b"this is run 2\n"
    with open_recording(caught.failed.path) as recording:
        assert recording.ok and recording.end is not None and recording.end.status == 1


@pytest.mark.slow
def test_so_many_failures_are_kept_as_are_asked_for(counted: list[str], settings: Settings) -> None:
    caught = hunt(HuntRequest(counted, runs=20, failures=3), settings)

    assert (caught.runs, caught.failures) == (9, 3)
    assert [each.path.name for each in caught.more] == ["hunt-1-fail-2.rdbg", "hunt-1-fail-3.rdbg"]
    names = {"hunt-1-fail", "hunt-1-fail-2", "hunt-1-fail-3", "hunt-1-pass"}
    assert {each.name for each in Store(settings.store).list()} == names


@pytest.mark.slow
def test_no_other_failures_are_kept_if_nothing_passes(settings: Settings) -> None:
    with pytest.raises(CannotHunt, match="Every one of 4 runs failed"):
        hunt(HuntRequest(["-c", "raise SystemExit(1)"], runs=4), settings)

    assert {each.name for each in Store(settings.store).list()} == {"hunt-1-fail"}


@pytest.mark.parametrize("failures", [0, 21])
def test_so_many_failures_make_no_sense(failures: int, settings: Settings) -> None:
    with pytest.raises(UsageError, match="--failures must be between 1 and the number of runs"):
        hunt(HuntRequest(["-c", "pass"], runs=20, failures=failures), settings)


@pytest.mark.slow
@pytest.mark.parametrize(("until", "runs"), [(Until.FAIL, 3), (Until.PASS, 1)])
def test_it_stops_at_what_was_wanted(counted: list[str], settings: Settings, until: Until, runs: int) -> None:
    caught = hunt(HuntRequest(counted, until=until), settings)

    assert caught.runs == runs


@pytest.mark.slow
def test_a_pattern_in_the_output_is_a_failure(counted: list[str], settings: Settings, tmp_path: Path) -> None:
    caught = hunt(
        HuntRequest(counted, fails=r"^this is run \d$", until=Until.FAIL, directory=tmp_path / "out"), settings
    )

    assert caught.failed is not None and "this is run 0" in caught.failed.why
    assert caught.failed.path == tmp_path / "out" / "fail.rdbg"


@pytest.mark.slow
def test_what_never_fails_or_always_does_is_inconclusive(settings: Settings) -> None:
    for code, what in (("pass", "None of 3 runs failed"), ("exit(3)", "Every one of 3 runs failed")):
        with pytest.raises(CannotHunt, match=what) as raised:
            hunt(HuntRequest(["-c", code], runs=3, jobs=2), settings)
        assert raised.value.exit_code == 3


def test_what_makes_no_sense_is_refused(settings: Settings) -> None:
    with pytest.raises(CannotHunt, match="cannot be started"):
        hunt(HuntRequest(["no-such-program.py"]), settings)
    for wanted in (
        HuntRequest([]),
        HuntRequest(["-c", ""], runs=0),
        HuntRequest(["-c", ""], fails="("),
        HuntRequest(["-c", ""], timeout=0),
    ):
        with pytest.raises(UsageError):
            hunt(wanted, settings)


@pytest.mark.slow
def test_what_takes_too_long_is_ended_and_failed(settings: Settings) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"

    limit = 0.5 * SLOWER

    caught = hunt(HuntRequest(["-c", code], runs=1, until=Until.FAIL, timeout=limit), settings)

    assert caught.failed is not None and caught.failed.why == f"took longer than {limit:g} s"
    assert caught.failed.outside.status == -signal.SIGKILL


@pytest.mark.slow
def test_chaos_finds_a_race(settings: Settings) -> None:
    caught = hunt(HuntRequest([str(FLAKY / "race_on_a_counter.py")], runs=200, jobs=2, is_chaotic=True), settings)

    assert caught.failed is not None and caught.failed.chaos is not None
    with open_recording(caught.failed.path) as recording:
        assert recording.header.raw["chaos"] == caught.failed.chaos


@pytest.mark.slow
def test_interrupted_it_keeps_what_it_has(tmp_path: Path) -> None:
    program = tmp_path / "slow.py"
    # Its second run would go on for a minute: it is interrupted in it.
    program.write_text("import os, sys, time\nif os.path.exists(sys.argv[1]): time.sleep(60)\nopen(sys.argv[1], 'w')\n")
    store = tmp_path / "store"
    command = [sys.executable, "-m", "replaydbg", "hunt", "--jobs", "1", "--json", str(program), str(tmp_path / "mark")]
    environment = {**os.environ, "REPLAYDBG_STORE": str(store)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=tmp_path) as hunting:
        wait_until((store / "hunt-1-run-2.rdbg-live" / "log").exists)
        hunting.send_signal(signal.SIGINT)
        out, _ = hunting.communicate(timeout=30)

    facts = json.loads(out)

    assert hunting.returncode == -signal.SIGINT
    assert (facts["runs"], facts["is_interrupted"], facts["failed"]) == (1, True, None)
    assert [each.name for each in Store(store).list()] == ["hunt-1-pass"]
    assert {each.name for each in store.iterdir()} == {"hunt-1-pass.rdbg", DIRECTORY}


@pytest.mark.slow
def test_the_command_tells_what_it_found(counted: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "replaydbg", "hunt", "--jobs", "1", *counted]
    environment = {**os.environ, "REPLAYDBG_STORE": str(tmp_path / "store")}

    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "1 of 3 runs failed (95 % confidence interval: 6.1% to 79.2%)." in done.stdout
    assert "replaydbg bisect recordings hunt-1-pass hunt-1-fail" in done.stdout
    assert "run 3: failed (exit code 1)" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("case", cases("flaky"))
def test_flaky_programs_replay_as_they_went(case: Case) -> None:
    case.check()


@pytest.mark.slow
def test_killed_it_loses_nothing_that_was_recorded(tmp_path: Path) -> None:
    """One run is kept already, another one goes on: its recorder is not part of the hunt, and seals it."""
    program, mark = tmp_path / "slow.py", tmp_path / "mark"
    program.write_text(
        "import os, sys, time\nwhile os.path.exists(sys.argv[1]): time.sleep(0.01)\nopen(sys.argv[1], 'w')\n"
    )
    store = tmp_path / "store"
    command = [sys.executable, "-m", "replaydbg", "hunt", "--jobs", "1", "-q", str(program), str(mark)]
    with subprocess.Popen(command, env={**os.environ, "REPLAYDBG_STORE": str(store)}, cwd=tmp_path) as hunting:
        try:
            wait_until((store / "hunt-1-run-2.rdbg-live" / "log").exists)
        finally:
            hunting.kill()
            mark.unlink(missing_ok=True)

    wait_until((store / "hunt-1-run-2.rdbg").exists)

    for each in Store(store).list():
        with open_recording(each.path) as recording:
            assert recording.ok, each.name
    assert {each.name for each in Store(store).list()} == {"hunt-1-pass", "hunt-1-run-2"}
