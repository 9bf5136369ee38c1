"""Any equation of the paper by one grep: each of 1 to 51 stands once in the code, or is listed with its reason."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("update_equations", ROOT / "docs" / "update_equations.py")
assert SPEC is not None
assert SPEC.loader is not None
EQUATIONS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(EQUATIONS)
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(EQUATIONS.SOURCE.rglob("*.py")))


@pytest.fixture(scope="module")
def marks():
    """Reading all docstrings takes seconds: once."""
    found = list(EQUATIONS.marks())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EQUATIONS, "marks", lambda: iter(found))
        yield found


@pytest.mark.parametrize("number", range(1, EQUATIONS.LAST + 1))
def test_an_equation_stands_once_in_the_code_or_is_listed_with_its_reason(number):
    hits = len(re.findall(rf"eqs?\. {number}(?!\d)", TEXT))
    assert hits == (0 if number in EQUATIONS.NOT_BUILT else 1)
    assert number in EQUATIONS.EQUATIONS


def test_at_most_ten_are_not_built_and_every_one_says_why():
    assert len(EQUATIONS.NOT_BUILT) <= 10
    assert all(EQUATIONS.NOT_BUILT.values())


def test_every_number_stands_at_the_end_of_the_first_paragraph_of_a_docstring(marks):
    found = Counter(number for number, _ in marks)
    assert set(found.values()) == {1}
    assert set(found) | set(EQUATIONS.NOT_BUILT) == set(range(1, EQUATIONS.LAST + 1))


def test_the_page_is_that_of_the_code(marks):
    assert EQUATIONS.PAGE.read_text(encoding="utf-8") == EQUATIONS.page()


def test_the_method_of_the_paper_is_in_its_folder(marks):
    """Sections IV-B to IV-D, but for the world's own part of eq. 9."""
    for number, home in marks:
        if EQUATIONS.EQUATIONS[number][0] in ("IV-B", "IV-C", "IV-D") and number != 9:
            assert home.startswith("methods/phygail/"), (number, home)


def test_sections_of_the_paper_are_named_as_the_paper_counts_them():
    """The graph is IV-B, the network IV-C, imitation IV-D: no III-B or III-D beyond the system model."""
    assert not re.search(r"paper III-[BD]", TEXT)
