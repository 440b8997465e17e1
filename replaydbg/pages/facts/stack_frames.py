"""The frames of a stack, those of the program's own code with their source and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from replaydbg.debugger import Session
from replaydbg.debugger.assertions import frame_to_show
from replaydbg.debugger.source.source_files import is_library
from replaydbg.debugger.source.statements import names_in_line
from replaydbg.engine.query_results import Variable
from replaydbg.engine.reports import Frame
from replaydbg.errors import AskFailed
from replaydbg.pages.facts.hidden_texts import HiddenTexts
from replaydbg.pages.facts.page_facts import ShownVariable, SourceLine, StackFrame
from replaydbg.render import texts
from replaydbg.render.source.highlighting import TAB, Span, coloured, lines_with_code
from replaydbg.render.source.values_beside import values_beside

MOST_FRAMES = 60
"""Number of frames on a page: inner ones, and a few outermost ones."""
OUTERMOST = 5
MOST_DETAILED = 12
"""Number of frames with source and variables."""
AROUND = 12
"""Lines before and after the current one."""
MOST_VARIABLES = 60
MOST_LINES = 20_000
"""Lines of a file above which it is not parsed."""
MOST_COLOURED = 3_000
"""Lines of a file above which only those that are shown are coloured."""
LONGEST_LINE = 400
"""Characters of a source line."""
_PLUMBING = ("module", "function", "type", "builtin_function_or_method", "ABCMeta", "EnumType")
_ONLY_NAMED = re.compile(r"<[^<>]* (object )?at 0x[0-9a-f]+>")
"""The text of an object without a `__repr__` of its own."""


class _ReadFile:
    """A source file, read once."""

    def __init__(self, session: Session, file: str, hidden: HiddenTexts) -> None:
        plain = hidden.lines(session.sources.lines(file))
        self.lines = tuple(each[:LONGEST_LINE].expandtabs(TAB) for each in plain)
        self.hits: Mapping[int, int] = session.index.lines_hit(file)
        is_small = len(plain) <= MOST_LINES
        self.code = lines_with_code("\n".join(session.sources.lines(file))) if is_small else frozenset(self.hits)
        self._spans: tuple[tuple[Span, ...], ...] | None = None

    def spans(self, first: int, last: int) -> Sequence[tuple[Span, ...]]:
        """Return the coloured pieces of lines, by their numbers from 1."""
        if len(self.lines) > MOST_COLOURED:
            return tuple(coloured(self.lines[first - 1 : last]))
        if self._spans is None:
            self._spans = tuple(coloured(self.lines))
        return self._spans[first - 1 : last]


class FrameReader:
    """Reads the frames at the position of a session."""

    def __init__(self, session: Session, hidden: HiddenTexts) -> None:
        self._session, self._hidden = session, hidden
        self._files: dict[str, _ReadFile] = {}
        self._stack = session.ask.stack()
        self.depth = len(self._stack)
        """Number of all frames."""

    def shown(self) -> int:
        """Return the number of the frame to show first: the innermost one of the program's own code."""
        chosen = frame_to_show(self._session) if self._session.test is not None and self.depth else 0
        own = (
            number
            for number, each in enumerate(self._stack[chosen : chosen + MOST_FRAMES], chosen)
            if not is_library(each.file)
        )
        return next(own, chosen)

    def read(self) -> tuple[StackFrame, ...]:
        """Return the frames, innermost first, without those in the middle of a deep stack."""
        shown = self.shown()
        inner = max(MOST_FRAMES - OUTERMOST, shown + 1)
        if self.depth <= inner + OUTERMOST:
            numbers = list(range(self.depth))
        else:
            numbers = [*range(inner), *range(self.depth - OUTERMOST, self.depth)]
        frames = [self._stack[number] for number in numbers]
        own = [number for number, each in zip(numbers, frames, strict=True) if not is_library(each.file)]
        # The line that raised is shown whosever it is.
        detailed = dict.fromkeys([*([shown] if numbers else []), *numbers[:1], *own[:MOST_DETAILED]])
        return tuple(
            self._frame(number, each, is_detailed=number in detailed)
            for number, each in zip(numbers, frames, strict=True)
        )

    def _frame(self, number: int, frame: Frame, *, is_detailed: bool) -> StackFrame:
        session = self._session
        text = self._file(frame.file).lines[frame.line - 1 : frame.line] if frame.line > 0 else ()
        plain = StackFrame(
            number=number,
            file=texts.file_text(session, frame.file),
            line=frame.line,
            function=frame.function,
            text=text[0].strip() if text else "",
            is_library=is_library(frame.file),
        )
        if not is_detailed:
            return plain
        variables, problem = self._variables(number)
        return StackFrame(
            plain.number,
            plain.file,
            plain.line,
            plain.function,
            plain.text,
            plain.is_library,
            self._source(number, frame, variables),
            tuple(ShownVariable(each.name, each.type, each.text) for each in variables[:MOST_VARIABLES]),
            problem,
        )

    def _variables(self, number: int) -> tuple[list[Variable], str]:
        try:
            found = self._session.ask.variables(number)
        except AskFailed as error:
            return [], error.reason
        shown = [each for each in found if not (each.name.startswith("__") and each.name.endswith("__"))]
        return sorted(shown, key=lambda each: each.type in _PLUMBING), ""

    def _file(self, file: str) -> _ReadFile:
        if file not in self._files:
            self._files[file] = _ReadFile(self._session, file, self._hidden)
        return self._files[file]

    def _source(self, number: int, frame: Frame, variables: Sequence[Variable]) -> tuple[SourceLine, ...]:
        file = self._file(frame.file)
        first, last = max(frame.line - AROUND, 1), min(frame.line + AROUND, len(file.lines))
        # What only names an object is noise beside a line; the table of variables has it.
        values = {
            each.name: each.text
            for each in variables
            if each.type not in _PLUMBING and not _ONLY_NAMED.fullmatch(each.text)
        }
        beside = values_beside(file.lines, frame.line, frame.function, values, file.hits)
        beside.setdefault(frame.line, []).extend(self._read_there(number, frame, values))
        spans = file.spans(first, last)
        return tuple(
            SourceLine(
                number=at,
                text=file.lines[at - 1],
                spans=spans[at - first] if at - first < len(spans) else (),
                hits=file.hits.get(at, 0) if at in file.code or at in file.hits else -1,
                values=tuple(beside.get(at, ())),
                is_here=at == frame.line,
            )
            for at in range(first, last + 1)
        )

    def _read_there(self, number: int, frame: Frame, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield attributes and items that a frame's line reads, with their values."""
        for name in names_in_line(self._session.sources.text(frame.file), frame.line):
            if name in known:
                continue
            try:
                value = self._session.ask.evaluate(name, number).value
            except AskFailed:
                continue
            if value is not None and value.type not in _PLUMBING and not _ONLY_NAMED.fullmatch(value.text):
                yield name, value.text
