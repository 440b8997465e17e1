"""The long-running harnesses read their input correctly: a harness with a mistake finds nothing."""

import os
import sys
import traceback
from pathlib import Path
from urllib.request import urlopen

import pytest

from replaydbg.log.container import Writer, split
from tests.bench.measure import Measurement, Round
from tests.bench.messages import message_parts
from tests.bench.report import Startup, as_table, startup_ms, summarise
from tests.bench.workloads import EMPTY, WORKLOADS
from tests.harness.figures import read_figures
from tests.harness.process import run
from tests.harness.surroundings import without_steering
from tests.harness.table import as_markdown, as_text, with_unit
from tests.harness.tracebacks import add_missing_lines, line_of
from tests.real.peer import PORT, SITE, Peer, PeerFailed, running_beside, with_port
from tests.real.scenarios import SCENARIOS
from tests.stdlib.exceptions import Allowed, allowing, read_exceptions
from tests.stdlib.modules import modules_of
from tests.stdlib.outcomes import Difference, Outcome, differences, last_started, read_outcomes
from tests.valgrind.memcheck import read_found

_END = b'{"events": 7, "cpu_seconds": 0.25, "reason": null, "notes": [{"kind": "k", "text": "t", "count": 2}]}'


def test_a_command_gives_its_output_and_its_status(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), end=''); print('oops', file=sys.stderr); sys.exit(3)"

    finished = run([sys.executable, "-c", code], cwd=tmp_path, env={}, timeout=30)

    assert (finished.status, finished.stdout, finished.stderr) == (3, str(tmp_path).encode(), b"oops\n")
    assert finished.ending == "exit code 3"
    assert finished.cpu > 0


def test_a_command_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    # It sleeps longer than the limit.
    code = "import time; print('begun', flush=True); time.sleep(60)"

    finished = run([sys.executable, "-c", code], cwd=tmp_path, env={}, timeout=0.2)

    assert finished.is_timed_out
    assert finished.status == -9


def test_figures_agree_with_the_writer(tmp_path: Path) -> None:
    recording = tmp_path / "run.rdbg"
    log = b"an event " * 300_000
    with recording.open("wb") as file:
        writer = Writer(file)
        writer.section("header", [b"{}"])
        writer.section("log", split(log))
        writer.section("end", split(_END))
        writer.finish()

    figures = read_figures(recording)

    assert (figures.events, figures.cpu_seconds, figures.reason) == (7, 0.25, None)
    assert figures.notes == (("k", "t"),)
    assert figures.log_raw == len(log)
    assert 0 < figures.log_stored < figures.size == recording.stat().st_size


def test_figures_are_refused_of_something_else(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"#!/bin/sh\n")

    with pytest.raises(ValueError, match="no sealed recording"):
        read_figures(other)


