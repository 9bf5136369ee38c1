"""docs/tutorial.md runs as it stands: its files are saved, its commands run in order, its method is scored."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(text|sh|python)\n(.*?)```", PAGE, re.DOTALL)
FILES = {"text": "swarm.csv", "python": "mine.py"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, typed: Callable[[str, Path], int], no_figures: None) -> Path:
    """Where a reader has done everything that the page says."""
    place = tmp_path_factory.mktemp("tutorial")
    for kind, block in BLOCKS:
        if kind in FILES:
            (place / FILES[kind]).write_text(block, encoding="utf-8")
            continue
        for line in block.splitlines():
            assert typed(line, place) == 0, line
    return place


def test_the_page_saves_two_files_and_runs_six_commands() -> None:
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds.count("text") == kinds.count("python") == 1
    assert sum(len(block.splitlines()) for kind, block in BLOCKS if kind == "sh") == 6


def test_every_step_leaves_what_it_promises(folder: Path) -> None:
    assert (folder / "out" / "mine.png").stat().st_size > 10_000
    assert "half-way" in (folder / "out" / "mine" / "summary.md").read_text(encoding="utf-8")
    score = (folder / "out" / "benchmark" / "score.md").read_text(encoding="utf-8")
    assert re.search(r"\| `half-way` \| intra-subnet \| \d\d \|", score)
