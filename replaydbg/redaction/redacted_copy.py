"""Copy a recording of one process with pseudonyms in the place of its secrets."""

from __future__ import annotations

import os
import random
from pathlib import Path

from replaydbg.errors import CannotRedact
from replaydbg.log.files import forget_signature
from replaydbg.log.group import GROUP, group_directory
from replaydbg.log.reader import Recording
from replaydbg.redaction.proven_copy import Redacted, write_proven
from replaydbg.redaction.redacted_sections import add_pieces, check_source, secrets_in_recording
from replaydbg.secrets.pseudonyms import Pseudonyms, pseudonyms_of
from replaydbg.store.leftovers import working_directory


def redact(recording: Recording, target: Path, name: str, *, may_derive: bool = False) -> Redacted:
    """Write the copy `target`, sealed. It has no masks: whoever has it can replay it.

    `may_derive`: output may be computed from secrets, and be other bytes in the copy. Raises CannotRedact, with the
    line if the run, or otherwise its output, depends on the value of a secret; SecretsMasked without the key for
    the secrets; Corrupt; FileExistsError. Nothing is written then.
    """
    directory = group_directory(recording.path) if recording.header.group else None
    if directory is not None:
        group = directory.name.removesuffix(GROUP)
        raise CannotRedact(name, f"it is one process of a group: give the group ({group}), which is copied as a whole")
    check_source(recording, name)
    found = secrets_in_recording(recording)
    pseudonyms = Pseudonyms(pseudonyms_of(found, random.SystemRandom()))
    add_pieces(pseudonyms, [recording])
    with working_directory(target.parent) as folder:
        proven = folder / "proven.rdbg"
        made = write_proven(recording, proven, pseudonyms, found, name, may_derive=may_derive)
        os.link(proven, target)  # unlike a rename it replaces nothing
        forget_signature(target)
    return Redacted(target.stat().st_size, len(found), made.events, derived=made.derived)
