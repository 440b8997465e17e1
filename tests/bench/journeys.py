"""The table of the recordings to travel through, with the targets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "journey.py"

# Seconds until the first answer, besides the first pass.
OPENING_TARGET = 1.0
# Milliseconds at the 95th percentile.
BACK_TARGET = 50.0
WHY_TARGET = 500.0
# Times the program's own peak.
MEMORY_TARGET = 3.0


@dataclass(frozen=True, slots=True)
class Journey:
    """A program that is recorded once and then travelled through."""

    name: str
    # A description in one line.
    does: str
    # Rounds of a thousand lines; None: as many as take `seconds`.
    rounds: int | None
    # Seconds that a plain run should take.
    seconds: float | None
    # Crossings in each round.
    crossings: int
    # Objects that live to the end, some 250 bytes each.
    objects: int
    # Rounds between two garbage collections that the program asks for; 0: none.
    collect_every: int
    # Milliseconds that a seek may take at the 95th percentile; None: the project has set no target.
    seek_target: float | None
    # The share of the places that a run of the bench goes to; fewer where one takes longer.
    share: float = 1.0

    def arguments(self, rounds: int, scale: float) -> tuple[str, ...]:
        """Return the program's arguments for this number of rounds with the share `scale` of its objects."""
        objects = max(1, round(self.objects * scale))
        return (str(PROGRAM), *map(str, (rounds, self.crossings, objects, self.collect_every)))


JOURNEYS = (
    Journey(
        "travel-events",
        "10 million lines with 100,000 crossings",
        rounds=11_000,
        seconds=None,
        crossings=9,
        objects=20_000,
        collect_every=0,
        seek_target=50.0,
    ),
    Journey(
        "travel-long",
        "100 million lines with a million crossings",
        rounds=110_000,
        seconds=None,
        crossings=9,
        objects=20_000,
        collect_every=0,
        seek_target=100.0,
        share=0.3,
    ),
    Journey(
        "travel-compute",
        "60 s of pure computation",
        rounds=None,
        seconds=60.0,
        crossings=0,
        objects=20_000,
        collect_every=0,
        seek_target=250.0,
    ),
    Journey(
        "travel-heap",
        "10 million lines over 400 MB of live objects, which ten garbage collections go over",
        rounds=3_000,
        seconds=None,
        crossings=1,
        objects=1_650_000,
        collect_every=300,
        seek_target=None,
    ),
)
