"""Objects have the same identity in a replay: their ids, hashes, addresses in texts, and the order of sets of them."""

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replay_cases import Case, cases
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

FORTY_KINDS = Path(__file__).parents[2] / "fixtures" / "identity" / "forty_kinds.py"
REPLAYS = 100


@pytest.mark.parametrize("case", cases("identity"))
def test_identity_replays(case: Case) -> None:
    case.check()


def test_entries_of_a_profile_are_not_in_the_order_of_addresses(tmp_path: Path) -> None:
    program = str(FORTY_KINDS.with_name("profiles_by_name.py"))

    recorded = run(tool.record(sys.executable, tmp_path / "profile.rdbg", [program]), cwd=tmp_path, env=passed_on())

    calls = ast.literal_eval(recorded.stdout.splitlines()[0])
    assert calls == sorted(calls), "the same name, text and columns: ordered by the number of calls"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outcome]]:
    """A recording of the program that shows every kind of identity, and what it printed."""
    path = tmp_path_factory.mktemp("kinds") / "kinds.rdbg"
    yield path, perturbed(tool.record(sys.executable, path, [str(FORTY_KINDS)]), 0)


def perturbed(command: list[str], seed: int) -> Outcome:
    """Run a command of ours with random allocations wherever the core works by itself; 0 for none."""
    orders = {"REPLAYDBG_TEST_PERTURB": str(seed)} if seed else {}
    return run(command, cwd=Path.cwd(), env={"PATH": os.defpath, **passed_on(), **orders})


@pytest.mark.parametrize("group", range(10))
def test_identity_does_not_depend_on_what_the_tool_allocates(recorded: tuple[Path, Outcome], group: int) -> None:
    path, expected = recorded
    assert expected.status == 0, expected.stderr
    for seed in range(REPLAYS // 10 * group + 1, REPLAYS // 10 * (group + 1) + 1):
        replayed = perturbed(tool.replay(sys.executable, path), seed)
        assert (replayed.stdout, replayed.status) == (expected.stdout, 0), (
            f"{replayed.stderr} (seed {seed}, {sys.version})"
        )


def test_ids_are_left_alone_where_that_is_asked_for(tmp_path: Path) -> None:
    program = "import ctypes; h = hash(x := object()); print(ctypes.cast(id(x), ctypes.py_object).value is x, h, id(x))"
    path = tmp_path / "real.rdbg"
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "--real-ids", "-o", str(path), "--", "-c", program]

    recorded = perturbed(command, 0)
    replayed = perturbed(tool.replay(sys.executable, path), 1)

    assert recorded.stdout.split()[0] == "True"
    assert replayed.status == tool.DIVERGED, "the program writes an address, which is another one"
    made_up = perturbed(["env", "REPLAYDBG_REAL_IDS=0", *command[:5], *command[6:]], 0).stdout.split()
    assert made_up[1] == recorded.stdout.split()[1], "hashes are made from serials in any case"
    assert made_up[2].startswith("4947"), "0x2d... in decimal"
