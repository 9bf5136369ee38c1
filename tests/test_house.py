"""Where is it? One grep finds it, in the room where one would look first; and a question leads to few files."""

import ast
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import phygail

PACKAGE = Path(phygail.__file__).parent
ROOT = Path(__file__).parent.parent
QUESTIONS = {
    "equation 22": (r"\(eq\. 22\)", "methods/phygail/network.py"),
    "the speed limit": (r"def project_speed", "swarm/simulator.py"),
    "the reward of a success": (r"r_success", "methods/phygail/rewards.py"),
    "how CR-MGC is trained": (r"phygail train cr-mgc`", "methods/gcn_planners/train.py"),
    "how a row is written": (r"def csv_text", "experiments/rows.py"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_grep_finds(question):
    pattern, home = QUESTIONS[question]
    hits = [
        f"{path.relative_to(PACKAGE).as_posix()}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert [hit.partition(":")[0] for hit in hits] == [home], hits


@pytest.fixture(scope="module")
def counter():
    pytest.importorskip("torch")
    pytest.importorskip("h5py")
    pytest.importorskip("numba")
    spec = importlib.util.spec_from_file_location("files_per_question", ROOT / "benchmarks" / "files_per_question.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize(
    "question",
    ["one epoch", "one row of compare", pytest.param("reproduce ablation", marks=pytest.mark.slow)],
)
def test_a_question_leads_to_few_files(question, counter, tmp_path):
    files = counter.QUESTIONS[question](tmp_path)
    assert len(files) <= counter.LIMITS[question], sorted(files)


# Longer than 50 lines; the docstring says why.
LONG = {
    "experiments/runner.py compare",
    "methods/phygail/plus_batch.py _look_all",
    "methods/reach_evolved/compiled.py episode",
    "methods/reach_evolved/twin.py episode",
}


def test_files_folders_and_functions_are_small():
    """At most 130 files of 450 lines, 20 in a folder; functions of 50 lines, 80 where the docstring says why."""
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) <= 130
    assert max(Counter(path.parent for path in files).values()) <= 20
    long = {}
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 450, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                if lines > 50:
                    long[f"{path.relative_to(PACKAGE).as_posix()} {node.name}"] = lines
                    assert "Long b" in ast.get_docstring(node), (path, node.name)
    assert set(long) == LONG
    assert max(long.values()) <= 80
