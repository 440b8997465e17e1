"""The settings, and the only reader of the environment.

Order: flags, then REPLAYDBG_* variables, then [tool.replaydbg] in the nearest pyproject.toml, then the user's
config.toml, then defaults. Recording loads this too, so TOML and platformdirs are imported only when there is a file to
parse or a directory to find, and the classes are named tuples: dataclasses would add 4 ms to each start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

APP = "replaydbg"
TEST_PREFIX = "REPLAYDBG_TEST_"
"""Prefix of variables that are orders of the tests, see `orders_of_tests`; no program gets them."""
_PLATFORM: str = sys.platform
_MOST_OWN_CODE = 256
"""The most patterns of own code: the engine has that many places."""


class Settings(NamedTuple):
    """The settings of one command."""

    store: Path
    """The directory in which recordings are kept."""
    max_size: int
    """The size in bytes at which logging stops; 0 for no limit."""
    quiet: bool
    """Whether to print nothing on stderr after a successful run."""
    real_ids: bool
    """Whether `id()` returns real addresses, as it does outside a recording; these differ in a replay."""
    chaos: int | None
    """The seed of short, uneven slices for the program's threads, which provoke races; None for ordinary ones."""
    on_deadlock: str
    """How to react when every thread waits for another one: `wait`, as the program would, or `stop`."""
    durable: bool
    """Whether a recording survives power loss: output waits until the disk has the log."""
    checkpoint_events: int
    """The number of events in its log after which a program that calls `replaydbg.checkpoint` saves itself; 0: none."""
    checkpoint_size: int
    """The same by the size of the log in bytes."""
    children: str
    """Which child processes are recorded, too: `python`, those that run Python; `fork`, those forked; or `none`."""

    secrets: str
    """How secrets are recorded: `mask` encrypts them, `keep` stores them as they are."""
    secret_names: tuple[str, ...]
    """Shell patterns of further environment variables whose values are secrets."""
    secret_patterns: tuple[str, ...]
    """Regular expressions of further secrets: group 1, or the whole match if there is none."""
    recipients: tuple[str, ...]
    """Public keys of age of others who can see the secrets of this user's recordings."""
    keep: tuple[str, ...]
    """The rules by which `gc --recordings` keeps recordings, in order; empty: it removes none."""

    worker_cache: Path
    """The directory in which a worker of a cluster keeps the files that its tasks need."""
    worker_cache_size: int
    """Its largest size in bytes."""

    session_memory: int
    """Memory limit for all processes of a debugging session together, in bytes; 0: the engine's default."""
    theme: str
    """The terminal UI's theme: `dark`, `light`, or the name of one of Textual's themes."""
    ascii: bool
    """Whether the terminal UI draws with ASCII characters only."""
    python: str
    """The interpreter for recordings that need another Python than this one; empty: search for one."""
    just_my_code: bool
    """Whether steps of the debugger skip code that is not the user's own."""
    my_code: tuple[str, ...]
    """Shell patterns of files that are the user's own code, behind `!` of files that are not; the last one wins."""
    keymap: str
    """The terminal UI's keymap: `default`, `pudb`, `gdb` or `vscode`."""
    keys: Mapping[str, str]
    """Other keys for actions of the terminal UI, by the action's name; several keys are separated by spaces."""


