"""Write the text of a test from recorded inputs."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path

from replaydbg.errors import UsageError
from replaydbg.exported_tests.collected_inputs import CollectedInputs
from replaydbg.exported_tests.literals import Literals, comment, quoted
from replaydbg.exported_tests.recorded_inputs import Conversation, FoundInputs, RecordedProgram

_PARTS = Path(__file__).parent / "parts"
_OPTION = re.compile(r"-(?:[OBsSEIubdqv]+|[WX].*)")
"""Options of the interpreter that change how a program runs, and name no other program."""

_MOST_UNREAD = 64 << 20
"""Bytes of a file that is made of zeros, as its content was not read."""


class TestText:
    """The text of a test, made once."""

    __test__ = False

    def __init__(self, collected: CollectedInputs, literals: Literals, target: Path, root: Path) -> None:
        """`target`: where the test is written; `root`: where the program's working directory is today."""
        self.program: RecordedProgram = collected.program
        self._inputs: FoundInputs = collected.inputs
        self._literals, self._target, self._root = literals, target, root
        self._random_state = collected.random_state
        self._constant_names: set[str] = set()
        self._check()
        self._has_entropy = bool(self._inputs.seeds or self._random_state) or any(
            each.startswith("os.") for each in self._inputs.answers
        )
        self._has_clock = any(not each.startswith("os.") for each in self._inputs.answers)
        self._has_network = bool(self._inputs.conversations or self._inputs.hosts)

    @property
    def gaps(self) -> list[str]:
        """Sentences about what is not reproduced; complete once the text is made."""
        return list(self._inputs.gaps)

    def text(self) -> str:
        """Return the text of the file."""
        parts = [self._constants(), self._own_process(), self._pytest_part()]  # the last gaps are known then
        text = self._head() + self._imports() + "\n".join(parts)
        return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n"

    def _check(self) -> None:
        """Raise UsageError for a test of pytest that leads elsewhere."""
        node = self.program.target if self.program.kind == "test" else ""
        file = node.partition("::")[0]
        if node.startswith(("-", "@")) or file.startswith("/") or ".." in file.split("/") or "\0" in node:
            raise UsageError(f"{node!a} is not the name of a test in this project.")
        for each in [each for each in self.program.options if not _OPTION.fullmatch(each)]:
            self._inputs.gaps[f"the interpreter's option {each!a}"] = None

    # ---- the beginning ----

    def _head(self) -> str:
        program = self.program
        how = ended_text(program)
        does = "fails as that run did; once the bug is fixed, it passes" if program.has_failed else "passes, as it did"
        lines = [
            f"The recorded run of {comment(self._name())}, which ended with {comment(how)}.",
            "",
            f"`replaydbg export --test` wrote this file from the recording {comment(program.recording)}, made "
            f"{comment(program.created)}. It is yours now: it needs pytest, and nothing else. The test runs today's "
            f"program, in a process of its own, with the inputs of that run. It {does}.",
            "",
            "Today's, not recorded: the program's own modules, installed packages, and files below /usr.",
        ]
        if self._inputs.gaps:
            lines += ["", "Not reproduced:"]
            lines += [f"- {comment(each)}" for each in self._inputs.gaps]
        wrapped = [
            "\n".join(textwrap.wrap(each, 112, subsequent_indent="  " if each.startswith("- ") else ""))
            for each in lines
        ]
        return "".join(f"# {line}".rstrip() + "\n" for each in wrapped for line in each.split("\n")) + "\n"

    def _name(self) -> str:
        program = self.program
        if program.kind == "command":
            return "python -c"
        return os.path.basename(program.target) if program.kind == "script" else program.target  # noqa: PTH119

    def _imports(self) -> str:
        names = {"json", "os", "sys"} | ({"importlib.util" if self.program.kind == "test" else "importlib.machinery"})
        if self.program.kind != "test" and self.program.kind != "command":
            names.add("runpy")
        if self._has_clock:
            names |= {"datetime", "time"}
        if self._inputs.served_files:
            names |= {"builtins", "io"}
        if self._has_network:
            names |= {"errno", "re", "socket", "struct", "threading"}
        if self._has_entropy:
            names.add("random")
        lines = [f"import {each}\n" for each in sorted(names)]
        if self._has_clock or self._has_entropy:
            lines.append("from collections import deque\n")
        lines.append("from pathlib import Path\n")
        if self._has_network:
            lines.append("\ntry:\n    import ssl\nexcept ImportError:\n    ssl = None\n")
        return "".join(lines) + "\n"

    # ---- the recorded inputs ----

    def _constants(self) -> str:
        to, program = self._literals.value, self.program
        here = os.path.relpath(self._root, self._target.parent)
        lines = [
            "# ---- The recorded inputs ----\n",
            f"ROOT = Path(__file__).resolve().parent / {to(here)}  # where the program runs today",
            self._how_started(),
            f"ARGUMENTS = {self._literals.listed(list(program.arguments))}",
            f"ENVIRONMENT = {self._dictionary(dict(program.environment))}",
            f"ABSENT = {to(list(program.absent))}  # variables that did not exist",
            f'HASH_SEED = "{program.hash_seed}"  # the order of sets of strings follows from it',
            f"STDIN = {self._literals.content(bytes(self._inputs.stdin), 'stdin')}",
            *self._file_lines(),
            *self._answer_lines(),
            *self._network_lines(),
        ]
        text = "\n".join(lines) + "\n"
        if self._literals.files:
            name = self._target.stem + "_data"
            reader = (
                f"def content(name):\n    return (Path(__file__).parent / {quoted(name)} / name).read_bytes()\n\n\n"
            )
            text = "\n" + reader + text
        return text + "\n"

    def _how_started(self) -> str:
        program, to = self.program, self._literals.value
        target = program.target
        if program.kind in ("script", "directory"):
            inside = os.path.relpath(target, program.cwd)
            target = inside if not inside.startswith("../") else target
            return f"PROGRAM = str(ROOT / {to(target)})"
        return f"PROGRAM = {to(target)}"

    def _dictionary(self, values: dict[str, object]) -> str:
        if not values:
            return "{}"
        pairs = "".join(
            f"    {self._literals.value(name)}: {self._literals.value(each)},\n" for name, each in values.items()
        )
        return "{\n" + pairs + "}"

    def _file_lines(self) -> list[str]:
        lines = []
        found, to = self._inputs, self._literals.value
        for path, content in found.served_files.items():
            inside = os.path.relpath(path, self.program.cwd)
            if inside in found.listed and content is not None:
                found.work_files[inside] = content
        known = {*found.work_files, *found.listed}
        directories = found.directories | {each for path in known for each in _parents(path)}
        found.listed -= {*found.work_files} | directories
        empty = sorted(found.directories - {each for path in known for each in _parents(path)} - {"."})
        if empty:
            self._constant_names.add("DIRECTORIES")
            lines.append(f"DIRECTORIES = {self._literals.listed(list(empty))}  # in the working directory")
        if found.work_files or found.listed:
            lines.append("# Files in the working directory.\nFILES = {")
            lines += [
                f"    {to(path)}: {self._literals.content(data, path, 4)}," for path, data in found.work_files.items()
            ]
            lines += [
                f"    {to(path)}: {self._unread(path)},  # its content was not read" for path in sorted(found.listed)
            ]
            lines.append("}")
        if found.served_files:
            lines.append("# Files at other paths; None: there was none, or the program wrote it.\nSERVED = {")
            for path, content in found.served_files.items():
                inside = os.path.relpath(path, self.program.cwd)
                shown = path if inside.startswith("..") else inside
                lines.append(
                    f"    {to(shown)}: {'None' if content is None else self._literals.content(content, path, 4)},"
                )
            lines.append("}")
        return lines

    def _unread(self, path: str) -> str:
        """Return an expression for a file of which the program saw at most the size."""
        size = self._inputs.sizes.get(path, 0)
        if size > _MOST_UNREAD:
            self._inputs.gaps[f"the size of the file {path!a}, which is empty"] = None
        return f"bytes({size})" if 0 < size <= _MOST_UNREAD else 'b""'

    def _answer_lines(self) -> list[str]:
        lines = []
        if self._inputs.answers:
            lines.append("# What these functions returned, in order.\nANSWERS = {")
            lines += [
                f"    {quoted(name)}: {self._literals.listed(values, 4)},"
                for name, values in self._inputs.answers.items()
            ]
            lines.append("}")
        elif self._has_entropy:
            lines.append("ANSWERS = {}")
        if self._has_entropy:
            seeds = [] if self._random_state is not None else self._inputs.seeds
            names = ", ".join(self._literals.content(each, f"seed-{number}") for number, each in enumerate(seeds, 1))
            lines.append(f"# For generators of `random` that were made without a seed.\nSEEDS = [{names}]")
        if self._random_state is not None:
            state = self._literals.content(json.dumps(self._random_state).encode(), "random-state.json")
            lines.append(f"RANDOM_STATE = {state}  # of the module `random` when the test began")
        return lines

    def _network_lines(self) -> list[str]:
        if not self._has_network:
            return []
        to = self._literals.value
        lines = ["# Addresses of hosts; none: not found.\nHOSTS = {"]
        lines += [f"    {to(host)}: {to(each)}," for host, each in self._inputs.hosts.items()]
        lines.append(
            "}\n# Connections in order: what the other side sent, cut where the program spoke.\nCONVERSATIONS = ["
        )
        for number, each in enumerate(self._inputs.conversations, 1):
            lines.append(self._conversation(number, each))
        lines.append("]")
        return lines

    def _conversation(self, number: int, each: Conversation) -> str:
        to = self._literals.value
        if each.error[0]:
            error = to((each.end, *each.error))
            return f'    {{"host": {to(each.host)}, "port": {each.port}, "error": {error}}},'
        space = " " * 8
        lines = ["    {", f'{space}"host": {to(each.host)},', f'{space}"port": {each.port},']
        if each.speaks_first:
            lines.append(f'{space}"speaks_first": True,')
        lines.append(f'{space}"end": {quoted(each.end)},')
        answers = [
            f"{space}    {self._literals.content(data, f'answer-{number}-{at}', 12)},"
            for at, data in enumerate(each.answers, 1)
        ]
        lines += [f'{space}"answers": [', *answers, f"{space}],"] if answers else [f'{space}"answers": [],']
        return "\n".join([*lines, "    },"])

    # ---- the two processes ----

    def _own_process(self) -> str:
        text = "\n\n# ---- In the program's process: this file starts it ----\n\n\n"
        for part, is_wanted in (
            ("clock", self._has_clock),
            ("entropy", self._has_entropy),
            ("files", bool(self._inputs.served_files)),
            ("network", self._has_network),
        ):
            text += _part(part) if is_wanted else ""
        steps = [
            'use_recorded_network(given["ports"])' if self._has_network else "",
            'serve_files(Path(given["copies"]))' if self._inputs.served_files else "",
            "use_recorded_randomness()" if self._has_entropy else "",
            "use_recorded_clock()" if self._has_clock else "",
        ]
        return text + self._run_program([each for each in steps if each])

    def _run_program(self, steps: list[str]) -> str:
        kind = self.program.kind
        if kind == "test":
            own = [each.replace("given[", "self.given[") for each in steps]
            uses = "".join(f"        {each}\n" for each in own) or "        pass\n"
            if self._random_state is not None:
                uses += "        version, numbers, gauss = json.loads(RANDOM_STATE)\n"
                uses += "        random.setstate((version, tuple(numbers), gauss))\n"
            return _part("run_test").replace("        USES\n", uses)
        ways = {
            "script": 'sys.path[0] = os.path.dirname(PROGRAM)\n    runpy.run_path(PROGRAM, run_name="__main__")',
            "directory": 'sys.path[0] = PROGRAM\n    runpy.run_path(PROGRAM, run_name="__main__")',
            "module": 'sys.path[0] = str(ROOT)\n    runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)',
            "command": "sys.path[0] = str(ROOT)\n"
            '    exec(compile(PROGRAM, "<string>", "exec"), {"__name__": "__main__"})',
        }
        uses = "".join(f"    {each}\n" for each in steps)
        name = '"-c"' if kind == "command" else "PROGRAM"
        if self.program.module_directories:
            shown = self._literals.listed(list(self.program.module_directories), 4)
            uses += f"    sys.path[1:1] = {shown}  # in PYTHONPATH\n"
        return _part("run_program").replace("    USES\n", uses).replace("NAME", name).replace("WAY", ways[kind])

    def _pytest_part(self) -> str:
        text = "# ---- In the process of pytest ----\n\n"
        text += "import subprocess  # noqa: E402\n\nimport pytest  # noqa: E402\n\n\n"
        text += _part("servers") if self._has_network else ""
        text += self._files_fixture()
        options = [each for each in self.program.options if _OPTION.fullmatch(each)]
        name = Path(self._name().rpartition("::")[2]).stem.removeprefix("test_")
        name = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "program"
        has = {"network": self._has_network, "copies": bool(self._inputs.served_files)}
        fixtures = ", ".join(
            [
                *(["directory"] if self.program.kind != "test" else []),
                "environment",
                *(each for each in has if has[each]),
            ]
        )
        given = ", ".join(
            text
            for text, is_wanted in (('"ports": network', has["network"]), ('"copies": str(copies)', has["copies"]))
            if is_wanted
        )
        fields = {
            "NAME": name,
            "FIXTURES": fixtures,
            "GIVEN": "{" + given + "}",
            "ENDED": comment(ended_text(self.program)),
            "DIRECTORY": "ROOT" if self.program.kind == "test" else "directory",
            "OPTIONS": "".join(f"{self._literals.value(each)}, " for each in options),
            "LIMIT": str(max(60, int(self.program.seconds * 10))),
        }
        return text + _filled(_part("test"), fields)

    def _directory(self, has_files: bool) -> str:
        """Return the fixture that makes the working directory."""
        text = _part("directory")
        files, directories = text.index("    for path, data"), text.index("    for path in DIRECTORIES")
        end = text.index("    return")
        made = text[files:directories] if has_files else ""
        made += text[directories:end] if "DIRECTORIES" in self._constant_names else ""
        return text[:files] + made + text[end:]

    def _files_fixture(self) -> str:
        text = ""
        if self.program.kind != "test":
            has_files = bool(self._inputs.work_files or self._inputs.listed)
            text += self._directory(has_files)
        return text + (_part("copies") if self._inputs.served_files else "")


def ended_text(program: RecordedProgram) -> str:
    """Return how a program ended, in a few words."""
    if program.exception:
        message = f": {program.message}" if program.message else ""
        code = "" if program.kind == "test" else f" (exit code {program.status})"
        return f"{program.exception}{message}".split("\n", 1)[0][:300] + code
    if program.kind == "test":
        return "a failure" if program.status else "no failure"
    return f"signal {-program.status}" if program.status < 0 else f"exit code {program.status}"


def _parents(path: str) -> list[str]:
    return [str(each) for each in Path(path).parents]


def _part(name: str) -> str:
    return (_PARTS / f"{name}.txt").read_text(encoding="utf-8")


def _filled(text: str, fields: dict[str, str]) -> str:
    """Replace each `{{NAME}}` at once, so that values are never read as names."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], text)
