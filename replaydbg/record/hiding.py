"""Find the secrets of a recording when it is sealed: in its environment, in what was read, in its own sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from replaydbg.log.allowance import load_json
from replaydbg.log.container import Hiding, live_pieces, names_in, split
from replaydbg.log.edit.content_parts import Contents
from replaydbg.log.edit.joined_secrets import JoinedSecrets
from replaydbg.log.entries.leaves import Content, Leaf, leaves
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import BRANCH, bytes_behind
from replaydbg.log.sealed.shared import compressor, expand
from replaydbg.record.caches.source_cache import PackedSource
from replaydbg.record.caches.sources import own_sources
from replaydbg.secrets.secret_rules import (
    SecretPlace,
    is_secret_name,
    is_secret_value,
    places_in_pieces,
    secrets_in,
)
from replaydbg.secrets.user_patterns import patterns_in_header, patterns_of_live, searching_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.edit.content_parts import Pieces
    from replaydbg.log.edit.growing_secrets import GrowingSecrets
    from replaydbg.secrets.masks import Masks


def hiding_of(live: Path, others: Iterable[bytes] = ()) -> Hiding | None:
    """Return what is to be masked in the recording of a live directory; None: it has no secrets, or keeps them.

    `others` are secrets of other processes of its group. Raises what `open_live` raises.
    """
    with searching_for(patterns_of_live(live)):
        header, found = _found_in_live(live)
    if header.keeps_secrets:
        return None
    found.update(others)
    if not found:
        return None
    # Imported here: most recordings have no secrets.
    from replaydbg.log.edit.split_secrets import split_secrets, words_in
    from replaydbg.secrets.forms import forms_of

    with _sections_of(live) as pieces:
        split = split_secrets(forms_of(found), pieces)
    long_pieces = words_in(split)
    masks = masks_of(found, long_pieces)
    for name in {each.section for each in split}:
        masks.mask_places(name, [(each.at, each.at + each.end - each.start) for each in split if each.section == name])
    # A program may encode a piece, too; only snapshots are never replayed.
    of_snapshots = masks_of(found | long_pieces) if long_pieces else masks
    return Hiding(masks, _recipients(header), partial(masked_snapshot, of_snapshots))


@contextmanager
def _sections_of(live: Path) -> Iterator[Pieces]:
    """Yield what returns the sections of a live directory. Raises what `open_live` raises."""
    if not (live / BRANCH).exists():
        yield partial(live_pieces, live)
        return
    # Imported here: only children of recorded programs need it.
    from replaydbg.log.branch import open_live

    sections = open_live(live)
    try:
        yield sections.pieces
    finally:
        sections.close()


def _of_parent(live: Path) -> int:
    """Return how many bytes of the log of a live directory are those of its parent. Raises what `open_live` raises."""
    if not (live / BRANCH).exists():
        return 0
    from replaydbg.log.branch import bytes_before

    return bytes_before(live)["log"]


def _found_in_live(live: Path) -> tuple[HeaderSecrets, set[bytes]]:
    """Return the header and the secrets of a live directory; none if it keeps them."""
    with _sections_of(live) as pieces:
        header, found = _found(pieces, _of_parent(live))
    if not header.keeps_secrets:
        for name in names_in(live / "source"):
            found |= _in_pieces(live_pieces(live, f"source/{name}"))
        for content in own_sources(live):
            found |= secrets_in(content)
    return header, found


def _recipients(header: HeaderSecrets) -> tuple[str, ...]:
    """Return the public keys for which secrets are encrypted; none if no key can be used: they are masked for good."""
    # Imported here: most recordings have no secrets, and all wait for the sealing.
    from replaydbg.secrets.age_keys import own_identity, recipient_of

    try:
        identity = own_identity(make=True)
    except OSError:
        identity = None
    own = () if identity is None else (recipient_of(identity),)
    return tuple(dict.fromkeys((*own, *header.recipients)))


def masked_snapshot(masks: Masks, data: bytes) -> bytes:
    """Return a raw snapshot with secrets masked; anything else unchanged."""
    # Imported here: most recorded programs have no snapshots.
    from replaydbg.heap.storage.raw_snapshot import masked_raw

    return masked_raw(data, masks.with_beginnings().masked)


def _found(pieces: Pieces, branch: int) -> tuple[HeaderSecrets, set[bytes]]:
    """Return the header and the secrets of a recording, of which `pieces` returns the sections.

    `branch`: so many bytes of its log are its parent's, whose secrets are known from there.
    """
    header = HeaderSecrets(b"".join(pieces("header")))
    found: set[bytes] = set()
    if not header.keeps_secrets:
        found = {*header.secrets(), *_received(pieces, branch)}
    return header, found


def secrets_of(pieces: Pieces, sources: Iterable[bytes]) -> set[bytes]:
    """Return the secrets of a recording, of which `pieces` returns the sections in the clear; also if it keeps them."""
    header = HeaderSecrets(b"".join(pieces("header")))
    found = {*header.secrets(), *_received(pieces)}
    for content in sources:
        found |= secrets_in(content)
    return found


def keeps_secrets(header: bytes) -> bool:
    """Return whether a recording with this header was made with `--secrets=keep`."""
    return HeaderSecrets(header).keeps_secrets


def growing_secrets(live: Path) -> GrowingSecrets | None:
    """Return the secrets of a recording out of which others are cut; None: they are kept."""
    from replaydbg.log.edit.growing_secrets import GrowingSecrets

    data = (live / "header.json").read_bytes()
    header = HeaderSecrets(data)
    if header.keeps_secrets:
        return None
    with searching_for(patterns_in_header(data)):
        return GrowingSecrets({*header.secrets(), *secrets_in(data)}, _recipients(header))


def masks_of(found: set[bytes], pieces: Iterable[bytes] = ()) -> Masks:
    """Return masks for secrets in all forms in which they may be written, and for pieces of those."""
    from replaydbg.secrets.forms import forms_of
    from replaydbg.secrets.masks import Masks

    return Masks({*forms_of(found), *pieces})


def masked_words(header: bytes, words: list[str]) -> list[str]:
    """Return a command line with its secrets masked, for good; `header` is that of its process."""
    facts = HeaderSecrets(header)
    if facts.keeps_secrets:
        return words
    with searching_for(patterns_in_header(header)):
        in_words = secrets_in(b"\0".join(each.encode("utf-8", "surrogateescape") for each in words))
    found = {*facts.secrets(), *in_words}
    return masked_argv(masks_of(found), words) if found else words


def masked_argv(masks: Masks, words: list[str]) -> list[str]:
    """Return a command line with secrets masked, for good."""
    data = [each.encode("utf-8", "surrogateescape") for each in words]
    return [masks.masked(each).decode("utf-8", "surrogateescape") for each in data]


_OWN = "REPLAYDBG_SECRET"
"""Begins the names of variables that say what is a secret."""


class HeaderSecrets:
    """The secrets in a header, and the user's wishes about secrets."""

    def __init__(self, data: bytes) -> None:
        """`data`: the JSON of the header."""
        try:
            header = load_json(data)
            self._env: dict[str, str] = header["env"]
            wishes = header.get("secrets", {"kept": False, "names": [], "recipients": []})
            self.keeps_secrets: bool = wishes["kept"]
            self._names: list[str] = wishes["names"]
            self.recipients: list[str] = wishes["recipients"]
        except (ValueError, TypeError, KeyError, AttributeError):  # the program has changed it
            self._env, self.keeps_secrets, self._names, self.recipients = {}, False, [], []

    def secrets(self) -> Iterator[bytes]:
        """Yield the values of variables with telling names, other than our settings about secrets."""
        for name, value in self._env.items():
            if name.startswith(_OWN):
                continue
            data = value.encode("utf-8", "surrogateescape")
            if (is_secret_name(name) or _is_listed(name, self._names)) and is_secret_value(data):
                yield data


