"""The command line: the only layer that prints and exits. It parses arguments and sets exit codes.

- `main` finds the command that is meant, and imports only that one.
- `running`: commands that run a program, or its replay, from beginning to end.
- `exploring`: commands that answer questions about a run, at a moment or over all of it; they replay for it.
- `bisecting`: `bisect`, which searches for the moment, the input or the commit that made a program fail.
- `recordings`: commands that read or manage recordings as files, and run nothing.
- `machine`: commands about this machine and its settings.
- `common`: options, output and streams that the commands share.
"""
