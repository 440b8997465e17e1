"""Convert values to bytes and back, for callers that need no more than that.

Encoding is light and decoding is not: the launcher encodes before each recorded program starts, so the decoder and the
classes of recorded values are imported when something is decoded.
"""

from __future__ import annotations

from replaydbg.log.coding.encode import FORMAT, encode_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from replaydbg.events.values import TypeName, Value

__all__ = ["FORMAT", "decode_value", "encode_value"]


def decode_value(data: bytes, types: Sequence[TypeName] = ()) -> Value:
    """Return the only value in `data`; raises `replaydbg.log.coding.decode.Malformed` if there is none, or more."""
    # Imported here: see the module's docstring.
    from replaydbg.log.coding import decode

    return decode.decode_value(data, types)
