"""Names and folders of the package: no class has the name of another one, and no folder too many modules."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "replaydbg"
MOST_MODULES = 20

# Modules of one name are about one thing: a command and what it shows, or the same on two sides of a boundary.
SAME_THING = {
    "channels": "a command, and the channels that it lists",
    "config": "a command, and the settings that it lists",
    "cuts": "a command, and the cuts that it computes",
    "frames": "frames as the debugger fetches them, and in the program's process",
    "group": "a group on disk, and as it is recorded",
    "launcher": "each launches a program: to record it, replay it, resume it or test it",
    "lenient": "a lenient replay: its deviations, and its options",
    "live_cuts": "live cuts on disk, their state, and their check",
    "messages": "a command, and the messages that it shows",
    "predicates": "predicates as the debugger sends them, and in the program's process",
    "pull": "a command, and how it fetches a recording",
    "push": "a command, and how it sends a recording",
    "resources": "commands at the prompt and at the shell",
    "result": "the results of a recorded run and of a replay",
    "snapshots": "a command, and the snapshots that it lists",
    "sources": "source files as they are recorded, and in a recording",
    "space_time": "the layout of the diagram, and the same for a group",
    "start": "each starts runs",
    "store_passages": "passages as the debugger asks for them, and in the program's process",
    "transfers": "transfers as events, and on disk",
}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def test_each_public_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_modules_of_one_name_are_about_one_thing() -> None:
    places = defaultdict(list)
    for path in modules():
        places[path.stem].append(str(path.relative_to(PACKAGE)))

    assert {name for name, found in places.items() if len(found) > 1} == set(SAME_THING)


def test_no_folder_has_too_many_modules() -> None:
    counts = Counter(str(path.parent.relative_to(PACKAGE)) for path in modules())

    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}
