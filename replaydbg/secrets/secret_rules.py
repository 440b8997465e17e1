"""Which texts are secrets: the values of variables with telling names, and what has the form of a token.

The forms are those that issuers of tokens document, and those in which settings and protocols name a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise

from replaydbg.classes import NamedTuple
from replaydbg.native._words import find

SHORTEST = 6
"""Bytes of a secret. What is shorter would be found everywhere."""
WIDEST = 1 << 13
"""Bytes from a hint on in which a secret is looked for."""

# Not regular expressions: every recording looks at its variables, and compiling one takes a millisecond.
_LAST = frozenset(
    (
        "PASS",
        "PASSWD",
        "PASSWORD",
        "PASSPHRASE",
        "PWD",
        "PW",
        "PAT",
        "SECRET",
        "SECRETS",
        "TOKEN",
        "TOKENS",
        "APIKEY",
        "CREDENTIAL",
        "CREDENTIALS",
        "AUTH",
        "COOKIE",
        "COOKIES",
        "DSN",
    )
)
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
_KEYS = frozenset(each.upper() for each in _KEY_OF)
_ENDINGS = ("PASSWORD", "PASSWD", "SSHPASS", "TOKEN", "SECRET", "APIKEY")
"""Ends of words, such as PGPASSWORD."""
_ANYWHERE = frozenset(("SECRET", "PASSWORD", "TOKEN"))
_PLACES = frozenset({"PWD", "OLDPWD"})
"""Variables with such a name that have paths."""
# fmt: off
_PLAIN = frozenset((
    "true", "false", "none", "null", "yes", "no", "enabled", "disabled", "required", "optional", "default",
    "string", "header", "cookie", "bearer", "failed", "before", "after", "masked", "options", "backup",
    "backward", "forward", "secret", "hidden", "unknown", "invalid", "missing", "expired", "access", "refresh",
    "authorization",
))
# fmt: on
"""Values that are no secrets, whatever their names are: small numbers, words of settings and code, paths."""
_BRACKETS = str.maketrans("", "", "()[]{},;:")
_BLANK = frozenset(b" *x.-_#")
"""Bytes of which no secret is made: something else has hidden it already."""


def is_secret_name(name: str) -> bool:
    """Whether what a variable or field of this name has is a secret."""
    if name.upper() in _PLACES:
        return False
    if not (name.isupper() or name.islower()):  # dbPassword
        name = name[:1] + "".join(f"_{b}" if a.islower() and b.isupper() else b for a, b in pairwise(name))
    return _is_telling(words := _words_of(name)) or words[-1].endswith(_ENDINGS)


def _is_telling(words: list[str]) -> bool:
    is_key = words[-1] == "KEY" and len(words) > 1 and words[-2] in _KEYS
    return is_key or words[-1] in _LAST or not _ANYWHERE.isdisjoint(words[:-1])


def _words_of(name: str) -> list[str]:
    """Return the words of a name in capitals, without a number at its end."""
    return name.upper().replace("-", "_").replace(".", "_").rstrip("0123456789").rstrip("_").split("_")


def is_secret_value(value: bytes) -> bool:
    """Whether a value under such a name is a secret, and not a setting."""
    text = value.decode("utf-8", "surrogateescape")
    if len(value) < SHORTEST or _is_telling(_words_of(text)):
        return False
    is_plain = text.lower() in _PLAIN or (text.isdecimal() and len(text) < 9) or (text[0] == "/" and not _is_odd(text))
    return not is_plain and not _is_code(text) and not _BLANK.issuperset(value.lower())


def _is_code(text: str) -> bool:
    """Whether it is a name in a program with the brackets behind it."""
    name = text.rstrip(")]},;:")
    return name != text and name.replace("_", "").replace(".", "").isalpha()


def _is_expression(text: str) -> bool:
    """Whether it is a part of a program, or is replaced by something else."""
    name = text.translate(_BRACKETS)
    is_name = name != text and name.replace("_", "").replace(".", "").isalpha()
    return is_name or _is_dotted(name) or text.startswith(("${", "$(", "{{", "{%", "<", "%("))


def _is_dotted(name: str) -> bool:
    """Whether it is the name of an attribute, such as `settings.key`."""
    parts = name.partition("(")[0].split(".")
    return len(parts) > 1 and all(each.isidentifier() and len(each) < 16 for each in parts)


def _is_odd(path: str) -> bool:
    return any(each in path for each in " :@")


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

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """The pattern, compiled: most recordings need none."""
        return _compiled(self.text)


@cache
def _compiled(text: bytes) -> re.Pattern[bytes]:
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
) -> SecretRule:
    split = hints.split() if isinstance(hints, str) else hints
    words = [expanded for each in split for expanded in _expanded(each.replace("~", " "))]
    ending = f"(?:{behind})\\Z".encode() if behind else b""
    return SecretRule(name, tuple(each.encode() for each in words), before, pattern.encode(), ending, parts, is_bare)


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
_FIELD = rf"(?i:pass(?:word|wd|phrase)?|pwd|secrets?|token|credentials?|(?:{'|'.join(_KEY_OF)})[_-]?key)"
"""A name, or how it ends: `accessToken` by its last word."""
_ATTRIBUTES = (b"expires=", b"max-age=", b"path=", b"domain=", b"samesite=", b"version=", b"priority=")


def _cookies(text: bytes) -> Iterator[bytes]:
    """Yield the values of cookies, without their attributes."""
    for pair in text.split(b";"):
        if not pair.strip().lower().startswith(_ATTRIBUTES):
            yield from _compiled(rb"=\"?([^\s;,\"=]{6,4096})").findall(pair)


def _items(text: bytes) -> Iterable[bytes]:
    """Return the texts in a list, without their quotes."""
    return (each.strip(b" \t\r\n\"'") for each in text.split(b","))


def _lines(text: bytes) -> Iterator[bytes]:
    """Yield the lines of a key, which may be escaped."""
    return (line for line in re.split(rb"(?:\s|\\n|\\r)+", text) if len(line) >= 16)


_STOPS = r"\s&\"'<>\\;,(){}\[\]$:=\x00-\x1f"
_IS = r"[ \t]{0,8}[:=][ \t]{0,8}"
_WORD = r"([^\s\"'\x00-\x1f]{5,500}[^\s\"',(\[{\x00-\x1f])"
_CLASS = r"[A-Z][a-zA-Z]*[\r\n]"
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
        rf"(?i:authorization){_GAP}{{1,16}}(?:(?i:basic|bearer|token|negotiate|apikey)\s+)?(?!(?i:digest|aws4-hmac-sha256)\s)([^\s\"'\\,;()<>\x00-\x1f]{{6,4096}})",
    ),
    _rule("digest", "response=", r"response=\\?\"([0-9a-fA-F]{32,128})"),
    _rule("AWS signature", "Signature=", r"Signature=([0-9a-f]{64})"),
    _rule("cookie", "=cookie", rf"(?i:cookie){_GAP}{{1,16}}([^\r\n\"'\\\x00-\x08\x0b-\x1f]{{6,4096}})", parts=_cookies),
    _rule("password in a URL", "?://", r".://[^\s/?#:@\"'<>\\]{0,200}:([^\s/?#@\"'<>\\]{6,500})@"),
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
    _rule("in a form", _FIELD_HINTS, rf"{_FIELD}={_UNQUOTED}", behind=r"[?&][\w.-]*"),
    _rule("first in a form", _FIELD_HINTS, rf"{_FIELD}={_UNQUOTED}&"),
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
    _rule("of a connection", _FIELD_HINTS, rf"{_FIELD}=([^;\"'\s]{{6,500}})", behind=r";[ \w]*"),
    _rule(
        "of netrc", "=password~", r"(?i:password)[ \t]+(\S{6,500})", behind=rf"(?:(?:login|account)\s+\S+\s+|{_LINE})"
    ),
    _rule(
        "AUTH of Redis",
        ("AUTH\r\n", "auth\r\n"),
        r".{4}\r\n(?:\$\d+\r\n[^\r\n]*\r\n)??\$\d+\r\n([^\r\n]{6,500})\r\n(?!\$)",
    ),
    _rule("AUTH of SMTP", "AUTH~PLAIN~", r".{11}([A-Za-z0-9+/=]{8,500})"),
    _rule("option of curl", "~-u~ --user", r"(?: -u|--user)[ =][\"']?[\w.@-]{1,100}:([^\s\"'/\\]{6,500})"),
    _rule("token in a URL", "https://", r".{8}(?=[A-Za-z_.-]*[0-9])([A-Za-z0-9_.-]{16,500})@"),
    _rule("option", _FIELD_HINTS, rf"{_FIELD}{_GAP}{{1,8}}([^\s\"'\\\x00-\x1f]{{6,500}})", behind=r"--[\w.-]*"),
    _rule("AWS key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _rule("AWS secret key", "=aws_", r"(?i:aws)[^\r\n]{0,40}?[\"'=: ]([0-9a-zA-Z/+]{40})(?![0-9a-zA-Z/+=])"),
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
    _rule("Azure key", "AccountKey= SharedAccessKey=", r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{40,100})"),
    _rule("Telegram token", "#:AA", r"[0-9]:(AA[0-9A-Za-z_-]{33})"),
    _rule("Mailchimp key", "%-us", r"[0-9a-f]{32}-us[0-9]{1,2}", before=31),
    _rule("Square token", "sq0csp- sq0atp-", r"sq0(?:csp|atp)-[0-9A-Za-z_-]{22,50}"),
)
_BY_HINT: dict[bytes, list[SecretRule]] = {}
for _each in RULES:
    for _hint in _each.hints:
        _BY_HINT.setdefault(_hint, []).append(_each)
_HINTS = tuple(_BY_HINT)


def secrets_in(data: bytes, *, start: int = 0, end: int | None = None) -> set[bytes]:
    """Return the secrets in data whose hints are between two offsets, as they are written there."""
    return {text for _, text in places_in(data, start=start, end=end) if is_secret_value(text)}


def places_in(data: bytes, *, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield what has the form of a secret and whose hint is between two offsets: where it begins, and its bytes.

    Whether such a value is a secret, and not a setting, is not asked yet.
    """
    for offset, hint in find(_HINTS, data):
        if start <= offset and (end is None or offset < end):
            for rule in _BY_HINT[_HINTS[hint]]:
                begin = max(offset - rule.before, 0)
                if rule.behind and not _compiled(rule.behind).search(data[max(begin - MOST_BEFORE, 0) : begin]):
                    continue
                if match := rule.pattern.match(data, begin, begin + WIDEST):
                    yield from _places(rule, match)


def places_in_pieces(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield what has the form of a secret in pieces of bytes, also what goes on in the next piece.

    Where it begins, counted from the first piece, and its bytes.
    """
    before, start, offset = b"", 0, 0
    for piece in pieces:
        data = before + piece
        end = max(len(data) - WIDEST, start)
        yield from ((offset + at, text) for at, text in places_in(data, start=start, end=end))
        first = max(end - MOST_BEFORE, 0)
        before, start, offset = data[first:], end - first, offset + first
    yield from ((offset + at, text) for at, text in places_in(before, start=start))


def _places(rule: SecretRule, match: re.Match[bytes]) -> Iterator[tuple[int, bytes]]:
    group = match.lastindex or 0
    at, text = match.start(group), match[group]
    if rule.parts is not None:
        last = 0
        for part in rule.parts(text):
            last = text.find(part, last)
            yield at + last, part
            last += len(part)
        return
    if rule.is_bare and _is_expression(text.decode("utf-8", "surrogateescape")):
        return
    yield at, text
    before = match[0][: at - match.start()][-1:]
    if before and not (before.isascii() and before >= b" "):
        yield at + 1, text[1:]  # the first byte may be the length of the value in a record
