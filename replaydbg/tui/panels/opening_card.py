"""The opening card of a recording: a summary of the run."""

from __future__ import annotations

from rich.text import Text

from replaydbg.tui.view_model import Overview, Scene
from replaydbg.tui.widgets.plain_text import PlainText, set_title


class OpeningCard(PlainText):
    """A few lines that disappear with the first move."""

    def __init__(self) -> None:
        super().__init__(id="card")

    def waiting(self, name: str) -> None:
        """Show that the recording is being replayed."""
        set_title(self, name)
        self.set_text("Replaying the recording once to index it. Esc cancels.")

    def show_run(self, overview: Overview, scene: Scene) -> None:
        """Show how the run ended."""
        text = Text(no_wrap=True, overflow="ellipsis")
        failure = overview.failure
        self.set_class(failure is not None, "-failed")
        set_title(self, "What happened" if failure is not None else "How it ended")
        if failure is not None:
            text.append(f"{failure.text}\n", "bold")
            text.append(f"raised at {scene.place}\n")
            text.append(f"moment {scene.moment}, {scene.percent} of the run, {scene.lane}\n")
        text.append(f"{overview.ended}\n" if failure is None else "")
        text.append(f"{overview.command}   Python {overview.python}; {overview.events:,} events\n")
        if overview.limitation:
            text.append(f"{overview.limitation}\n")
        how = "N step back   W who wrote the selected value   e return here"
        text.append(how if failure is not None else "N step back   C previous breakpoint   g start")
        self.set_text(text)