class FoundSetting(NamedTuple):
    """One setting with its source."""

    name: str
    """The setting's name in a file; the variable is REPLAYDBG_ and the name in capitals."""
    value: Path | int | str | tuple[str, ...] | Mapping[str, str] | None
    """Its value."""
    source: str
    """Description of the source."""


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings; `flags` are those given on the command line, where None means not given.

    Raises UsageError for an invalid value, and names its source.
    """
    return Settings(**{found.name: found.value for found in find_settings(flags)})  # type: ignore[arg-type]


def find_settings(flags: Mapping[str, Any] | None = None) -> tuple[FoundSetting, ...]:
    """Return every setting with its value and its source; see `load_settings`."""
    layers: list[tuple[str, Mapping[str, Any]]] = [
        ("the command line", {name: value for name, value in (flags or {}).items() if value is not None}),
        ("", _environment()),
        *_files(),
    ]
    return tuple(_find(name, layers) for name in Settings._fields)


def is_notice_unwanted(flag: bool | None) -> bool:
    """Whether the user does not want the notice that a program out of somebody else's recording is run.

    `flag` is `--quiet`, None if it is not given. A project's file is ignored: it may come from the person who
    made the recording.
    """
    layers: list[tuple[str, Mapping[str, Any]]] = [
        ("the command line", {} if flag is None else {"quiet": flag}),
        ("", _environment()),
        *_user_files(),
    ]
    return bool(_find("quiet", layers).value)


def _find(name: str, layers: list[tuple[str, Mapping[str, Any]]]) -> FoundSetting:
    for source, values in layers:
        if name in values:
            source = source or f"the variable {_variable(name)}"
            try:
                return FoundSetting(name, _READ[name](values[name]), source)
            except (TypeError, ValueError) as error:
                raise UsageError(f"{name} cannot be {values[name]!r} (from {source}): {error}.") from error
    return FoundSetting(name, _default(name), "the default")


def _variable(name: str) -> str:
    return f"REPLAYDBG_{name.upper()}"


def _environment() -> dict[str, str]:
    """Return the settings from the environment; an empty variable counts as not set."""
    return {name: os.environ[_variable(name)] for name in Settings._fields if os.environ.get(_variable(name))}


def _files() -> list[tuple[str, Mapping[str, Any]]]:
    found: list[tuple[str, Mapping[str, Any]]] = []
    for path in (parent / "pyproject.toml" for parent in _directories()):
        data = _read(path)
        if data is not None:
            # The nearest file ends the search. Parsing is skipped for a file that cannot contain settings of ours.
            if b"replaydbg" in data:
                table = _parse(path, data).get("tool", {})
                values = _known(path, table.get(APP, {}) if isinstance(table, dict) else {})
                # This file belongs to a project, which may be somebody else's: no setting of it names a program that is
                # executed, decides what is removed, or who sees secrets.
                for name in _OWN.intersection(values):
                    raise UsageError(
                        f"{path} sets {name!r}; only {_variable(name)} or {user_config_file()} may set it."
                    )
                found.append((str(path), values))
            break
    return found + _user_files()


def _user_files() -> list[tuple[str, Mapping[str, Any]]]:
    path = user_config_file()
    data = _read(path)
    return [] if data is None else [(str(path), _known(path, _parse(path, data)))]


def _directories() -> list[Path]:
    """Return the working directory and those above it; none if it was deleted: a program still runs there."""
    try:
        directory = Path.cwd()
    except FileNotFoundError:
        return []
    return [directory, *directory.parents]


def user_config_file() -> Path:
    """Return the path of the user's own settings file, whether or not it exists."""
    return _user_directory("XDG_CONFIG_HOME", ".config", "user_config_path") / "config.toml"


def user_signers_file() -> Path:
    """Return the path of the user's file of trusted signers, whether or not it exists."""
    return user_config_file().with_name("allowed_signers")


def user_key_file() -> Path:
    """Return the path of the key that marks this user's recordings, whether or not it exists."""
    return _user_directory("XDG_DATA_HOME", ".local/share", "user_data_path") / "key"


def user_cache_directory() -> Path:
    """Return the user's cache directory, whether or not it exists."""
    return _user_directory("XDG_CACHE_HOME", ".cache", "user_cache_path")


def _user_directory(variable: str, below_home: str, elsewhere: str) -> Path:
    """Return the directory that `platformdirs.<elsewhere>` gives for us.

    On Linux, where programs are recorded, that is two lines of the XDG specification; importing platformdirs for them
    took 3 ms before every recorded program.
    """
    if _PLATFORM == "linux":
        given = os.environ.get(variable, "")
        return (Path(given) if given.startswith("/") else Path("~").expanduser() / below_home) / APP
    import platformdirs

    return Path(getattr(platformdirs, elsewhere)(APP))


def criu_program() -> str:
    """Return the program that makes images of a standby: the variable REPLAYDBG_CRIU, or `criu` on PATH.

    It runs with all rights of the user, so no file of a project can name it.
    """
    return os.environ.get("REPLAYDBG_CRIU") or "criu"


