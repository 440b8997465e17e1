"""Which values are secrets, and which are settings, paths, or names in a program.

There are two errors. A secret that is missed is in the clear in every copy of a recording. A harmless text that is
taken for one, such as `postgres`, is masked wherever it is, and the recording is of little use without the key. So the
answer depends on the context: under a telling name nearly all values are secrets, in free text they must not look like
code.
"""

from __future__ import annotations

import builtins
import os

from replaydbg.secrets.secret_names import is_telling, words_of

SHORTEST = 6
"""Bytes of a secret. What is shorter would be found everywhere."""
AROUND = " \t\r\n\"'"
"""Characters around a secret that are none of it: those of a file's end, and quotes."""
# fmt: off
_PLAIN = frozenset((
    "true", "false", "none", "null", "yes", "no", "enabled", "disabled", "required", "optional", "default",
    "string", "header", "cookie", "bearer", "failed", "before", "after", "masked", "options", "backup",
    "backward", "forward", "secret", "secrets", "hidden", "unknown", "invalid", "missing", "expired", "access",
    "refresh", "authorization",
    # Passwords that are none, but names of what they are for: documentation and test systems have them.
    "password", "passwd", "postgres", "postgresql", "mysql", "mariadb", "rabbitmq", "mongodb", "elastic", "docker",
    "vagrant", "python", "localhost", "example", "testing",
))
# fmt: on
"""Values that are no secrets, whatever their names are: they would be masked in every text."""
_TYPES = frozenset((
    *dir(builtins), "Awaitable", "Callable", "Coroutine", "Generator", "Iterable", "Iterator", "Literal", "Mapping",
    "MutableMapping", "Protocol", "Sequence", "TypeVar",
))  # fmt: skip
"""What annotations say of the values with telling names (`native_token: object`), and what programs call."""
_BLANK = frozenset(b" *x.-_#")
"""Bytes of which no secret is made: something else has hidden it already."""
_BRACKETS = str.maketrans("", "", "()[]{},;:")
_FEW_DIGITS = 2
"""Digits at the end of a word that may be a name, such as `token2`."""


def is_secret_value(value: bytes) -> bool:
    """Whether a value under a telling name is a secret: nearly all are."""
    text = _text(value).strip(AROUND)
    is_plain = text.lower() in _PLAIN or _BLANK.issuperset(value.lower()) or _is_path_here(text)
    return len(value) >= SHORTEST and not is_plain


def is_secret_field(value: bytes) -> bool:
    """Whether a value in a form, a URL or a protocol is a secret, and not the name of one, as documentation has it."""
    text = _text(value)
    return is_secret_value(value) and not (text.isidentifier() and _is_name_of_secret(text))


def is_secret_in_text(value: bytes) -> bool:
    """Whether a value in a text, which may be a program or its settings, is a secret."""
    text = _text(value)
    is_setting = (text.isdecimal() and len(text) < 9) or _is_path(text)
    is_name = text.strip("`") in _TYPES or _is_name_of_secret(text) or _is_code(text)
    return is_secret_value(value) and not (is_setting or is_name)


def is_expression(text: str) -> bool:
    """Whether it is a part of a program, or is replaced by something else."""
    name = text.translate(_BRACKETS)
    is_name = name != text and name.replace("_", "").replace(".", "").isalpha()
    return is_name or _is_dotted(name) or text.startswith(("${", "$(", "{{", "{%", "<", "%(", "..."))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _is_path_here(text: str) -> bool:
    """Whether it is the path of something, or of something that was here: its directory is, and is not the root.

    One in 64 secrets in base64 begins with a slash, so only the disk can tell.
    """
    if text[:1] != "/" or "\0" in text:
        return False
    # Not pathlib, whose questions raise OSError for a name that is too long.
    above = os.path.dirname(text.rstrip("/"))  # noqa: PTH120
    return os.path.lexists(text) or (above.strip("/") != "" and os.path.isdir(above))  # noqa: PTH112


def _is_path(text: str) -> bool:
    """Whether it looks like a path, which may be of another machine: no part of it looks as if drawn at random."""
    return text[:1] == "/" and not any(each in text for each in " :@+=") and not any(map(_is_mixed, text.split("/")))


def _is_mixed(part: str) -> bool:
    kinds = (str.isupper, str.islower, str.isdigit)
    return len(part) >= 12 and all(any(map(kind, part)) for kind in kinds)


def _is_name_of_secret(text: str) -> bool:
    """Whether it is what a program calls a secret: a telling name, of words with at most a few digits."""
    if not is_telling(words_of(text)):
        return False
    parts = text.replace("-", "_").replace(".", "_").split("_")
    return all(len(each) - len(each.rstrip("0123456789")) <= _FEW_DIGITS and _is_word(each) for each in parts)


def _is_word(part: str) -> bool:
    word = part.rstrip("0123456789")
    return not word or word.isalpha()


def _is_code(text: str) -> bool:
    """Whether it is a name in a program with the brackets behind it."""
    name = text.rstrip(")]},;:")
    return name != text and name.replace("_", "").replace(".", "").isalpha()


def _is_dotted(name: str) -> bool:
    """Whether it is the name of an attribute, such as `settings.key`."""
    parts = name.partition("(")[0].split(".")
    return len(parts) > 1 and all(each.isidentifier() and len(each) < 16 for each in parts)
