"""TLS is answered from the recording: neither keys nor certificates nor peers exist in a replay."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("tls"))
def test_tls_replays(case: Case) -> None:
    case.check()
