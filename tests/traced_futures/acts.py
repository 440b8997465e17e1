"""What the kernel was asked to do outside of a process, by a trace of its system calls."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_ACTS = re.compile(
    r"^(?:open(?:at)?\(.*O_(?:WRONLY|RDWR|CREAT|TRUNC)|creat|unlink|rename|mkdir|rmdir|link|symlink|mknod|chmod|chown"
    r"|truncate\(|utime|socket\(|connect|bind|kill\(|tkill|execve|fork|vfork|ptrace|mount|setxattr)",
    re.MULTILINE,
)
# The kernel has refused it: the filter by a signal, or with an error; or the process was ended before it answered.
_REFUSED = re.compile(r"^[^\n]*\n--- SIGSYS |^[^\n]*\) += (?:-1 E|\?)[^\n]*$|^[^\n]*<unfinished \.\.\.>$", re.MULTILINE)


def strace(command: Sequence[str], trace: Path) -> list[str]:
    """Return the command line that runs `command`, and writes a file `trace.PID` for each process."""
    return ["strace", "-ff", "-qq", "-o", str(trace), *command]


def acts_of_futures(trace: Path) -> tuple[int, int, list[str]]:
    """Return how many replays and futures a command had, and what these did outside."""
    texts = {path: path.read_text(errors="replace") for path in trace.parent.glob(f"{trace.name}.*")}
    replays = [text for text in texts.values() if "SECCOMP_SET_MODE_FILTER" in text]
    # Copies of those begin in the middle of their program; the log of each is a file in memory.
    copies = {path: text for path, text in texts.items() if "fallocate(" in text and "execve(" not in text}
    behind = {path: text.rpartition("SECCOMP_SET_MODE_FILTER")[2] for path, text in texts.items() if text in replays}
    # A process may signal itself: what another one has sent it, and its own end where the command has ended.
    alone = [
        re.sub(rf"^kill\((?:{path.suffix[1:]}, |\d+, SIGKILL)", "", text, flags=re.MULTILINE)
        for path, text in (behind | copies).items()
    ]
    return len(replays), len(copies), list(_acts(alone))


def _acts(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        for line in _REFUSED.sub("", text).splitlines():
            if _ACTS.match(line):
                yield line
