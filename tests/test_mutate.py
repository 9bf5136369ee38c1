"""The mutation tool: what it changes, what it leaves alone, and that a change reaches the tests."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).with_name("mutate.py")
SOURCE = '''"""Words."""
LIMIT = 0.5


def clip(values: list[int | None], most: float = 2) -> float:
    """At most 3 of them."""
    if not values:
        raise ValueError(f"give at least {1 + 1}")
    total = max(values) - LIMIT
    total += 1
    return sorted([total], reverse=True)[0] if total <= most and most else -total
'''


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("mutate_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate_tool"] = module  # its dataclass looks there
    spec.loader.exec_module(module)
    return module


def test_every_change_of_a_small_module_and_no_other(tool):
    """Not the annotation, not the words of the error, not the docstrings; `if not` is reversed once."""
    assert sorted((m.line, m.kind, m.text) for m in tool.find_mutants(SOURCE)) == [
        (2, "constant", "LIMIT = 0.5 -> LIMIT = 1.0"),
        (5, "constant", "(values: list[int | None], most: float=2) -> (values: list[int | None], most: float=3)"),
        (7, "sign", "not values -> not not values"),
        (8, "left out", "raise ValueError(f'give at least {1 + 1}') -> left out"),
        (9, "name", "max(values) -> min(values)"),
        (9, "operator", "max(values) - LIMIT -> max(values) + LIMIT"),
        (10, "constant", "total += 1 -> total += 0"),
        (10, "left out", "total += 1 -> left out"),
        (10, "operator", "total += 1 -> total -= 1"),
        (11, "comparison", "total <= most -> total < most"),
        (
            11,
            "condition",
            "sorted([total], reverse=True)[0] if total <= most and most else -total -> "
            "sorted([total], reverse=True)[0] if not (total <= most and most) else -total",
        ),
        (11, "constant", "reverse=True -> reverse=False"),
        (11, "constant", "sorted([total], reverse=True)[0] -> sorted([total], reverse=True)[1]"),
        (11, "keyword", "sorted([total], reverse=True) -> sorted([total])"),
        (11, "operator", "total <= most and most -> total <= most or most"),
        (11, "sign", "-total -> +total"),
    ]


def test_every_mutant_is_another_program_that_compiles(tool):
    tree = ast.parse(SOURCE)
    texts = set()
    for mutant in tool.find_mutants(SOURCE):
        other = tool.changed(tree, mutant)
        compile(other, "x", "exec")
        texts.add(ast.unparse(other))
    assert len(texts) == len(tool.find_mutants(SOURCE))
    assert ast.unparse(tree) not in texts
    assert ast.unparse(tree) == ast.unparse(ast.parse(SOURCE)), "the original stays as it is"


def test_the_sample_does_not_depend_on_where_a_function_stands(tool):
    moved = "x = y\n\n\n" + SOURCE.split("\n", 1)[1]
    before, after = ([m.text for m in tool.find_mutants(text)] for text in (SOURCE, moved))
    assert before == after


def test_the_changed_module_is_the_one_that_is_imported(tool):
    (mutant,) = (m for m in tool.find_mutants((tool.PACKAGE / "swarm/links.py").read_text())[:1])
    tree = ast.parse('SIGN = "changed"')
    finder = tool._Finder("swarm/links.py", tree)
    assert finder.find_spec("phygail.rng") is None
    module = importlib.util.module_from_spec(finder.find_spec("phygail.swarm.links"))
    module.__spec__.loader.exec_module(module)
    assert module.SIGN == "changed"
    assert mutant.line


def test_every_module_and_its_tests_exist(tool):
    for module, files in tool.NEIGHBORS.items():
        assert (tool.PACKAGE / module).exists()
        assert all((tool.ROOT / "tests" / file).exists() for file in files)


def test_the_report_is_that_of_the_rows_and_at_least_nine_in_ten_are_killed(tool):
    rows = tool.read_rows()
    if not rows:
        pytest.skip("no mutants were made yet: python -m tests.mutate")
    assert tool.report_text(rows) == (tool.OUT / "report.md").read_text(encoding="utf-8")
    assert tool.share_killed(rows) >= tool.WANTED
    assert "not explained yet" not in tool.report_text(rows)


def test_nine_in_ten_of_the_mutants_of_todays_modules_are_killed(tool):
    """A mutant without a row counts as one that survived: after larger edits `python -m tests.mutate --missing`."""
    killed = possible = 0
    for module in sorted({row["module"] for row in tool.read_rows()}):
        known = tool.todays_rows(module)
        verdicts = [row["verdict"] == "survived" for row in known]
        killed += verdicts.count(False)
        possible += min(tool.COUNT, len(tool.find_mutants((tool.PACKAGE / module).read_text()))) - verdicts.count(True)
    assert killed >= tool.WANTED * possible
