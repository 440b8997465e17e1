"""The fuzzer finds planted faults, minimises and saves their inputs; its mutations are reproducible."""

import ctypes
import json
import os
import time
from pathlib import Path
from random import Random

import pytest

from replaydbg.log.files import DataFile
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.blocks import load_block, read_block
from tests.fuzz import __main__ as fuzz
from tests.fuzz import corpus, findings, framing
from tests.fuzz.attempt import attempt
from tests.fuzz.corpus import KINDS, LOG, RECORDING, SNAPSHOT, Input
from tests.fuzz.mutate import mutated
from tests.fuzz.pool import Pool, shared_memory
from tests.fuzz.targets import TARGETS, Target, Wrong, command
from tests.fuzz.worker import Orders
from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow

_SEEDS = corpus.seeds()


def raises(data: bytes, rng: Random) -> str:
    """A fault: a byte that no seed has."""
    if 0xEE in data:
        raise KeyError(0xEE)
    return "fine"


def takes_memory(data: bytes, rng: Random) -> str:
    if 0xEE in data:
        bytearray(2 << 30)
    return "fine"


def hangs(data: bytes, rng: Random) -> str:
    while 0xEE in data:
        pass
    return "fine"


def crashes(data: bytes, rng: Random) -> str:
    if 0xEE in data:
        ctypes.string_at(0)
    return "fine"


def writes(data: bytes, rng: Random) -> str:
    if 0xEE in data:
        os.close(os.open(os.environ["PLANTED"], os.O_WRONLY | os.O_CREAT))
    return "fine"


def starts(data: bytes, rng: Random) -> str:
    if 0xEE in data:
        os.system("true")
    return "fine"


_PLANTED: dict[str, tuple[str, Target, float]] = {
    each.__name__: (LOG, each, 1.0) for each in (raises, takes_memory, hangs, crashes, writes, starts)
}


def _run(place: Path, *names: str, seconds: float) -> dict[str, Path]:
    planted = {name: _PLANTED[name] for name in names}
    orders = Orders(
        number=0,
        seed="1",
        end=time.monotonic() + seconds,
        shared=shared_memory(place),
        inputs=[Input(LOG, bytes(200))],
        recordings=[],
        tools=[],
        corpus=None,
        outside_share=0.0,
        case_seconds=1.0,
        targets=planted,
    )
    return Pool([orders], place / "findings", say=False).run().found


def test_planted_faults_are_found_made_small_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", str(tmp_path / "written"))

    found = _run(tmp_path, "raises", "takes_memory", "hangs", "writes", "starts", seconds=25)

    by_target = {key.split()[0]: (key, path) for key, path in found.items()}
    assert set(by_target) == {"raises", "takes_memory", "hangs", "writes", "starts"}, found
    assert "KeyError" in by_target["raises"][0]
    assert "memory" in by_target["takes_memory"][0]
    assert "hang" in by_target["hangs"][0]
    assert "open" in by_target["writes"][0]
    assert "os.system" in by_target["starts"][0]
    facts = json.loads(by_target["raises"][1].read_text())
    assert (tmp_path / "findings" / facts["input"]).read_bytes() == b"\xee"
    assert facts["command"] == f"python -m tests.fuzz --repeat {by_target['raises'][1]}"


def test_a_crash_of_a_worker_is_a_finding_with_its_input(tmp_path: Path) -> None:
    found = _run(tmp_path, "crashes", seconds=8)

    (key,) = found
    assert key == "crashes signal 11"
    facts = json.loads(found[key].read_text())
    assert 0xEE in (tmp_path / "findings" / facts["input"]).read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_mutations_repeat(kind: str) -> None:
    for of in (each for each in _SEEDS if each.kind == kind):
        for number in range(20):
            assert mutated(of, Random(f"1/{number}")) == mutated(of, Random(f"1/{number}"))

    seeds = [each for each in _SEEDS if each.kind == kind]
    assert len({mutated(seeds[0], Random(f"1/{number}")) for number in range(20)}) > 10


def test_seeds_are_the_same_at_each_start() -> None:
    assert corpus.seeds() == _SEEDS


def test_a_mutated_recording_keeps_its_checksums(tmp_path: Path) -> None:
    of = next(each for each in _SEEDS if each.kind == RECORDING)
    sound = changed = 0
    for number in range(60):
        path = tmp_path / f"{number}.rdbg"
        path.write_bytes(mutated(of, Random(number), for_replay=True))
        changed += path.read_bytes() != of.data
        sound += _is_framed(path)

    assert changed >= 50
    # A few change the framing itself.
    assert sound >= 50


def _is_framed(path: Path) -> bool:
    """Return whether the file has an index, and all blocks that it names are valid."""
    with DataFile(path) as file:
        offset = 32
        while offset < file.size:
            block = read_block(file, offset)
            if block is None or load_block(file, block) is None:
                return False
            offset = block.end
    return True


def test_mutations_reach_the_decoders() -> None:
    """Some records of a mutated log are decoded before the fault: the changes are not all at the beginning."""
    of = next(each for each in _SEEDS if each.kind == LOG)
    signatures = {
        attempt("log", TARGETS["log"][1], mutated(of, Random(number)), "1").signature for number in range(300)
    }

    assert len(signatures) > 40


def test_a_minimised_recording_is_one_still() -> None:
    of = next(each for each in _SEEDS if each.kind == RECORDING and len(each.data) > 5000)

    def has_it(data: bytes) -> bool:
        return "heap/000003" in framing.sections_of(data)

    small = findings.minimised(of, has_it, seconds=20)

    assert len(small.data) < len(of.data) // 2
    assert has_it(small.data)


def test_a_finding_can_be_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = next(each for each in _SEEDS if each.kind == SNAPSHOT)
    path = findings.save(tmp_path, "snapshot", "snapshot KeyError", "text", of, "1")

    assert fuzz.repeat(path) == 0
    assert "nothing found" in capsys.readouterr().out


def test_a_command_with_an_exit_code_of_its_own_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replaydbg.cli.main.main", lambda words: 77)

    with pytest.raises(Wrong, match="exit code 77"):
        command(("info", "FILE"), str(tmp_path / "x.rdbg"), "")


def test_what_is_kept_is_loaded_again(tmp_path: Path) -> None:
    for each in _SEEDS:
        corpus.keep(tmp_path, each)

    assert sorted(corpus.load(tmp_path)) == sorted(_SEEDS)


def test_seeds_are_read_without_a_complaint(tmp_path: Path) -> None:
    for number, each in enumerate(each for each in _SEEDS if each.kind == RECORDING):
        path = tmp_path / f"{number}.rdbg"
        path.write_bytes(each.data)
        with open_recording(path) as recording:
            list(recording.events())
            assert recording.problems == () or number == 2


@pytest.mark.parametrize("case", cases("fuzz"))
def test_the_programs_replay(case: Case) -> None:
    case.check()
