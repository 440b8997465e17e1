"""Checks the direction of includes and of calls between the folders of the C core (`python -m tests.native.layers`).

Each folder of `replaydbg/native/` is a layer and has one header for the others, named for it; `inside.h` and whatever
other headers it has are its own. A file includes headers of its own folder and of folders below; it uses names that
those declare; what a folder's header declares is defined in that folder. The tables by which lower folders reach
higher ones are defined in `boot/parts.c`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "replaydbg" / "native"

LAYERS = (
    "base",
    "log",
    "code",
    "collector",
    "clock",
    "values",
    "crossing",
    "lanes",
    "identity",
    "files",
    "memory",
    "world",
    "signals",
    "gates",
    "sqlite",
    "libc",
    "lenient",
    "heap",
    "engine",
    "resume",
    "ending",
    "future",
    "guard",
    "boot",
)
"""From the lowest to the highest: a folder uses those before it."""

APART = {"graph", "digest", "words", "leaves", "join"}
"""Extensions of their own, and a library; they share nothing with the core but the layout of a page (`log/page.h`)."""

SHARED_HEADERS = {"base/core.h", "base/compat.h", "base/constants.h", "base/many.h"}
"""Headers of the lowest folder that everybody may include: none has the folder's name."""

TABLES = "boot/parts.c"
"""Defines the tables that lower folders declare: who is registered there is above them."""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""Uses against the direction, as (file, name or header), each with its reason."""


@dataclass(frozen=True, slots=True)
class Backward:
    """A use against the direction of the layers."""

    file: str
    """Who uses it, below `native/`."""
    name: str
    """The header that is included, or the name that is used."""
    home: str
    """The folder that it belongs to."""

    def __str__(self) -> str:
        return f"{self.file}: {self.name} belongs to {self.home}/, which is above {self.file.partition('/')[0]}/"


_COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_FUNCTION = re.compile(r"^(?!typedef|static|extern|struct|enum|#|\s)\w[\w \t*]*?\b(\w+)\(", re.MULTILINE)
_VARIABLES = re.compile(r"^extern ([^;(]+);", re.MULTILINE)
_LAST_WORD = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:__attribute__.*)?$")
_OWN = re.compile(r"^(?:static [^;={(]*?|\}\s*)\b(\w+)(?=\s*(?:\[|=|;|\())", re.MULTILINE)
_LOCAL = re.compile(r"\b(?!(?:return|else|case|sizeof|goto)\b)[A-Za-z_]\w*\s+\**(\w+)\s*(?=[=,;)\[])")
_CALL = re.compile(r"\b(\w+)\(")
_NAMED_FIRST = re.compile(r"^(\w+)\(", re.MULTILINE)


def read_tree(root: Path) -> dict[str, str]:
    """The text of each C file and header below `root`, by its path there."""
    files = sorted([*root.glob("*/*.c"), *root.glob("*/*.h")])
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _bare(text: str) -> str:
    return _COMMENT_OR_TEXT.sub(lambda match: '""' if match[0].startswith('"') else " ", text)


def declared(header: str) -> set[str]:
    """The functions and variables that a header declares for others."""
    text = _bare(header)
    names = {match[1] for match in _FUNCTION.finditer(text)}
    for match in _VARIABLES.finditer(text):
        body = re.sub(r"__attribute__.*", "", match[1])
        names |= {found[1] for part in body.split(",") if (found := _LAST_WORD.search(part.strip()))}
    return names


def _folder(path: str) -> str:
    return path.partition("/")[0]


def include_faults(files: Mapping[str, str], layers: tuple[str, ...] = LAYERS) -> Iterator[Backward]:
    """Includes of headers of a higher folder, and of those that are another folder's own."""
    for path, text in files.items():
        if _folder(path) in APART:
            continue
        for header in _INCLUDE.findall(text):
            home = _folder(header)
            is_public = header in SHARED_HEADERS or header == f"{home}/{home}.h"
            if home != _folder(path) and (not is_public or layers.index(home) > layers.index(_folder(path))):
                yield Backward(path, header, home)


def use_faults(files: Mapping[str, str], layers: tuple[str, ...] = LAYERS) -> Iterator[Backward]:
    """Uses of functions and variables of a higher folder, however they came to be declared."""
    homes = {
        name: _folder(path)
        for path, text in files.items()
        if path.endswith(".h") and _folder(path) not in APART
        for name in declared(text)
    }
    for path, text in files.items():
        own = _folder(path)
        if own in APART:
            continue
        bare = re.sub(r"(?:\.|->)\s*\w+|\(\*\w+\)\(", " ", _bare(text))
        own_words = set(_OWN.findall(bare)) | (set(_LOCAL.findall(bare)) - set(_CALL.findall(bare)))
        for name in sorted(set(_WORD.findall(bare)) - own_words):
            home = homes.get(name)
            if home is not None and layers.index(home) > layers.index(own):
                yield Backward(path, name, home)


def home_faults(files: Mapping[str, str]) -> Iterator[str]:
    """Declarations in a folder's header of what another folder defines."""
    defined: dict[str, set[str]] = {}
    for path, text in files.items():
        if path.endswith(".c") and _folder(path) not in APART:
            for name in _NAMED_FIRST.findall(_bare(text)):
                defined.setdefault(name, set()).add(_folder(path))
    for path, text in files.items():
        if path.endswith(".h") and _folder(path) not in APART:
            for name in sorted(declared(text)):
                homes = defined.get(name, set())
                if homes and _folder(path) not in homes:
                    yield f"{path} declares {name}(), which {', '.join(sorted(homes))}/ defines"


def faults(
    files: Mapping[str, str],
    layers: tuple[str, ...] = LAYERS,
    exceptions: Mapping[tuple[str, str], str] = EXCEPTIONS,
) -> list[str]:
    """Everything that is against the contract, and exceptions that nothing needs any more."""
    unknown = sorted({_folder(path) for path in files} - set(layers) - APART)
    if unknown:
        return [f"{folder}/ has no place in LAYERS" for folder in unknown]
    backward = [*include_faults(files, layers), *use_faults(files, layers)]
    found = [str(each) for each in backward if (each.file, each.name) not in exceptions]
    met = {(each.file, each.name) for each in backward}
    found += [
        f"{file}: the exception for {name} is needed no more" for file, name in exceptions if (file, name) not in met
    ]
    found += [
        f"the exception for {name} in {file} has no reason" for (file, name), why in exceptions.items() if not why
    ]
    return found + list(home_faults(files))


def main() -> int:
    """Print what is against the contract; 1 if anything is."""
    files = read_tree(NATIVE)
    found = faults(files)
    print("\n".join(found) if found else f"{len(files)} files in {len(LAYERS)} layers, {len(EXCEPTIONS)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
