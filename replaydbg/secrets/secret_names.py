"""Which names are telling: those of variables and fields that have secrets."""

from __future__ import annotations

from itertools import pairwise

# Not regular expressions: every recording looks at its variables, and compiling one takes a millisecond.
# fmt: off
_LAST = frozenset((
    "PASS", "PASSWD", "PASSWORD", "PASSWORDS", "PASSPHRASE", "PASSPHRASES", "PASSCODE", "PWD", "PW", "PAT", "SECRET",
    "SECRETS", "TOKEN", "TOKENS", "JWT", "APIKEY", "APIKEYS", "CREDENTIAL", "CREDENTIALS", "CREDS", "AUTH",
    "AUTHORIZATION", "COOKIE", "COOKIES", "DSN",
))
_ENDINGS = (
    "PASSWORD", "PASSWORDS", "PASSWD", "SSHPASS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "APIKEY", "APIKEYS",
)
"""Ends of words, such as PGPASSWORD."""
_ANYWHERE = frozenset(("SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "TOKEN"))
_HEADERS = frozenset(("AUTH", "AUTHORIZATION", "COOKIE"))
"""Words before `header`."""
_OPEN_KEYS = frozenset((
    "PUBLIC", "PUB", "GPG", "PGP", "HOST", "KNOWN", "TRUSTED", "AUTHORIZED", "VERIFY", "VERIFICATION",
    "PRIMARY", "FOREIGN", "SORT", "PARTITION", "SHARD", "INDEX", "LOOKUP", "CACHE", "ROUTING", "GROUP", "OBJECT",
    "IDEMPOTENCY", "HOT", "SHORTCUT", "COMPOSE", "META", "ARROW", "FUNCTION", "MODIFIER", "MESSAGE", "TRANSLATION",
))
"""Words before `key` for one that is no secret: a public key or its fingerprint, a key of a table or of a keyboard."""
_MEASURES = frozenset((
    "COUNT", "LIMIT", "LENGTH", "LEN", "SIZE", "TTL", "EXPIRES", "EXPIRY", "EXPIRATION", "LIFETIME", "TIMEOUT",
    "SECONDS", "MINUTES", "HOURS", "DAYS",
))
"""Last words of numbers, such as TOKEN_TTL."""
# fmt: on
_PLURALS = frozenset(("TOKENS", "KEYS"))
_EXTREMES = frozenset(("MAX", "MIN", "NUM"))
"""First words of numbers of something, such as MAX_TOKENS."""
_PLACES = frozenset({"PWD", "OLDPWD"})
"""Variables with such a name that have paths."""


def is_secret_name(name: str) -> bool:
    """Whether what a variable or field of this name has is a secret."""
    if name.upper() in _PLACES:
        return False
    if not (name.isupper() or name.islower()):  # dbPassword
        name = name[:1] + "".join(f"_{b}" if a.islower() and b.isupper() else b for a, b in pairwise(name))
    words = words_of(name)
    if words[-1] in _MEASURES or (words[0] in _EXTREMES and words[-1] in _PLURALS):
        return False
    return is_telling(words) or words[-1].endswith(_ENDINGS)


def is_telling(words: list[str]) -> bool:
    """Whether the words of a name, in capitals, suggest a secret."""
    before = words[-2] if len(words) > 1 else ""
    if words[-1] in ("KEY", "KEYS"):
        # There are more kinds of secret keys than anybody lists, and few others.
        return bool(before) and before not in _OPEN_KEYS
    is_header = words[-1] in ("HEADER", "HEADERS") and before in _HEADERS
    return is_header or words[-1] in _LAST or not _ANYWHERE.isdisjoint(words[:-1])


def words_of(name: str) -> list[str]:
    """Return the words of a name in capitals, without a number at its end."""
    return name.upper().replace("-", "_").replace(".", "_").rstrip("0123456789").rstrip("_").split("_")
