"""Panel 2: the stack of the selected lane, the lanes, and the asyncio tasks."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.tui.view_model import Scene
from replaydbg.tui.widgets.rows import PanelRow, Rows, plain

FEW = 2
"""Number of adjacent library frames that are shown without folding."""


class StackPanel(Rows):
    """Frames, lanes and tasks; choosing one selects it."""

    HELP = """\
The frames of the selected thread, innermost first; below them the program's threads with what each waits for, and
the pending asyncio tasks.

  enter  select this frame or thread; unfold folded library frames
  u d  the caller's frame, and back"""

    def __init__(self) -> None:
        super().__init__("2 Stack", id="stack")

    def show_scene(self, scene: Scene) -> None:
        """Show the session's position."""
        lane = next((each for each in scene.lanes if each.is_shown), None)
        name = f"  thread {lane.id} {lane.name}".rstrip() if lane is not None and len(scene.lanes) > 1 else ""
        self.set_title(f"2 Stack{name}")
        rows = list(self._rows_of(scene))
        selected = f"frame {scene.frame}"
        self.show(rows, cursor=next((at for at, each in enumerate(rows) if each.key == selected), 0))

    def _rows_of(self, scene: Scene) -> Iterator[PanelRow]:
        folded = _folded(scene)
        for number, frame in enumerate(scene.frames):
            if number in folded:
                if folded[number]:
                    yield plain(f"  {self.glyphs.dots} {folded[number]} frames of libraries", "dim", f"frame {number}")
                continue
            is_shown = number == scene.frame
            sign = self.glyphs.here if is_shown else " "
            place = (frame.place, "bold" if is_shown else "")
            yield PanelRow(((f"{sign} ", "accent"), place, (f"  {frame.text}", "dim")), f"frame {number}")
        more = scene.depth - len(scene.frames)
        if more:
            text = f"  {self.glyphs.dots} {more:,} more: enter shows them, `:frame {scene.depth - 1}` is the outermost"
            yield plain(text, "dim", f"frame {len(scene.frames)}")
        if not scene.frames:
            yield plain("This thread runs no Python code here.", "dim")
        if len(scene.lanes) > 1:
            yield plain("Threads", "accent")
            for lane in scene.lanes:
                sign = self.glyphs.here if lane.is_shown else " "
                style = "bold" if lane.state == "runs" else ""
                pieces = (
                    (f"{sign} ", "accent"),
                    (f"{lane.id} {lane.name or '(no name)'}  {lane.state}", style),
                    (f"  {lane.place}", "dim"),
                )
                yield PanelRow(pieces, f"thread {lane.id}")
        if scene.tasks:
            yield plain("Tasks", "accent")
            for task in scene.tasks:
                indent = "  " * task.depth
                yield PanelRow(((f"  {indent}{task.name}", "bold"), (f"  {task.state}", "")))
                for each in task.places:
                    yield plain(f"    {indent}{each}", "dim")


def _folded(scene: Scene) -> dict[int, int]:
    """Return the folded library frames: the first of a group with the number of frames, the others with 0."""
    found: dict[int, int] = {}
    at = 0
    while at < len(scene.frames):
        end = at
        while end < len(scene.frames) and scene.frames[end].is_library:
            end += 1
        # The innermost frame and the selected one are never folded.
        if at and end - at > FEW and not at <= scene.frame < end:
            found |= dict.fromkeys(range(at, end), 0) | {at: end - at}
        at = max(end, at + 1)
    return found
