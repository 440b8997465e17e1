"""Run by a recorded kernel in place of ipykernel_launcher: it starts ipykernel with the extension in notebook.py.

usage: kernel_start.py TOOL ARGUMENT ...; TOOL is the Python that runs replaydbg, the rest is for ipykernel.
This file runs in the environment of the kernel, which need not have replaydbg, so it imports nothing of it.
"""

import sys
from pathlib import Path

EXTENSION = "replaydbg_notebook"
FILE_NAME = "<replaydbg notebook>"
"""A name in angle brackets is not the user's code: steps pass over it, wherever replaydbg is installed."""


def main() -> None:
    """Start the kernel; returns when it has been shut down."""
    if not sys.flags.safe_path:
        del sys.path[0]  # the directory of this file
    module = type(sys)(EXTENSION)
    module.__dict__["TOOL"] = sys.argv.pop(1)
    source = Path(__file__).with_name("notebook.py").read_text(encoding="utf-8")
    exec(compile(source, FILE_NAME, "exec"), module.__dict__)
    sys.modules[EXTENSION] = module
    sys.argv.append(f"--IPKernelApp.extra_extensions={EXTENSION}")
    # Imported here: the path is that of the kernel's environment now.
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


if __name__ == "__main__":
    main()
