"""The interpreter's own options: those passed on to the bootstrap, and those that the core emulates."""

import os
import re
import sys
from pathlib import Path

import pytest

from replaydbg.errors import UsageError
from replaydbg.launch.interpreter import check_recordable, held_warnings, leading_options, split_options
from tests.harness import tool
from tests.harness.replays import run
from tests.harness.sanitizer import runtime


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["-BWdefault::E"], ["-B", "-W", "default::E"]),
        (["-W", "error::ResourceWarning", "-OO"], ["-W", "error::ResourceWarning", "-O", "-O"]),
        (["-IB"], ["-s", "-B"]),
        (["-SX", "dev"], ["-X", "dev"]),
        (["--check-hash-based-pycs", "always", "-u"], ["--check-hash-based-pycs", "always", "-u"]),
        (["-bb", "-E"], ["-b", "-b"]),
        (["-R", "-P"], []),
    ],
)
def test_only_what_the_core_emulates_is_taken_out(given: list[str], passed: list[str]) -> None:
    assert split_options(given).passed == ["-S", "-P", *passed]


def test_letters_in_the_value_of_an_option_mean_nothing() -> None:
    options = split_options(["-W", "error::ResourceWarning", "-WIgnore", "-XE"])

    assert options.site
    assert not options.isolated
    assert not options.ignore_environment
    assert not options.is_randomized


def test_emulated_options_are_known() -> None:
    options = split_options(["-SEIR"])

    assert not options.site
    assert options.isolated
    assert options.ignore_environment
    assert options.is_randomized


@pytest.mark.parametrize(
    ("words", "options", "rest"),
    [
        (["-O", "-m", "module"], ["-O"], ["-m", "module"]),
        (["-Om", "module"], ["-O"], ["-m", "module"]),
        (["-X", "dev", "prog.py", "-O"], ["-X", "dev"], ["prog.py", "-O"]),
        (["-Wm", "prog.py"], ["-Wm"], ["prog.py"]),
    ],
)
def test_options_end_where_the_program_begins(words: list[str], options: list[str], rest: list[str]) -> None:
    assert leading_options(words) == (options, rest)


@pytest.mark.parametrize(
    ("flags", "variable", "held"),
    [
        (["-W", "error::ResourceWarning:json.decoder"], "default", []),
        (["-W", "error::a.B"], "default,ignore:text", ["default", "ignore:text", "error::a.B"]),
        (["-Wdefault"], "error::a.B", ["error::a.B", "default"]),
        (["-E", "-Wdefault"], "error::a.B", []),
    ],
)
def test_warnings_whose_category_is_of_a_module_are_held_back(flags: list[str], variable: str, held: list[str]) -> None:
    assert held_warnings({"PYTHONWARNINGS": variable}, split_options(flags)) == held


@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        (["-i"], {}, "Interactive mode (-i)"),
        (["-Bi"], {}, "Interactive mode (-i)"),
        ([], {"PYTHONINSPECT": "1"}, "Interactive mode (PYTHONINSPECT)"),
        (["-V"], {}, "-V Python runs no program"),
        (["-VV"], {}, "-V Python runs no program"),
        (["-h"], {}, "-h Python runs no program"),
        (["-?"], {}, "-? Python runs no program"),
    ],
)
def test_what_cannot_be_recorded_is_refused_by_name(
    options: list[str], environment: dict[str, str], reason: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        check_recordable(options, environment)


def test_variables_that_the_interpreter_ignores_and_values_of_options_refuse_nothing() -> None:
    check_recordable(["-I", "-Wignore", "-X", "importtime", "-W", "i"], {"PYTHONINSPECT": "1"})


_SHOWS = """import os, sys
print(sys.flags, sys._xoptions, sys.warnoptions, sys.argv, sys.orig_argv[1:], sys.dont_write_bytecode)
print(sys.pycache_prefix, sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering, sys.stdout.write_through)
print(sys.getfilesystemencoding(), len(sys.path), sys.path[0], __debug__, __name__, "faulthandler" in sys.modules)
print(sorted(name for name in os.environ if name.startswith("PYTHON")))
def documented(): "text"
print(documented.__doc__, b"1" == b"2", os.cpu_count())
"""
_OPTIONS = (
    "-t -tB -q -b -bb -d -O -OO -B -u -s -S -E -I -P -R -x -Wignore -Xdev -Xutf8 -Xutf8=0 -Xfaulthandler"
    " -Xtracemalloc=3 -Xint_max_str_digits=0 -Xno_debug_ranges -Xwarn_default_encoding"
    " -Xpycache_prefix=/none -Xfrozen_modules=off -Xcpu_count=3 -Xown=1 --check-hash-based-pycs=always"
)
_VARIABLES = (
    "PYTHONOPTIMIZE=2 PYTHONDEBUG=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONWARNINGS=error PYTHONUTF8=1"
    " PYTHONIOENCODING=latin-1:strict PYTHONDEVMODE=1 PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1 PYTHONSTARTUP=/none"
    " PYTHONHASHSEED=7 PYTHONFAULTHANDLER=1 PYTHONTRACEMALLOC=2 PYTHONPYCACHEPREFIX=/none PYTHONCOERCECLOCALE=0"
    " PYTHONINTMAXSTRDIGITS=0 PYTHONNODEBUGRANGES=1 PYTHONWARNDEFAULTENCODING=1 PYTHON_CPU_COUNT=3"
    " PYTHON_FROZEN_MODULES=off PYTHONMALLOC=malloc PYTHON_COLORS=0 PYTHON_BASIC_REPL=1 PYTHONASYNCIODEBUG=1"
)


@pytest.mark.slow
@pytest.mark.parametrize("given", [*_OPTIONS.split(), *_VARIABLES.split()])
def test_a_recorded_program_finds_the_interpreter_as_it_is_without(given: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("\n" + _SHOWS if given == "-x" else _SHOWS)
    options = given.split("=", 1) if given.startswith("--") else [given] if given.startswith("-") else []
    env = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": str(tmp_path), **runtime()}
    if not options:
        env |= dict([given.split("=", 1)])

    plain = run([sys.executable, *options, "program.py"], cwd=tmp_path, env=env)
    command = tool.record(sys.executable, tmp_path / "r.rdbg", [*options, "program.py"])
    recorded = run(command, cwd=tmp_path, env=env)

    assert (recorded.stdout, recorded.status) == (plain.stdout, plain.status), recorded.stderr
    assert plain.status == 0
    replayed = run(tool.replay(sys.executable, tmp_path / "r.rdbg"), cwd=tmp_path, env=env)
    assert (replayed.stdout, replayed.status) == (plain.stdout, plain.status), replayed.stderr


@pytest.mark.slow
def test_the_first_line_that_is_skipped_keeps_its_number(tmp_path: Path) -> None:
    program = "this is no Python\nimport sys\nprint(sys._getframe().f_lineno)\n"
    (tmp_path / "program.py").write_text(program)
    env = {"PATH": os.defpath, "LANG": "C.UTF-8", **runtime()}

    recorded = run(tool.record(sys.executable, tmp_path / "r.rdbg", ["-x", "program.py"]), cwd=tmp_path, env=env)
    replayed = run(tool.replay(sys.executable, tmp_path / "r.rdbg"), cwd=tmp_path, env=env)

    assert recorded.stdout == replayed.stdout == "3\n"
