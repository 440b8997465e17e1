"""`modules` lists what is loaded at a moment, and the variables of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import AskFailed
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL, Typed


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    program = TRAVEL / "uses_a_package.py"
    with Session(record_file(program, tmp_path_factory.mktemp("modules"))) as opened:
        yield opened


def test_own_modules_are_listed(session: Session) -> None:
    shown = Typed.at("@end", session)("modules")

    names = [line.split()[0] for line in shown.splitlines()[:-1]]
    assert {"__main__", "warehouse", "warehouse.stock"} <= set(names)
    assert not {"os", "sys", "encodings"} & set(names)
    assert "modules that are not yours are not shown" in shown.splitlines()[-1]


def test_patterns_list_all_that_fit(session: Session) -> None:
    typed = Typed.at("@end", session)

    assert [line.split()[0] for line in typed("modules warehouse*").splitlines()] == [
        "warehouse",
        "warehouse.stack",
        "warehouse.stock",
    ]
    assert "sys  (built in)  " in typed("modules all")
    assert "No loaded module matches 'nothing*'." in typed("modules nothing*")


def test_as_many_variables_are_counted_as_are_listed(session: Session) -> None:
    typed = Typed.at("@end", session)

    for name in ("__main__", "warehouse.stock"):
        counted = typed(f"modules {name[:-1]}?").splitlines()[0]
        listed = len(typed(f"modules {name}").splitlines())
        assert counted.endswith(f"  {listed} variable{'s' * (listed != 1)}")


@pytest.mark.parametrize(
    ("left", "sentence"),
    [(1, "1 module that is not yours is not shown"), (2, "2 modules that are not yours are not shown")],
)
def test_modules_that_are_not_shown_are_counted(
    session: Session, monkeypatch: pytest.MonkeyPatch, left: int, sentence: str
) -> None:
    typed = Typed.at("@end", session)
    others = [each for each in session.ask.modules() if each.name in ("sys", "builtins")]
    monkeypatch.setattr(type(session.ask), "modules", lambda _: tuple(others[:left]))

    assert sentence in typed("modules")


def test_the_variables_of_a_module(session: Session) -> None:
    shown = Typed.at("@end", session)("modules warehouse.stock")

    assert "total = 6" in shown
    assert "counts = {'nut': " in shown
    assert "__file__" not in shown


def test_a_module_is_loaded_when_it_is_imported(session: Session) -> None:
    typed = Typed.at("@start", session)

    said = typed("modules warehouse.stok")
    assert said.startswith("Module 'warehouse.stok' is not loaded here")
    with pytest.raises(AskFailed, match=r"module 'warehouse\.stock' is not loaded here"):
        session.ask.module_variables("warehouse.stock")
    session.seek("@end")
    assert "(did you mean 'warehouse.stock'?)" in typed("modules warehouse.stok")
