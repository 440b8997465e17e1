"""Run a module of this package as a program: `python tool_start.py MODULE WORDS`.

It is run by its path and not with `-m`: in the directory of a task may be a package of our name, and no option of the
interpreter, such as `-P`, may be passed on to a program that is recorded.
"""

import runpy
import sys
from pathlib import Path


def main(words: list[str]) -> None:
    """Run the module `words[0]` with these words as its command line."""
    ours = str(Path(__file__).resolve().parents[3])
    if not sys.flags.safe_path:
        del sys.path[0]  # the directory of this script
    sys.path.insert(0, ours)
    import replaydbg  # noqa: F401 - from here, whatever PYTHONPATH names; its modules are found by it

    sys.path.remove(ours)
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
