"""The thread that owns the session: it executes requests one at a time, and replies with messages.

A session is not thread-safe. So nothing else uses it, and the drawing thread never waits for it.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from replaydbg.classes import dataclass, field, replace
from replaydbg.errors import Cancelled, EngineLost, ForgedMessage, ReplaydbgError
from replaydbg.tui.ui_messages import CannotOpen, Opened, Progressed, Replied, Restarted, Trouble
from replaydbg.tui.view_model import Reply

if TYPE_CHECKING:
    from replaydbg.debugger.session_results import WorkProgress
    from replaydbg.tui.worker.session_host import SessionHost

SHOWN_AFTER = 0.2
"""Seconds after which a long operation shows its progress."""

EVERY = 0.1
"""Seconds between two updates of the progress."""

Work = Callable[["SessionHost"], Reply]


@dataclass(slots=True, eq=False)
class Request:
    """A request to the session."""

    number: int
    work: Work
    slot: str
    """Only the last request of each slot counts; empty: each counts."""
    is_move: bool = False
    """Whether its reply shows the position."""
    is_given_up: bool = False
    began: float = field(default=0.0)


class SessionThread(threading.Thread):
    """Executes requests in its own thread, and posts the replies."""

    def __init__(self, path: Path, post: Callable[[Message], object], *, moment: str = "", memory: int = 0) -> None:
        """Open the recording at `path` once the thread is started, and go to `moment`; `post` must be thread-safe."""
        super().__init__(name="session", daemon=True)
        self._path, self._post, self._moment, self._memory = path, post, moment, memory
        self._wanted: deque[Request] = deque()
        self._changed = threading.Condition()
        self._running: Request | None = None
        self._numbers = 0
        self._is_closing = False
        self._host: SessionHost | None = None
        self._shown_at = 0.0

    # ---- called by the drawing thread ----

    def ask(self, work: Work, *, slot: str = "", is_move: bool = False) -> int:
        """Queue `work`; return the number of its reply. Never waits. `is_move`: the reply is to show the position."""
        with self._changed:
            self._numbers += 1
            if slot:
                self._drop([each for each in self._wanted if each.slot == slot])
                if self._running is not None and self._running.slot == slot:
                    self._give_up_running()
            self._wanted.append(Request(self._numbers, work, slot, is_move))
            self._changed.notify()
            return self._numbers

    def cancel(self) -> bool:
        """Cancel the running request and the waiting ones; False if there was none."""
        with self._changed:
            was_busy = self._running is not None or bool(self._wanted)
            self._drop(list(self._wanted))
            self._give_up_running()
            return was_busy

    @property
    def is_busy(self) -> bool:
        """Whether there is a request."""
        with self._changed:
            return self._running is not None or bool(self._wanted)

    def close(self) -> None:
        """End the thread; the running request is cancelled. Never waits."""
        with self._changed:
            self._is_closing = True
            self._wanted.clear()
            self._give_up_running()
            self._changed.notify()

    def _drop(self, requests: list[Request]) -> None:
        """Reply to each with an empty answer."""
        for each in requests:
            self._wanted.remove(each)
            self._post(Replied(each.number, Reply()))

    def _give_up_running(self) -> None:
        if self._running is not None:
            self._running.is_given_up = True

    # ---- the thread itself ----

    def run(self) -> None:
        """Open the recording, then execute requests until it is closed."""
        try:
            self._host = self._open()
        except Cancelled:
            return
        except (ReplaydbgError, OSError) as error:
            self._post(CannotOpen(str(error), exit_code=getattr(error, "exit_code", 1)))
            return
        except Exception as error:  # noqa: BLE001 - a bug of ours: it is shown, and the terminal is restored
            self._post(CannotOpen(f"{error!r}\n{traceback.format_exc()}", exit_code=1))
            return
        try:
            self._serve(self._host)
        finally:
            self._host.close()

    def _open(self) -> SessionHost:
        # Imported here: the first frame is painted before the debugger is loaded.
        from replaydbg.tui.worker.session_host import SessionHost

        self._running = Request(0, lambda host: Reply(), "")
        host = SessionHost(self._path, self._progressed, self._check, memory=self._memory, is_behind=self._is_behind)
        try:
            self._post(Opened(host.overview(), host.opening(self._moment)))
        except BaseException:
            host.close()
            raise
        self._done()
        return host

    def _serve(self, host: SessionHost) -> None:
        while True:
            with self._changed:
                while not (self._wanted or self._is_closing or host.is_unshown or host.has_background_work):
                    self._changed.wait()
                if self._is_closing:
                    return
                if not self._wanted and host.is_unshown:
                    # The moves behind the last one were cancelled, which left the position to them.
                    self._wanted.append(Request(0, lambda host: host.shown(), ""))
                request = self._running = self._wanted.popleft() if self._wanted else None
            if request is not None:
                self._do(host, request)
                self._done()
            else:
                self._run_background_step(host)

    def _run_background_step(self, host: SessionHost) -> None:
        losses = host.losses
        try:
            found = host.run_background_step()
        except ForgedMessage as error:
            self._post(CannotOpen(str(error), exit_code=error.exit_code))
            return
        except Exception:  # noqa: BLE001 - a bug of ours must not take the user's session with it
            self._post(Trouble(traceback.format_exc()))
            return
        if host.losses > losses:
            self._post(Restarted())
        if found is not None:
            self._post(found)

    def _do(self, host: SessionHost, request: Request) -> None:
        losses = host.losses
        try:
            self._check()
            reply = self._done_or_restarted(host, request)
        except Cancelled:
            # A later scrub of the timeline will be answered; in other cases the user must see that this one was
            # cancelled.
            reply = replace(self._after_cancel(host, request), error="" if request.slot else "Cancelled.")
        except ForgedMessage as error:
            self._post(CannotOpen(str(error), exit_code=error.exit_code))
            reply = Reply()
        except (ReplaydbgError, RecursionError, MemoryError, OSError) as error:
            reply = Reply(error=str(error) or type(error).__name__)
        except Exception:  # noqa: BLE001 - a bug of ours must not take the user's session with it
            self._post(Trouble(traceback.format_exc()))
            reply = Reply(error="Internal error in the debugger; the console has the details. The session continues.")
        self._post(Replied(request.number, reply))
        # Posted after the reply, whose own notice would overwrite it. A restarted session has posted its own notice.
        if host.losses > losses:
            self._post(Restarted())

    def _done_or_restarted(self, host: SessionHost, request: Request) -> Reply:
        try:
            host.come_back()
            return request.work(host)
        except EngineLost as error:
            self._check()
            host.restart()
            self._post(Restarted(error.reason))
            return host.shown()

    def _after_cancel(self, host: SessionHost, request: Request) -> Reply:
        """Return the state after a cancelled operation; without a scene if this was cancelled, too."""
        request.is_given_up = False
        try:
            host.come_back()
            return host.after_cancel()
        except Cancelled:
            return Reply()

    def _done(self) -> None:
        with self._changed:
            self._running = None
            is_last = not self._wanted
        if self._shown_at and is_last:
            self._shown_at = 0.0
            self._post(Progressed(""))

    def _is_behind(self) -> bool:
        """Whether the next request is a move, which waits already."""
        with self._changed:
            return bool(self._wanted) and self._wanted[0].is_move

    def _check(self) -> None:
        """Raise Cancelled if the running request is to be cancelled."""
        request = self._running
        if request is None and self._wanted:
            raise Cancelled  # a background task yields to a request
        if self._is_closing or (request is not None and request.is_given_up):
            raise Cancelled

    def _progressed(self, progress: WorkProgress) -> None:
        self._check()
        if self._running is None:
            return
        now = time.monotonic()
        if progress.seconds >= SHOWN_AFTER and now - self._shown_at >= EVERY:
            self._shown_at = now
            self._post(Progressed(progress.what, progress.done, progress.seconds))
