"""A recording with very many environment variables is replayed in a time proportional to their number."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import tool
from tests.harness.build import with_header
from tests.harness.replays import passed_on, run

pytestmark = pytest.mark.slow

_COUNT = 400_000
_PROGRAM = """import ctypes, os
library = ctypes.CDLL(None)
library.getenv.restype = ctypes.c_char_p
print(os.environ["FIRST"], library.getenv(b"FIRST"))
os.environ["FIRST"] = "b"
os.environ["SECOND"] = "c"
print(os.environ["FIRST"], library.getenv(b"FIRST"), library.getenv(b"SECOND"))
"""


def test_many_variables_take_little_time(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    env = {**passed_on(), "PATH": os.defpath, "LANG": "C.UTF-8", "FIRST": "a"}
    recorded = run(tool.record(sys.executable, tmp_path / "r.rdbg", ["program.py"]), cwd=tmp_path, env=env)

    def add(header: dict[str, Any]) -> None:
        header["env"] |= {f"V{number}": "x" for number in range(_COUNT)}

    many = with_header(tmp_path / "r.rdbg", tmp_path / "many.rdbg", add)
    before = os.times()
    replayed = run(tool.replay(sys.executable, many), cwd=tmp_path, env=env)
    after = os.times()

    assert replayed.stdout == recorded.stdout == "a b'a'\nb b'b' b'c'\n"
    assert after.children_user + after.children_system - before.children_user - before.children_system < 15
