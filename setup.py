"""Builds the C core; nearly everything else about the package is said in pyproject.toml.

With REPLAYDBG_PURE=1 it builds without the core. That wheel can be installed everywhere and reads recordings.
"""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.dist_info import dist_info
from setuptools.command.editable_wheel import editable_wheel
from setuptools.errors import CompileError, SetupError

NATIVE = Path("replaydbg") / "native"
GRAPH = NATIVE / "graph"
DIGEST = NATIVE / "digest"
WORDS = NATIVE / "words"
LEAVES = NATIVE / "leaves"
JOIN = NATIVE / "join"
APART = (GRAPH, DIGEST, WORDS, LEAVES, JOIN)
"""Extensions of their own."""
START = "replaydbg/pytest_plugin/startup/replaydbg.pth"

WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror=implicit-function-declaration",  # its result would be taken for an int: half a pointer
    # Both come from CPython's own conventions: slots take arguments that they do not use and
    # type objects name only the fields that they set.
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    # METH_FASTCALL functions are stored as PyCFunction; CPython casts them in the same way.
    "-Wno-cast-function-type",
]

IS_PURE = os.environ.get("REPLAYDBG_PURE", "0") not in ("", "0")

HOW_TO_INSTALL = (
    "install the compiler and the headers first (Debian and Ubuntu: apt install gcc libc6-dev python3-dev; "
    "Fedora: dnf install gcc python3-devel; Arch: pacman -S gcc; Alpine: apk add gcc musl-dev python3-dev)"
)


SUPPORTED = runpy.run_path(str(NATIVE / "supported.py"))
"""Which interpreters the core is made for."""


def check_interpreter() -> None:
    """Raise SetupError, with the reason, for an interpreter that the core is not made for."""
    reason = "" if IS_PURE else SUPPORTED["why_unsupported"]()
    if reason:
        raise SetupError(f"replaydbg cannot be built for {sys.executable!r}: {reason}. Use {SUPPORTED['WANTED']}.")


def wanted_pythons() -> str:
    """Return the versions that an installer may take, as their specifier."""
    (_, oldest), (_, newest) = SUPPORTED["OLDEST"], SUPPORTED["NEWEST"]
    if IS_PURE:
        return f">=3.{oldest}"
    left_out = [f"!={'.'.join(map(str, each))}" for each in SUPPORTED["LEFT_OUT"]]
    return ",".join([f">=3.{oldest}", *left_out, f"<3.{newest + 1}"])


class DescribeWheel(dist_info):
    """What an installer asks for first: it gets the refusal before it has fetched anything that we depend on."""

    def run(self) -> None:
        """Look at the interpreter, then write the metadata."""
        check_interpreter()
        super().run()


class BuildCore(build_ext):
    """Compiles the core, and says in one sentence what to install where that cannot work."""

    def run(self) -> None:
        """Look at the interpreter first: about one that the core is not made for, the compiler would say a lot."""
        check_interpreter()
        super().run()

    def build_extensions(self) -> None:
        """Look for the compiler and Python's headers before the first file, then build."""
        command = getattr(self.compiler, "compiler_so", None) or shlex.split(sysconfig.get_config_var("CC") or "cc")
        if shutil.which(command[0]) is None:
            raise SetupError(f"replaydbg needs a C compiler and {command[0]!r} was not found: {HOW_TO_INSTALL}")
        headers = Path(sysconfig.get_path("include")) / "Python.h"
        if not headers.is_file():
            raise SetupError(f"replaydbg needs Python's headers and {str(headers)!r} is not there: {HOW_TO_INSTALL}")
        # setuptools compiles one file after the other. Its own `parallel` is for several extensions; here one is large.
        self.compiler.compile = partial(_compile_at_once, self.compiler.compile)
        try:
            super().build_extensions()
        except CompileError as error:
            raise SetupError(
                f"replaydbg's C core could not be compiled ({error}): "
                f"the compiler's message is above; if a header is missing there, {HOW_TO_INSTALL}"
            ) from error


