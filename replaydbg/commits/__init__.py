"""Finding the commit that made a program fail: the effects around the pure search in `replaydbg.bisect`.

Nothing here touches the user's checkout, index, branches or stash: commits are looked at in worktrees of their own,
outside the repository, which are gone afterwards.
"""

from replaydbg.commits.question import Commit, Found, Look, Question
from replaydbg.commits.search import find_commit

__all__ = ["Commit", "Found", "Look", "Question", "find_commit"]
