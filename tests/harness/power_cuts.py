"""Simulate the contents of a disk after a power cut, without cutting any power.

A library that is loaded into the recorded program copies the live directory whenever a synchronisation of the log has
ended, and whenever the program calls `os.getppid()`. The file that the variable POWER_CUTS_FILE names is copied, too,
also when the program has synchronised it. A power cut after synchronisation N and before N + 1 leaves, of
each page, the version that was synchronised, or any later one: so images are composed page by page of the copies.
It must not end by `os._exit()`: the library's own calls would be recorded there.
"""

import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replaydbg.log.entries.checksums import CHECKSUM
from replaydbg.log.entries.logfile import read_log_header
from replaydbg.log.reader import open_recording

PAGE = 4096
_FILE = "program's"
_MAPPED = ("log", "world", "transfers")

_LIBRARY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char live[PATH_MAX];
static pid_t owner;

static void copy(const char *source, const char *target, const char *name)
{
    char path[3 * PATH_MAX], page[4096], none[4096] = {0};
    int from = open(source, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/%s", target, name);
    int to = from < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n;
    off_t at = 0;
    for (; to >= 0 && (n = pread(from, page, sizeof page, at)) > 0; at += n)
        if (memcmp(page, none, n) != 0 && pwrite(to, page, n, at) != n)
            abort();
    if (to >= 0 && ftruncate(to, at) < 0)
        abort();
    close(from);
    close(to);
}

static void capture(const char *kind)
{
    static const char *const names[] = {"log",         "world",       "content", "transfers",
                                        "header.json", "branch.json", "../page"};
    char target[2 * PATH_MAX], path[2 * PATH_MAX];
    struct timespec now;
    if (owner != syscall(SYS_getpid) || !getenv("POWER_CUTS"))
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(target, sizeof target, "%s/%010ld%09ld %s %s", getenv("POWER_CUTS"), (long)now.tv_sec, now.tv_nsec,
             strrchr(live, '/') + 1, kind);
    mkdir(target, 0700);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    {
        snprintf(path, sizeof path, "%s/%s", live, names[i]);
        copy(path, target, names[i][0] == '.' ? names[i] + 3 : names[i]);
    }
    if (getenv("POWER_CUTS_FILE"))
        copy(getenv("POWER_CUTS_FILE"), target, "program's");
}

int fdatasync(int fd)
{
    char link[64], path[PATH_MAX] = "";
    int rc = syscall(SYS_fdatasync, fd);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 4 && strcmp(path + strlen(path) - 4, "/log") == 0) {
        owner = syscall(SYS_getpid);
        strcpy(live, dirname(path));
        capture("synced");
    }
    return rc;
}

int fsync(int fd)
{
    char link[64], path[PATH_MAX] = "";
    int rc = syscall(SYS_fsync, fd);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (getenv("POWER_CUTS_FILE") && readlink(link, path, sizeof path - 1) > 0 &&
        strcmp(path, getenv("POWER_CUTS_FILE")) == 0)
        capture("written");
    return rc;
}

pid_t getppid(void)
{
    capture("moment");
    return syscall(SYS_getppid);
}
"""


def build_library(folder: Path) -> Path:
    """Compile the library, to be preloaded with the variable POWER_CUTS set to the directory for the copies."""
    source, library = folder / "power_cuts.c", folder / "power_cuts.so"
    source.write_text(_LIBRARY)
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", "-o", str(library), str(source)]
    subprocess.run(command, check=True, timeout=60)
    return library


@dataclass(frozen=True, slots=True)
class Copy:
    """The files of a live directory at one moment."""

    # Nanoseconds.
    time: int
    # The name of the directory.
    live: str
    files: dict[str, bytes]
    # Whether a synchronisation of the log has just ended.
    is_synced: bool
    # The program's file; empty if there is none.
    file: bytes = b""
    # Whether a synchronisation of it has just ended.
    is_written: bool = False

    @property
    def events(self) -> int:
        """The number of events in the log."""
        header = read_log_header(self.files["log"])
        assert header is not None
        return header.crossings


def read_copies(folder: Path) -> list[Copy]:
    """Return the copies in the order in which they were made."""
    copies = []
    for each in sorted(folder.iterdir()):
        time, live, kind = each.name.split(" ")
        files = {file.name: file.read_bytes() for file in each.iterdir()}
        written = files.pop(_FILE, b"")
        copies.append(Copy(int(time), live, files, kind == "synced", written, kind == "written"))
    return copies


@dataclass(frozen=True, slots=True)
class Image:
    """The contents of the disk after a power cut."""

    files: dict[str, bytes]
    # Number of events that were synchronised.
    least: int

    def write(self, live: Path) -> None:
        """Write it as a live directory."""
        shutil.rmtree(live, ignore_errors=True)
        live.mkdir()
        for name, data in self.files.items():
            (live / name).write_bytes(data)


def random_image(copies: Sequence[Copy], chance: random.Random, until: int | None = None) -> Image | None:
    """Return a possible image of one process after a power cut: at a random moment, or at the time `until`.

    None: it had synchronised nothing by then.
    """
    synced = [number for number, each in enumerate(copies) if each.is_synced and (until is None or each.time <= until)]
    if not synced:
        return None
    last = synced[-1] if until is not None else chance.choice(synced[:-1])
    following = [number for number, each in enumerate(copies) if each.is_synced and number > last]
    end = following[0] + 1 if following else len(copies)
    if until is not None:
        end = sum(each.time <= until for each in copies)
    versions = copies[last : chance.randint(last + 1, end)]
    # The share of pages that were written since: few, most, or any.
    newer = chance.choice((0.02, 0.5, 0.98))
    files = {name: _mixed([each.files.get(name, b"") for each in versions], newer, chance) for name in _MAPPED}
    # Copies of large files are synchronised before an event refers to them, and the other files when they are made.
    files |= {name: data for name, data in versions[-1].files.items() if name not in (*_MAPPED, "page")}
    return Image({name: data for name, data in files.items() if data}, copies[last].events)


def random_file(copies: Sequence[Copy], chance: random.Random, until: int) -> bytes:
    """Return what the disk may have of the program's file after a power cut at the time `until`."""
    before = [each for each in copies if each.time <= until]
    written = [number for number, each in enumerate(before) if each.is_written]
    versions = before[written[-1] if written else 0 :]
    return _mixed([each.file for each in versions], chance.choice((0.02, 0.5, 0.98)), chance)


def _mixed(versions: list[bytes], newer: float, chance: random.Random) -> bytes:
    size = len(chance.choice(versions))
    pages = []
    for at in range(0, size, PAGE):
        found = [each[at : at + PAGE] for each in versions]
        page = chance.choice(found[1:]) if found[1:] and chance.random() < newer else found[0]
        pages.append(page.ljust(min(PAGE, size - at), b"\0"))
    return b"".join(pages)


def records_of(path: Path) -> list[bytes]:
    """Return the records of a recording's event log, without those that only have checksums."""
    with open_recording(path) as recording:
        return [each.data for each in recording.records() if each.data[0] != CHECKSUM << 2 | 2]
