"""Every command and snippet of the README runs (its numbers: test_results.py)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("commands")  # long ones: begun before the many short tests
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", README, re.DOTALL)
SHELL = [line.split("  #")[0].strip() for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]
# `phygail serve` ends with Ctrl-C only: tests/web/test_server_page.py starts it.
COMMANDS = [line for line in SHELL if line.startswith("phygail ") and not line.startswith("phygail serve")]
# The comparisons behind the tables take from minutes to hours; here they run on one swarm of 20.
SMALLER = ((r"--uavs \S+", "--uavs 20"), (r"--damage \S+", "--damage 0.5"), (r"--cases \d+", "--cases 1"))
# Demonstrations and a training that learns take minutes, others seconds (the slow tests of
# tests/cli/test_compare_reproduce.py fly that of `reproduce` whole, `make demo` that of `recover`); here all show that
# they run.
BRIEFER = (
    (r"^(phygail experts .*)", r"\1 --damage 0.5 --cases 11 --workers 1"),
    (r"--profile compact", "--profile smoke --set epochs=1 --set worlds=2 --set validation_cases=1"),
    (r"--uavs 20,50 (.*--out out/overall)", r"--uavs 20 --damage 0.5 \1"),
    (r"--uavs 200 (.*\.gif)", r"--uavs 50 \1"),
)


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"BROWSER": "true"}  # `phygail play` opens a browser: not here
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=env)


def test_the_readme_names_the_two_commands_and_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = {line.split()[1] for line in SHELL if line.startswith("make ")}
    assert {"demo", "test"} <= used <= targets


@pytest.mark.usefixtures("no_figures")
@pytest.mark.timeout(2400)  # half a minute of a core: on a machine that crawls that is much
def test_readme_commands_run_in_order(tmp_path: Path, typed: Callable[[str, Path], int]) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert len(COMMANDS) >= 8
    for command in COMMANDS:
        small = command
        if "--out results/" in command:
            for pattern, text in SMALLER:
                small = re.sub(pattern, text, small)
        for pattern, text in BRIEFER:
            small = re.sub(pattern, text, small)
        if small == "phygail play":
            done = _run([sys.executable, "-m", *shlex.split(small)], tmp_path)
            assert done.returncode == 0, f"{small}\n{done.stderr}"
        else:
            assert typed(small, tmp_path) == 0, small
    assert (tmp_path / "out" / "recovery.gif").stat().st_size > 10_000
    assert (tmp_path / "out" / "compare" / "rows.csv").exists()


@pytest.mark.parametrize("snippet", [block for kind, block in BLOCKS if kind == "python"])
def test_readme_snippets_run(snippet: str, tmp_path: Path) -> None:
    done = _run([sys.executable, "-c", snippet], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True")


def test_readme_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
