"""Runs the blocks of a page in order, as a reader would, in a directory of its own.

The files that a page does not show, but assumes, are in `worlds/` below the page's path. Two of them are not the
page's: `environment` has variables, and `prepare.sh` is run first.
"""

from __future__ import annotations

import configparser
import json
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.pages import workflows
from tests.pages.blocks import ROOT, BadPage, Block, blocks_of
from tests.pages.comparison import compared, joined, kinds, replaced
from tests.pages.shell import Conversation, Done, Shell
from tests.pages.transcript import Step, steps_of

WORLDS = Path(__file__).with_name("worlds")
RUN_BY = {
    ("CONTRIBUTING.md", "diff"): "tests/project/test_docs_contributing.py",
    ("CONTRIBUTING.md", ""): "tests/project/test_docs_contributing.py",
    ("docs/how-to/debug-in-an-editor.md", "json"): "tests/dap/test_editor_page.py",
    ("docs/how-to/debug-in-an-editor.md", "python"): "tests/dap/test_editor_page.py",
    ("docs/tutorial/find-a-race.md", "keys"): "tests/tui/test_tui_walkthrough.py",
    ("docs/tutorial/find-a-race.md", "python"): "tests/tui/test_tui_walkthrough.py",
    ("docs/tutorial/find-a-race.md", "console"): "tests/tui/test_tui_walkthrough.py",
}
"""Tests of their own for the blocks of a language on a page."""


def why_not_run(block: Block) -> str | None:
    """Return the reason that a block gives for not being run; None: it is run. Raises BadPage for one or two words."""
    reason = block.value("not run")
    if reason is not None and len(reason.split()) < 3:
        raise BadPage(f"{block.place}: a reason is needed: <!-- not run: REASON -->")
    return reason