def _compile_at_once(compile_files: Callable[..., list[str]], sources: list[str], **options: object) -> list[str]:
    """Compile as many sources at once as there are processors; return the object files in the order of the sources."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return [made for each in pool.map(lambda source: compile_files([source], **options), sources) for made in each]


class BuildWithStart(build_py):
    """Puts the file that starts a recorded pytest beside the package: interpreters read it there when they start."""

    def run(self) -> None:
        """Build, then copy it."""
        super().run()
        if self._has_start():
            self.copy_file(START, self._start())

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Name it, too."""
        return [*super().get_outputs(include_bytecode), *([self._start()] if self._has_start() else [])]

    def _has_start(self) -> bool:
        return not self.editable_mode and not IS_PURE

    def _start(self) -> str:
        return str(Path(self.build_lib) / Path(START).name)


class EditableWithStart(editable_wheel):
    """Does the same in an editable installation. Without it, pytest is imported twice at the start of a recording."""

    def _run_build_commands(self, dist_name: str, unpacked_wheel: str, *args: object) -> object:
        shutil.copy(START, unpacked_wheel)
        return super()._run_build_commands(dist_name, unpacked_wheel, *args)


def extensions() -> list[Extension]:
    """Return what is compiled."""
    return [
        Extension(
            "replaydbg.native._core",
            # Sorted, so that two builds of one tree link in the same order.
            sources=[path.as_posix() for path in sorted(NATIVE.glob("*/*.c")) if path.parent not in APART],
            depends=[path.as_posix() for path in sorted(NATIVE.glob("*/*.h")) if path.parent not in APART],
            include_dirs=[NATIVE.as_posix()],
            extra_compile_args=["-O2", "-std=c11", "-fvisibility=hidden", *WARNINGS],
            # clock/checks.c unwinds the stack with libgcc; a replay behind the fence could not load the shared one.
            extra_link_args=["-ldl", "-static-libgcc"],
        ),
        # For the tool's side alone: no recorded program imports it.
        Extension(
            "replaydbg.native._graph",
            sources=[path.as_posix() for path in sorted(GRAPH.glob("*.c"))],
            depends=[path.as_posix() for path in sorted(GRAPH.glob("*.h"))],
            extra_compile_args=["-O2", "-std=c11", "-fvisibility=hidden", *WARNINGS],
        ),
        Extension(
            "replaydbg.native._digest",
            sources=[path.as_posix() for path in sorted(DIGEST.glob("*.c"))],
            # -D_DEFAULT_SOURCE: endian.h is not part of C11.
            extra_compile_args=["-O2", "-std=c11", "-D_DEFAULT_SOURCE", "-fvisibility=hidden", *WARNINGS],
        ),
        Extension(
            "replaydbg.native._words",
            sources=[path.as_posix() for path in sorted(WORDS.glob("*.c"))],
            extra_compile_args=["-O2", "-std=c11", "-fvisibility=hidden", *WARNINGS],
        ),
        Extension(
            "replaydbg.native._leaves",
            sources=[path.as_posix() for path in sorted(LEAVES.glob("*.c"))],
            depends=[(NATIVE / "base" / "constants.h").as_posix(), (LEAVES / "leaves.h").as_posix()],
            include_dirs=[NATIVE.as_posix()],
            extra_compile_args=["-O2", "-std=c11", "-fvisibility=hidden", *WARNINGS],
        ),
        # No module: a library that is loaded into programs, see native/join/join.c.
        Extension(
            "replaydbg.native._join",
            sources=[path.as_posix() for path in sorted(JOIN.glob("*.c"))],
            depends=[(NATIVE / "log" / "page.h").as_posix()],
            include_dirs=[NATIVE.as_posix()],
            extra_compile_args=["-O2", "-std=c11", "-D_GNU_SOURCE", "-fvisibility=hidden", *WARNINGS],
        ),
    ]


setup(
    # An installer takes a wheel with the core where there is one for its Python, and otherwise that without.
    python_requires=wanted_pythons(),
    ext_modules=[] if IS_PURE else extensions(),
    cmdclass={
        "build_ext": BuildCore,
        "build_py": BuildWithStart,
        "dist_info": DescribeWheel,
        "editable_wheel": EditableWithStart,
    },
)
