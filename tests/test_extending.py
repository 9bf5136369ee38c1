"""A new method in one file: dropped into the package it is flown by `compare` and checked by the generic tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import phygail
from phygail.experiments.rows import read_rows

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
STROLL = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """The package as it is, by links, with one more file in methods/."""
    home = tmp_path_factory.mktemp("src")
    source = Path(phygail.__file__).parent
    for folder in ("", "methods"):
        (home / "phygail" / folder).mkdir()
        for entry in (source / folder).iterdir():
            if entry.name not in ("methods", "__pycache__"):
                (home / "phygail" / folder / entry.name).symlink_to(entry)
    (home / "phygail" / "methods" / "stroll.py").write_text(STROLL)
    return home


def run(package: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_compare_flies_it(package, tmp_path):
    grid = ("--uavs", "20", "--damage", "0.5", "--cases", "1", "--workers", "1")
    done = run(package, "phygail", "compare", *grid, "--methods", "stroll,sidr", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    steps = {row["method"]: row["steps"] for row in read_rows(tmp_path / "rows.csv")}
    assert steps["stroll"] > steps["sidr"]  # half the speed


def test_the_generic_tests_check_it(package):
    generic = ("tests/methods/test_generic.py", "-k", "stroll", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = run(package, "pytest", *generic, "-q", "-o", "addopts=--import-mode=importlib")
    assert done.returncode == 0, done.stdout
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None, done.stdout
    assert int(found[1]) >= 10


def test_as_a_plugin_it_stands_in_the_tables_of_an_experiment(tmp_path, typed):
    file = tmp_path / "stroll.py"
    file.write_text(STROLL)
    scale = "--uavs 20 --damage 0.5 --cases 1 --workers 1 --methods stroll,sidr"
    assert typed(f"phygail reproduce overall {scale} --plugin {file} --out out", tmp_path) == 0
    assert "| `stroll` | 1 |" in (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
