"""Records one run: makes the live directory, runs the program with the core in it, seals the recording."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import replaydbg
from replaydbg.config import load_settings
from replaydbg.errors import UsageError
from replaydbg.gates.row import SHAPE, Row
from replaydbg.gates.table import gate_table, table_digest
from replaydbg.log.codec import FORMAT, encode_value
from replaydbg.native import core_file
from replaydbg.record import interpreter
from replaydbg.record.ending import describe_end
from replaydbg.record.process import Ended, run_process
from replaydbg.record.target import Target, find_target
from replaydbg.store.directory import LIVE, SEALED, Store, sealed_path


class RecordResult(NamedTuple):
    """What came of recording a run."""

    path: Path
    """The sealed recording (the live directory where sealing failed)."""
    status: int
    """The program's exit code, or minus the number of the signal that ended it."""
    events: int
    """How many crossings were recorded."""
    size: int
    """Size of the recording in bytes."""
    notes: list[dict[str, Any]]
    """What was met that cannot be recorded: `kind`, `text`, `count`."""
    reason: str | None
    """Why logging stopped before the program ended, if it did."""
    problem: str | None
    """Why the recording could not be sealed, if so."""


def record(
    argv: list[str],
    *,
    output: Path | None = None,
    max_size: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> RecordResult:
    """Record the program that `argv` names, see `find_target`, and seal the recording.

    `output` is where the recording goes (default: a new name in the store); `max_size` in bytes, 0 for no limit;
    `stdout` and `stderr` are descriptors for the program's streams, None to inherit. Raises UsageError for a target
    that cannot be recorded, NotBuilt without the core, OSError where nothing can be written.
    """
    settings = load_settings({"max_size": max_size})
    own, words = interpreter.leading_options(argv)
    target = find_target(words)
    core = core_file(interpreter.soabi())
    live = _live_directory(output, settings.store)
    options = interpreter.split_options([*interpreter.leading_options(sys.orig_argv[1:])[0], *own])
    environment = interpreter.own_environment()
    seed = interpreter.choose_hash_seed(environment, options)
    table = gate_table(sys.path)
    header = _header(target, options, environment, seed, table, live)
    (live / "header.json").write_text(json.dumps(header), encoding="utf-8")
    boot = {"mode": "record", "live_dir": str(live), "max_size": settings.max_size}
    env = interpreter.start_environment(environment, options, seed)
    boot |= boot_values(header, table, env)
    (live / "boot").write_bytes(encode_value(boot))
    command = interpreter.command_line(sys.executable, options, core, str(live / "boot"))
    began = time.monotonic()
    fds = (None, stdout, stderr)
    ended = run_process(command, env, fds=fds, ignored=[int(number) for number in header["signals"]])
    return _seal(live, ended, time.monotonic() - began)


def _live_directory(output: Path | None, store: Path) -> Path:
    if output is None:
        return Store(store).create().absolute()
    output = output.absolute()
    if output.is_dir():
        raise UsageError(f"The recording cannot be written to {str(output)!r}: it is a directory.")
    live = output.with_name(output.name.removesuffix(SEALED) + LIVE)
    try:
        live.mkdir(mode=0o700)
    except FileExistsError:
        raise UsageError(f"{str(live)!r} exists: another recording goes on there, or its recorder was killed.") from None
    return live


def _header(
    target: Target,
    options: interpreter.Options,
    environment: dict[str, str],
    seed: int,
    table: list[Row],
    live: Path,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "tool": replaydbg.__version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "name": sealed_path(live).stem,
        "kind": target.kind,
        "target": target.what,
        "argv": target.argv,
        "orig_argv": [sys.orig_argv[0], *options.given, *target.options],
        "cwd": _cwd(),
        "path0": target.path0,
        "env": environment,
        "hash_seed": seed,
        "python": {**interpreter.this_python(), "flags": options.given},
        "platform": " ".join(os.uname()[index] for index in (0, 2, 4)),
        "stdio": [interpreter.stream_kind(fd) for fd in range(3)],
        "signals": interpreter.ignored_signals(),
        "fds": interpreter.inherited_fds(),
        "gates": [{"name": row.full_name, "shape": row.flags & SHAPE, "kind": row.kind} for row in table],
        "gates_digest": table_digest(table),
    }


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def boot_values(header: Mapping[str, Any], table: list[Row], start: dict[str, str]) -> dict[str, Any]:
    """Return what the core is told in both modes; `start` is the environment that the interpreter is started with."""
    options = interpreter.split_options(list(header["python"]["flags"]))
    target = header["target"]
    return {
        "gates": [tuple(row) for row in table],
        "kind": header["kind"],
        "target": os.fsencode(target) if header["kind"] == "script" else target,
        "argv": list(header["argv"]),
        "orig_argv": list(header["orig_argv"]),
        "path0": header["path0"],
        "env_changes": interpreter.environment_changes(header["env"], start),
        "site": options.site,
        "isolated": options.isolated,
        "ignore_environment": options.ignore_environment,
        "terminal_input": header["stdio"][:2] == ["tty", "tty"],
    }


def _seal(live: Path, ended: Ended, seconds: float) -> RecordResult:
    # Imported here because the program has ended: zstandard costs 8 ms, and a program that is being recorded waits
    # for everything that comes before it.
    from replaydbg.log.container import seal

    end = describe_end(live, ended, seconds)
    (live / "end.json").write_text(json.dumps(end), encoding="utf-8")
    target = sealed_path(live)
    problem = None
    try:
        seal(live, target, end)
    except OSError as error:
        problem = f"it could not be sealed ({error.strerror}) and stays a directory"
        target = live
    size = target.stat().st_size if target.is_file() else sum(path.stat().st_size for path in target.rglob("*"))
    return RecordResult(target, ended.status, end["events"], size, end["notes"], end["reason"], problem)
