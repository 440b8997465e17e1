"""The tables of costs and of growth are right, on figures that are known; no time is asserted."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.__main__ import main
from tests.bench.cost_page import PAGE, merged, page_text
from tests.bench.cost_reasons import REASONS
from tests.bench.goals import NOT_MEASURED, goals, goals_text
from tests.bench.growth import KINDS, SIZES, grow, sizes_up_to
from tests.bench.live_cuts import LiveCutCosts
from tests.bench.plots import PLOTS, draw


def facts(record: float, python: str = "3.11.7") -> dict[str, Any]:
    medians = {"plain_cpu": 0.25, "recorded_ratio": record, "replayed_ratio": 0.5}
    walk = {"name": "walk", "target": 1.3, "replay_target": 0.8, "medians": medians, "rounds": [{}], "failure": None}
    imports = {"name": "imports", "rounds": [], "failure": "not installed: pandas", "medians": {}}
    return {
        "machine": {"python": python, "cpus": 2},
        "workloads": [walk, imports],
        "conditions": {"never": 1.9, "target": 2.0},
        "steps": None,
    }


def written(path: Path, figures: dict[str, Any]) -> Path:
    path.write_text(json.dumps(figures))
    return path


def test_a_miss_is_visible_beside_what_is_met() -> None:
    text = goals_text(facts(1.45))

    record, replay, condition = (line.split() for line in text.splitlines()[1:])
    assert record[-4:] == ["record", "1.45", "1.30", "MISSED"]
    assert replay[-4:] == ["replay", "0.50", "0.80", "met"]
    assert condition[-1] == "met"


def test_every_row_that_was_not_measured_says_why() -> None:
    missing = {each.name: each.missing for each in goals(facts(1.0))}

    assert missing["walk and open 20,000 files"] == ""
    assert missing["import pandas, SQLAlchemy, aiohttp"] == "not installed: pandas"
    assert missing["seek, 100 M lines"] == NOT_MEASURED
    assert all(each.parts or each.missing for each in goals({}))


def test_the_page_compares_versions_and_explains_misses_only(tmp_path: Path) -> None:
    files = [
        written(tmp_path / "new", facts(1.2, "3.13.0")),
        written(tmp_path / "old", facts(1.45)),
        written(tmp_path / "growth", {"growth": {"lines": {"points": [], "stopped": "10: it took too long"}}}),
    ]

    versions, growth = merged(files)
    text = page_text(versions, growth)

    assert list(versions) == ["3.11", "3.13"]
    assert "| walk and open 20,000 files | record | 0.25 s | 0.25 s | **1.45** | 1.20 | 1.30 |" in text
    assert "- *walk and open 20,000 files*:" in text
    assert "- *`log --if`" not in text
    assert "It stopped at 10: it took too long." in text


def test_rows_of_a_later_file_replace_those_of_an_earlier_one(tmp_path: Path) -> None:
    later = facts(1.1)
    del later["workloads"][1], later["conditions"]

    versions, _ = merged([written(tmp_path / "one", facts(1.45)), written(tmp_path / "two", later)])

    walk, imports = versions["3.11"]["workloads"]
    assert walk["medians"]["recorded_ratio"] == 1.1
    assert imports["name"] == "imports"
    assert versions["3.11"]["conditions"]["never"] == 1.9


def test_the_page_is_that_of_the_committed_figures() -> None:
    # After a change: python -m tests.bench --table tests/bench/figures/*.json
    figures = sorted((Path(__file__).parents[1] / "bench" / "figures").glob("*.json"))

    assert PAGE.read_text(encoding="utf-8") == page_text(*merged(figures))


def test_growth_of_something_else_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--grow", str(tmp_path / "growth.json"), "--only", "walk"]) == 2
    assert "(got walk)" in capsys.readouterr().err
    assert not (tmp_path / "growth.json").exists()


def test_a_reason_belongs_to_a_row() -> None:
    assert set(REASONS) <= {each.name for each in goals({})}


@pytest.mark.slow
def test_small_sizes_are_measured_and_drawn(tmp_path: Path) -> None:
    sizes = {"events": [100, 200], "bytes": [8_000, 16_000], "lines": [3_000, 6_000]}

    found = grow(sizes, 60.0, lambda _: None)

    for kind, wanted in sizes.items():
        points = found["growth"][kind]["points"]
        assert [each["size"] for each in points] == wanted
        assert all(min(each["cpu"].values()) > 0 and each["stored"] > 0 for each in points)
        assert found["growth"][kind]["stopped"] is None
    assert set(found["growth"]["bytes"]["points"][0]["peak"]) >= {"record", "verify", "open"}


def test_growth_stops_where_a_size_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(size: int, _folder: Path, _timeout: float) -> Any:
        from tests.bench.growth import GrowthFailed, Point

        if size > 10:
            raise GrowthFailed("it took too long")
        return Point(size, {"plain": 1.0})

    monkeypatch.setitem(KINDS, "lines", fails)

    found = grow({"lines": [10, 20, 30]}, 1.0, lambda _: None)["growth"]["lines"]

    assert [each["size"] for each in found["points"]] == [10]
    assert found["stopped"] == "20: it took too long"


def test_sizes_end_at_the_limit() -> None:
    assert sizes_up_to("lines", 10_000_000) == [1_000_000, 10_000_000]
    assert sizes_up_to("lines", None) == SIZES["lines"]


@pytest.mark.slow
def test_the_same_figures_are_drawn_alike(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    points = [
        {
            "size": size,
            "cpu": {name: size / 100 for plot in PLOTS for name in plot.names},
            "peak": {"record": size, "verify": size},
            "stored": size,
        }
        for size in (10, 1_000)
    ]
    growth = {plot.kind: {"points": points, "stopped": None} for plot in PLOTS}
    drawn = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        drawn.append([(each.name, each.read_bytes()) for each in draw(growth, folder)])

    assert [name for name, _ in drawn[0]] == [plot.file for plot in PLOTS]
    assert drawn[0] == drawn[1]
    assert all(b"<svg" in text for _, text in drawn[0])


def test_throughput_is_judged_by_the_ratio_within_each_round() -> None:
    costs = LiveCutCosts(
        {"bank": [100.0, 50.0, 80.0], "site": [100.0]},
        {"bank": [99.0, 50.0, 8.0], "site": [97.0]},
        {"bank": 3, "site": 1},
        {},
    )

    text = costs.as_text()

    assert costs.ratio("bank") == 0.99
    assert "0.990 (met), rounds 0.100 to 1.000" in text
    assert "0.970 (missed)" in text
