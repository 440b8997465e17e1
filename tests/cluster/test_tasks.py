"""Tasks on this machine, and what a worker does without its scheduler: the cache, the pack of commits, the fitness."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.cluster.machine_state import digest_of
from replaydbg.cluster.open_pool import open_pool
from replaydbg.cluster.questions.code_tasks import OfCode
from replaydbg.cluster.questions.commit_tasks import AtCommit, CommitTasks
from replaydbg.cluster.scheduling.content import PIECE_SIZE, ContentChanged, ContentSupply, read_manifest
from replaydbg.cluster.scheduling.content_cache import ContentCache, PiecesMissing
from replaydbg.cluster.scheduling.fitness import requirement_of, why_unfit
from replaydbg.cluster.scheduling.git_pack import pack_of, unpack
from replaydbg.cluster.scheduling.kept_repositories import KeptRepositories
from replaydbg.cluster.scheduling.task_queue import SentTask, TaskQueue
from replaydbg.cluster.tasks import CancelledError, JsonObject, RecordingTask, results
from replaydbg.events.verdict import Verdict
from replaydbg.log.reader import open_recording
from replaydbg.store.piece_cache import LONGEST, CacheFull, name_of_piece
from tests.cluster.failing_runs import make_repository, names_of, record_runs
from tests.harness.history import git, picture


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("shop") / "shop")


@pytest.fixture(scope="module")
def recording(repository: Path) -> Path:
    return record_runs(repository, repository.parent / "runs", 1)[0]


@pytest.fixture
def supply(tmp_path: Path) -> ContentSupply:
    (tmp_path / "supply").mkdir()
    return ContentSupply(tmp_path / "supply")


def received(cache: ContentCache, supply: ContentSupply, reference: JsonObject) -> None:
    """Supply a cache as a worker is supplied: with what it says that it lacks."""
    for _ in range(3):
        try:
            with cache.content(reference["content"]):
                return
        except PiecesMissing as missing:
            cache.put({name: supply.read(name) for name in missing.names})
    raise AssertionError("pieces are missing that were sent")


# ---- on this machine ----


def test_a_recording_at_each_commit(repository: Path, recording: Path) -> None:
    before, names = picture(repository), names_of(repository)

    with open_pool(jobs=2) as pool:
        make = CommitTasks(repository, names)
        found = {}
        for each in results(pool, [make.task(recording, name) for name in names]):
            assert isinstance(each.task.question, AtCommit)
            found[names.index(each.task.question.commit)] = each.verdict

    assert [found[number] for number in range(8)] == [Verdict.GOOD] * 7 + [Verdict.BAD]
    assert picture(repository) == before


def test_what_is_given_up_ends(repository: Path, recording: Path) -> None:
    with open_pool(jobs=1) as pool:
        make = CommitTasks(repository, names_of(repository), build="sleep 1000")
        future = pool.submit(make.task(recording, names_of(repository)[0]))
        pool.give_up(future)

        with pytest.raises(CancelledError):
            future.result(timeout=60)


def test_the_code_of_today(repository: Path, recording: Path) -> None:
    with open_pool() as pool:
        (found,) = results(pool, [RecordingTask(recording, OfCode({}))])

    assert found.verdict is Verdict.BAD
    assert found.reason.startswith("still fails: ZeroDivisionError")


def test_without_a_scheduler_dask_is_not_imported() -> None:
    code = "import sys, replaydbg.cluster.open_pool as o\nwith o.open_pool(): print('distributed' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


# ---- the cache of a worker ----


def test_a_recording_arrives_with_its_shared_blocks(supply: ContentSupply, recording: Path, tmp_path: Path) -> None:
    reference = supply.recording(recording)
    cache = ContentCache(tmp_path / "cache", 1 << 30)

    received(cache, supply, reference)

    with cache.content(reference["content"]) as directory:
        assert (directory / reference["main"]).read_bytes() == recording.read_bytes()


def test_files_keep_their_kind(supply: ContentSupply, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "large").write_bytes(bytes(range(256)) * (PIECE_SIZE // 256) + b"end")
    (root / "script").write_text("#!/bin/sh\n")
    (root / "script").chmod(0o755)
    (root / "empty").touch()
    (root / "link").symlink_to("script")
    cache = ContentCache(tmp_path / "cache", 1 << 30)
    reference = supply.tree(root, ["deep/large", "script", "empty", "link"])

    received(cache, supply, reference)

    with cache.content(reference["content"]) as made:
        assert (made / "deep" / "large").read_bytes() == (root / "deep" / "large").read_bytes()
        assert (made / "script").stat().st_mode & 0o100
        assert not (made / "deep" / "large").stat().st_mode & 0o100
        assert (made / "empty").read_bytes() == b""
        assert (made / "link").readlink() == Path("script")


def test_a_piece_with_other_bytes_is_not_taken(supply: ContentSupply, tmp_path: Path) -> None:
    reference = supply.data("name", b"right")
    (piece,) = read_manifest(supply.read(reference["content"]))[0].pieces
    cache = ContentCache(tmp_path / "cache", 1 << 30)

    cache.put({piece: b"wrong", reference["content"]: supply.read(reference["content"])})

    with pytest.raises(PiecesMissing) as missing, cache.content(reference["content"]):
        pass
    assert missing.value.names == [piece]


def test_a_manifest_may_be_longer_than_a_piece_of_a_file(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path / "cache", 1 << 30)
    manifest = b" " * (2 * LONGEST) + b"[]"

    cache.put({name_of_piece(manifest): manifest})

    with cache.content(name_of_piece(manifest)) as made:
        assert list(made.iterdir()) == []


def test_what_was_used_last_stays(supply: ContentSupply, tmp_path: Path) -> None:
    references = [supply.data("name", bytes([number]) * 10_000) for number in range(4)]
    cache = ContentCache(tmp_path / "cache", 35_000)

    for reference in references:
        received(cache, supply, reference)
    known = []
    for reference in references:
        try:
            with cache.content(reference["content"]):
                known.append(True)
        except PiecesMissing:
            known.append(False)

    assert known[0] is False
    assert known[-2:] == [True, True]


def test_what_is_in_use_is_not_removed(supply: ContentSupply, tmp_path: Path) -> None:
    first, second = (supply.data("name", letter * 10_000) for letter in (b"a", b"b"))
    cache = ContentCache(tmp_path / "cache", 15_000)
    received(cache, supply, first)

    with cache.content(first["content"]) as held:
        with pytest.raises(CacheFull, match="is full"):
            received(cache, supply, second)
        assert (held / "name").read_bytes() == b"a" * 10_000
    received(cache, supply, second)


def test_a_file_that_changes_is_noticed(supply: ContentSupply, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")
    reference = supply.file(tmp_path / "file")
    (piece,) = read_manifest(supply.read(reference["content"]))[0].pieces

    (tmp_path / "file").write_text("behind")

    with pytest.raises(ContentChanged, match="changed after it was first read"):
        supply.read(piece)


# ---- the order of tasks ----


def test_a_lower_rank_begins_first_whatever_the_recording() -> None:
    queue, first, second = TaskQueue(), Path("first.rdbg"), Path("second.rdbg")
    given = [(first, 0), (second, 0), (first, 2), (first, 1), (second, 1)]
    for path, rank in given:
        queue.group_of(path).holder = "a worker"
        queue.add(SentTask(RecordingTask(path, OfCode({}), rank), {}, {}, queue.group_of(path)))

    sent = [(each.task.recording, each.task.rank) for each in queue.due()]

    assert sent == [(first, 0), (second, 0), (first, 1), (second, 1), (first, 2)]


# ---- the commits ----


def test_commits_travel_without_their_history(repository: Path, tmp_path: Path) -> None:
    names = names_of(repository)[3:6]

    facts = pack_of(repository, names, tmp_path / "pack")
    unpack(tmp_path / "pack", facts, tmp_path / "made")

    made = tmp_path / "made" / "shop"
    assert git(made, "rev-list", names[-1]).split() == names[::-1]
    git(made, "checkout", "--quiet", "--detach", names[0])
    assert (made / "shop.py").read_text() == git(repository, "show", f"{names[0]}:shop.py")
    assert git(made, "fsck", "--strict", "--no-dangling") == ""
    assert pack_of(repository, names, tmp_path / "again") == facts
    assert (tmp_path / "again").read_bytes() == (tmp_path / "pack").read_bytes()


def test_a_worker_keeps_the_repositories_that_were_used_last(repository: Path, tmp_path: Path) -> None:
    names, kept = names_of(repository), KeptRepositories(tmp_path / "made")
    for number in range(6):
        content = tmp_path / f"content-{number}"
        content.mkdir()
        (content / "facts.json").write_bytes(pack_of(repository, names[number : number + 1], content / "commits.pack"))

    with kept.worktrees("0", tmp_path / "content-0") as in_use:
        for number in range(1, 6):
            with kept.worktrees(str(number), tmp_path / f"content-{number}") as worktrees:
                assert (worktrees.take(names[number]) / "shop.py").read_text().startswith(f"# {number + 1}\n")
            directories = {each.name for each in (tmp_path / "made").iterdir() if each.name.isdigit()}
            assert directories == {"0", *map(str, range(max(1, number - 2), number + 1))}
        assert (in_use.take(names[0]) / "shop.py").read_text().startswith("# 1\n")
    with kept.worktrees("1", tmp_path / "content-1") as again:
        assert (again.take(names[1]) / "shop.py").exists()


# ---- the fitness of a worker ----


def test_this_machine_is_fit(recording: Path) -> None:
    with open_recording(recording) as opened:
        needs = requirement_of(opened).facts()

    assert why_unfit(needs) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": "99"}, "it has replaydbg "),
        ({"code": "other"}, "has other modules"),
        ({"extensions": {"/nowhere/x.so": "1"}}, "it has no '/nowhere/x.so'"),
        ({"extensions": {sys.executable: "1"}}, "it has another '"),
    ],
)
def test_what_differs_makes_it_unfit(recording: Path, change: JsonObject, why: str) -> None:
    with open_recording(recording) as opened:
        needs = requirement_of(opened).facts() | change

    assert why in why_unfit(needs)


def test_another_python_makes_it_unfit(recording: Path) -> None:
    with open_recording(recording) as opened:
        needs = requirement_of(opened).facts()
    needs["python"] |= {"version": "3.11.99", "hexversion": 0x030B63F0}

    assert "and the recording needs Python 3.11.99" in why_unfit(needs)


def test_compiled_modules_are_needed(tmp_path: Path) -> None:
    code = "import zstandard.backend_c as module; print(module.__file__)"
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", str(tmp_path / "run"), "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)

    with open_recording(tmp_path / "run.rdbg") as opened:
        found = requirement_of(opened).extensions

    path = done.stdout.strip()
    assert found[path] == digest_of(path) != ""