def orders_of_tests() -> dict[str, int]:
    """Return the tests' orders to the core, from variables that begin with `REPLAYDBG_TEST_`; nobody else sets one.

    `REPLAYDBG_TEST_PERTURB`, a number: random allocations, seeded with it, wherever the core does work of its own.

    `REPLAYDBG_TEST_STRICT=1`: the collector's state is recorded and compared at each event, and a difference ends the
    replay.

    `REPLAYDBG_TEST_DRIFT`, a number: after that event the next collection comes 200 allocations too early.

    `REPLAYDBG_TEST_SLICE`, a number: the mean slice of a lane, in ticks.

    `REPLAYDBG_TEST_TICKS` and `REPLAYDBG_TEST_TICKS_FD`, numbers: ticks are counted from the program's first line on,
    in slices of that length, and at each event their count and that of the slices go to the descriptor, as varints.

    `REPLAYDBG_TEST_KILLED_AT`, a number: the recorded process is ended by SIGKILL after that event.
    """
    names = ("perturb", "strict", "drift", "slice", "ticks", "ticks_fd", "killed_at")
    values = {name: os.environ.get(TEST_PREFIX + name.upper(), "") for name in names}
    return {name: int(value) for name, value in values.items() if value.isdigit()}


ALWAYS_VARIABLE = "REPLAYDBG_ALWAYS"
"""With `off`, `replaydbg always` does not record a program and its children; `plain PID` is for one process alone."""
ALWAYS_OF_OURS = "replaydbg"
"""Its value in the processes of a command of replaydbg; a program that one of them starts does not get it."""

FENCE_VARIABLE = "REPLAYDBG_NO_FENCE"
"""Set to 1 to replay without the fence. No settings file can do that: a project may come from somebody else."""


def is_fence_wanted() -> bool:
    """Whether replays run behind the fence (default: yes)."""
    return os.environ.get(FENCE_VARIABLE, "") in ("", "0")


def leave_fence_out() -> None:
    """Run all replays of this process, and of those that it starts, without the fence."""
    os.environ[FENCE_VARIABLE] = "1"


def is_colour_forced() -> bool:
    """Whether output is coloured and formatted as on a terminal wherever it goes (FORCE_COLOR)."""
    return bool(os.environ.get("FORCE_COLOR"))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        # The file is missing or unreadable: it has no settings for us.
        return None


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    # Imported here: it takes 3 ms, which only users with settings in a file pay.
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}.") from error


def _known(path: Path, table: object) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise UsageError(f"The settings of replaydbg in {path} are not a table.")
    values = {name.replace("-", "_"): value for name, value in table.items()}
    for name in values:
        if name not in Settings._fields:
            raise UsageError(f"{path} has a setting {name!r}, which replaydbg does not know.")
    if isinstance(values.get("store"), str):
        # Relative to the file that contains it, not to the working directory.
        values["store"] = str(path.parent / Path(values["store"]).expanduser())
    return values


def _default(name: str) -> Path | int | str | tuple[str, ...] | Mapping[str, str] | None:
    if name == "store":
        return _user_directory("XDG_DATA_HOME", ".local/share", "user_data_path") / "recordings"
    if name == "worker_cache":
        return user_cache_directory() / "worker"
    return _DEFAULTS[name]


