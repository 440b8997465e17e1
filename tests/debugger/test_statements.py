"""Parsing the source of a failing statement."""

import pytest

from replaydbg.debugger.source.statements import assertion_in_line, names_in_line


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("assert a.b == c", ["a.b", "c"]),
        ("assert len(items) == total(order)", ["items", "order"]),
        ("assert order.total() < self.limit", ["order", "self.limit"]),
        ("assert not [x for x in rows if x]", ["x", "rows"]),
        ("self.assertEqual(self.stock['a'], 3)", ["self.stock['a']"]),
        ("assert db['rows'] == [2]", ["db['rows']"]),
        ("assert rows[-1].price == rows[i] == rows[a.b]", ["rows[-1].price", "rows[i]", "i", "rows[a.b]", "a.b"]),
        ("assert rows[1:] == rows[i + 1] == rows[f(x)]", ["rows", "i", "x"]),
        ("assert db['rows'].count(1) == db['f'](2)", ["db['rows']"]),
        ("assert found()['x'].y == z[1.5]", ["z"]),
        ("raise ValueError(count)", ["count"]),
        ("def f(): assert one_line", ["one_line"]),
        ("import os", []),
        ("not python?", []),
    ],
)
def test_names(source: str, expected: list[str]) -> None:
    assert names_in_line(source, 1) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("assert a == 1, 'text'", "a == 1"),
        ("self.assertEqual(a, b + 1)", "a == b + 1"),
        ("self.assertEqual(a or b, c)", "(a or b) == c"),
        ("self.assertIn(a, b, 'text')", "a in b"),
        ("self.assertTrue(a)", "a"),
        ("self.assertFalse(a or b)", "not (a or b)"),
        ("self.assertIsNone(a)", "a is None"),
        ("self.assertCountEqual(a, b)", ""),
        ("self.assertEqual(first=a, second=b)", ""),
        ("raise ValueError", ""),
        ("print(a)", ""),
    ],
)
def test_claims(source: str, expected: str) -> None:
    assert assertion_in_line(source, 1) == expected


def test_a_statement_of_several_lines() -> None:
    source = "x = 1\nassert (\n    x\n    == 2\n)\n"

    assert assertion_in_line(source, 4) == "x == 2"


def test_a_definition_claims_nothing() -> None:
    assert assertion_in_line("def f(\n  a):\n    assert a", 1) == ""
