"""The program that `replaydbg demo` records; it is copied out of here and imports nothing of ours."""
