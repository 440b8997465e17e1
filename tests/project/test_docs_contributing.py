"""Pages for contributors are true: the recipes apply, the drawing is the contract, every page is named."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
RECIPES = ("Add a gate", "Add a message", "Add a prompt command")


def sections(name: str) -> dict[str, str]:
    """The sections of a document at the root, by their headings."""
    parts = (ROOT / name).read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.partition("\n")[0]: part for part in parts}


def diff_of(recipe: str) -> str:
    """All diffs of a recipe, as one patch."""
    return "".join(body for language, body in FENCE.findall(sections("CONTRIBUTING.md")[recipe]) if language == "diff")


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_applies(recipe: str) -> None:
    """Whoever changes a place that a recipe shows makes its diff again."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")

    done = subprocess.run(
        [git, "apply", "--check", "-"], cwd=ROOT, input=diff_of(recipe), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_adds_python_that_compiles(recipe: str) -> None:
    for part in diff_of(recipe).split("--- ")[1:]:
        name = part.split("+++ b/")[1].splitlines()[0]
        if name.endswith(".py") and part.startswith("/dev/null"):
            added = "\n".join(line[1:] for line in part.splitlines() if re.match(r"\+(?!\+)", line))
            compile(added, name, "exec")


def test_drawing_of_the_layers_is_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(each for each in contracts if each["type"] == "layers")["layers"]
    drawing = next(body for _, body in FENCE.findall(sections("CONTRIBUTING.md")["Layers"]))

    drawn = [set(re.split(r" \| ", line.split("   ")[0])) for line in drawing.splitlines()]

    # A layer that the contract keeps a place for, and that does not exist, is not drawn.
    wanted = [{name for name in re.findall(r"\w+", layer) if is_there(name)} for layer in layers]
    assert drawn == [layer for layer in wanted if layer]


def is_there(module: str) -> bool:
    """Whether the package has a module or a folder of that name."""
    return (ROOT / "replaydbg" / module).is_dir() or (ROOT / "replaydbg" / f"{module}.py").is_file()


def pages() -> set[str]:
    """Every page of the documentation."""
    docs = ROOT / "docs"
    return {str(path.relative_to(docs)) for path in docs.rglob("*.md")}


def test_navigation_has_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]

    listed = re.findall(r": (\S+\.md)$", nav, re.M)

    assert sorted(listed) == sorted(pages())


def test_index_links_to_every_page() -> None:
    linked = set(re.findall(r"\]\(([^)#]+\.md)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8")))

    assert linked == pages() - {"index.md"}


def test_readme_links_to_every_tutorial_and_how_to() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    guides = {page for page in pages() if page.startswith(("tutorial", "how-to/"))}

    assert guides == {page for page in guides if f"](docs/{page})" in text}


def test_changelog_is_grouped() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    versions = re.findall(r"^## (.*)$", text, re.M)
    assert all(re.fullmatch(r"Unreleased|\d+\.\d+\.\d+ \((not released|\d{4}-\d\d-\d\d)\)", each) for each in versions)
    assert set(re.findall(r"^### (.*)$", text, re.M)) <= {"Added", "Changed", "Fixed"}


def test_news_fragments_are_of_a_known_kind() -> None:
    names = {path.name for path in (ROOT / "news").iterdir()} - {"README.md"}

    assert {name for name in names if not re.fullmatch(r"\+[\w-]+\.(added|changed|fixed)\.md", name)} == set()
