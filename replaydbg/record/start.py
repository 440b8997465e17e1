"""Write the first files of a recording, and return how its program's interpreter is started with the core in it.

The launcher starts it as a child; a Python that joins a group becomes it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import replaydbg
from replaydbg.classes import NamedTuple
from replaydbg.errors import UsageError
from replaydbg.gates.row import SHAPE, Row
from replaydbg.gates.table import OWN, table_digest
from replaydbg.launch import interpreter
from replaydbg.launch.boot import boot_values
from replaydbg.launch.commit import commit_of
from replaydbg.launch.program_python import ProgramPython, Started
from replaydbg.launch.quiet_start import printed_by_itself
from replaydbg.log.coding.encode import CHECKS, FORMAT
from replaydbg.record.collector_start import first_counts
from replaydbg.record.place import write_start
from replaydbg.record.target import SCRIPT, Target, find_target
from replaydbg.store.directory import sealed_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from replaydbg.config import Settings
    from replaydbg.log.json_data import GateData, HeaderData, SecretsData


class WantedProgram(NamedTuple):
    """The program to record, and the interpreter for it."""

    target: Target
    options: interpreter.Options
    environment: dict[str, str]
    python: ProgramPython


class Wishes(NamedTuple):
    """The user's settings for a recording."""

    max_size: int
    """The size in bytes at which it ends; 0: none."""
    real_ids: bool
    chaos: int | None
    on_deadlock: str
    durable: bool
    checkpoint_events: int = 0
    checkpoint_size: int = 0
    keeps_secrets: bool = False
    secret_names: tuple[str, ...] = ()
    """Shell patterns of further environment variables with secrets."""
    recipients: tuple[str, ...] = ()
    """Public keys of others who can see the secrets."""
    secret_patterns: tuple[str, ...] = ()
    """Regular expressions of further secrets."""

    def as_boot(self) -> dict[str, object]:
        """Return the core's orders."""
        return {
            "max_size": self.max_size,
            "stop_on_deadlock": self.on_deadlock == "stop",
            "durable": self.durable,
            "continuing": continuing_command(),
        }


def wishes_of_recorded(header: HeaderData, settings: Settings) -> Wishes:
    """Return the wishes for processes that begin when a recorded group goes on: its own, where its header has them."""
    none: SecretsData = {"kept": False, "names": [], "recipients": []}
    secrets = header.get("secrets", none)
    return Wishes(
        settings.max_size,
        header["real_ids"],
        header["chaos"],
        settings.on_deadlock,
        header["durable"],
        keeps_secrets=secrets["kept"],
        secret_names=tuple(secrets["names"]),
        recipients=tuple(secrets["recipients"]),
        secret_patterns=tuple(secrets.get("patterns", ())),
    )


class InterpreterStart(NamedTuple):
    """How the program's interpreter is started."""

    command: list[str]
    """Its command line."""
    environment: dict[str, str]


def wanted_program(started: Started) -> WantedProgram:
    """Return what a command line means. Raises UsageError for what cannot be recorded."""
    python, options, words, takes_commands = started
    environment = interpreter.own_environment()
    interpreter.check_recordable(options, environment)
    target = find_target(words, takes_commands=takes_commands)
    return WantedProgram(target, interpreter.split_options(options), environment, python)


