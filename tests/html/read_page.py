"""A page as a browser reads it: its elements, links, texts, and what it would fetch."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

_VOID = {"meta", "br", "hr", "img", "input", "link"}
_FETCHES = ("src", "srcset", "data", "action", "formaction", "poster", "background", "xlink:href", "ping", "manifest")


class ReadPage(HTMLParser):
    """A page that was read; raises AssertionError if an element is not closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[tuple[str, str]] = []
        """Attributes by which a browser fetches something."""
        self.handlers: list[str] = []
        """Attributes that hold scripts or styles."""
        self.policy = ""
        self.contents: defaultdict[str, list[str]] = defaultdict(list)
        """The texts of all elements, by tag."""
        self._open: list[str] = []
        self._texts: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        assert len(known) == len(attrs), (tag, attrs)
        self._look_at(tag, known)
        if tag not in _VOID:
            self._open.append(tag)
            self._texts.append([])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look_at(tag, {name: value or "" for name, value in attrs})

    def _look_at(self, tag: str, known: dict[str, str]) -> None:
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known["href"]] if tag == "a" else []
        self.handlers += [name for name in known if name.startswith("on") or name == "style"]
        self.fetched += [(name, value) for name, value in known.items() if name in _FETCHES]
        self.fetched += [("href", known["href"])] if "href" in known and tag != "a" else []
        if known.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = known["content"]

    def handle_data(self, data: str) -> None:
        for each in self._texts:
            each.append(data)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, (tag, self._open[-5:])
        self._open.pop()
        self.contents[tag].append("".join(self._texts.pop()))

    @property
    def text(self) -> str:
        """What a reader sees of the body."""
        body = self.contents["body"][0]
        return body.replace(self.contents["script"][0], "")

    @property
    def rows(self) -> list[str]:
        """The texts of list items and rows, with single spaces."""
        return [" ".join(each.split()) for each in self.contents["li"] + self.contents["tr"]]

    def check(self) -> None:
        """Check what holds for each page: nothing is fetched, all links lead somewhere, only the own script runs."""
        assert (self.fetched, self.handlers) == ([], [])
        assert all(each.startswith("#") for each in self.links), self.links
        assert {each.removeprefix("#") for each in self.links} <= set(self.ids)
        assert len(set(self.ids)) == len(self.ids), self.ids
        assert "@import" not in self.source and "url(" not in self.source
        assert len(self.contents["script"]) == len(self.contents["style"]) == len(self.contents["h1"]) == 1
        rules = dict(re.findall(r"([a-z-]+) ([^;]+)", self.policy))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == _hash(self.contents["script"][0])
        assert rules["style-src"] == _hash(self.contents["style"][0])
        hidden = [char for char in self.source if not (char.isprintable() or char == "\n")]
        assert hidden == []
        assert len(self.source.encode()) <= 300_000


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def read_page(path: Path) -> ReadPage:
    """Read and check the page in a file."""
    page = ReadPage(path.read_text(encoding="utf-8"))
    page.check()
    return page
