"""The debugger's prompt: lines of text in, words of pdb, gdb and rr, lines of text out; with a terminal or without."""

from replaydbg.prompt.prompt import Prompt

__all__ = ["Prompt"]
