"""What git says about the files of a commit: enough to know whether a replay would see a difference."""

from pathlib import Path

import pytest

from replaydbg.commits.depends import CONTENT, Dependency, States
from replaydbg.commits.repository import Repository
from replaydbg.regressions.code_verdicts import CodeReads
from replaydbg.regressions.commit_tree import CommitTrees, state_at
from tests.harness.history import Change, git, make_history


@pytest.fixture
def trees(tmp_path: Path) -> CommitTrees:
    make_history(
        tmp_path / "shop",
        [
            Change("v1", {"a/one.py": "1", "a/notes.txt": "1", "b/two.py": "1", "top.so": "1"}),
            Change("v2", {"a/one.py": "2", "a/notes.txt": "2", "a/more.txt": "1"}),
            Change("v3", {"a/new.py": "1", "top.so": "2"}),
            Change("v4", {"b/__pycache__/x.pyc": "1", "b/deep/none.txt": "1", "b/my-data/none.txt": "1"}),
            Change("v5", {".gitattributes": "*.py eol=crlf"}),
        ],
    )
    return CommitTrees(Repository(tmp_path / "shop"))


def same(trees: CommitTrees, question: str, path: str, one: str, other: str) -> bool:
    return trees.of(one).answer(question, path) == trees.of(other).answer(question, path)


def test_each_question_has_its_own_aspect(trees: CommitTrees) -> None:
    assert same(trees, "stat", "a/one.py", "v1", "v2") and not same(trees, "read", "a/one.py", "v1", "v2")
    assert same(trees, "listdir", "a", "v1", "v2") and not same(trees, "data", "a", "v1", "v2")
    assert not same(trees, "listdir", "a", "v2", "v3")
    assert not same(trees, "stat", "a/new.py", "v2", "v3")
    assert not same(trees, "stat", "top.so", "v2", "v3")  # it is loaded without being read
    assert same(trees, "stat", "a", "v1", "v3") and trees.of("v1").answer("stat", "nowhere") == "absent"
    assert trees.of("v1").answer("stat", "") == "folder"


def test_paths_are_those_that_they_lead_to(trees: CommitTrees) -> None:
    tree = trees.of("v1")

    assert tree.answer("read", "b/../a/./one.py") == tree.answer("read", "a/one.py") != "absent"
    assert tree.answer("stat", ".") == tree.answer("stat", "a/..") == "folder"
    assert tree.answer("stat", "a/../..") == f"tree {tree.name}"


def test_a_directory_that_cannot_be_a_package_is_no_module(trees: CommitTrees) -> None:
    assert not same(trees, "listdir", "b", "v3", "v4")  # b/deep may be imported
    tree = trees.of("v4")
    assert tree.folders["b"] == {"two.py", "__pycache__", "deep", "my-data"}


def test_attributes_and_whole_trees_count(trees: CommitTrees) -> None:
    reads = CodeReads((("read", "a/one.py"),), ())
    whole = CodeReads((), (), is_whole=True)

    assert state_at(reads, trees.of("v2"), States()) == state_at(reads, trees.of("v4"), States())
    assert state_at(reads, trees.of("v4"), States()) != state_at(reads, trees.of("v5"), States())
    assert state_at(whole, trees.of("v2"), States()) != state_at(whole, trees.of("v3"), States())


def test_behind_a_link_nothing_is_equal(trees: CommitTrees, tmp_path: Path) -> None:
    repository = tmp_path / "shop"
    (repository / "link").symlink_to("a")
    git(repository, "add", "link")
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "linked")
    (repository / "a" / "one.py").write_text("3")
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "changed")

    assert not same(trees, "read", "link/one.py", "HEAD~1", "HEAD")
    assert same(trees, "read", "link/one.py", "HEAD", "main")


def test_files_of_the_machine_count(trees: CommitTrees, tmp_path: Path) -> None:
    file = tmp_path / "installed.py"
    reads = CodeReads((), (Dependency(CONTENT, str(file)),))
    tree = trees.of("v1")

    absent = state_at(reads, tree, States())
    file.write_text("1")
    first = state_at(reads, tree, States())
    file.write_text("2")

    assert len({absent, first, state_at(reads, tree, States())}) == 3
