"""The build for another processor says clearly that there is no compiler for it, and looks at what was built."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from replaydbg.native import core_file
from tests.cross.__main__ import ARM_64, main, processor


def test_without_the_compiler_a_sentence_says_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--compiler", "no-such-gcc"])

    assert status == 0
    said = "skipped: no-such-gcc is not installed (Debian and Ubuntu: apt install gcc-aarch64-linux-gnu)\n"
    assert capsys.readouterr().out == said


def test_the_processor_of_a_library_is_that_of_its_interpreter() -> None:
    soabi = sysconfig.get_config_var("SOABI")

    assert (processor(Path(core_file(soabi))) == ARM_64) == ("-aarch64-" in soabi)


def test_a_file_of_another_kind_is_for_no_processor(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a library of any kind")
    (tmp_path / "short").write_bytes(b"\x7fELF")

    assert processor(tmp_path / "text") == 0
    assert processor(tmp_path / "short") == 0
