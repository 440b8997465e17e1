"""A scripted agent: it knows the questions, and of a program only what the answers say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.harness.mcp_client import Body, McpClient, lines_of

_MOMENT = re.compile(r"\b\d+:\d+\b")


class Detective:
    """Asks questions whose arguments must have been in earlier answers, and counts them."""

    def __init__(self, client: McpClient, recording: str) -> None:
        self._client, self._recording = client, recording
        self.answers: list[Body] = []

    @property
    def calls(self) -> int:
        """How many questions were asked."""
        return len(self.answers)

    def ask(self, tool: str, **arguments: Any) -> Body:
        """Ask a question about the recording."""
        seen = "\n".join(self._seen())
        for name, value in arguments.items():
            words = re.findall(r"[A-Za-z_]\w*", value) if isinstance(value, str) and name != "at" else []
            for each in [value] if name == "at" else words:
                assert str(each) in seen, f"{name} {each!r} is in no earlier answer"
        self.answers.append(self._client.ask(tool, recording=self._recording, **arguments))
        return self.answers[-1]

    def follow(self, answer: Body, tool: str, expression: str = "") -> Body:
        """Ask the first question of a tool that an answer proposes, about an expression if one is named."""
        for each in answer["next"]:
            given = {name: value for name, value in each["arguments"].items() if name != "recording"}
            if each["tool"] == tool and expression in ("", given.get("expression", "")):
                return self.ask(tool, **given)
        raise AssertionError(f"{tool} {expression} is not proposed: {answer['next']}")

    def has_named(self, source: str) -> bool:
        """Whether an answer has named a line of the program as the one that wrote a value, or made a condition true."""
        marked = re.compile(rf"\s+-> \d+  {re.escape(source.strip())}\Z")
        topics = (topic for answer in self.answers for topic in answer["recorded"].items())
        return any(marked.match(line) for name, lines in topics if name != "source" for line in lines)

    def _seen(self) -> Iterator[str]:
        for answer in self.answers:
            yield from lines_of(answer)
            yield answer.get("at", "")
            yield from (str(each["arguments"]) for each in answer["next"])


def moment_in(line: str) -> str:
    """Return the first moment in a line of an answer."""
    found = _MOMENT.search(line)
    assert found is not None, line
    return found[0]