def make_header(
    wanted: WantedProgram,
    seed: int,
    table: list[Row],
    live: Path,
    wishes: Wishes,
    fds: tuple[int | None, ...] = (None, None, None),
) -> HeaderData:
    """Return the header of the recording that is written to `live`; `fds` are the program's standard streams."""
    target, options, environment, python = wanted
    header: HeaderData = {
        "format": FORMAT,
        "tool": replaydbg.__version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "name": sealed_path(live).stem,
        "kind": target.kind,
        "target": target.what,
        "argv": target.argv,
        "orig_argv": [python.first_word, *options.given, *target.options],
        "cwd": _cwd(),
        "umask": _umask(),
        "commit": commit_of(_directory(target)),
        "path0": target.path0,
        "env": environment,
        "hash_seed": seed,
        "python": {**python.facts, "flags": options.given},
        "platform": " ".join(os.uname()[index] for index in (0, 2, 4)),
        "signals": interpreter.ignored_signals(),
        "fds": interpreter.inherited_fds(),
        "gates": gate_data(table),
        "gates_digest": table_digest(table),
        "real_ids": wishes.real_ids,
        "durable": wishes.durable,
        "run": os.urandom(16).hex(),
        "checkpoints": {"events": wishes.checkpoint_events, "bytes": wishes.checkpoint_size},
        "chaos": wishes.chaos,
        "collector": list(first_counts(wishes.chaos)),
        "stdio": [interpreter.stream_kind(number if fd is None else fd) for number, fd in enumerate(fds)],
    }
    if (offset := interpreter.input_offset(0 if fds[0] is None else fds[0])) is not None:
        header["stdin_offset"] = offset
    _add_secrets(header, wishes)
    if sys.version_info < (3, 12):
        header["ticks"] = CHECKS
    if table[len(OWN) :]:
        header["rows"] = [list(row) for row in table[len(OWN) :]]
    return header


def _add_secrets(header: HeaderData, wishes: Wishes) -> None:
    """Add how secrets are to be kept. Raises UsageError for a recipient that is no key."""
    if wishes.recipients:
        _check_recipients(wishes.recipients)
    if wishes.keeps_secrets or wishes.secret_names or wishes.recipients or wishes.secret_patterns:
        header["secrets"] = {
            "kept": wishes.keeps_secrets,
            "names": list(wishes.secret_names),
            "recipients": list(wishes.recipients),
        }
        if wishes.secret_patterns:
            header["secrets"]["patterns"] = list(wishes.secret_patterns)


def gate_data(table: list[Row]) -> list[GateData]:
    """Return the rows as a header has them."""
    return [{"name": row.full_name, "shape": row.flags & SHAPE, "kind": row.kind} for row in table]


def continuing_command() -> list[bytes]:
    """Return the beginning of the command line by which a program goes on from a checkpoint, see `continuing.py`."""
    script = os.path.join(os.path.dirname(__file__), "continuing.py")  # noqa: PTH118,PTH120
    # Isolated, so that nothing of the program's runs before it.
    return [os.fsencode(word) for word in (sys.executable, "-I", "-S", script)]


def _directory(target: Target) -> str:
    """Return where the program's repository is looked for: the directory of a script, otherwise the working one."""
    return os.path.dirname(target.what) if target.kind == SCRIPT else _cwd()  # noqa: PTH120


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def write_files(
    wanted: WantedProgram,
    live: Path,
    header: HeaderData,
    table: list[Row],
    orders: Mapping[str, object],
    *,
    core: str,
    name: str,
    marks: bool = True,
) -> InterpreterStart:
    """Write the header and the core's orders, which `orders` are a part of.

    `core` is the path of the core; `name` is what the interpreter is called in its command line; without `marks` the
    directory is marked as this user's by somebody else. Raises CannotRecord.
    """
    options, environment = wanted.options, wanted.environment
    env = interpreter.start_environment(environment, options, header["hash_seed"])
    boot = {**orders, **boot_values(header, table, env)}
    boot["notes"] = printed_by_itself({} if options.ignore_environment else environment)
    boot_file = write_start(live, header, boot, marks=marks)
    passed = options.passed
    if boot["warnings"]:
        kept = [option for option in interpreter.parse_options(options.given) if option.name != "W"]
        passed = interpreter.passed_words(kept)
    return InterpreterStart(interpreter.command_line(name, passed, core, str(boot_file)), env)


def _check_recipients(recipients: Sequence[str]) -> None:
    """Raise UsageError if one is no public key: nothing could be encrypted when the program has ended."""
    # Imported here: it is compiled code, which few recordings need before they end.
    from replaydbg.secrets.age_keys import check_recipients

    try:
        check_recipients(recipients)
    except ValueError as error:
        raise UsageError(f"The setting 'recipients' has something else than public keys of age ({error}).") from error
