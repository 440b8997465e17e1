"""`replaydbg sender`: show which process and line sent the bytes that an event received."""

from __future__ import annotations

import argparse

from replaydbg.cli.recordings.message_ends import add_event, show_messages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_event(parser, "the number of an event that received something, see `replaydbg events`")


def run(args: argparse.Namespace) -> int:
    """Show the sends; 3 if an answer is ambiguous or unsure."""
    return show_messages(args, is_receive=True)
