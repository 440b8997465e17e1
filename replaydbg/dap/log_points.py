"""Log points: what they would have printed, over the whole run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from replaydbg.debugger import Session
from replaydbg.debugger.breakpoints import parse_rule
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.render import texts

MOST_PRINTED = 1000
"""Lines that a log point prints; an editor's console is slow."""

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class LogPoint:
    """A log point."""

    file: str
    line: int
    expression: str
    """An expression whose value is the text to print."""
    condition: str
    hits: str
    """A rule for the numbers of its hits; empty: all."""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it another one."""
        return str(self.line), self.expression, self.condition, self.hits

    def printed(self, session: Session, check: Callable[[], None]) -> Iterator[tuple[str, int]]:
        """Yield each line that it prints, with the number of its own line."""
        rule = parse_rule(self.hits) if self.hits else None
        number = 0
        for hit, each in enumerate(session.run.log(self.file, self.line, self.expression, condition=self.condition), 1):
            check()
            if rule is not None and not rule.takes(hit):
                continue
            if number == MOST_PRINTED:
                yield f"(only the first {MOST_PRINTED:,} lines are shown; `log` in the console prints all)", self.line
                return
            number += 1
            yield f"{texts.moment_text(each.moment)}  {printable(_text(each.text))}", self.line


def log_point(file: str, line: int, message: str, condition: str, hits: str) -> LogPoint:
    """Return the log point that prints `message`, where expressions are in braces. Raises UsageError."""
    for each in filter(None, (condition,)):
        _parsed(each)
    return LogPoint(file, line, message_expression(message), condition, hits)


def message_expression(message: str) -> str:
    """Return an expression whose value is the text of a message. Raises UsageError for what is not Python in it."""
    pattern, expressions, at = "", list[ast.expr](), 0
    for part in _PART.finditer(message):
        pattern += _literal(message[at : part.start()])
        if part[1] is None:
            pattern += part[0]
        else:
            expressions.append(_parsed(part[1].strip()))
            pattern += "{}"
        at = part.end()
    pattern += _literal(message[at:])
    if not expressions:
        return repr(pattern.format())
    # Not an f-string: before Python 3.12 these cannot have every expression.
    arguments = ", ".join(ast.unparse(each) for each in expressions)
    return f"{pattern!r}.format({arguments})"


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise UsageError("Invalid log message: write expressions in {braces}, and a brace itself twice.")
    return text


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{text!r} is not valid Python: {error}.") from None


def _text(shown: str) -> str:
    """Return the text that a value is, of which its repr is known; if that was cut, the repr."""
    try:
        value = ast.literal_eval(shown)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return shown
    return value if isinstance(value, str) else shown
