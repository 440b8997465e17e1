"""The commit of a program's repository is read from git's files, as git itself would name it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from replaydbg.launch.commit import commit_of
from tests.harness.history import Change, git, make_history


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits."""
    changes = [Change("one", {"a.py": "1\n"}), Change("two", {"a.py": "2\n", "deep/er/b.py": "3\n"})]
    return make_history(tmp_path / "repository", changes)


def head(directory: Path) -> str:
    return git(directory, "rev-parse", "HEAD").strip()


def test_a_branch(repository: Path) -> None:
    assert commit_of(str(repository)) == head(repository) != ""
    assert commit_of(str(repository / "deep" / "er")) == head(repository)


def test_a_branch_with_a_directory_in_its_name(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "some/branch", "HEAD~1")
    assert commit_of(str(repository)) == head(repository)


def test_a_commit_without_a_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach", "HEAD~1")
    assert commit_of(str(repository)) == head(repository)


def test_packed_references(repository: Path) -> None:
    git(repository, "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "tag", "-a", "-m", "said", "v1")
    git(repository, "pack-refs", "--all")
    assert commit_of(str(repository)) == head(repository)


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_further_worktree(repository: Path, is_packed: bool) -> None:
    git(repository, "worktree", "add", "-q", "-b", "other", str(repository.parent / "other"), "HEAD~1")
    if is_packed:
        git(repository, "pack-refs", "--all")

    found = commit_of(str(repository.parent / "other"))
    assert found == head(repository.parent / "other") != head(repository)


def test_a_submodule(repository: Path, tmp_path: Path) -> None:
    outer = make_history(tmp_path / "outer", [Change("one", {"c.py": "1\n"})])
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "inner")

    assert commit_of(str(outer / "inner")) == head(repository)
    assert commit_of(str(outer)) == head(outer) != head(repository)


def test_a_branch_that_stands_for_another_one(repository: Path) -> None:
    git(repository, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(repository, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert commit_of(str(repository)) == head(repository)


@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "commondir"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (tmp_path / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".git" / name)
    assert commit_of(str(tmp_path)) == ""


def test_references_that_go_round(tmp_path: Path) -> None:
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/a")
    (tmp_path / ".git" / "refs" / "a").write_text("ref: refs/a")
    assert commit_of(str(tmp_path)) == ""


def test_no_commit_yet(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert commit_of(str(tmp_path)) == ""


@pytest.mark.parametrize(
    "content",
    [b"", b"ref: refs/heads/../../secret", b"ref: /etc/passwd", b"ref: refs/heads/\0", b"g" * 40, b"ab" * 19, b"\xff"],
)
def test_a_forged_head(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(content)
    (tmp_path / ".git" / "secret").write_text("ab" * 20)
    assert commit_of(str(tmp_path)) == ""


@pytest.mark.parametrize("content", ["gitdir: nowhere", "gitdir: ", "gitdir: a\0b", "else", ""])
def test_a_forged_link(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    assert commit_of(str(tmp_path)) == ""


def test_no_repository(tmp_path: Path) -> None:
    assert commit_of(str(tmp_path)) == commit_of(str(tmp_path / "none")) == ""