def _is_listed(name: str, patterns: list[str]) -> bool:
    if not patterns:
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, each) for each in patterns)


def _received(pieces: Pieces, branch: int = 0) -> set[bytes]:
    """Return the secrets in what came from outside: the header, the log and the contents of files.

    The other sections have them from there.
    """
    joined = JoinedSecrets(Contents(pieces), max(branch - LOG_HEADER, 0))
    for piece in pieces("log", LOG_HEADER):
        joined.add(piece)
    in_log, in_content = (sorted(places_in_pieces(pieces(name))) for name in ("log", "content"))
    found = _in_pieces(pieces("header")) | joined.found()
    if in_log or in_content:
        found |= exact_secrets(in_log, in_content, pieces("log"))
    return found


def exact_secrets(in_log: list[SecretPlace], in_content: list[SecretPlace], log: Iterable[bytes]) -> set[bytes]:
    """Return the secrets among what has the form of one, in a log and in its contents, by the values in `log`.

    What was found is in order, and begins so many bytes from the beginning of its section.
    """
    # Imported here: in most logs nothing looks like a secret.
    from replaydbg.log.edit.whole_values import in_contents, in_leaves

    contents: list[Content] = []
    only_leaves = _only_leaves(leaves(bytes_behind(LOG_HEADER, log)), contents)
    found = in_leaves((each.moved(-LOG_HEADER) for each in in_log), only_leaves)
    for _ in only_leaves:
        pass  # up to the end: each content is known then
    return found | in_contents(in_content, contents)


def _only_leaves(items: Iterable[Leaf | Content], contents: list[Content]) -> Iterator[Leaf]:
    """Yield the leaves; the contents are added to `contents`."""
    for each in items:
        if isinstance(each, Leaf):
            yield each
        else:
            contents.append(each)


def _in_pieces(pieces: Iterable[bytes]) -> set[bytes]:
    """Return the secrets in a section, also those that go on in the next piece."""
    return {each.text for each in places_in_pieces(pieces) if each.counts(each.text)}


def hidden_sources(sources: Iterable[PackedSource], hiding: Hiding) -> Iterator[PackedSource]:
    """Yield sources with their secrets masked."""
    for each in sources:
        name, content = f"source/{each.name}", expand(each.packed, each.length)
        if content is None:
            yield each
            continue
        masked = b"".join(hiding.masks.pieces(name, split(content)))
        yield each if masked == content else PackedSource(each.name, each.length, compressor()(masked))