@dataclass(slots=True)
class PageRun:
    """A page that is read from the top."""

    page: Path
    shell: Shell
    corrections: dict[int, list[str]] | None = None
    """Lines of blocks whose output is another one, by the line of the fence; None: another output is an error."""
    _last: Done | None = None
    """The last command, if its output may follow in a block of its own."""
    _open: Conversation | None = None
    """A prompt that has not ended."""
    _opening: str = ""
    """What it printed at its last line and a block may show."""
    _python: list[str] = field(default_factory=list)
    """Python blocks that are no files: each goes on where the one before ended."""
    _values: dict[str, str] = field(default_factory=dict)
    """What was printed in place of values that the page shows, such as positions."""

    def run(self) -> None:
        """Run all blocks. Raises AssertionError with the block's place."""
        world = WORLDS / self.page.relative_to(ROOT).with_suffix("")
        if world.is_dir():
            shutil.copytree(world, self.shell.work, dirs_exist_ok=True)
        if (variables := self.shell.work / "environment").exists():
            for line in variables.read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition("=")
                self.shell.environment[name] = value.format(work=self.shell.work)
            variables.unlink()
        if (prepare := self.shell.work / "prepare.sh").exists():
            self._hidden("set -e; . ./prepare.sh", str(prepare))
            prepare.unlink()
        self.run_blocks(blocks_of(self.page))

    def run_blocks(self, blocks: list[Block]) -> None:
        """Run blocks in order. Raises AssertionError with the block's place."""
        for block in blocks:
            if why_not_run(block) is None and (block.page, block.language) not in RUN_BY:
                try:
                    self._block(block)
                except AssertionError as error:
                    raise AssertionError(f"{block.place}: {error}") from None
        self._finish()

    def _hidden(self, command: str, place: str) -> Done:
        done = self.shell.run(command)
        assert done.status == 0, f"{place}: {command}: exit code {done.status}\n{done.output}"
        return done

    def _block(self, block: Block) -> None:
        for command in block.values("before"):
            self._finish()
            self._hidden(command, block.place)
        if (name := block.value("file")) is not None:
            self._write(block, name)
        elif (place := block.value("replaces")) is not None:
            self._replace(block, place)
        elif block.language in ("sh", "console", ""):
            self._session(block)
        elif block.language == "python":
            self._python.append(block.text)
            (self.shell.top / "blocks.py").write_text("".join(self._python), encoding="utf-8")
            self._last = self._hidden(f"python {self.shell.top}/blocks.py", block.place)
        elif block.language == "yaml":
            workflows.run(block, self.shell)
        elif block.language == "dockerfile":
            workflows.run_image(block, self.shell)
        else:
            raise AssertionError(f"a block of {block.language} needs a file, or a reason why it is not run")
        for command in block.values("after"):
            self._hidden(command, block.place)

    def _write(self, block: Block, name: str) -> None:
        path = self.shell.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        readers: dict[str, Callable[[str], object]] = {
            ".toml": tomllib.loads,
            ".yml": yaml.safe_load,
            ".json": json.loads,
            ".py": lambda text: compile(text, name, "exec"),
        }
        if path.suffix == ".ini":
            configparser.ConfigParser().read_string(block.text)
        elif path.suffix in readers:
            readers[path.suffix](block.text)

    def _replace(self, block: Block, place: str) -> None:
        found = re.fullmatch(r"(.+) \((\S+)\)", place)
        assert found is not None, f"not TEXT (FILE): {place}"
        path = self.shell.work / found[2]
        text = path.read_text(encoding="utf-8")
        assert text.count(found[1]) == 1, f"{found[1]!r} is not once in {found[2]}"
        path.write_text(text.replace(found[1], block.text.strip()), encoding="utf-8")

    # ---- sessions ----

    def _session(self, block: Block) -> None:
        statuses: dict[int, str] = {}
        steps = steps_of(block.text if block.language != "sh" else re.sub("^(?=.)", "$ ", block.text, flags=re.M))
        for number, step in enumerate(steps):
            step.text = replaced(step.text, self._values)
            if step.prompt:
                self._type(step, block)
            elif step.text:
                self._finish()
                is_last = number == len(steps) - 1
                if is_last and block.value("background") is not None:
                    self.shell.start(step.text)
                else:
                    self._command(step, block, statuses)
            else:
                self._shown_later(step, block)
        if self.corrections is not None and block.line in self.corrections:
            self.corrections[block.line] = [line for step in steps for line in (*step.lines, *step.shown)]
        wanted = {int(each) for each in (block.value("exits") or "").split()}
        assert set(statuses) == wanted, "\n".join(
            [f"exit codes {sorted(statuses)}, not {sorted(wanted)}", *statuses.values()]
        )

    def _command(self, step: Step, block: Block, statuses: dict[int, str]) -> None:
        words = step.text.split()
        if words[:2] == ["replaydbg", "tui"]:
            self._screen(step.text)
            return
        if words[:2] == ["replaydbg", "debug"] and "--batch" not in words:
            self._open = Conversation(self.shell, step.text)
            self._opening = self._open.read()
            assert self._open.prompt, f"{step.text}\n{self._opening}"
            if step.shown:
                self._compare(step, self._opening, block)
            return
        self._last = self.shell.run(step.text)
        if self._last.status:
            statuses[self._last.status] = f"{step.text}\n{self._last.output}"
        # A usage error is never meant.
        assert self._last.status != 127, self._last.output
        if step.shown:
            self._compare(step, self._last.output, block)
            self._last = None

    def _type(self, step: Step, block: Block) -> None:
        assert self._open is not None, f"no prompt is open for {step.text!r}"
        assert self._open.prompt == step.prompt, f"the prompt is {self._open.prompt}, not {step.prompt}"
        self._opening = self._open.type(step.text)
        if step.shown:
            self._compare(step, self._opening, block)

    def _shown_later(self, step: Step, block: Block) -> None:
        if self._open is not None:
            self._compare(step, self._opening, block)
            return
        assert self._last is not None, "no command before it whose output this could be"
        self._compare(step, self._last.output, block)
        self._last = None

    def _compare(self, step: Step, printed: str, block: Block) -> None:
        found = compared(joined(step.shown), printed, kinds(block.value("varies") or ""))
        if isinstance(found, dict):
            self._values |= found
            return
        assert self.corrections is not None, f"{step.text}\n{found}\nprinted:\n{printed}"
        step.shown = printed.strip("\n").split("\n")
        self.corrections[block.line] = []

    def _screen(self, command: str) -> None:
        screen = Conversation(self.shell, command)
        text = screen.read(re.compile("Source"))
        screen.press("q")
        status = screen.end()
        assert status == 0, f"{command}: exit code {status}\n{text}"

    def _finish(self) -> None:
        if self._open is not None:
            conversation, self._open = self._open, None
            status = conversation.end()
            assert status == 0, f"{conversation.command}: exit code {status}"
