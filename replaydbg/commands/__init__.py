"""The words of every prompt: what a typed line means, what it does to a session, and its answer as text."""

from replaydbg.commands.prompt import Prompt

__all__ = ["Prompt"]
