"""`replaydbg receiver`: show which process and line received the bytes that an event sent."""

from __future__ import annotations

import argparse

from replaydbg.cli.recordings.message_ends import add_event, show_messages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_event(parser, "the number of an event that sent something, see `replaydbg events`")


def run(args: argparse.Namespace) -> int:
    """Show the receives; 3 if an answer is ambiguous or unsure."""
    return show_messages(args, is_receive=False)
