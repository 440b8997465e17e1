"""The trials of `ci` as tasks of a pool of this machine: the same verdicts, kept for the next night."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from replaydbg.cluster.open_pool import open_pool
from replaydbg.cluster.questions.trial_tasks import ClusterTrials
from replaydbg.cluster.tasks import TaskPool
from replaydbg.regressions.code_verdicts import Case
from replaydbg.regressions.night import NightQuestion, NightReport, TrialSettings
from replaydbg.regressions.night_run import run_night
from tests.cluster.failing_runs import make_repository, record_runs
from tests.harness.history import picture

Night = Callable[..., NightReport]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("shop") / "shop")


@pytest.fixture(scope="module")
def cases(repository: Path) -> tuple[Case, ...]:
    made = record_runs(repository, repository.parent / "runs", 2)
    return tuple(Case(path.stem, path) for path in made)


@pytest.fixture
def night(repository: Path, cases: tuple[Case, ...], tmp_path: Path) -> Night:
    """Return a function that tests the recordings with the verdicts in a directory, by tasks if there is a pool."""

    def run(
        state: str, pool: TaskPool | None = None, how: TrialSettings | None = None, first: str = "v1"
    ) -> NightReport:
        trials = how or TrialSettings(is_rest_recorded=True)
        question = NightQuestion(cases, first, "v8", trials, jobs=2)
        elsewhere = partial(ClusterTrials, pool, 0) if pool is not None else None
        return run_night(question, directory=repository, state=tmp_path / state, elsewhere=elsewhere)

    return run


def found(report: NightReport) -> dict[str, list[tuple[str, str]]]:
    """Return the verdicts with their reasons, oldest commit first."""
    return {
        each.case.name: [(each.verdicts[one.name].state.value, each.verdicts[one.name].why) for one in report.commits]
        for each in report.histories
    }


def test_tasks_have_the_same_verdicts(night: Night, repository: Path) -> None:
    before = picture(repository)

    here = night("here")
    with open_pool(jobs=2) as pool:
        there = night("there", pool)

    assert found(there) == found(here)
    assert {state for each in found(there).values() for state, _ in each} == {"passes", "fails"}
    assert there.counts == here.counts
    assert picture(repository) == before


def test_verdicts_of_tasks_and_of_this_machine_are_shared(night: Night) -> None:
    with open_pool(jobs=1) as pool:
        night("state", pool)
        again = night("state", pool)

    assert again.counts == {"known": 16}
    assert night("state").counts == {"known": 16}


def test_modules_of_today_are_another_question(night: Night) -> None:
    night("state", first="v8")

    assert night("state", None, TrialSettings(), first="v8").counts == {"run": 2}


def test_a_commit_is_built_once_for_all_recordings(night: Night, tmp_path: Path) -> None:
    log = tmp_path / "builds"
    build = f"head -1 shop.py >> {log}"

    with open_pool(jobs=1) as pool:
        report = night("state", pool, TrialSettings(build=build, is_rest_recorded=True))

    assert set(report.counts) == {"run"}
    assert sorted(log.read_text().split()) == list("########12345678")


def test_a_failed_build_is_not_kept(night: Night) -> None:
    with open_pool(jobs=2) as pool:
        night("state", pool, TrialSettings(build="false", is_rest_recorded=True))
        again = night("state", pool, TrialSettings(build="false", is_rest_recorded=True))

    assert again.counts == {"run": 16}
    assert {why for each in found(again).values() for _, why in each} == {"it does not build: exit code 1"}
