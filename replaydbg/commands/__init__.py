"""The commands of the prompt: parsing a typed line, running it on a session, and printing the answer."""

from replaydbg.commands.prompt import Prompt

__all__ = ["Prompt"]
