"""`replaydbg mcp`: answer the questions of an agent about recordings, by the Model Context Protocol."""

from __future__ import annotations

from replaydbg import __version__
from replaydbg.launch.moved_streams import moved_streams
from replaydbg.mcp.agent_server import McpServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--allow-run",
        action="store_true",
        help="also offer a tool that runs programs, with all your rights, and records them (default: only replay)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve at the standard streams until the client goes away."""
    McpServer(*moved_streams(), version=__version__, is_run_allowed=args.allow_run).serve()
    return 0
