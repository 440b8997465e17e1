"""Keys as they are written between brackets, beginning with what was typed of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from replaydbg.commands.completion.python_tokens import quote_of


@dataclass(frozen=True, slots=True)
class BegunKey:
    """The literal of a key whose end is not typed yet."""

    literal: str
    """The text typed so far; may be empty."""
    kind: str
    """`str` or `bytes`, or `any` where there is no quote yet."""
    begun: str | bytes
    """With which the key begins; of `any`, what its repr() begins with."""

    def completed(self, key: str | bytes) -> str | None:
        """Return the literal of a key that begins so; of `any` the key is its repr(). None: it cannot be written so."""
        if self.kind == "any":
            return key if isinstance(key, str) else None
        quote = quote_of(self.literal)
        rest = key[len(self.begun) :]
        if isinstance(rest, bytes):
            rest = rest.decode("latin-1")
            more = "".join(_escaped(each, quote[0], is_plain=" " <= each <= "~") for each in rest)
        else:
            more = "".join(_escaped(each, quote[0], is_plain=each.isprintable()) for each in rest)
        is_raw = "r" in self.literal[: self.literal.index(quote)].lower()
        return None if is_raw and more != rest else f"{self.literal}{more}{quote}"


def begun_key(literal: str) -> BegunKey | None:
    """Return the key of which `literal` is typed; None: it cannot be read yet, as behind a backslash."""
    if not literal or literal[0] in "-.0123456789":
        return BegunKey(literal, "any", literal)
    quote = quote_of(literal)
    try:
        begun = ast.literal_eval(literal + quote)
    except (SyntaxError, ValueError):
        return None
    return BegunKey(literal, type(begun).__name__, begun) if isinstance(begun, (str, bytes)) else None


def _escaped(character: str, quote: str, *, is_plain: bool) -> str:
    if character in (quote, "\\"):
        return f"\\{character}"
    if is_plain:
        return character
    return repr(character)[1:-1] if not character.isprintable() else f"\\x{ord(character):02x}"
