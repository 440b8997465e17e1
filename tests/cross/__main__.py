"""Compile the core for 64-bit ARM with a cross compiler, with each warning an error.

The headers of Python are those of this machine's interpreter: both processors have the same sizes of types. Nothing is
run. Without the compiler it says so and succeeds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILER = "aarch64-linux-gnu-gcc"
ARM_64 = 183
"""`EM_AARCH64` of elf.h."""
LIBRARIES = ("_core", "_digest", "_graph", "_join", "_leaves", "_words")
_MACHINE = struct.Struct("<4s14xH")
"""The magic number of an ELF file, and the processor that it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: all libraries were compiled, or there is no compiler; 1: one was not."""
    parser = argparse.ArgumentParser(prog="tests.cross", description=__doc__)
    parser.add_argument("--compiler", metavar="COMMAND", default=COMPILER, help="default: %(default)s")
    compiler = parser.parse_args(argv).compiler
    if shutil.which(compiler) is None:
        print(f"skipped: {compiler} is not installed (Debian and Ubuntu: apt install gcc-aarch64-linux-gnu)")
        return 0
    with tempfile.TemporaryDirectory(prefix="cross-") as directory:
        built = Path(directory) / "built"
        if not build(compiler, built, Path(directory) / "objects"):
            print(f"{compiler} cannot compile the core without a warning: see above")
            return 1
        made = {path.name.partition(".")[0]: processor(path) for path in built.rglob("*.so")}
    wrong = [name for name in LIBRARIES if made.get(name) != ARM_64]
    print(f"not built for 64-bit ARM: {', '.join(wrong)}" if wrong else f"built for 64-bit ARM: {', '.join(LIBRARIES)}")
    return bool(wrong)


def build(compiler: str, built: Path, objects: Path) -> bool:
    """Compile the libraries into `built`; False if the compiler had something to say."""
    settings = {
        "CC": compiler,
        "LDSHARED": f"{compiler} -shared",
        "CFLAGS": "-Werror",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{sys.version_info[0]}{sys.version_info[1]}-aarch64-linux-gnu.so",
    }
    command = [
        sys.executable,
        "setup.py",
        "--quiet",
        "build_ext",
        "--build-lib",
        str(built),
        "--build-temp",
        str(objects),
    ]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | settings, check=False, stdout=subprocess.DEVNULL)
    return done.returncode == 0


def processor(path: Path) -> int:
    """Return for which processor an ELF file is, by its number in elf.h; 0: it is not such a file."""
    head = path.read_bytes()[: _MACHINE.size]
    if len(head) < _MACHINE.size:
        return 0
    magic, machine = _MACHINE.unpack(head)
    return int(machine) if magic == b"\x7fELF" else 0


if __name__ == "__main__":
    sys.exit(main())
