"""One judged run of a target over an input."""

import os
import traceback
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from replaydbg.store.catalog import FILE
from tests.fuzz.canary import watching
from tests.fuzz.limits import SECONDS, Hang, limited_memory, timed
from tests.fuzz.space import scratch
from tests.fuzz.targets import Target, Wrong

_OWN_FILES = ("open ('lock', ", f"('.{FILE}-")
"""How the files of the catalog are named where it writes them: relative to its directory."""


class Bad(NamedTuple):
    """The problem of a run."""

    key: str
    """Equal for all inputs that show the same fault."""
    text: str
    """All known details."""


class Ran(NamedTuple):
    """The result of a run."""

    signature: str
    bad: Bad | None


def attempt(name: str, target: Target, data: bytes, seed: str, *, seconds: float = SECONDS) -> Ran:
    """Run `target` over `data`; its choices come from `seed`."""
    with watching() as acts:
        try:
            with limited_memory(), timed(seconds):
                signature = target(data, Random(seed))
        except Hang as error:
            return Ran("", Bad(f"{name} hang {_place(error)}", f"more than {seconds} s of CPU time\n{_text(error)}"))
        except MemoryError as error:
            return Ran("", Bad(f"{name} memory {_place(error)}", f"too much memory\n{_text(error)}"))
        except Wrong as error:
            words = " ".join(str(error).split()[:6])
            return Ran("", Bad(f"{name} {words}", str(error)))
        except Exception as error:  # noqa: BLE001 - whatever a reader raises, other than its own errors, is a finding
            return Ran("", Bad(f"{name} {type(error).__name__} {_place(error)}", _text(error)))
    # The commands that write do so where requested, and `ls` in the catalog of that store.
    own = (str(scratch(os.getpid())), *_OWN_FILES)
    strange = [each for each in acts if not any(name in each for name in own)]
    if strange:
        return Ran("", Bad(f"{name} {strange[0].split()[0]}", "\n".join(strange[:10])))
    return Ran(f"{name} {signature}", None)


def _place(error: BaseException) -> str:
    """Return the innermost function of ours that an exception went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "/replaydbg/" in each.filename and "/tests/" not in each.filename] or frames
    return f"{ours[-1].filename.rpartition('/')[2]}:{ours[-1].name}" if ours else ""


def _text(error: BaseException) -> str:
    lines = traceback.format_exception(error)
    return "".join([*lines[:1], *lines[-12:]])


def of(targets: Mapping[str, tuple[str, Target, float]], name: str) -> Target:
    """Return the target of that name."""
    return targets[name][1]
