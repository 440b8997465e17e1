"""`replaydbg dap`: debug recordings in an editor, forwards and backwards, by the Debug Adapter Protocol."""

from __future__ import annotations

from replaydbg.dap.stdio import serve_standard_streams
from replaydbg.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--listen",
        metavar="[HOST:]PORT",
        help="listen at this port, and serve one editor after the other (default: the standard streams). HOST: "
        "127.0.0.1 by default, which other machines cannot reach; PORT 0: a free one, which is printed",
    )
    parser.add_argument("--once", action="store_true", help="with --listen: exit when the first editor has left")


def run(args: argparse.Namespace) -> int:
    """Serve until the editor has left, or with --listen until this process is ended."""
    if args.listen is None:
        if args.once:
            raise UsageError("--once needs --listen: at the standard streams there is one editor only.")
        serve_standard_streams(_resolved)
        return 0
    # Imported here: an editor that starts the server waits for it, and needs no sockets.
    from replaydbg.dap.listening import parsed_address, serve_port

    serve_port(*parsed_address(args.listen), _resolved, is_once=args.once)
    return 0


def _resolved(name: str) -> Path:
    # Imported here: a client waits for the first answer.
    from replaydbg.cli.common.named_store import the_store

    return the_store().resolve(name)
