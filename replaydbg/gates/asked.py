"""Requests of a program to the recorder: `native/guard/asked.c` makes these crossings, no Python function is gated."""

from __future__ import annotations

from replaydbg.gates.row import Row, rows

ASKED: list[Row] = rows("replaydbg", "key moment state log_size continue", 0, "native")
"""`replaydbg.key()` and `moment()`; what the program before this one saved; the size of the log; going on anew."""
