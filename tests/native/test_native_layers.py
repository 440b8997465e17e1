"""The folders of the C core are layers, and what both sides call by numbers they call by the same numbers."""

from __future__ import annotations

import re

import pytest

from tests.native import constants as native_constants
from tests.native import layers as native_layers

LAYERS = ("base", "middle", "top")

TREE = {
    "base/core.h": "extern int state;\nvoid note(const char *text);\n",
    "base/core.c": '#include "base/core.h"\nint state;\n\nvoid\nnote(const char *text)\n{\n}\n',
    "middle/middle.h": '#include "base/core.h"\nint rise(int by);\n',
    "middle/inside.h": "int rise_slowly(int by);\n",
    "middle/middle.c": '#include "middle/inside.h"\nint\nrise(int by)\n{\n    note("up");\n    return by;\n}\n',
    "top/top.h": '#include "middle/middle.h"\nint peak(void);\nextern int summits, peaks;\n',
    "top/top.c": '#include "top/top.h"\nint\npeak(void)\n{\n    return rise(state);\n}\n',
}


def found(changes: dict[str, str], exceptions: dict[tuple[str, str], str] | None = None) -> list[str]:
    return native_layers.faults(TREE | changes, LAYERS, exceptions or {})


def test_the_core_keeps_the_contract() -> None:
    assert native_layers.faults(native_layers.read_tree(native_layers.NATIVE)) == []


def test_every_folder_of_the_core_is_a_layer() -> None:
    folders = {path.name for path in native_layers.NATIVE.iterdir() if list(path.glob("*.c"))}

    assert folders == set(native_layers.LAYERS) | native_layers.APART


def test_what_points_down_is_allowed() -> None:
    assert found({}) == []


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        pytest.param("base/core.h", '#include "top/top.h"\n', "top/top.h", id="an include of a higher folder"),
        pytest.param(
            "top/top.c", '#include "middle/inside.h"\n', "middle/inside.h", id="an include of an inner header"
        ),
        pytest.param("base/core.c", "int peak(void);\nvoid f(void) { peak(); }\n", "peak", id="a call"),
        pytest.param("base/core.c", "void f(void) { state = peaks; }\n", "peaks", id="a variable"),
        pytest.param("base/core.c", "void (*f)(void) = {peak};\n", "peak", id="an address"),
    ],
)
def test_what_points_up_is_found(path: str, text: str, name: str) -> None:
    faults = found({path: text})

    assert any(fault.startswith(f"{path}: {name} ") for fault in faults), faults


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("/* peak() is called by others */\n", id="a comment"),
        pytest.param('const char *name = "peak";\n', id="a text"),
        pytest.param("int f(struct hill *h) { return h->peak; }\n", id="a member"),
        pytest.param("static int peak;\nint f(void) { return peak; }\n", id="its own variable"),
    ],
)
def test_what_only_looks_like_a_use_is_none(text: str) -> None:
    assert found({"base/core.c": text}) == []


def test_a_header_declares_what_its_own_folder_defines() -> None:
    faults = found(
        {"base/core.h": TREE["base/core.h"] + "int rise_high(void);\n", "top/more.c": "int\nrise_high(void)\n{\n}\n"}
    )

    assert "base/core.h declares rise_high(), which top/ defines" in faults


def test_an_exception_allows_one_use_for_a_reason() -> None:
    planted = {"base/core.c": TREE["base/core.c"] + "int f(void) { return peak(); }\n"}

    assert found(planted, {("base/core.c", "peak"): "it is the start"}) == []
    assert found(planted, {("base/core.c", "peak"): ""}) == ["the exception for peak in base/core.c has no reason"]
    assert found({}, {("base/core.c", "peak"): "it was the start"}) == [
        "base/core.c: the exception for peak is needed no more"
    ]


def test_a_new_folder_needs_a_place() -> None:
    assert found({"new/new.h": ""}) == ["new/ has no place in LAYERS"]


def test_c_and_python_have_the_same_numbers() -> None:
    assert native_constants.HEADER.read_text(encoding="utf-8") == native_constants.header(), (
        "run: python -m tests.native.constants"
    )


def test_every_control_record_has_a_row() -> None:
    """Named on the Python side alone, it would be an unknown record in a replay."""
    parts = (native_layers.NATIVE / "boot" / "parts.c").read_text(encoding="utf-8")

    rows = re.findall(r"^    \[CONTROL_(\w+)\] = ", parts, re.M)

    assert sorted([*rows, "WORLD"]) == sorted(native_constants.controls()), "WORLD is one of the world log's alone"
