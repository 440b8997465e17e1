"""The benchmark of listings works, on a small store."""

from tests.bench.catalog import measure_catalog


def test_listings_are_measured() -> None:
    costs = measure_catalog(1, 60.0, recordings=60, made=4)

    assert costs.recordings == 60
    assert list(costs.listings) == ["ls", "ls --failed", "ls --json, one command"]
    assert costs.first > 0
    assert "listing 60 recordings (target 100 ms CPU" in costs.as_text()
