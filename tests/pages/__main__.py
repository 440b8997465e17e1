"""`python -m tests.pages [--correct] [PAGE...]`: run the code blocks of pages, and list those that are not run.

`--correct` writes what the commands print into the pages, in place of another output: review what it changes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.pages.blocks import ROOT, blocks_of, pages
from tests.pages.page_run import PageRun, why_not_run
from tests.pages.shell import Shell


def main(names: list[str]) -> int:
    """Run the pages, all if none is named; return the number of those that are wrong."""
    is_correcting = "--correct" in names
    names = [name for name in names if name != "--correct"]
    wrong = total = 0
    reasons = []
    for page in [ROOT / name for name in names] or pages():
        blocks = blocks_of(page)
        total += len(blocks)
        reasons += [f"{each.place}: {why_not_run(each)}" for each in blocks if why_not_run(each) is not None]
        begin = time.monotonic()
        if blocks and not is_run(page, is_correcting=is_correcting):
            wrong += 1
        if blocks:
            print(f"{page.relative_to(ROOT)}: {len(blocks)} blocks, {time.monotonic() - begin:.1f} s", flush=True)
    print(f"{total} blocks, {len(reasons)} of them not run:", *reasons, sep="\n")
    return wrong


def is_run(page: Path, *, is_correcting: bool) -> bool:
    """Run a page, and print what is wrong with it, or correct it."""
    corrections: dict[int, list[str]] | None = {} if is_correcting else None
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as top:
        shell = Shell(Path(top))
        try:
            PageRun(page, shell, corrections).run()
        except AssertionError as error:
            print(error)
            return False
        finally:
            shell.close()
            correct(page, corrections or {})
    return True


def correct(page: Path, corrections: dict[int, list[str]]) -> None:
    """Replace the lines of blocks; the fences are at the given lines."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for fence, block in sorted(corrections.items(), reverse=True):
        indent = " " * (len(lines[fence - 1]) - len(lines[fence - 1].lstrip()))
        end = next(at for at in range(fence, len(lines)) if lines[at] == f"{indent}```")
        lines[fence:end] = [f"{indent}{line}".rstrip() for line in block]
    page.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
