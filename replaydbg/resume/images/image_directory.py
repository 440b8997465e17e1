"""The directory with the images of a standby: an image counts once it is complete and on the disk.

Images are made under another name, synchronised, and renamed. Only then are older ones removed. Their names contain a
number that grows; each has a file with what it is an image of, and the digests of its other files.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.errors import CannotResume
from replaydbg.log.container import synchronise
from replaydbg.resume.images.criu import CriuFailed
from replaydbg.resume.images.image_facts import ImageFacts, read_facts

_IMAGE = re.compile(r"image-([0-9]{1,12})")
_FACTS = "image.json"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Image:
    """A complete image."""

    path: Path
    number: int
    facts: ImageFacts
    size: int
    """Bytes of its files."""


@dataclass(frozen=True, slots=True)
class UnreadableImage:
    """An image that was complete, and of which it cannot be read what it is an image of."""

    path: Path
    reason: str
    """A clause."""


class ImageDirectory:
    """The images in a directory; made if it is missing."""

    def __init__(self, path: Path, name: str, *, makes: bool = False) -> None:
        """`makes`: whether the directory is made. Raises CannotResume if it cannot be used; `name`: the recording."""
        self.path = path.absolute()
        try:
            if makes:
                self.path.mkdir(mode=0o700, exist_ok=True)
            status = self.path.stat()
        except OSError as error:
            raise CannotResume(name, f"the directory of images {path} cannot be used: {error.strerror}") from error
        if not stat.S_ISDIR(status.st_mode):
            raise CannotResume(name, f"the directory of images {path} cannot be used: it is not a directory")
        # An image is a process that is run with the rights of this one.
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise CannotResume(name, f"others can write to the directory of images {path}, or own it")

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Let no other standby write here in the block, and remove what a killed one has left. Raises CannotResume."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CannotResume(name, f"another standby writes its images to {self.path}") from error
            except OSError as error:
                reason = f"the directory of images {self.path} cannot be locked: {error.strerror}"
                raise CannotResume(name, reason) from error
            for each in self.path.glob("image-*.partial"):
                shutil.rmtree(each, ignore_errors=True)
            yield
        finally:
            os.close(fd)

    def images(self) -> tuple[list[Image], list[UnreadableImage]]:
        """Return the complete images and those that cannot be read, the newest first."""
        numbers = {int(match[1]): each for each in self.path.iterdir() if (match := _IMAGE.fullmatch(each.name))}
        complete, unreadable = [], []
        for number, path in sorted(numbers.items(), reverse=True):
            try:
                facts = read_facts((path / _FACTS).read_text("utf-8"))
                size = sum(each.stat().st_size for each in path.iterdir() if each.is_file())
            except OSError as error:
                unreadable.append(UnreadableImage(path, f"its description cannot be read: {error.strerror}"))
            except ValueError:
                unreadable.append(UnreadableImage(path, "its description is damaged"))
            else:
                complete.append(Image(path, number, facts, size))
        return complete, unreadable

    def begin(self) -> Path:
        """Return the empty directory of a new image, which does not count yet. Raises OSError."""
        numbers = [int(match[1]) for each in self.path.iterdir() if (match := _IMAGE.match(each.name))]
        partial = self.path / f"image-{max(numbers, default=0) + 1}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        return partial

    def complete(self, partial: Path, facts: ImageFacts) -> None:
        """Let the image count, and remove the older ones that it does not need. Raises OSError."""
        whole = facts.with_digests({each.name: digest(each) for each in _files(partial)})
        (partial / _FACTS).write_text(whole.as_json(), "utf-8")
        for each in (*_files(partial), partial / _FACTS, partial):
            synchronise(each)
        final = partial.with_suffix("")
        partial.rename(final)
        synchronise(self.path)
        kept = {final.name, *facts.parents}
        for path in self.path.iterdir():
            if _IMAGE.fullmatch(path.name) and path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)


def check_digests(image: Image) -> None:
    """Raise CriuFailed if a file of the image is not as it was made."""
    for name, expected in image.facts.digests.items():
        try:
            found = digest(image.path / name)
        except OSError as error:
            raise CriuFailed(f"its file {name} cannot be read: {error.strerror}") from error
        if found != expected:
            raise CriuFailed(f"its file {name} is damaged")


def _files(directory: Path) -> list[Path]:
    return sorted(each for each in directory.iterdir() if each.name.endswith(".img") and not each.is_symlink())


def digest(path: Path) -> str:
    """Return the digest of a file. Raises OSError."""
    found = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
