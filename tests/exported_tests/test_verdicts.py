"""An exported test passes once the bug is mended; `--check` compares it with the recording, and the gaps are named."""

from __future__ import annotations

import json

import pytest

from replaydbg.exported_tests.last_words import LastWords, last_words
from tests.exported_tests.conftest import Project, http_server

pytestmark = pytest.mark.slow
BUG = """\
import json, sys, urllib.request
order = json.load(urllib.request.urlopen(sys.argv[1]))
price = float(open("price.txt").read())
print("total", price / (order["count"] - 1))
"""


def test_a_mended_program_passes(project: Project) -> None:
    (project.root / "price.txt").write_text("12.5")
    with http_server() as port:
        project.record(BUG, f"http://127.0.0.1:{port}/order")
    project.assert_fails_with("ZeroDivisionError: float division by zero")

    project.mend('(order["count"] - 1)', 'max(order["count"] - 1, 1)')

    ran = project.run_test()
    assert ran.status == 0 and "1 passed" in ran.stdout, ran


def test_the_check_says_that_it_fails_as_recorded(project: Project) -> None:
    project.record("raise LookupError('no such\\nthing')\n")

    done = project.export("--check")

    assert done.status == 0, done
    assert done.stderr.startswith("replaydbg: --check runs the test, and so today's program: python ")
    assert done.stdout.endswith("checked: the test fails as the recorded run did: LookupError: no such\n")


def test_the_check_says_what_differs(project: Project) -> None:
    project.record("raise LookupError('no such thing')\n")
    project.mend("LookupError", "KeyError")

    done = project.export("--check")

    assert done.status == 1, done
    wanted = "the recorded run ended with LookupError: no such thing"
    assert done.stdout.endswith(f"differs: {wanted}, the test with exit code 1: KeyError: 'no such thing'\n")


def test_the_check_says_that_it_passes_by_now(project: Project) -> None:
    project.record("raise LookupError('no such thing')\n")
    project.mend("raise LookupError", "str")

    done = project.export("--check")

    assert done.status == 1, done
    assert done.stdout.endswith("differs: the test passes; the recorded run ended with LookupError: no such thing\n")


CHAINED = """\
try: {}["a"]
except KeyError: raise
"""


def test_the_check_looks_at_the_last_of_chained_exceptions(project: Project) -> None:
    project.record(CHAINED)
    project.mend("KeyError: raise", "KeyError: raise ValueError")

    done = project.export("--check")

    assert done.status == 1, done
    assert done.stdout.endswith(
        "differs: the recorded run ended with KeyError: 'a', the test with exit code 1: ValueError\n"
    )


def test_the_check_tells_exit_codes_from_exceptions(project: Project) -> None:
    project.record("import sys\nprint('error: no amount', file=sys.stderr)\nsys.exit(1)\n")
    project.mend("sys.exit(1)", "raise ValueError")

    done = project.export("--check")

    assert done.status == 1, done
    assert (
        "differs: the recorded run ended with exit code 1: error: no amount, the test with exit code 1: " in done.stdout
    )


def test_the_check_compares_what_sys_exit_printed(project: Project) -> None:
    project.record("raise SystemExit('error: no amount')\n")
    assert project.export("--check").status == 0
    project.test.unlink()
    project.mend("no amount", "no currency")

    done = project.export("--check")

    assert done.status == 1 and "the test with exit code 1: error: no currency" in done.stdout, done


GROUP = """\
def check(text): raise ExceptionGroup("bad rows", [ValueError(text), LookupError(text)])
check("7")
"""


def test_the_check_compares_groups_of_exceptions(project: Project) -> None:
    project.record(GROUP)
    assert project.export("--check").status == 0
    project.test.unlink()
    project.mend("LookupError", "KeyError")

    assert project.export("--check").status == 1


