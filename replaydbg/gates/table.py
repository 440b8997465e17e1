"""The complete gate table: our rows, and those of third parties from the entry point group `replaydbg.gates`."""

from __future__ import annotations

# Not hashlib: that loads OpenSSL, which takes 3 ms before every recorded program.
from _blake2 import blake2b

from replaydbg.gates.asked import ASKED
from replaydbg.gates.c_library import C_LIBRARY, ZMQ
from replaydbg.gates.closed_world import with_futures
from replaydbg.gates.entry_points import is_plugin_row, plugin_rows
from replaydbg.gates.input_rows import CLOCKS, DATABASES, ENTROPY, NETWORK, TLS
from replaydbg.gates.lenient import with_liberties
from replaydbg.gates.others import marked
from replaydbg.gates.outputs import with_outputs
from replaydbg.gates.row import Row
from replaydbg.gates.system import FILES, POSIX, PROCESSES

_ROWS = [*POSIX, *FILES, *PROCESSES, *CLOCKS, *ENTROPY, *DATABASES, *NETWORK, *TLS, *C_LIBRARY, *ZMQ, *ASKED]

OWN: list[Row] = with_futures(with_liberties(with_outputs(marked(_ROWS))))
"""Our own rows. Their order is part of each recording's header, not of the format."""


def gate_table(search_path: list[str]) -> list[Row]:
    """Return all rows: ours, then those of packages installed on `search_path` (see `plugin_rows`)."""
    return [*OWN, *plugin_rows(search_path)]


def table_of_recording(search_path: list[str], rows: object) -> list[Row]:
    """Return the rows for a replay: ours, those of packages on `search_path`, and `rows` of the recording's header.

    The packages of the program may be in an environment of their own. What is no such row is left out.
    """
    found = gate_table(search_path)
    names = {row.full_name for row in found}
    recorded = [Row(*each) for each in rows if is_plugin_row(each)] if isinstance(rows, list) else []
    return [*found, *(row for row in recorded if row.full_name not in names)]


def table_digest(table: list[Row]) -> str:
    """Return 16 hexadecimal digits that change when any row does."""
    return blake2b(repr([tuple(row) for row in table]).encode(), digest_size=8).hexdigest()
