"""Start the server: the client of VS Code's tests starts one file, without arguments."""

import sys

from replaydbg.cli.main import main

sys.exit(main(["dap"]))
