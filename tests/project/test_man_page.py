"""The manual page is the one that the parsers of the commands give."""

import os
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
    words = [groff, "-man", "-ww", "-z", str(PAGE)]
    # Without a sanitizer that was loaded into the tests: it would report on groff.
    env = {"PATH": os.environ["PATH"]}

    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
