"""The type of the JSON data that commands print."""

from __future__ import annotations

from typing import TypeAlias

JsonObject: TypeAlias = dict[str, object]
"""A JSON object that is printed and never read back; docs/reference describes the fields of each."""
