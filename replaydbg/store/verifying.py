"""Read all bytes of a recording of the store, to find whether it is sound."""

from __future__ import annotations

from pathlib import Path

from replaydbg.errors import Corrupt, NoSuchRecording, ReplaydbgError
from replaydbg.log.group import read_group
from replaydbg.log.reader import Recording, open_recording
from replaydbg.store.catalog import DAMAGED, SOUND, CatalogRow
from replaydbg.store.directory import GROUP, member_path


def verify_row(row: CatalogRow) -> str:
    """Return the validity of a sealed recording, or of a group: SOUND or DAMAGED. It takes as long as reading it.

    Raises NotARecording if the system does not let us read it: then nothing is known.
    """
    path = Path(row.path)
    try:
        is_sound = _is_group_sound(path.parent) if path.parent.name.endswith(GROUP) else _is_file_sound(path)
    except NoSuchRecording:
        return DAMAGED  # it was removed meanwhile
    except ReplaydbgError as error:
        if isinstance(error.__cause__, OSError):
            raise
        return DAMAGED
    return SOUND if is_sound else DAMAGED


def _is_file_sound(path: Path) -> bool:
    with open_recording(path) as recording:
        return _is_sound(recording)


def _is_group_sound(directory: Path) -> bool:
    group = read_group(directory)
    numbers = [each.number for each in group.processes if each.recording is not None]
    return all(_is_member_sound(directory, group.identity, number) for number in numbers)


def _is_member_sound(directory: Path, group: str, number: int) -> bool:
    with open_recording(member_path(directory, number)) as recording:
        if (recording.header.group, recording.header.process) != (group, number):
            raise Corrupt(str(recording.path), "it is the recording of another process")
        return _is_sound(recording)


def _is_sound(recording: Recording) -> bool:
    recording.check()
    return not recording.damage
