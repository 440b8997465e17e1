"""A program in a terminal of its own: bytes are sent to it as a terminal sends keys, and what it draws is read.

tmux (tests/tui/test_tui_tmux.py) shows the screen as a person sees it; here keys and pictures have exact times, and the
terminal may do what no person does.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[()][0-9A-B]|.)")
KEPT = 1 << 18
"""Bytes of the last output that are kept."""


class PseudoTerminal:
    """A running program, and the terminal's end of its connection."""

    def __init__(
        self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], size: tuple[int, int] = (120, 36)
    ) -> None:
        self._terminal, side = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self._terminal)
        """The settings of the terminal before the program has it."""
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=cwd,
            env=dict(environ),
            start_new_session=True,
            preexec_fn=_control,  # no other thread of the test starts processes
        )
        os.close(side)
        self.output = bytearray()
        """The last output, at most KEPT bytes."""
        self._side = -1

    def resize(self, width: int, height: int) -> None:
        """Change the size; the program gets a signal."""
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def send(self, data: bytes) -> None:
        """Send what a key or the mouse would send. What the program has ended for is lost."""
        while data:
            # A program that is busy drawing reads nothing, and may wait until its output is read.
            _, writable, _ = select.select([], [self._terminal], [], 0)
            if writable:
                data = data[os.write(self._terminal, data[:512]) :]
            else:
                self.read(0.01)
                if self.is_over:
                    return

    def read(self, seconds: float) -> bytes:
        """Return what comes within some time; as soon as anything comes, that."""
        if not select.select([self._terminal], [], [], max(seconds, 0))[0]:
            return b""
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:  # the other end is closed
            return b""
        self.output += data
        del self.output[:-KEPT]
        return data

    def drain(self, seconds: float) -> None:
        """Read all output for some time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not self.read(left) and self.is_over:
                return

    def wait_for(self, is_so: Callable[[bytes], object], seconds: float) -> float:
        """Read until the output from now on satisfies a condition.

        Return when it did, by time.monotonic(); 0: it did not.
        """
        seen, until = bytearray(), time.monotonic() + seconds
        while time.monotonic() < until:
            seen += self.read(min(until - time.monotonic(), 0.05))
            if is_so(bytes(seen)):
                return time.monotonic()
            if self.is_over:
                break
        return 0.0

    @property
    def is_over(self) -> bool:
        """Whether the program has ended."""
        return self.process.poll() is not None

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal has the settings from before the program."""
        return termios.tcgetattr(self._terminal) == self.before

    def hang_up(self) -> None:
        """Close the terminal, as its window is closed."""
        os.close(self._terminal)
        # Another one, to which nobody writes.
        self._terminal, self._side = pty.openpty()

    def close(self, patience: float = 30.0) -> int:
        """End the program, if it has not ended; return its exit code."""
        if not self.is_over:
            self.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + patience
        while not self.is_over and time.monotonic() < until:
            self.read(0.05)
        if not self.is_over:
            self.process.kill()
        while self.read(0):
            pass
        code = self.process.wait()
        os.close(self._terminal)
        if self._side >= 0:
            os.close(self._side)
        return code


def _control() -> None:
    """Make the terminal on stdin that of the session: its program gets a signal when the size changes, or it closes."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def plain_text(output: bytes) -> str:
    """Return output without its escape sequences; what was drawn in several places is not in its place."""
    return _ESCAPES.sub(b"", output).decode("utf-8", "replace")
