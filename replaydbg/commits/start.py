"""Record a program, replay a recording or build in the working directory, and write the result: a script.

It runs as a process of its own, which can be given another directory and environment, and can be killed. It is run by
its path and not with `-m`: the commit in whose worktree it runs may have a package of our name, and no option of the
interpreter may be passed on to the program.

  python start.py ANSWER.json ORDER.json
  python start.py COMMAND                     # for the shell
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
"""The number of that option of prctl(2)."""


def main(words: list[str]) -> None:
    """Execute the order; a shell command replaces this process."""
    # If the search is killed nobody else ends this process: a program that hangs would hang for ever.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if len(words) == 1:
        os.execv("/bin/sh", ["sh", "-c", words[0]])
    obey(Path(words[0]), Path(words[1]))


def obey(answer: Path, order: Path) -> None:
    """Execute the order in the file `order` and write the result, or the error, to `answer`."""
    # Import our own package, whatever is in the directory; then restore the path, without this script's directory.
    ours = str(Path(__file__).resolve().parents[2])
    if not sys.flags.safe_path:
        del sys.path[0]
    sys.path.insert(0, ours)
    from replaydbg.commits import orders, worktree_orders
    from replaydbg.errors import ReplaydbgError

    sys.path.remove(ours)
    outcome: orders.Answer
    try:
        outcome = worktree_orders.obey(orders.read_order(order))
    except (ReplaydbgError, OSError) as error:
        outcome = orders.OrderFailed(str(error))
    orders.write_answer(answer, outcome)


if __name__ == "__main__":
    main(sys.argv[1:])
