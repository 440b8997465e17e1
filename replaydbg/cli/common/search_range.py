"""The options for where, and over which part of the run, an expression is evaluated."""

from __future__ import annotations

import argparse


def add_search_range(parser: argparse.ArgumentParser) -> None:
    """Declare them: `module`, `frame`, `only_at`, `first` and `last`."""
    parser.add_argument(
        "--in", dest="module", metavar="MODULE", default="", help="evaluate in this module (default: __main__)"
    )
    parser.add_argument(
        "--frame",
        metavar="FUNCTION",
        default="",
        help="evaluate with the local variables of this function, while it runs",
    )
    parser.add_argument(
        "--only-at",
        metavar="PLACE",
        default="",
        help="evaluate it only before FILE:LINE, or at the start of each call of FUNCTION",
    )
    parser.add_argument("--from", dest="first", metavar="MOMENT", help="start of the search (default: @start)")
    parser.add_argument(
        "--to", dest="last", metavar="MOMENT", help="end of the search (default: the failure, else the end)"
    )
