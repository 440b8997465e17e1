"""The probe: a package that a copy of the program runs in a namespace of its own."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

from replaydbg.debugger import Session
from replaydbg.engine.cell_queries import CELL_QUERIES
from replaydbg.engine.completion.offers import OFFER_QUERIES
from replaydbg.engine.keeper import probe_sources
from replaydbg.engine.queries import (
    QUERIES,
    Evaluate,
    EvaluateAtLines,
    EvaluatePassages,
    FindStores,
    FollowTasks,
    JudgeEachLine,
    Query,
)
from replaydbg.log.coding.codec import decode_value
from tests.harness.recording import record_file

PROGRAM = """
import sys
heard = []
sys.addaudithook(lambda event, arguments: heard.append(event))
heard.clear()
here = 1
"""


def _loaded(query: Query[Any]) -> dict[str, Any]:
    """Run the loader as the core does; return its names."""
    sources = probe_sources()
    lent = (
        "address_of",
        "object_at",
        "field_of",
        "digest_of",
        "call_of",
        "stands_at",
        "judge_lines_by",
        "answer_passages_by",
        "answering_passages",
        "names_here",
        "skip_passages",
    )
    names: dict[str, Any] = {
        "sys": sys,
        "modules": {name: compile(text, "<probe>", "exec") for name, text in sources["probe_modules"].items()},
        "lent": {name: lambda value: 0 for name in lent} | {"builtins": vars(builtins), "run": exec},
        "argument": query.encode(),
    }
    exec(compile(sources["probe_loader"], "<probe>", "exec"), names)
    return names


def test_the_loader_leaves_no_module() -> None:
    before = dict(sys.modules)

    answer = decode_value(_loaded(Evaluate(source="6 * 7"))["answer"])

    assert isinstance(answer, dict)
    assert answer["value"][:3] == ("", "int", "42")
    assert sys.modules == before


def test_every_query_has_a_handler() -> None:
    registry = _loaded(Evaluate(source="0"))["Loader"]().find("replaydbg.engine.probe.registry")

    without_answer = {each.tag for each in (EvaluateAtLines, EvaluatePassages, FindStores, FollowTasks, JudgeEachLine)}
    assert set(registry.HANDLERS) == {*QUERIES, *CELL_QUERIES, *OFFER_QUERIES} | without_answer


def test_a_failure_is_an_answer() -> None:
    assert decode_value(_loaded(Evaluate(frame=10_000))["answer"]) == {"failed": "LookupError: no such frame"}


def test_the_program_does_not_notice_it(tmp_path: Path) -> None:
    program = tmp_path / "listens.py"
    program.write_text(PROGRAM)

    with Session(record_file(program, tmp_path)) as session:
        session.seek("@end")

        heard = session.ask.evaluate("(heard.count('import'), heard.count('exec'))").value
        modules = session.ask.evaluate("[name for name in sys.modules if 'probe' in name]").value
        imports = session.ask.evaluate("eval('__import__', {}) is sys.modules['builtins'].__import__").value

    assert heard is not None
    assert heard.text == "(0, 2)"  # of the query and of the expression themselves
    assert modules is not None
    assert modules.text == "[]"
    assert imports is not None
    assert imports.text == "True"