def test_a_run_that_did_not_fail(project: Project) -> None:
    project.record("import replaydbg\nreplaydbg.moment('log', 'is no input')\nprint('well')\n")

    done = project.export("--check")

    assert done.status == 0, done
    lines = done.stdout.splitlines()
    assert "the recorded run did not fail (exit code 0): the test passes until the program fails" in lines
    assert lines[-1] == "checked: the test passes, as the recorded run did"
    assert "Not reproduced" not in project.test.read_text()
    project.mend("print('well')", "raise ValueError")
    assert project.run_test().status == 1


GAPS = """\
import os, signal, subprocess, threading
thread = threading.Thread(target=print, args=("from a thread",)); thread.start(); thread.join()
signal.signal(signal.SIGUSR1, lambda *_: None); os.kill(os.getpid(), signal.SIGUSR1)
subprocess.run(["true"])
open("/proc/self/status").read()
for each in sorted(os.listdir("names")): print(each, open("../project/prog.py.txt").read())
"""


def test_what_is_not_reproduced_is_named(project: Project) -> None:
    (project.root / "names").mkdir()
    (project.root / "names" / "one").touch()
    (project.root / "prog.py.txt").write_text("text")
    (project.root / "inside").mkdir()
    project.record(GAPS)

    done = project.export("--json")

    assert done.status == 0, done
    found = "\n".join(json.loads(done.stdout)["not_reproduced"])
    for part in (
        "the schedule of its threads (1 thread besides the main one)",
        "signals that arrived (SIGUSR1)",
        "the processes that it starts",
        "the device or system file '/proc/self/status'",
        "the order of the names in the directory 'names'",
        "os.getpid",
    ):
        assert part in found, found
    comment = " ".join(line[2:].strip() for line in project.test.read_text().splitlines() if line.startswith("#"))
    assert "signals that arrived (SIGUSR1)" in comment


def test_a_name_that_leads_out_of_the_directory_is_refused(project: Project) -> None:
    (project.place / "other.txt").write_text("outside")
    project.record("raise ValueError(open('../other.txt').read())\n")

    done = project.export("--check")

    assert "  the file '../other.txt': its name leads out of the working directory\n" in done.stdout
    assert (done.status, "differs: " in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--test", "bug.py"], "must be named like test_bug.py"),
        (["--test", "test_there.py"], "exists. A test is not replaced"),
        (["--test", "test_bug.py", "--html", "x.html"], "--html and --test cannot be combined"),
        (["--check", "--html", "x.html"], "--check needs --test"),
        (["--test", "nowhere/test_bug.py"], "cannot be written"),
        (["--test", "test_bug.py", "--at", "3"], "cannot be combined with --at"),
    ],
)
def test_usage_errors(project: Project, words: list[str], said: str) -> None:
    (project.place / "test_there.py").touch()
    project.record("raise ValueError\n")

    done = project.export_with(*words)

    assert (done.status, done.stdout) == (2, ""), done
    assert said in done.stderr and done.stderr.count("\n") == 1
    assert not (project.place / "test_bug.py").exists()


ENDS = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\nKeyError: 1\n'
ASIDE = "Exception in thread Thread-1 (f):\n" + ENDS.replace("KeyError", "ValueError")


@pytest.mark.parametrize(
    ("text", "exception", "line"),
    [
        ("", "", ""),
        ("one\n\n two\n\n", "", " two"),
        (ENDS, "KeyError: 1", "KeyError: 1"),
        (ENDS + "\nDuring handling:\n\n" + ENDS.replace("1\n", "2\nmore\n"), "KeyError: 2", "more"),
        (ASIDE + ENDS, "KeyError: 1", "KeyError: 1"),
        (ENDS + ASIDE, "KeyError: 1", "KeyError: 1"),
        ("at 0x7f0011223344", "", "at 0x..."),
        (ENDS.replace("\n", "\n    | ") + "\n    +------", "KeyError: 1", "KeyError: 1"),
    ],
)
def test_last_words(text: str, exception: str, line: str) -> None:
    assert last_words(text) == LastWords(exception, line)
