"""The manual page is the one that the parsers of the commands give."""

import shutil
import subprocess
import sys

import pytest

from tests.harness.man_page import PAGE, manual_page


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse shows options differently in other versions")
def test_it_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == manual_page(), "python -m tests.harness.man_page writes it"


def test_it_has_no_unknown_macros() -> None:
    if (groff := shutil.which("groff")) is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [groff, "-man", "-ww", "-z", str(PAGE)], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
