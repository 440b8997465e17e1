"""The forms that secrets have in texts.

They are those that issuers of tokens document, and those in which settings and protocols name a password. The patterns
are compiled when they are needed first: most recordings have no hint of any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from replaydbg.classes import NamedTuple

_KEY_OF = (
    "private",
    "access",
    "api",
    "account",
    "auth",
    "secret",
    "signing",
    "encryption",
    "master",
    "fernet",
    "session",
)
"""Words before `key`."""


class SecretRule(NamedTuple):
    """A form that secrets have."""

    name: str
    hints: tuple[bytes, ...]
    """Words of at least four bytes; one of them is in whatever the pattern matches."""
    before: int
    """How many bytes before the hint the pattern begins."""
    text: bytes
    """The pattern: its groups are the secrets; all of it if it has none."""
    behind: bytes = b""
    """The pattern of what is right before it, at most `MOST_BEFORE` bytes; empty: anything."""

    parts: Callable[[bytes], Iterable[bytes]] | None = None
    """Returns the secrets in what was found; None: it is one."""
    is_bare: bool = False
    """Whether no quotes tell the value from a name in a program."""
    is_strict: bool = True
    """Whether the value may be one of a program or of its settings, which is no secret."""

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """The pattern, compiled: most recordings need none."""
        return compiled(self.text)


@cache
def compiled(text: bytes) -> re.Pattern[bytes]:
    """Return a pattern of a rule, compiled once."""
    return re.compile(text, re.DOTALL)


MOST_BEFORE = 40
"""Bytes before a hint that a rule may look at."""
_DIGITS = "0123456789"
_CLASSES = {
    "?": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-" + _DIGITS,
    "#": _DIGITS,
    "%": _DIGITS + "abcdef",
}
"""Characters of hints that stand for others."""


def _rule(
    name: str,
    hints: str | tuple[str, ...],
    pattern: str,
    *,
    before: int = 0,
    behind: str = "",
    parts: Callable[[bytes], Iterable[bytes]] | None = None,
    is_bare: bool = False,
    is_strict: bool = True,
) -> SecretRule:
    split = hints.split() if isinstance(hints, str) else hints
    words = [expanded for each in split for expanded in _expanded(each.replace("~", " "))]
    ending = f"(?:{behind})\\Z".encode() if behind else b""
    return SecretRule(
        name, tuple(each.encode() for each in words), before, pattern.encode(), ending, parts, is_bare, is_strict
    )


def _expanded(hint: str) -> Iterator[str]:
    if hint.startswith("="):  # in lower case, upper case and as a title
        yield from dict.fromkeys((hint[1:], hint[1:].upper(), hint[1:].title()))
        return
    special = next((each for each in hint if each in _CLASSES), None)
    if special is None:
        yield hint
        return
    for each in _CLASSES[special]:
        yield from _expanded(hint.replace(special, each, 1))


_GAP = r"[\s\"'\\:=,\x00-\x1f\x7f-\xff]"
"""Bytes that may be between a name and its value: in text, and in records, where each has its length before it."""
_SCHEME = r"(?i:basic|bearer|token|negotiate|apikey)"
_NO_PHRASE = rf"(?![\s\"'\\,\x00-\x1f\x7f-\xff]{{1,16}}(?!{_SCHEME}\s)[A-Za-z_]+(?![0-9A-Za-z_+/=.~!@#$%^&*-]))"
"""What follows is no phrase (`authorization needed`), nor a list of words: without a colon, one word is no secret."""
_FIELD = rf"(?i:pass(?:word|wd|phrase)?|pwd|secrets?|token|credentials?|(?:{'|'.join(_KEY_OF)})[_-]?key)"
"""A name, or how it ends: `accessToken` by its last word."""
_ATTRIBUTES = (b"expires=", b"max-age=", b"path=", b"domain=", b"samesite=", b"version=", b"priority=")


def _cookies(text: bytes) -> Iterator[bytes]:
    """Yield the values of cookies, without their attributes."""
    for pair in text.split(b";"):
        if not pair.strip().lower().startswith(_ATTRIBUTES):
            yield from compiled(rb"=\"?([^\s;,\"=]{6,4096})").findall(pair)


def _items(text: bytes) -> Iterable[bytes]:
    """Return the texts in a list, without their quotes."""
    return (each.strip(b" \t\r\n\"'") for each in text.split(b","))


def _lines(text: bytes) -> Iterator[bytes]:
    """Yield the lines of a key, which may be escaped; a last one that is too short with the one before."""
    start, before = 0, 0
    ends = [(each.start(), each.end()) for each in compiled(rb"(?:\s|\\n|\\r)+").finditer(text)]
    for end, following in (*ends, (len(text), len(text))):
        line = text[start:end]
        if len(line) >= _SHORTEST_LINE and b":" not in line:  # that is a field in front of the key
            yield line
            before = start
        elif line and b":" not in line and before < start:
            yield text[before:end]
        start = following


_SHORTEST_LINE = 6
"""Bytes of a key's line that is a secret of its own."""
_STOPS = r"\s&\"'<>\\;,(){}\[\]$:=\x00-\x1f"
_IS = r"[ \t]{0,8}[:=][ \t]{0,8}"
_WORD = r"([^\s\"'\x00-\x1f]{5,500}[^\s\"',(\[{\x00-\x1f])"
_CLASS = r"[A-Z]*(?:[A-Z][a-z]+)+[\r\n]"
"""The name of a class up to the end of its line, as in an annotation."""
_LINE = r"(?:\A|[^\x20-\x7e])[ \t]*"
"""The beginning of a line, or of a text in a record."""
_QUOTED = "|".join(
    (
        r'"((?:[^"\\\r\n]|\\.){6,500})"',
        r"'((?:[^'\\\r\n]|\\.){6,500})'",
        r'\\+"((?:[^"\\\r\n]|\\[^"]){6,500}?)\\+"',
        r"\\+'((?:[^'\\\r\n]|\\[^']){6,500}?)\\+'",
    )
)
"""In one kind of quotes, which may be within a text that is escaped itself."""
_UNQUOTED = rf"([^{_STOPS}]{{6,500}})"
_AFTER_FIELD = ("=", ":", "'", '"', '\\"', "]", "~", ">")
"""Characters right after `pass` and `pwd` where these are names: both are parts of many words."""
_FIELD_HINTS = " ".join(
    (
        "=password =passwd =passphrase =secret =token =credential",
        *(f"=pass{each}" for each in _AFTER_FIELD),
        *(f"=pwd{each}" for each in _AFTER_FIELD),
        *(f"={each}_k ={each}-k ={each}k {each}K {each.title()}K" for each in _KEY_OF if each != "secret"),
    )
)
"""A `~` stands for a blank."""
RULES: Sequence[SecretRule] = (
    _rule(
        "authorization",
        "=authorization",
        rf"(?i:authorization){_NO_PHRASE}{_GAP}{{1,16}}(?:{_SCHEME}\s+)?(?!(?i:digest|aws4-hmac-sha256)\s|[A-Za-z-]+:\s)([^\s\"'\\,;()<>\x00-\x1f]{{6,4096}})",
    ),
    _rule("digest", "response=", r"response=\\?\"([0-9a-fA-F]{32,128})"),
    _rule("AWS signature", "Signature=", r"Signature=([0-9a-f]{64})"),
    _rule("cookie", "=cookie", rf"(?i:cookie){_GAP}{{1,16}}([^\r\n\"'\\\x00-\x08\x0b-\x1f]{{6,4096}})", parts=_cookies),
    _rule("password in a URL", "?://", r".://[^\s/?#:@\"'<>\\]{0,200}:([^\s/?#@\"'<>\\]{6,500})@", is_strict=False),
    _rule(
        "quoted",
        _FIELD_HINTS,
        rf"{_FIELD}\\*[\"']?\]?\s{{0,8}}[:=]>?\s{{0,8}}[bfru]{{0,2}}(?:{_QUOTED})",
    ),
    _rule("in XML", _FIELD_HINTS, rf"{_FIELD}(?:>|[\"']\s+value=[\"'])([^\"'<>\r\n]{{6,500}})[\"'<]"),
    _rule(
        "in a list",
        "=passwords =secrets =api_keys =api-keys =apikeys",
        r"[\w-]{7,9}[\"']?\s{0,8}[:=]\s{0,8}\[([^\[\](){}]{6,4000})\]",
        parts=_items,
    ),
    _rule("in a form", _FIELD_HINTS, rf"{_FIELD}={_UNQUOTED}", behind=r"[?&][\w.-]*", is_strict=False),
    _rule("first in a form", _FIELD_HINTS, rf"{_FIELD}={_UNQUOTED}&", is_strict=False),
    # Without quotes it may be the name of a variable: it has a digit or a special character, or is all of the line.
    _rule(
        "in a setting",
        _FIELD_HINTS,
        rf"{_FIELD}{_IS}(?=[a-zA-Z_.]*[^a-zA-Z_.{_STOPS}]){_UNQUOTED}(?![\w(.\[])",
        is_bare=True,
    ),
    _rule(
        "all of a line",
        _FIELD_HINTS,
        rf"{_FIELD}(?:=|:[ \t]{{1,8}})(?!{_CLASS}){_WORD}[ \t]*(?=[\r\n]|\Z)",
        behind=rf"{_LINE}(?:(?:export|set|ENV|ARG)[ \t]+)?[\w.-]*",
        is_bare=True,
    ),
    _rule("of a connection", _FIELD_HINTS, rf"{_FIELD}=([^;\"'\s]{{6,500}})", behind=r";[ \w]*", is_strict=False),
    _rule(
        "of netrc", "=password~", r"(?i:password)[ \t]+(\S{6,500})", behind=rf"(?:(?:login|account)\s+\S+\s+|{_LINE})"
    ),
    _rule(
        "AUTH of Redis",
        ("AUTH\r\n", "auth\r\n"),
        r".{4}\r\n(?:\$\d+\r\n[^\r\n]*\r\n)??\$\d+\r\n([^\r\n]{6,500})\r\n(?!\$)",
        is_strict=False,
    ),
    _rule("AUTH of SMTP", "AUTH~PLAIN~", r".{11}([A-Za-z0-9+/=]{8,500})", is_strict=False),
    _rule(
        "option of curl",
        "~-u~ '-u' \"-u\" --user",
        r"(?:[ '\"]-u|--user)[\"']?[ =,]\s{0,8}[\"']?[\w.@-]{1,100}:([^\s\"'/\\]{6,500})",
    ),
    _rule("token in a URL", "https://", r".{8}(?=[A-Za-z_.-]*[0-9])([A-Za-z0-9_.-]{16,500})@"),
    _rule("option", _FIELD_HINTS, rf"{_FIELD}{_GAP}{{1,8}}([^\s\"'\\\x00-\x1f]{{6,500}})", behind=r"--[\w.-]*"),
    _rule("AWS key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _rule(
        "AWS secret key",
        "=aws_",
        r"(?i:aws)[^\r\n]{0,40}?[\"'=: ]([0-9a-zA-Z/+]{40})(?![0-9a-zA-Z/+=])",
        is_strict=False,
    ),
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9_]{36,255}"),
    _rule("GitHub fine-grained token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    _rule(
        "GitLab token",
        "glpat- gldt- glft- glsoat- glrt- glcbt- glimt- glptt- glagent- gloas-",
        r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-[A-Za-z0-9_-]{20,1024}",
    ),
    _rule(
        "Slack token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xapp-",
        r"(?:xox[abeoprs]-|xoxe\.|xapp-)[A-Za-z0-9-]{10,250}",
    ),
    _rule("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9+/_]{20,200})"),
    _rule("Stripe key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[sr]k_(?:live|test)_[0-9a-zA-Z]{10,250}"),
    _rule("SendGrid key", "SG.?", r"SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}"),
    _rule(
        "OpenAI or Anthropic key",
        "sk-?",
        r"sk-(?:proj-|ant-|svcacct-|admin-)[A-Za-z0-9_-]{20,250}|sk-[A-Za-z0-9]{20,60}",
    ),
    _rule("Google key", "AIza", r"AIza[0-9A-Za-z_-]{35}"),
    _rule("npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _rule("PyPI token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,500}"),
    _rule("JSON web token", "eyJ?", r"eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{5,4000}\.[A-Za-z0-9_-]{0,2000}"),
    _rule("private key", "PRIVATE", r"PRIVATE KEY(?: BLOCK)?-----(.{16,7000}?)-----END", parts=_lines),
    # `-----BEGIN `, and what may come before `PRIVATE KEY-----`: nothing, RSA, EC, DSA, OPENSSH, ENCRYPTED.
    _rule(
        "private key in base64",
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJ|BFQyBQUklW|BEU0EgUFJJ|BPUEVOU1NI|BFTkNSWVBU)[A-Za-z0-9+/=\s]{40,8000}",
        parts=_lines,
    ),
    _rule("Azure key", "AccountKey= SharedAccessKey=", r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{40,100})"),
    _rule("Telegram token", "#:AA", r"[0-9]:(AA[0-9A-Za-z_-]{33})"),
    _rule("Mailchimp key", "%-us", r"[0-9a-f]{32}-us[0-9]{1,2}", before=31),
    _rule("Square token", "sq0csp- sq0atp-", r"sq0(?:csp|atp)-[0-9A-Za-z_-]{22,50}"),
)
