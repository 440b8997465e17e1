"""The opening card of a recording: a summary of the run."""

from __future__ import annotations

import textwrap

from rich.text import Text
from textual import events

from replaydbg.tui.view_model import Overview, Scene
from replaydbg.tui.widgets.plain_text import PlainText, set_title

MOST_LINES = 3
"""Number of lines for the exception's message; in a low terminal there is room for one."""


class OpeningCard(PlainText):
    """A few lines that disappear with the first move."""

    def __init__(self) -> None:
        super().__init__(id="card")
        self._shown: tuple[Overview, Scene] | None = None

    def waiting(self, name: str) -> None:
        """Show that the recording is being replayed."""
        set_title(self, name)
        self.set_text("Replaying the recording once to index it. Esc cancels.")

    def show_run(self, overview: Overview, scene: Scene) -> None:
        """Show how the run ended."""
        self._shown = overview, scene
        is_failed = overview.failure is not None
        self.set_class(is_failed, "-failed")
        set_title(self, "What happened" if is_failed else "How it ended")
        self._draw(overview, scene)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the message for the new width."""
        if self._shown is not None:
            self._draw(*self._shown)

    def _draw(self, overview: Overview, scene: Scene) -> None:
        text = Text(no_wrap=True, overflow="ellipsis")
        failure, where = overview.failure, overview.failed_where
        is_there = failure is not None and failure.count == scene.count
        if failure is not None and where is not None:
            for line in self._wrapped(failure.text):
                text.append(f"{line}\n", "bold")
            text.append(f"raised at {where.place}\n")
            text.append(f"moment {where.moment}, {where.percent} of the run, {where.lane}\n")
            if not is_there:
                text.append(f"this is moment {scene.moment}, {scene.percent} of the run, {scene.lane}\n")
        else:
            text.append(f"{overview.ended}\n")
        earlier = _earlier(overview)
        text.append(f"before: {earlier} (the key {{ goes there)\n" if earlier else "")
        text.append(f"{overview.command}   Python {overview.python}; {overview.events:,} events\n")
        if overview.limitation:
            text.append(f"{overview.limitation}\n")
        how = f"N step back   W who wrote the selected value   e {'return here' if is_there else 'go to the failure'}"
        text.append(how if failure is not None else "N step back   C previous breakpoint   g start")
        self.set_text(text)

    def _wrapped(self, message: str) -> list[str]:
        width = max(self.content_size.width, 20)
        most = 1 if self.screen.has_class("-low") else MOST_LINES
        return textwrap.wrap(message, width, max_lines=most, placeholder=" ...") or [""]


def _earlier(overview: Overview) -> str:
    """Return the last other exception: a thread may have died from it; empty: there is none."""
    failure = overview.failure
    if failure is None:
        return overview.exceptions[-1].text if overview.exceptions else ""
    found = [each for each in overview.exceptions if each.count < failure.count and each.text != failure.text]
    return found[-1].text if found else ""
