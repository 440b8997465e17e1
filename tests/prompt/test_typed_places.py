"""What is being typed at the end of a line of Python: found in every prefix of valid expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.commands.completion.key_literals import begun_key
from replaydbg.commands.completion.typed_place import TypedAttribute, TypedKey, TypedName, typed_place

NAMES = st.sampled_from(["a", "order", "not_yet", "_x", "fb", "ifs"])
KEYS = st.text("ab'\"\\[].# \n{", max_size=6)
SPACES = st.sampled_from(["", " "])


def _literals(key: str) -> st.SearchStrategy[str]:
    double = '"' + repr("'" + key)[2:-1].replace('"', r"\"") + '"' if '"' not in key else repr(key)
    return st.sampled_from([repr(key), double])


def _atoms(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        NAMES,
        KEYS.flatmap(_literals),
        st.builds("({})".format, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("[{0} for {1} in {2} if {0}]".format, inner, NAMES, inner),
    )


def _trailers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}.{}".format, SPACES, NAMES),
        st.builds("({}, {}={})".format, inner, NAMES, inner),
        st.builds("[{}]".format, inner),
        st.builds("[{}{}]".format, SPACES, KEYS.flatmap(_literals)),
    )


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from([" + ", "-", " and ", " not in ", "==", " if a else ", "//"])
    return st.one_of(
        st.builds(
            lambda atom, trailers: atom + "".join(trailers), _atoms(inner), st.lists(_trailers(inner), max_size=3)
        ),
        st.builds("{}{}{}".format, inner, operators, inner),
        st.builds("not {}".format, inner),
        st.builds("lambda {}: {}".format, NAMES, inner),
        st.builds("({}, -1.5e-3, f'{{0}}')".format, inner),
    )


def _is_valid(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return text.isascii()


EXPRESSIONS = st.recursive(NAMES, _larger, max_leaves=6).filter(_is_valid)


def _nodes(text: str, kind: type[ast.expr]) -> Iterator[ast.expr]:
    return (each for each in ast.walk(ast.parse(text, mode="eval")) if isinstance(each, kind))


def _means(source: str, node: ast.expr) -> bool:
    return ast.dump(ast.parse(source, mode="eval").body) == ast.dump(node)


@given(EXPRESSIONS)
def test_an_attribute_belongs_to_the_expression_before_the_dot(text: str) -> None:
    for node in _nodes(text, ast.Attribute):
        assert isinstance(node, ast.Attribute)
        assert node.end_col_offset is not None
        start = node.end_col_offset - len(node.attr)
        for cut in range(start, node.end_col_offset + 1):
            place = typed_place(text[:cut])

            assert isinstance(place, TypedAttribute)
            assert place.start == start
            assert _means(place.owner, node.value)


@given(EXPRESSIONS)
def test_a_name_begins_where_python_sees_it_begin(text: str) -> None:
    for node in _nodes(text, ast.Name):
        assert node.end_col_offset is not None
        for cut in range(node.col_offset + 1, node.end_col_offset + 1):
            assert typed_place(text[:cut]) == TypedName(node.col_offset)


@given(EXPRESSIONS)
def test_a_key_belongs_to_the_expression_before_the_bracket(text: str) -> None:
    for node in _nodes(text, ast.Subscript):
        assert isinstance(node, ast.Subscript)
        literal = node.slice
        if not isinstance(literal, ast.Constant) or not isinstance(literal.value, str):
            continue
        assert literal.end_col_offset is not None
        for cut in range(literal.col_offset + 1, literal.end_col_offset):
            place = typed_place(text[:cut])

            assert isinstance(place, TypedKey)
            assert (place.start, place.literal) == (literal.col_offset, text[literal.col_offset : cut])
            assert _means(place.owner, node.value)


@given(EXPRESSIONS)
def test_behind_an_operand_only_an_operator_may_follow(text: str) -> None:
    place = typed_place(f"{text} ")

    assert place == TypedName(len(text) + 1, is_operator=True)


@given(st.text() | st.text("ab.[]('\"\\ 1#f"))
def test_no_text_is_too_odd(text: str) -> None:
    place = typed_place(text)

    assert place is None or 0 <= place.start <= len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(self.na", TypedAttribute(7, "self")),
        ("a + b.c", TypedAttribute(6, "b")),
        ("x[y.z", TypedAttribute(4, "y")),
        ("not foo.b", TypedAttribute(8, "foo")),
        ("f(x)[0].", TypedAttribute(8, "f(x)[0]")),
        ("{'a': b}.it", TypedAttribute(9, "{'a': b}")),
        ("'a' 'b'.up", TypedAttribute(8, "'a' 'b'")),
        ("return self.x", TypedAttribute(12, "self")),
        ("a.b . c", TypedAttribute(6, "a.b")),
        ("", TypedName(0)),
        ("f(", TypedName(2)),
        ("x = ", TypedName(4)),
        ("a, b", TypedName(3)),
        ("x fo", TypedName(2, is_operator=True)),
        ("table[", TypedKey(6, "table", "")),
        ("table['na", TypedKey(6, "table", "'na")),
        ('f(a.b[ b"', TypedKey(7, "a.b", 'b"')),
        ("table[7", TypedKey(6, "table", "7")),
        ("table[-1", TypedKey(6, "table", "-1")),
        ("table[-", TypedKey(6, "table", "-")),
        ("[na", TypedName(1)),
        ("['na", None),
        ("1.5", None),
        ("a.5", None),
        ("'a.b", None),
        ("table[f'na", None),
        ("x # a.b", None),
        ("import.x", None),
        ("'whole'", None),
        (").x", None),
    ],
)
def test_places(text: str, expected: TypedName | TypedAttribute | TypedKey | None) -> None:
    assert typed_place(text) == expected


# ---- keys ----


@given(st.text(max_size=8) | st.binary(max_size=8), st.sampled_from(["'", '"', "'''", '"""']), st.integers(0, 8))
def test_a_completed_key_is_the_key(key: str | bytes, quote: str, length: int) -> None:
    prefix = "b" if isinstance(key, bytes) else ""
    typed = begun_key(prefix + quote)
    assert typed is not None
    begun = typed.completed(key[:length])
    assert begun is not None

    continued = begun_key(begun.removesuffix(quote))

    assert continued is not None
    literal = continued.completed(key)
    assert literal is not None
    assert literal.startswith(begun.removesuffix(quote))
    assert ast.literal_eval(literal) == key


def test_keys_that_cannot_be_continued() -> None:
    raw = begun_key("r'a")
    assert raw is not None

    assert raw.completed("abc") == "r'abc'"
    assert raw.completed("a\\c") is None
    assert begun_key("'a\\") is None
    assert begun_key("'\\x4") is None


def test_a_key_without_quotes_is_completed_as_it_is() -> None:
    typed = begun_key("7")

    assert typed is not None
    assert (typed.kind, typed.begun, typed.completed("71")) == ("any", "7", "71")
