"""Draw the growth of costs as SVG files; needs matplotlib, which only the environment of the bench has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture: the figures of one kind over its sizes."""

    file: str
    kind: str
    title: str
    x: str
    y: str
    # Where the figures are in a point ("cpu", "peak", "stored"), and which of them.
    figures: str
    names: tuple[str, ...]
    # By how much they are divided, for the unit.
    unit: float = 1.0


PLOTS = (
    Plot("growth-events.svg", "events", "Time with events", "events", "CPU seconds", "cpu",
         ("plain", "record", "replay", "open", "verify")),
    Plot("growth-memory.svg", "bytes", "Memory with the size of a recording", "bytes of incompressible input",
         "peak memory, MB", "peak", ("plain", "record", "verify", "replay", "open"), 1e6),
    Plot("growth-stored.svg", "events", "Size of a recording with events", "events", "MB", "stored",
         ("stored",), 1e6),
    Plot("growth-lines.svg", "lines", "Time with lines", "lines", "CPU seconds", "cpu",
         ("plain", "record", "replay", "counted")),
    Plot("growth-threads.svg", "threads", "Time with threads: 40,000 messages", "threads", "CPU seconds", "cpu",
         ("plain", "record", "replay")),
    Plot("growth-objects.svg", "objects", "Snapshots with objects", "objects", "CPU seconds", "cpu",
         ("snapshot", "pause", "load", "difference")),
)  # fmt: skip


def draw(growth: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write a picture of each kind that was measured; the same figures give the same bytes."""
    matplotlib = import_module("matplotlib")
    matplotlib.use("svg")
    # Ids in the file are random without a salt.
    matplotlib.rcParams.update({"svg.hashsalt": "replaydbg", "svg.fonttype": "none", "font.size": 10})
    pyplot = import_module("matplotlib.pyplot")
    drawn = []
    for plot in PLOTS:
        points = growth.get(plot.kind, {}).get("points", ())
        if len(points) < 2:
            continue
        figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
        for name in plot.names:
            sizes, values = _line(points, plot, name)
            if sizes:
                axes.plot(sizes, values, marker="o", markersize=3.5, label=name)
        axes.set(xscale="log", xlabel=plot.x, ylabel=plot.y, title=plot.title)
        # What should not grow is compared with nothing; a time is compared with a line.
        axes.set(ylim=(0, None)) if plot.figures == "peak" else axes.set(yscale="log")
        axes.grid(visible=True, which="major", linewidth=0.4)
        if len(plot.names) > 1:
            axes.legend(frameon=False)
        path = folder / plot.file
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
        # matplotlib writes blanks at the ends of lines.
        path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text().splitlines()))
        drawn.append(path)
    return drawn


def _line(points: Sequence[Mapping[str, Any]], plot: Plot, name: str) -> tuple[list[int], list[float]]:
    sizes, values = [], []
    for point in points:
        found = point[plot.figures]
        value = found.get(name) if isinstance(found, Mapping) else found
        # What is below the clock's resolution has no place on a logarithmic scale.
        if value:
            sizes.append(point["size"])
            values.append(value / plot.unit)
    return sizes, values