def test_outcomes_come_from_the_xml_and_from_the_summary(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text(
        "<testsuites><testsuite>"
        "<testcase name='test.test_m.C.test_a'/>"
        "<testcase name='test.test_m.C.test_b'><skipped>no</skipped></testcase>"
        "<testcase name='test.test_m.C.test_c at 0x7f12'><error>E</error></testcase>"
        "<testcase name='test.test_m.C.test_a'><failure>F</failure></testcase>"
        "<testcase/>"
        "</testsuite></testsuites>"
    )
    line = "=" * 70
    output = f"{line}\nFAIL: test_d (test.test_m.C.test_d) (i=1)\n{line}\nERROR: setUpClass (test.test_m.D)\n"

    assert read_outcomes(junit, output) == {
        "test.test_m.C.test_a": Outcome.OK,
        "test.test_m.C.test_a #2": Outcome.FAIL,
        "test.test_m.C.test_b": Outcome.SKIPPED,
        "test.test_m.C.test_c at 0x": Outcome.ERROR,
        "test.test_m.C.test_d": Outcome.FAIL,
        "test.test_m.D.setUpClass": Outcome.ERROR,
    }


def test_a_run_that_died_names_its_last_test(tmp_path: Path) -> None:
    output = "test_a (test.test_m.C.test_a) ... ok\ntest_b (test.test_m.C.test_b) ... Fatal Python error\n"

    assert read_outcomes(tmp_path / "missing.xml", output) == {}
    assert last_started(output) == "test.test_m.C.test_b"


def test_differences_name_both_sides() -> None:
    plain = {"a": Outcome.OK, "b": Outcome.OK, "c": Outcome.SKIPPED}
    recorded = {"a": Outcome.OK, "b": Outcome.FAIL}

    assert differences(plain, recorded) == [
        Difference("b", Outcome.OK, Outcome.FAIL),
        Difference("c", Outcome.SKIPPED, Outcome.ABSENT),
    ]


def test_an_exception_holds_for_its_versions() -> None:
    exceptions = (Allowed("test.test_m.*", ("3.12",), "one"), Allowed("*.test_z", (), "two"))

    assert allowing("test.test_m.C.test_a", "3.12", exceptions) is exceptions[0]
    assert allowing("test.test_m.C.test_a", "3.11", exceptions) is None
    assert allowing("test.test_n.C.test_z", "3.11", exceptions) is exceptions[1]


def test_an_exception_without_a_reason_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "exceptions.toml"
    file.write_text('[[exception]]\ntest = "x"\npythons = []\nreason = " "\n')

    with pytest.raises(ValueError, match="reason"):
        read_exceptions(file)


def test_the_checked_in_exceptions_are_read() -> None:
    assert isinstance(read_exceptions(), tuple)


def test_ratios_are_paired_and_net_of_start_up() -> None:
    clock = next(each for each in WORKLOADS if each.name == "clock")
    rounds = (Round(1.0, 1.0, 2.0, 2.0, 1.6, 0.5, 0.5), Round(2.0, 2.0, 5.0, 5.0, 3.0, 1.0, 1.0))

    summary = summarise(Measurement(clock, rounds, None, None), Startup(plain=0.5, program=0.6, replayed=0.25))

    assert summary.recorded_ratio == pytest.approx(2.25)
    assert summary.sealing_cpu == pytest.approx(1.2)
    assert summary.net_ratio == pytest.approx((1.0 / 0.5 + 2.4 / 1.5) / 2)
    assert summary.replayed_to_recorded == pytest.approx((0.25 + 0.2) / 2)


def test_the_report_judges_and_never_asserts() -> None:
    compute = next(each for each in WORKLOADS if each.name == "compute")
    empty = Measurement(EMPTY, (Round(0.01, 0.01, 0.1, 0.1, 0.03, 0.09, 0.09),), None, None)
    slow = Measurement(compute, (Round(1.0, 1.0, 3.0, 3.0, 2.5, 2.0, 2.0),), None, None)
    suite = next(each for each in WORKLOADS if each.name == "pytest")
    failed = Measurement(suite, (), None, "pytest is not installed")

    table = as_table([empty, slow, failed], empty)

    assert startup_ms(empty) == pytest.approx((90, 90))
    assert "start-up: 90 ms more CPU time, 90 ms more wall; target at most 40 ms: missed" in table
    assert "pytest FAILED: pytest is not installed" in table


def test_messages_are_counted_and_parked_threads_compared() -> None:
    one, thousand = (next(each for each in WORKLOADS if each.name == f"parked-{count}") for count in (1, 1000))
    measured = [
        Measurement(one, (Round(1.0, 1.0, plain_message=10.0, recorded_message=20.0),), None, None),
        Measurement(thousand, (Round(1.0, 1.0, plain_message=30.0, recorded_message=19.0),), None, None),
    ]

    table, parked, _ = message_parts(measured, Startup(plain=0.5, program=None, replayed=None))

    assert "parked-1000      30.0         19.0" in table
    assert parked.endswith("plain 3.00, recorded 0.95; target at most 1.00: met")


def test_a_peer_runs_beside_and_its_failure_is_said() -> None:
    environment = dict(os.environ)

    with running_beside(SITE, environment) as port, urlopen(f"http://127.0.0.1:{port}/json") as answer:
        assert answer.status == 200

    with pytest.raises(PeerFailed, match="talk_websocket"), running_beside(Peer("talk_websocket"), environment):
        pass
    assert with_port(["a", f"--at={PORT}"], 80) == ["a", "--at=80"]


def test_scenarios_have_their_files_and_names_of_their_own(tmp_path: Path) -> None:
    for scenario in SCENARIOS:
        (tmp_path / scenario.name).mkdir()
        scenario.lay_out(tmp_path / scenario.name)
        programs = [argument for argument in scenario.argv[:1] if argument.endswith(".py")]
        assert all((tmp_path / scenario.name / program).exists() for program in programs)
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


def test_tables() -> None:
    assert as_text(["name", "n"], [["a", "10"], ["bb", "5"]]) == "name  n\na     10\nbb     5"
    assert as_markdown(["a"], [["x|y"]]) == "| a |\n| --- |\n| x\\|y |"
    assert [with_unit(size) for size in (512, 2048, 3 << 20, 5 << 30)] == ["512 B", "2.0 KiB", "3.0 MiB", "5.0 GiB"]


def test_programs_do_not_inherit_what_steers_python_or_the_tool() -> None:
    given = {"PATH": "/bin", "PYTHONUNBUFFERED": "1", "PYTHONMALLOC": "debug", "REPLAYDBG_STORE": "/s", "LANG": "C"}

    assert without_steering(given) == {"PATH": "/bin", "PYTHONMALLOC": "debug", "LANG": "C"}


def test_modules_that_a_version_does_not_have_are_not_run_on_it() -> None:
    assert set(modules_of("3.12")) - set(modules_of("3.11")) == {"test_monitoring"}


def test_errors_of_the_core_are_told_from_those_of_others(tmp_path: Path) -> None:
    """A file that ends early (its process was killed) returns its content; memory kept to the end is not an error."""
    frame = "<frame><obj>/x/{}</obj><fn>{}</fn><file>f.c</file><line>7</line></frame>"
    ours, other = frame.format("_core.cpython-313-x86_64-linux-gnu.so", "f"), frame.format("libc.so.6", "strlen")
    error = "<error><kind>{}</kind><what>w</what><stack>{}</stack><stack>{}</stack></error>"
    errors = [("InvalidRead", other, ours), ("UninitValue", other, other), ("Leak_DefinitelyLost", ours, ours)]
    text = "<valgrindoutput>" + "".join(error.format(*each) for each in errors)
    (tmp_path / "found.1.xml").write_text(text)

    found = list(read_found(tmp_path))

    assert [(each.kind, each.is_ours) for each in found] == [("InvalidRead", True), ("UninitValue", False)]
    assert found[0].stack == ("strlen (f.c:7)",)


# ---- tracebacks without lines ----


def test_an_entry_without_a_line_gets_one() -> None:
    def fail() -> None:
        raise ValueError

    named = fail.__code__
    fail.__code__ = named.replace(co_linetable=bytes([0x80 | 15 << 3 | 7]) * (len(named.co_code) // 16 + 1))
    with pytest.raises(ValueError) as caught:
        fail()
    assert caught.tb.tb_next is not None
    assert line_of(caught.tb.tb_next) is None

    add_missing_lines(caught.value)

    entries = traceback.extract_tb(caught.value.__traceback__)
    assert [each.name for each in entries] == ["test_an_entry_without_a_line_gets_one", "fail"]
    assert entries[1].lineno == named.co_firstlineno
