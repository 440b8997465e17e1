"""The terminal UI for tests: press keys, and inspect the screen."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input

from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.panels.lower_panel import ConsolePanel
from replaydbg.tui.view_model import Overview, Scene
from replaydbg.tui.widgets.rows import Rows
from tests.harness.waiting import PATIENCE, wait_in_loop


class Seen:
    """The UI with an open recording."""

    def __init__(self, app: ReplayApp, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def scene(self) -> Scene:
        """The session's present state."""
        assert self.app.scene is not None
        return self.app.scene

    @property
    def overview(self) -> Overview:
        """The run."""
        assert self.app.overview is not None
        return self.app.overview

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        await wait_in_loop(is_so, message=self._state)

    def _state(self) -> str:
        frame = sys._current_frames().get(self.app.owner.ident or 0)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "it has ended"
        return f"It waits for {self.app._asked}; the session's thread:\n{stack}"

    async def settled(self) -> None:
        """Wait until all requests are answered."""
        await self.until(lambda: not self.app.is_waiting or self.app._exit)

    async def quiet(self) -> None:
        """Wait for the end of all background tasks: they add to the timeline, and move panels."""

        def is_so() -> bool:
            host = self.app.owner._host
            return host is not None and not host.has_background_work

        await self.until(is_so)
        await self.pilot.pause()

    async def press(self, *keys: str) -> Scene:
        """Press keys, each when the one before is processed; return the session's state."""
        for key in keys:
            await self.until(lambda: not isinstance(self.app.screen, Dialog) or self.app.screen.is_drawn)
            await self.pilot.press(key)
            await self.settled()
        return self.scene

    async def click(self, target: Any, **where: Any) -> None:
        """Click when panels no longer move: the pilot clicks at the position from the time of its call."""
        await self.quiet()
        await self.pilot.click(target, **where)

    async def type(self, text: str) -> Scene:
        """Type text and Enter; all but its last character at once, since each key takes 80 ms here."""
        focused = self.app.focused
        if isinstance(focused, Input):
            focused.insert_text_at_cursor(text[:-1])
            text = text[-1:]
        await self.pilot.press(*text)
        return await self.press("enter")

    def text(self, panel: str) -> str:
        """Return the text of a panel, including scrolled parts; for the console, its lines."""
        if panel == "console":
            return self.app.part(ConsolePanel).text
        return "\n".join(row.text for row in self.app.main.query_one(f"#{panel}", Rows).rows)


def see(
    recording: Path,
    look: Callable[[Seen], Awaitable[None]],
    *,
    size: tuple[int, int] = (120, 36),
    moment: str = "",
    make: Callable[..., ReplayApp] = ReplayApp,
) -> int | None:
    """Open `recording` in a terminal of that size, and run `look`; return the exit code if it ended itself."""

    async def run() -> int | None:
        app = make(recording, moment=moment)
        async with app.run_test(size=size) as pilot:
            seen = Seen(app, pilot)
            await seen.until(lambda: app.scene is not None or app._exit)
            await seen.settled()
            await look(seen)
        app.owner.join(PATIENCE)
        assert not app.owner.is_alive()
        return app.return_value

    return asyncio.run(run())
