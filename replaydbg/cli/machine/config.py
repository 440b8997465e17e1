"""`replaydbg config`: list each setting with its value and its source."""

from __future__ import annotations

import argparse
from pathlib import Path

from replaydbg.cli.common.output import add_json, print_json, print_table
from replaydbg.config import find_settings, user_config_file
from replaydbg.events.show import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the settings."""
    found = find_settings()
    if args.json:
        settings = {
            setting.name: {
                "value": str(setting.value) if isinstance(setting.value, Path) else setting.value,
                "source": setting.source,
            }
            for setting in found
        }
        print_json({"settings": settings, "user_config": str(user_config_file())})
        return 0
    rows = [(setting.name, printable(_text(setting.value)), printable(setting.source)) for setting in found]
    print_table(("setting", "value", "from"), rows)
    return 0


def _text(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
