"""What futures are told of files here, which a recording of a stranger names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from replaydbg.futures.known import library_sources


def test_only_sources_of_the_library_are_read(tmp_path: Path) -> None:
    library = Path(os.__file__).parent
    (tmp_path / "secret.py").write_text("mine")
    elsewhere = os.path.relpath(tmp_path, library)
    paths = [
        f"{library}/json/__pycache__/__init__.cpython-311.pyc",
        f"{library}/{elsewhere}/__pycache__/secret.cpython-311.pyc",
        f"{tmp_path}/__pycache__/secret.cpython-311.pyc",
        f"{library}-other/__pycache__/secret.cpython-311.pyc",
    ]
    recording: Any = SimpleNamespace(world=lambda: [SimpleNamespace(path=each, raised=False) for each in paths])

    assert library_sources(recording) == {json.__file__: Path(json.__file__).read_bytes()}