def _path(value: Any) -> Path:
    if not isinstance(value, (str, Path)) or "\0" in str(value):
        raise TypeError("a path is needed")
    return Path(value).expanduser().absolute()


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_size(value: Any) -> int:
    """Return the size in bytes given as a number or as text such as `2G` or `500M`. Raises ValueError or TypeError."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError("a size is needed, such as 2G")
    text = str(value).strip().lower().removesuffix("b").removesuffix("i")
    unit = text[-1:] if text[-1:] in _UNITS else ""
    digits = text.removesuffix(unit)
    if not digits.isdecimal() or len(digits) > 18:
        raise ValueError("a size is needed, such as 2G")
    return int(digits) * _UNITS[unit]


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if not isinstance(value, str) or value.lower() not in words:
        raise ValueError("yes or no is needed")
    return words[value.lower()]


def _seed(value: Any) -> int:
    if isinstance(value, bool) or not str(value).strip().isdecimal() or int(value) >= 1 << 63:
        raise ValueError("a seed is needed: an integer of at least 0")
    return int(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not str(value).strip().isdecimal() or int(value) >= 1 << 62:
        raise ValueError("it must be an integer of at least 0")
    return int(value)


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("a name is needed")
    return value


def _words(value: Any) -> tuple[str, ...]:
    """Return the items of a list in a file, or of a variable written as `pinned, days 30`."""
    items = [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(each, str) and each for each in items):
        raise TypeError("it must be a list of words, in a variable with commas between them")
    return tuple(items)


def _own_code(value: Any) -> tuple[str, ...]:
    found = _words(value)
    if len(found) > _MOST_OWN_CODE:
        raise ValueError(f"at most {_MOST_OWN_CODE} patterns are possible")
    return found


def _patterns(value: Any) -> tuple[str, ...]:
    """Return the regular expressions of a list in a file, or of a variable with one in each line."""
    items = [each for each in value.splitlines() if each] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(each, str) and each for each in items):
        raise TypeError("it must be a list of regular expressions, in a variable one in each line")
    for each in items:
        _check_pattern(each)
    return tuple(items)


def _check_pattern(text: str) -> None:
    # Imported here: few users have patterns of their own.
    import re

    try:
        pattern = re.compile(text.encode())
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    # One that matches nothing at all does so at every place, which takes long and finds no secret.
    if any(not match[0] for match in pattern.finditer(b"a 1\n")):
        raise ValueError(f"{text!r} matches the empty string")


def _interpreter(value: Any) -> str:
    if not isinstance(value, str) or (value and not value.startswith("/")) or "\0" in value:
        raise TypeError("it must be the absolute path of an interpreter")
    return value


def _keys(value: Any) -> Mapping[str, str]:
    """Return the key bindings from a table of a file, or from a variable written as `next=n,step=s i`."""
    if isinstance(value, str):
        value = dict(each.split("=", 1) for each in value.split(",") if each.strip())
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise TypeError("a table of keys is needed, such as next = 'n j'")
    return {str(name).strip(): keys.strip() for name, keys in value.items()}


def _on_deadlock(value: Any) -> str:
    if value not in ("wait", "stop"):
        raise ValueError("it is either wait or stop")
    return str(value)


CHILDREN = ("python", "fork", "none")
"""Which child processes `record` can record."""


_OWN = frozenset({"python", "keep", "secrets", "recipients", "worker_cache", "worker_cache_size"})
"""Settings that no project has for its users."""


def _secrets(value: Any) -> str:
    if value not in ("mask", "keep"):
        raise ValueError("it is either mask or keep")
    return str(value)


def _children(value: Any) -> str:
    if value not in CHILDREN:
        raise ValueError("it is python, fork or none")
    return str(value)


_DEFAULTS: dict[str, int | str | tuple[str, ...] | Mapping[str, str] | None] = {
    "secrets": "mask",
    "secret_names": (),
    "secret_patterns": (),
    "recipients": (),
    "keep": (),
    "max_size": 0,
    "quiet": False,
    "real_ids": False,
    "chaos": None,
    "on_deadlock": "wait",
    "durable": False,
    "checkpoint_events": 100_000,
    "checkpoint_size": 64 << 20,
    "children": "python",
    "worker_cache_size": 10 << 30,
    "session_memory": 0,
    "theme": "dark",
    "ascii": False,
    "python": "",
    "just_my_code": False,
    "my_code": (),
    "keymap": "default",
    "keys": {},
}
_READ: dict[str, Callable[[Any], Path | int | str | tuple[str, ...] | Mapping[str, str]]] = {
    "secrets": _secrets,
    "secret_names": _words,
    "secret_patterns": _patterns,
    "recipients": _words,
    "keep": _words,
    "chaos": _seed,
    "on_deadlock": _on_deadlock,
    "children": _children,
    "worker_cache": _path,
    "worker_cache_size": parse_size,
    "session_memory": parse_size,
    "theme": _word,
    "ascii": _truth,
    "python": _interpreter,
    "just_my_code": _truth,
    "my_code": _own_code,
    "keymap": _word,
    "keys": _keys,
    "store": _path,
    "max_size": parse_size,
    "quiet": _truth,
    "real_ids": _truth,
    "durable": _truth,
    "checkpoint_events": _count,
    "checkpoint_size": parse_size,
}
