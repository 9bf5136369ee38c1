"""Every file in examples/ runs and says something; one that trains says that it learned."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("commands")  # long ones: begun before the many short tests
NEEDS = {"train_with_sb3": ("supersuit", "stable_baselines3")}  # beyond what phygail brings
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.timeout(620)  # stable-baselines3 takes half a minute on a quiet machine
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    for module in NEEDS.get(example.stem, ()):
        pytest.importorskip(module)
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if example.stem == "train_with_sb3":
        before, after = (int(line.rsplit(" ", 1)[1].rstrip("%")) for line in done.stdout.splitlines())
        assert after >= before + 30  # percent of held-out scenarios that were reconnected
