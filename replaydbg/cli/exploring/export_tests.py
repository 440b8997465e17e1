"""`replaydbg export --test`: a recording as a test for pytest, which needs nothing of replaydbg."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.output import print_json
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.exported_tests.checked import TestVerdict, check_test
from replaydbg.exported_tests.exported_file import WrittenTest, write_test
from replaydbg.exported_tests.exported_text import ended_text
from replaydbg.exported_tests.recorded_inputs import RecordedProgram
from replaydbg.log.files import held
from replaydbg.log.sealed.origin import is_own
from replaydbg.store.directory import member_path

DIFFERS = 1
"""The exit code if the test was checked, and does not fail as recorded."""


def write_exported_test(args: argparse.Namespace) -> int:
    """Write the test, and check it if that was asked for."""
    store = the_store()
    directory = store.find_group(args.recording)
    path = store.resolve(args.recording) if directory is None else member_path(directory, 1)
    with held(path):
        warn_if_foreign(path, args.recording, quiet=args.quiet)
        if args.check and not is_own(path):
            raise UsageError(
                "--check runs the program with your rights, and you did not make this recording: export without it, "
                "read the test, and run it by pytest."
            )
        test = write_test(path, Path(args.test), store.name_of(path))
        if not args.json:
            _print(test)
        verdict = None
        if args.check:
            words = printable(" ".join(_command(test.program)))
            print(f"replaydbg: --check runs the test, and so today's program: {words}", file=sys.stderr, flush=True)
            verdict = check_test(test, path)
    if args.json:
        print_json(_facts(test, verdict))
    elif verdict is not None:
        print(printable(verdict.sentence))
    return 0 if verdict is None or verdict.is_as_recorded else DIFFERS


def _print(test: WrittenTest) -> None:
    print(printable(str(test.path)))
    if test.folder is not None:
        print(f"{printable(str(test.folder))}/ has its data")
    if not test.program.has_failed:
        how = printable(ended_text(test.program))
        print(f"the recorded run did not fail ({how}): the test passes until the program fails")
    for each in test.notes:
        print(f"replaydbg: {printable(each)}", file=sys.stderr)
    if test.gaps:
        print("not reproduced:")
        for each in test.gaps:
            print(f"  {printable(each)}")


def _command(program: RecordedProgram) -> list[str]:
    """Return the command that the test runs, as a person would type it."""
    if program.kind == "test":
        return ["pytest", shlex.quote(program.target)]
    leading = {"module": ["-m"], "command": ["-c"]}.get(program.kind, [])
    return ["python", *leading, *map(shlex.quote, (program.target, *program.arguments))]


def _facts(test: WrittenTest, verdict: TestVerdict | None) -> dict[str, object]:
    return {
        "file": str(test.path),
        "folder": None if test.folder is None else str(test.folder),
        "failed": test.program.has_failed,
        "ended": ended_text(test.program),
        "not_reproduced": test.gaps,
        "notes": test.notes,
        "check": None if verdict is None else {"as_recorded": verdict.is_as_recorded, "sentence": verdict.sentence},
    }
