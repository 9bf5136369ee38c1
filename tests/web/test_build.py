"""The committed page is what the build makes of its sources, and one file is all it needs."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from phygail.config import InputError
from phygail.web.build import (
    LETTERS,
    PAGE,
    SCRIPTS,
    STATIC,
    build_page,
    data_module,
    join_modules,
    layout_letters,
    page_data,
    squeeze,
)

REMEDY = "run python -m phygail.web.build"


def test_the_committed_data_are_those_of_layouts_weights_and_names():
    assert (SCRIPTS / "data.js").read_text(encoding="utf-8") == data_module(), REMEDY


def test_the_committed_page_is_built_from_its_sources():
    assert PAGE.read_text(encoding="utf-8") == build_page(), REMEDY


def test_the_page_weighs_less_than_80_kb_gzipped():
    assert len(gzip.compress(PAGE.read_bytes(), 9)) < 80_000


def test_the_page_names_nothing_outside_itself():
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"""(?:src|href)=["'](?!data:)[^"'$]+""", text) == []
    assert "default-src 'none'" in text
    addresses = set(re.findall(r"https?://[\w./-]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_layouts_survive_the_way_into_javascript():
    layouts = page_data()["layouts"]
    assert {name: len(text) // 4 for name, text in layouts.items()} == {
        f"paper-{n}": n for n in (20, 50, 100, 200, 500)
    }
    digits = [LETTERS.index(letter) for letter in layouts["paper-20"][:8]]
    assert [64 * high + low for high, low in zip(digits[::2], digits[1::2], strict=True)] == [29, 47, 185, 87]
    with pytest.raises(InputError, match="whole meters"):
        layout_letters(np.array([[1.0, 2.5]]))


def test_modules_are_joined_after_what_they_import(tmp_path):
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = b + 1;\n')
    (tmp_path / "b.js").write_text("export function b() {}\n")
    assert join_modules(tmp_path / "a.js") == '"use strict";\n(() => {\nfunction b() {}\n\nconst a = b + 1;\n})();\n'


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ({"a": 'import { b } from "./b.js";\nconst x = 1;\n', "b": "const x = 2;\n"}, "both have 'x'"),
        ({"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\n'}, "imports itself"),
        ({"a": 'import b from "./b.js";\n', "b": "const b = 1;\n"}, "a form that the build does not know"),
        ({"a": 'const x = "</script>";\n'}, "would end the script"),
    ],
)
def test_what_cannot_be_joined_is_refused(tmp_path, files, wrong):
    for name, text in files.items():
        (tmp_path / f"{name}.js").write_text(text)
    with pytest.raises(InputError, match=wrong):
        join_modules(tmp_path / "a.js")


def test_every_control_is_pressed_by_a_browser_test():
    """Every button, field, list and box of the page has its name in a test that opens the page."""
    shell = (STATIC / "index.html").read_text(encoding="utf-8")
    controls = re.findall(r'<(?:button|input|select)[^>]* id="([\w-]+)"', shell)
    assert len(controls) > 20
    tests = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*page*.py"))
    shown = {"show-reach", "show-links", "show-trails"}  # by one test with their names as parameters
    pressed = {name for name in controls if f'"#{name}"' in tests or (name in shown and f'"{name}"' in tests)}
    assert set(controls) == pressed


def test_squeezing_takes_spaces_and_leaves_texts_templates_and_signs_of_signs():
    script = (
        'const a = [1, 2];\n  // why\nsay("a = b, c" + a) ;\nconst t = `x = ${a - -1}`;\nreturn a - -1;\nb = a / 2;\n'
    )
    squeezed = 'const a=[1,2];say("a = b, c"+a);const t = `x = ${a - -1}`;return a - -1;b=a/2;'
    assert squeeze(script) == squeezed
    with pytest.raises(InputError, match="over the end of a line"):
        squeeze("const t = `one\ntwo`;\n")
