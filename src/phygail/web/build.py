"""Build the page: the modules of `static/js`, the style and the data become one HTML file that needs nothing else.

    python -m phygail.web.build

writes `static/js/data.js` (layouts, weights, names) and `play.html`. Both are committed, so that an installed package
has them; a test builds them again and compares. There is no bundler: the modules are put one after the other in the
order of their imports, without the words `import` and `export`. So a name at the top of one module must not be taken
by another one, which is checked.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from phygail import __version__
from phygail.config import InputError
from phygail.files import write_text
from phygail.models.gate_runtime import KIND, VERSION
from phygail.swarm.layouts import find_layout
from phygail.tensors import bundled, read_weights
from phygail.web.names import PAGE_METHODS

HERE = Path(__file__).parent
STATIC = HERE / "static"
SCRIPTS = STATIC / "js"
PAGE = HERE / "play.html"
MAIN = "main.js"
PAPER_SIZES = (20, 50, 100, 200, 500)  # layouts that the page carries

_IMPORT = re.compile(r'^import\s+(?:\{[^}]*\}\s+from\s+)?"(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
_TOP_NAME = re.compile(r"^(?:async )?(?:function\*?|class|const|let) (\w+)", re.MULTILINE)


def page_data() -> dict[str, Any]:
    """What the page carries besides code: the paper's layouts, weights, and the names of the methods in Python."""
    layouts = {f"paper-{n}": find_layout(f"paper-{n}").positions.ravel().tolist() for n in PAPER_SIZES}
    return {"version": __version__, "commands": PAGE_METHODS, "gates": gate_data(), "layouts": layouts}


def gate_data() -> dict[str, Any]:
    """The gates of reach-evolved: how it sees the lost, and both networks with every weight in single precision."""
    weights, config = read_weights(bundled(PAGE_METHODS["reach-evolved"]), KIND, VERSION)

    def network(name: str) -> dict[str, Any]:
        parts = {"w1": f"{name}1", "b1": f"{name}1.bias", "w2": f"{name}2", "b2": f"{name}2.bias"}
        return {key: _short(weights[tensor]) for key, tensor in parts.items()}

    return {"belief": config["belief"], "edge": network("edge"), "anchor": network("anchor")}


def _short(array: np.ndarray) -> Any:
    """Nested lists of the shortest decimals that are the same numbers in single precision."""
    return [_short(row) for row in array] if array.ndim else float(str(np.float32(array)))


def data_module() -> str:
    """The text of `static/js/data.js`."""
    lines = [
        f"  {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))},\n" for key, value in page_data().items()
    ]
    text = re.sub(r"\b(\d+)\.0\b", r"\1", "".join(lines))  # 120.0 is 120 to JavaScript
    return "// Written by `python -m phygail.web.build`: do not edit.\nexport const DATA = {\n" + text + "};\n"


def join_modules(main: Path, texts: dict[Path, str] | None = None) -> str:
    """One script of a module and all that it imports, each after what it needs.

    Args:
        main: The module that starts the page.
        texts: Texts that stand for files, e.g. a data module that is not written yet.
    """
    given = texts or {}
    order: list[Path] = []
    open_modules: list[Path] = []

    def visit(path: Path) -> None:
        if path in order:
            return
        if path in open_modules:
            raise InputError(f"{path.name} imports itself by way of {open_modules[-1].name}: break the circle")
        open_modules.append(path)
        for target in _IMPORT.findall(_text(path, given)):
            visit((path.parent / target).resolve())
        open_modules.pop()
        order.append(path)

    visit(main.resolve())
    parts = {path: _EXPORT.sub("", _IMPORT.sub("", _text(path, given))) for path in order}
    _check_names(parts)
    body = "\n".join(part.strip("\n") + "\n" for part in parts.values())
    return f'"use strict";\n(() => {{\n{body}}})();\n'


def _text(path: Path, given: dict[Path, str]) -> str:
    text = given.get(path)
    if text is None:
        text = path.read_text(encoding="utf-8")
    if "</script" in text or "<!--" in text:
        raise InputError(f"{path.name} holds a text that would end the script of the page: write it otherwise")
    return text


def _check_names(parts: dict[Path, str]) -> None:
    """Refuse two modules that use one name at their top: one script holds both."""
    owner: dict[str, str] = {}
    for path, text in parts.items():
        if re.search(r"^(?:import|export)\b", text, re.MULTILINE):
            raise InputError(f"{path.name} imports or exports in a form that the build does not know")
        for name in _TOP_NAME.findall(text):
            if name in owner:
                raise InputError(f"{path.name} and {owner[name]} both have {name!r} at the top: rename one")
            owner[name] = path.name


def build_page(data: str | None = None) -> str:
    """The text of `play.html`."""
    module = (SCRIPTS / "data.js").resolve()
    script = join_modules(SCRIPTS / MAIN, {} if data is None else {module: data})
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    for mark, text in (
        ("@script-hash@", _hash(f"\n{script}")),
        ("@style-hash@", _hash(f"\n{style}")),
        ("@style@", f"\n{style}"),
        ("@script@", f"\n{script}"),
    ):
        if page.count(mark) != 1:
            raise InputError(f"index.html holds {mark} {page.count(mark)} times: it must be there once")
        page = page.replace(mark, text)
    return page


def _hash(text: str) -> str:
    """How a content security policy names an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main() -> None:
    """Write both files."""
    write_text(SCRIPTS / "data.js", data_module())
    write_text(PAGE, build_page())


if __name__ == "__main__":
    main()
