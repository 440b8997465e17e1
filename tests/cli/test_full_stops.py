"""A message ends with one full stop, whatever the text of the exception in it ends with."""

import io

import pytest

from replaydbg.cli.common.refused import refused
from replaydbg.errors import AskFailed, CannotRecord, Corrupt, ReplaydbgError, UsageError, clause


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("it is full", "it is full"),
        ("it is full.", "it is full"),
        ("and so on ...", "and so on ..."),
        ("it raised MemoryError: ", "it raised MemoryError"),
        ("it raised KeyError: ':'", "it raised KeyError: ':'"),
        ("", ""),
    ],
)
def test_the_text_of_an_exception_ends_a_sentence(text: str, shown: str) -> None:
    assert clause(text) == shown


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UsageError("It cannot be read: a text.."), "It cannot be read: a text."),
        (UsageError("It cannot be read: MemoryError: ."), "It cannot be read: MemoryError."),
        (UsageError("Give one or more ..."), "Give one or more ..."),
        (AskFailed("it raised SystemExit: "), "Cannot evaluate this here: it raised SystemExit."),
        (Corrupt("r", "no end."), "'r' is damaged: no end."),
        (CannotRecord("r", "It is full."), "Cannot record to 'r': It is full. The program was not started."),
        (refused(io.UnsupportedOperation("not seekable.")), "The system refused: not seekable."),
        (refused(OSError(28, "No space left on device")), "The system refused: No space left on device."),
        (refused(OSError()), "The system refused: OSError."),
        (refused(OSError(21, "Is a directory", 5)), "The system refused: Is a directory."),
    ],
)
def test_messages_have_one_full_stop(error: ReplaydbgError, message: str) -> None:
    assert str(error) == message
    assert error.as_dict()["message"] == message
