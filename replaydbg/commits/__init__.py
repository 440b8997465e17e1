"""Find the commit that made a program fail: the side effects around the pure search in `replaydbg.bisect`.

Nothing here touches the user's checkout, index, branches or stash: commits are tested in temporary worktrees, outside
the repository.
"""

from replaydbg.commits.commit_search import find_commit
from replaydbg.commits.question import Commit, CommitLook, CommitSearchResult, Question

__all__ = ["Commit", "CommitLook", "CommitSearchResult", "Question", "find_commit"]
