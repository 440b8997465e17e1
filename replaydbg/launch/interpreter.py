"""How the program's interpreter is started: its options, its environment, and what it inherits."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Mapping
from typing import NamedTuple

from replaydbg.config import TEST_PREFIX
from replaydbg.errors import UsageError

BOOTSTRAP = (
    "import _imp;from _frozen_importlib import ModuleSpec as S;"
    "_imp.create_dynamic(S('replaydbg.native._core',None,origin={core!a})).boot({boot!a})"
)
"""The command that loads the core without entering it into `sys.modules`; it never returns."""

_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


class Options(NamedTuple):
    """The interpreter's options, split into what is passed on and what the core does in their place."""

    passed: list[str]
    """Options for the bootstrap interpreter."""
    given: list[str]
    """Options as they were given: the recording's `sys.orig_argv`."""
    site: bool
    """Whether `site` is imported (no -S)."""
    isolated: bool
    """Whether -I was given."""
    ignore_environment: bool
    """Whether -E or -I was given."""
    is_randomized: bool
    """Whether -R was given, which overrides a fixed hash seed."""


def leading_options(words: list[str]) -> tuple[list[str], list[str]]:
    """Split a command line of the interpreter (without its name): its options, and from the script or -m or -c on."""
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-") or word in ("-m", "-c", "-", "--"):
            break
        if word.startswith("--") and word not in _WITH_VALUE:
            break
        place = _run_letter(word)
        if place > 0:
            # `-mpdb`, `-Bm pdb`: several options in one word, the last of which names the program.
            before = [word[:place]] if place > 1 else []
            value = [word[place + 1 :]] if word[place + 1 :] else []
            return [*words[:index], *before], ["-" + word[place], *value, *words[index + 1 :]]
        index += 2 if word in _WITH_VALUE else 1
    return words[:index], words[index:]


def _run_letter(word: str) -> int:
    """Return where in a word of options stands -m or -c, 0 for nowhere; behind -W and -X stands their value."""
    if word.startswith("--"):
        return 0
    for place, letter in enumerate(word[1:], 1):
        if letter in "mc":
            return place
        if letter in "WX":
            return 0
    return 0


def split_options(given: list[str]) -> Options:
    """Return what to pass on: -S always; -E, -I and -R are emulated, since they would ignore the hash seed too."""
    passed: list[str] = []
    letters = ""
    is_value = False
    for word in given:
        if is_value or word.startswith("--"):
            passed.append(word)
            is_value = not is_value and word in _WITH_VALUE
            continue
        # A cluster such as -BWerror: letters up to one that takes the rest, or the next word, as its value.
        end = min((index for index in map(word.find, "WX") if index > 0), default=len(word))
        letters += word[1:end]
        kept = "".join(letter for letter in word[1:end] if letter not in "SEIR") + word[end:]
        if kept:
            passed.append("-" + kept)
        is_value = word[end:] in ("W", "X")
    isolated = "I" in letters
    if isolated:
        passed += ["-s", "-P"]
    return Options(
        passed=["-S", *passed],
        given=given,
        site="S" not in letters,
        isolated=isolated,
        ignore_environment=isolated or "E" in letters,
        is_randomized="R" in letters,
    )


def check_recordable(given: list[str], environment: Mapping[str, str]) -> None:
    """Raise UsageError for options under which the interpreter would not run the program, or not the program alone."""
    letters = _letters(given)
    if "i" in letters:
        raise UsageError("Interactive mode (-i) cannot be recorded. Run the program without it.")
    if environment.get("PYTHONINSPECT") and not {"E", "I"} & set(letters):
        raise UsageError("Interactive mode (PYTHONINSPECT) cannot be recorded. Unset the variable.")
    for letter in "Vh?":
        if letter in letters:
            raise UsageError(f"With the option -{letter} Python runs no program, so there is nothing to record.")


def _letters(given: list[str]) -> str:
    """Return the letters of all short options, without values."""
    letters = ""
    is_value = False
    for word in given:
        if is_value or word.startswith("--"):
            is_value = not is_value and word in _WITH_VALUE
            continue
        end = min((index for index in map(word.find, "WX") if index > 0), default=len(word))
        letters += word[1:end]
        is_value = word[end:] in ("W", "X")
    return letters


def choose_hash_seed(environment: dict[str, str], options: Options) -> int:
    """Return the seed of string hashes: the one that the environment fixes, or a fresh random one (never 0)."""
    fixed = environment.get("PYTHONHASHSEED", "")
    if fixed.isdigit() and not options.ignore_environment and not options.is_randomized:
        return int(fixed)
    return int.from_bytes(os.urandom(4), "little") % 4294967294 + 1


def start_environment(environment: dict[str, str], options: Options, seed: int) -> dict[str, str]:
    """Return the environment for the bootstrap interpreter; the core puts the program's own back."""
    env = dict(environment)
    if options.ignore_environment:
        env = {name: value for name, value in env.items() if not name.startswith("PYTHON")}
    env["PYTHONHASHSEED"] = str(seed)
    return env


def environment_changes(environment: Mapping[str, str], start: Mapping[str, str]) -> list[tuple[bytes, bytes | None]]:
    """Return what turns the environment `start` back into `environment`: names and values, None to remove."""
    names = [name for name in (*environment, *start) if environment.get(name) != start.get(name)]
    values = [(name, environment.get(name)) for name in dict.fromkeys(names)]
    return [(os.fsencode(name), None if value is None else os.fsencode(value)) for name, value in values]


def own_environment() -> dict[str, str]:
    """Return our environment without the LC_CTYPE that Python adds to it in the C locale, and without tests' orders."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(TEST_PREFIX)}
    if environment.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8"):
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
            if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
                del environment["LC_CTYPE"]
    return environment


def command_line(executable: str, options: Options, core: str, boot: str) -> list[str]:
    """Return the argument list that starts the interpreter with the core in it."""
    return [executable, *options.passed, "-c", BOOTSTRAP.format(core=core, boot=boot)]


def stream_kind(fd: int) -> str:
    """Return what a standard stream is: `tty`, `pipe`, `file`, `null`, `socket` or `closed`."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return "closed"
    if os.isatty(fd):
        return "tty"
    if stat.S_ISFIFO(mode):
        return "pipe"
    if stat.S_ISREG(mode):
        return "file"
    return "socket" if stat.S_ISSOCK(mode) else "null"


def inherited_fds() -> list[int]:
    """Return the open descriptors above 2 that a started program inherits."""
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        fd = int(name)
        try:
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
        except OSError:
            continue  # the descriptor of the listing itself
    return sorted(found)


def ignored_signals() -> dict[str, str]:
    """Return the signals that were ignored when this process started; Python itself ignores the first two."""
    own = (signal.SIGPIPE, signal.SIGXFSZ)
    numbers = [number for number in signal.valid_signals() if number not in own]
    return {str(int(number)): "ignored" for number in numbers if signal.getsignal(number) is signal.SIG_IGN}


def this_python() -> dict[str, object]:
    """Return the description of this interpreter for a recording's header."""
    return {
        "version": sys.version.split()[0],
        "hexversion": sys.hexversion,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "cache_tag": sys.implementation.cache_tag,
        "soabi": soabi(),
    }


def soabi() -> str:
    """Return this interpreter's SOABI, such as `cpython-311-x86_64-linux-gnu` (sysconfig would cost 6 ms)."""
    import _imp  # a module of the interpreter itself, here for this one question

    return _imp.extension_suffixes()[0].removeprefix(".").removesuffix(".so")
