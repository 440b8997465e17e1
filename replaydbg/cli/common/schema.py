"""The version of the JSON data that commands print."""

from __future__ import annotations

SCHEMA_VERSION = 2
"""The `schema_version` of every `--json`; it grows when a field changes its meaning or is removed."""
