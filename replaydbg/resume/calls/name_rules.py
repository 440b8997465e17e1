"""The rules for calls in flight that make, move or remove a name of a file, or an attribute of one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from replaydbg.classes import replace
from replaydbg.resources.kinds import OpenedFile
from replaydbg.resume.calls.name_acts import memory_path, semaphore_path
from replaydbg.resume.calls.situation import Situation, call_argument, harmless, not_known
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.findings import Finding, changed, done, repeat, unknown

OPENS_FILE = "_io.FileIO.__init__"
Rule = Callable[[CallInFlight, Situation], Finding]


def _not_made(call: CallInFlight) -> Finding:
    return repeat(call, "not made before, will be made")


def _by_age(call: CallInFlight, situation: Situation, changed_ns: int, shown: str, not_again: str) -> Finding:
    """Decide a call whose effect is there since `changed_ns`; `shown` says so, as a clause."""
    is_by_call = situation.is_by(call, changed_ns)
    if is_by_call is None:
        return _perhaps(call, shown)
    return done(call, f"{shown}, {not_again}") if is_by_call else _not_made(call)


def _perhaps(call: CallInFlight, shown: str) -> Finding:
    return unknown(call, f"{shown}, but perhaps not by this call")


def _by_age_of_new(
    call: CallInFlight, situation: Situation, path: Path, changed_ns: int, shown: str, not_again: str
) -> Finding:
    """Decide a call that makes `path`, which is there: the program itself may have made it before."""
    act = situation.last_act(path)
    if act is None or not act.is_made:
        return _by_age(call, situation, changed_ns, shown, not_again)
    # A directory gets a new time stamp from what is made in it, too.
    is_older = situation.is_recent(act, call) or situation.is_by(call, changed_ns) is False
    return _not_made(call) if is_older else _perhaps(call, shown)


def _make(call: CallInFlight, situation: Situation) -> Finding:
    """Decide mkdir and its kin: what is there, and is newer than the call, was made by it."""
    path = situation.path(call_argument(call, 0, "path"), call.keywords.get("dir_fd"))
    if path is None:
        return not_known(call, situation)
    found = _lstat(path)
    if found is None or _is_other(call, path, found):
        return _not_made(call)
    return _by_age_of_new(call, situation, path, found.st_ctime_ns, f"{path} is there", "not made again")


def _is_other(call: CallInFlight, path: Path, found: os.stat_result) -> bool:
    """Whether a file is not what the call makes: a directory without entries, a fifo, or what mknod makes."""
    is_kind = {"posix.mkdir": stat.S_ISDIR, "posix.mkfifo": stat.S_ISFIFO}.get(call.call)
    return (is_kind is not None and not is_kind(found.st_mode)) or _has_content(path, found)


def _remove(call: CallInFlight, situation: Situation) -> Finding:
    """Decide rmdir and unlink: what is gone, from a directory that has changed since the call, was removed by it."""
    path = situation.path(call_argument(call, 0, "path"), call.keywords.get("dir_fd"))
    if path is None:
        return not_known(call, situation)
    directory = _lstat(path.parent)
    act = situation.last_act(path)
    if _lstat(path) is not None or directory is None or (act is not None and not act.is_made):
        return _not_made(call)
    if act is None and situation.has_changed(path.parent, call):
        return unknown(call, f"{path} is gone, and nothing shows whether it was there before")
    return _by_age(call, situation, directory.st_mtime_ns, f"{path} is gone", "not removed again")


def _rename(call: CallInFlight, situation: Situation) -> Finding:
    source, target = _two_paths(call, situation)
    if source is None or target is None:
        return not_known(call, situation)
    found = _lstat(target)
    act = situation.last_act(source)
    if _lstat(source) is not None or found is None or (act is not None and not act.is_made):
        return _not_made(call)
    return _by_age(call, situation, found.st_ctime_ns, f"{source} is {target} already", "not renamed again")


def _link(call: CallInFlight, situation: Situation) -> Finding:
    source, target = _two_paths(call, situation)
    if source is None or target is None:
        return not_known(call, situation)
    found, linked = _lstat(source), _lstat(target)
    is_linked = found is not None and linked is not None and os.path.samestat(found, linked)
    if linked is None or not is_linked:
        return _not_made(call)
    shown = f"{target} is a link to {source} already"
    return _by_age_of_new(call, situation, target, linked.st_ctime_ns, shown, "not linked again")


def _symlink(call: CallInFlight, situation: Situation) -> Finding:
    target = situation.path(call_argument(call, 1, "dst"), call.keywords.get("dir_fd"))
    content = call_argument(call, 0, "src")
    if target is None or not isinstance(content, str | bytes):
        return not_known(call, situation)
    found = _lstat(target)
    if found is None or not stat.S_ISLNK(found.st_mode):
        return _not_made(call)
    if os.fsencode(target.readlink()) != os.fsencode(content):
        return _not_made(call)
    shown = f"{target} is such a link already"
    return _by_age_of_new(call, situation, target, found.st_ctime_ns, shown, "not made again")


def _open(call: CallInFlight, situation: Situation) -> Finding:
    """Decide opening a file: only one that must be new (O_EXCL) cannot be opened twice.

    An empty file that is newer than the last event may have been made by this call, or be somebody else's lock file.
    """
    path = situation.path(call_argument(call, 0, "path"), call.keywords.get("dir_fd"))
    if path is None or not _must_be_new(call):
        return harmless(call, situation)
    found = _lstat(path)
    act = situation.last_act(path)
    if found is None or found.st_size or not situation.may_be_new(found) or (act is not None and act.is_made):
        return _not_made(call)
    return changed(call, f"{path} is there, empty, and newer than the last event: perhaps this call made it")


def _must_be_new(call: CallInFlight) -> bool:
    how = call_argument(call, 1, "flags")
    return "x" in how if isinstance(how, str) else isinstance(how, int) and bool(how & os.O_EXCL)


def _open_memory(call: CallInFlight, situation: Situation) -> Finding:
    """Decide shm_open, which works like opening a file by its name."""
    path = memory_path(call_argument(call, 0, "path"))
    return _open(replace(call, args=(path, call_argument(call, 1, "flags")), keywords={}), situation)


def _unlink_memory(call: CallInFlight, situation: Situation) -> Finding:
    return _remove(replace(call, args=(memory_path(call_argument(call, 0, "path")),), keywords={}), situation)


def _unlink_semaphore(call: CallInFlight, situation: Situation) -> Finding:
    return _remove(replace(call, args=(semaphore_path(call_argument(call, 0, "name")),), keywords={}), situation)


def _change_attribute(call: CallInFlight, situation: Situation) -> Finding:
    """Decide removexattr, and setxattr that must make the attribute: both raise if they are made twice."""
    is_removed = call.call == "posix.removexattr"
    flags = call_argument(call, 3, "flags")
    if not is_removed and not (isinstance(flags, int) and flags & os.XATTR_CREATE):
        return harmless(call, situation)
    target = call_argument(call, 0, "path")
    opened = situation.opened(target) if isinstance(target, int) else None
    path = Path(opened.absolute) if isinstance(opened, OpenedFile) and isinstance(opened.absolute, str) else None
    path = path or situation.path(target)
    name = call_argument(call, 1, "attribute")
    if path is None or not isinstance(name, str | bytes):
        return not_known(call, situation)
    follows = call.keywords.get("follow_symlinks") is not False
    try:
        found = path.stat(follow_symlinks=follows)
        is_there = os.fsdecode(name) in os.listxattr(path, follow_symlinks=follows)
    except OSError:  # the call raises what there is to be known
        return harmless(call, situation)
    if is_there == is_removed:
        return _not_made(call)
    shown = f"{path} {'has no' if is_removed else 'has the'} attribute {os.fsdecode(name)}"
    return _by_age(call, situation, found.st_ctime_ns, shown, "not made again")


def _two_paths(call: CallInFlight, situation: Situation) -> tuple[Path | None, Path | None]:
    source = situation.path(call_argument(call, 0, "src"), call.keywords.get("src_dir_fd"))
    return source, situation.path(call_argument(call, 1, "dst"), call.keywords.get("dst_dir_fd"))


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _has_content(path: Path, found: os.stat_result) -> bool:
    """Whether a directory has entries: a new one has none."""
    try:
        return stat.S_ISDIR(found.st_mode) and any(path.iterdir())
    except OSError:
        return True


NAME_RULES: dict[str, Rule] = {
    **dict.fromkeys(("posix.mkdir", "posix.mkfifo", "posix.mknod"), _make),
    **dict.fromkeys(("posix.rmdir", "posix.unlink", "posix.remove"), _remove),
    **dict.fromkeys(("posix.rename", "posix.replace"), _rename),
    "posix.link": _link,
    "posix.symlink": _symlink,
    **dict.fromkeys((OPENS_FILE, "posix.open"), _open),
    "_posixshmem.shm_open": _open_memory,
    "_posixshmem.shm_unlink": _unlink_memory,
    "_multiprocessing.sem_unlink": _unlink_semaphore,
    **dict.fromkeys(("posix.removexattr", "posix.setxattr"), _change_attribute),
}
"""By the full name of the call."""
