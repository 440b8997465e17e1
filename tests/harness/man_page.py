"""`python -m tests.harness.man_page`: write the manual page, `docs/replaydbg.1`, from the parsers of the commands."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from argparse_manpage.manpage import Manpage

from replaydbg.cli.machine.completion import all_commands

PAGE = Path(__file__).parents[2] / "docs" / "replaydbg.1"
_SUMMARY = "record a Python program once, replay it exactly, and debug it backwards"


def manual_page() -> str:
    """Return the page, as man(7) has it."""
    with patch.dict("os.environ", COLUMNS="80"):  # argparse breaks lines there
        _, _, text = str(Manpage(all_commands(), format="single-commands-section")).partition("\n.SH NAME\n")
    _, _, body = text.partition("\n.SH ")
    head = f'.TH REPLAYDBG "1" "" "replaydbg" "User Commands"\n.SH NAME\nreplaydbg \\- {_SUMMARY}\n.SH '
    body = body.replace(".SH\nPOSITIONAL ARGUMENTS\n", ".SH COMMANDS\n")
    # A line that begins with a quote would be a macro.
    return head + body.replace("\n'", "\n\\&'").rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(manual_page(), encoding="utf-8")
