"""Find the commit that made a program fail: the side effects around the pure search in `replaydbg.bisect`.

Nothing here touches the user's checkout, index, branches or stash: commits are tested in temporary worktrees, outside
the repository.
"""

from replaydbg.commits.question import Commit, CommitLook, CommitSearchResult, Question
from replaydbg.commits.search import find_commit

__all__ = ["Commit", "CommitLook", "CommitSearchResult", "Question", "find_commit"]
