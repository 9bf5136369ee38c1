"""Build the page: the modules of `static/js`, the style and the data become one HTML file that needs nothing else.

    python -m phygail.web.build

writes `static/js/data.js` (layouts, weights) and `play.html`. Both are committed, so that an installed package
has them; a test builds them again and compares. There is no bundler: the modules are put one after the other in the
order of their imports, without the words `import` and `export`. So a name at the top of one module must not be taken
by another one, which is checked.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.files import write_text
from phygail.methods import METHODS
from phygail.methods.phygail import GRID
from phygail.methods.phygail import KIND as ACTOR
from phygail.methods.phygail import VERSION as ACTOR_VERSION
from phygail.methods.reach_evolved import KIND, VERSION
from phygail.swarm.layout import find_layout
from phygail.weights import bundled, read_weights

log = logging.getLogger("phygail")

HERE = Path(__file__).parent
STATIC = HERE / "static"
SCRIPTS = STATIC / "js"
PAGE = HERE / "play.html"

RULES = ("reach-evolved", "reach", "sidr", "center-fly")  # flown in the browser, under their names in the package
POLICY = "phygail"  # the learned policy, flown there if its weights fit into a page
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"  # for 0 to 63, as in numbers.js
_COMPACT = {"layer": "phygnn", "gates": "both", "features": 5, "types": 3, "edge_features": 0}  # what policy.js reads

MAIN = "main.js"
PAPER_SIZES = (20, 50, 100, 200, 500)  # layouts that the page carries

_IMPORT = re.compile(r'^import\s+(?:\{[^}]*\}\s+from\s+)?"(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
# Comments on lines of their own, comments behind code, and indentation: a fifth of the page that no player reads.
_FOR_READERS = re.compile(
    r"^ *//[^\n]*\n|^ */\*\*.*?\*/\n|(?<=[;{},(]) +// [^\n]*$|^ +(?=\S)", re.MULTILINE | re.DOTALL
)
# Spaces around signs, outside of texts; lines with templates, regular expressions or a sign of a sign stay as they are.
_TEXT = re.compile(r'("(?:\\.|[^"\\\n])*")')
_SPACED = re.compile(r" *([-+*/%=<>(){}\[\],;:?|&!]) *")
_DELICATE = re.compile(r"`|/(?! )|(?<! )/|[-+] +[-+]")
_TOP_NAME = re.compile(r"^(?:async )?(?:function\*?|class|const|let) (\w+)", re.MULTILINE)


def page_data() -> dict[str, Any]:
    """What the page carries besides code: the paper's layouts and weights."""
    layouts = {f"paper-{n}": layout_letters(find_layout(f"paper-{n}").positions) for n in PAPER_SIZES}
    return {"gates": gate_data(), "policy": page_policy(), "layouts": layouts}


@functools.cache
def page_policy() -> dict[str, Any] | None:
    """The learned policy, or None: there is none, or it does not fit (a warning says why; a server flies it then)."""
    if not bundled(POLICY).exists():
        return None
    try:
        return policy_data(*read_weights(bundled(POLICY), ACTOR, ACTOR_VERSION))
    except InputError as error:
        log.warning("%s is not flown in the page: %s", POLICY, error)
        return None


def policy_data(weights: dict[str, np.ndarray], config: dict[str, Any]) -> dict[str, Any]:
    """A compact actor for `static/js/methods/policy.js`: its graph, and every weight in half precision.

    The page must fly what Python flies: weights that half precision does not hold exactly are refused.
    """
    encoder = config["encoder"]
    odd = {key: encoder.get(key, usual) for key, usual in _COMPACT.items() if encoder.get(key, usual) != _COMPACT[key]}
    if odd or not encoder.get("compact") or config["graph"].get("recenter"):
        raise InputError(f"the page flies compact PhyGNN policies on the paper's observation, not {odd or encoder}")
    used = {name: tensor for name, tensor in weights.items() if not name.startswith("log_std")}
    halves = {name: tensor.astype("<f2") for name, tensor in used.items()}
    inexact = [name for name, tensor in used.items() if (halves[name].astype(tensor.dtype) != tensor).any()]
    if inexact:
        raise InputError(f"{inexact[0]} of {POLICY} has more than half precision: round the weights, then publish them")
    return {
        "name": POLICY,
        "note": METHODS.get(POLICY).summary if POLICY in METHODS else "",
        "graph": config["graph"],
        "command": config.get("training", config).get("command", "tanh"),
        "grid": GRID,
        "layers": encoder["layers"],
        "tensors": [[name, list(tensor.shape)] for name, tensor in halves.items()],
        "numbers": _letters(np.concatenate([tensor.ravel() for tensor in halves.values()])),
    }


def _letters(halves: np.ndarray) -> str:
    """Numbers as letters of six bits: signs and exponents first, one each, then all fractions without a gap.

    The first repeat themselves, so that gzip packs them well; the others are as random as numbers get.
    """
    bits = halves.view(np.uint16)
    fractions = (bits[:, None] >> np.arange(9, -1, -1) & 1).ravel()
    padded = np.pad(fractions, (0, -len(fractions) % 6 + 12))  # the page reads three letters at a time
    values = [*(bits >> 10), *(padded.reshape(-1, 6) @ (1 << np.arange(5, -1, -1)))]
    return "".join(LETTERS[value] for value in values)


def layout_letters(positions: np.ndarray) -> str:
    """Whole meters below 4,096, two letters per coordinate."""
    meters = positions.ravel().astype(int)
    if (meters != positions.ravel()).any() or meters.min() < 0 or meters.max() >= len(LETTERS) ** 2:
        raise InputError("the page carries layouts of whole meters from 0 to 4,095 only")
    return "".join(LETTERS[high] + LETTERS[low] for high, low in zip(*divmod(meters, len(LETTERS)), strict=True))


def gate_data() -> dict[str, Any]:
    """The gates of reach-evolved: how it sees the lost, and both networks with every weight in single precision."""
    weights, config = read_weights(bundled("reach-evolved"), KIND, VERSION)

    def network(name: str) -> dict[str, Any]:
        parts = {"w1": f"{name}1", "b1": f"{name}1.bias", "w2": f"{name}2", "b2": f"{name}2.bias"}
        return {key: _short(weights[tensor]) for key, tensor in parts.items()}

    return {"belief": config["belief"], "edge": network("edge"), "anchor": network("anchor")}


def _short(array: np.ndarray) -> Any:
    """Nested lists of the shortest decimals that are the same numbers in single precision."""
    return [_short(row) for row in array] if array.ndim else float(str(np.float32(array)))


@functools.cache
def page_methods() -> tuple[str, ...]:
    """What is flown in the browser."""
    return (*RULES, *((POLICY,) if page_policy() else ()))


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


def squeeze(script: str) -> str:
    """The script without what only readers need: comments, indentation, spaces around signs, most ends of lines."""
    return re.sub(r"(?<=[;{,])\n", "", "\n".join(map(_squeeze_line, _FOR_READERS.sub("", script).split("\n"))))


def _squeeze_line(line: str) -> str:
    if line.count("`") % 2:
        raise InputError(f"a template of the page goes over the end of a line: {line[:60]}")
    if _DELICATE.search(line):
        return line
    return "".join(part if k % 2 else _SPACED.sub(r"\1", part) for k, part in enumerate(_TEXT.split(line)))


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
    script = squeeze(join_modules(SCRIPTS / MAIN, {} if data is None else {module: data}))
    style = re.sub(r" *\n *| *([{};,]) *", r"\1", (STATIC / "style.css").read_text(encoding="utf-8"))
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
