"""Write a test, and the folder with its data. A test that exists is never replaced: it belongs to whoever has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from replaydbg.errors import UsageError
from replaydbg.exported_tests.collected_inputs import CollectedInputs, mask_of
from replaydbg.exported_tests.exported_text import TestText
from replaydbg.exported_tests.literals import Literals
from replaydbg.exported_tests.recorded_inputs import RecordedProgram
from replaydbg.log.reader import open_recording
from replaydbg.store.private import DIRECTORY_MODE, write_private


@dataclass(frozen=True, slots=True)
class WrittenTest:
    """A test that was written."""

    path: Path
    folder: Path | None
    """The folder with data; None: it needs none."""
    gaps: list[str]
    """Inputs and conditions that the test lacks, as sentences."""
    notes: list[str]
    """Sentences about the program's files on this machine."""
    program: RecordedProgram
    root: Path
    """Where the program runs today."""
    mask: Callable[[bytes], bytes]
    """Masks secrets that are not masked in the recording."""


def write_test(recording_path: Path, target: Path, name: str = "") -> WrittenTest:
    """Write the test of a recording. Raises UsageError, the errors of `open_recording`, and NotBuilt.

    `name` is that of the recording in commands (default: its own).
    """
    _check_target(target)
    folder = target.with_name(target.stem + "_data")
    with open_recording(recording_path, with_secrets=False) as recording:
        collected = CollectedInputs(recording, name or recording.name)
        mask = mask_of(recording)
        literals = Literals(mask)
        if recording.masked:
            _name_masks(collected)
    program = collected.program = _masked_program(collected.program, mask)
    root, notes = _root_today(program)
    test = TestText(collected, literals, target.resolve(), root)
    text = test.text()
    if literals.has_masked:
        _name_masks(collected)
        literals.files.clear()
        text = test.text()
    try:
        if literals.files:
            folder.mkdir(mode=DIRECTORY_MODE)
            for name, data in literals.files.items():
                write_private(folder / name, data)
        write_private(target, mask(text.encode("ascii")))  # comments name files, too
    except OSError as error:
        raise UsageError(f"{str(target)!r} cannot be written: {error.strerror}.") from None
    gaps = [_masked(each, mask) for each in test.gaps]
    return WrittenTest(target, folder if literals.files else None, gaps, notes, program, root, mask)


def _check_target(target: Path) -> None:
    """Raise UsageError if pytest would not find the test, or something is there."""
    if target.suffix != ".py" or not (target.name.startswith("test_") or target.stem.endswith("_test")):
        raise UsageError(f"{target.name!r} must be named like test_bug.py: pytest finds tests by their names.")
    for each in (target, target.with_name(target.stem + "_data")):
        if each.exists() or each.is_symlink():
            raise UsageError(f"{str(each)!r} exists. A test is not replaced: choose another name, or remove it.")


def _masked(text: str, mask: Callable[[bytes], bytes]) -> str:
    return mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _masked_program(program: RecordedProgram, mask: Callable[[bytes], bytes]) -> RecordedProgram:
    """Return a program whose texts, which are printed, have no secrets."""
    arguments = tuple(_masked(each, mask) for each in program.arguments)
    return replace(
        program, target=_masked(program.target, mask), arguments=arguments, message=_masked(program.message, mask)
    )


def _name_masks(collected: CollectedInputs) -> None:
    gap = "secrets: asterisks stand in their place; if the program depends on one, put a value for tests there"
    collected.inputs.gaps[gap] = None


def _root_today(program: RecordedProgram) -> tuple[Path, list[str]]:
    """Return where the program's working directory is today, and sentences about what is missing."""
    recorded = Path(program.cwd)
    if not recorded.is_dir():
        note = f"the recorded working directory {program.cwd!a} is not on this machine: the test uses this directory"
        return Path.cwd(), [note]
    if program.kind != "test":
        return recorded, []
    file = program.target.partition("::")[0]
    # The name of a test begins at the root directory of pytest, which may be above the working directory.
    for root in (recorded, *recorded.parents):
        if (root / file).is_file():
            return root, []
    return recorded, [f"the test {file!a} is not there today"]
