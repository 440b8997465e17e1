"""C code that cannot be recorded, in whose place something of Python's runs while recording."""

import pytest

from tests.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("standins", "uvloop_loops"))
def test_a_loop_of_uvloop_is_asyncios_own(case: Case) -> None:
    pytest.importorskip("uvloop")

    case.check()
