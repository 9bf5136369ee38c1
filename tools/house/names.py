"""Issue 17, item 2: names. `python names.py DIR` on the moved tree: texts, files, code; then results by rename_methods.py."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import names_code
import words
from wrap import finish

ROOT = Path(sys.argv[1]).resolve()
HERE = Path(__file__).parent
KEEP = {"CHANGELOG.md", "test_old_imports.py", "test_old_files.py", "rename_methods.py", "_moved.py"}
DATA = ROOT / "tests" / "data"


def git(*words):
    subprocess.run(["git", *map(str, words)], cwd=ROOT, check=True)


def pages():
    for pattern in (
        "src/**/*.py",
        "src/phygail/weights/README.md",
        "tests/**/*.py",
        "docs/**/*.md",
        "benchmarks/*.py",
        "examples/*.py",
        "results/README.md",
        "results/*.py",
        "README.md",
        "CONTRIBUTING.md",
        "Makefile",
        "pyproject.toml",
    ):
        for path in ROOT.glob(pattern):
            if path.name not in KEEP and DATA not in path.parents and ".venv" not in path.parts:
                yield path


HOLD = "\1"


def text_of(text: str, python: bool) -> str:
    text = re.sub(r"train phygail-paper", f"train {HOLD}", text)
    text = re.sub(r'"train", "phygail-paper"', f'"train", "{HOLD}"', text)
    text = re.sub(r"train phygail(?![\w-])", "train reach-evolved", text)
    text = re.sub(r'"train", "phygail"', '"train", "reach-evolved"', text)
    text = text.replace("phygail-second-seed", "reach-evolved-second-seed").replace(
        "phygail-third-seed", "reach-evolved-third-seed"
    )
    text = text.replace("phygail-clone", "reach-cloned").replace("phygail-paper", "phygail-taught")
    text = text.replace("methods/phygail.md", "methods/reach-evolved.md").replace(
        "](phygail.md)", "](reach-evolved.md)"
    )
    text = re.sub(
        r"(?<=--methods )[\w,-]+",
        lambda m: ",".join({"phygail": "reach-evolved"}.get(n, n) for n in m[0].split(",")),
        text,
    )
    text = re.sub(r"(?<!command )`phygail`", "`reach-evolved`", text)
    text = re.sub(r"\[phygail\]\(reach-evolved", "[reach-evolved](reach-evolved", text)
    text = re.sub(r"runs/phygail(?![\w-])", "runs/reach-evolved", text)
    text = re.sub(r"results/trained/phygail\.(jsonl|png)", r"results/trained/reach-evolved.\1", text)
    if python:
        for a, b in (
            ("PhygailPaper", "PhygailTaught"),
            ("PhygailClone", "ReachCloned"),
            ("TrainEvolve", "TrainReachEvolved"),
        ):
            text = re.sub(rf"\b{a}\b", b, text)
        text = re.sub(r"\bPhygail\b", "ReachEvolved", text)
        # method names in tuples, tables, calls; not loggers, commands and packages
        text = re.sub(
            r'(?<=[(\[{ ])"phygail"(?=, "(?:reach|sidr|phygail-taught|reach-cloned)")', '"reach-evolved"', text
        )
        text = re.sub(r'"sidr", "phygail"', '"sidr", "reach-evolved"', text)
        text = re.sub(r'"reach", "phygail"', '"reach", "reach-evolved"', text)
        text = re.sub(r'make_method\("phygail"', 'make_method("reach-evolved"', text)
        text = re.sub(r'"phygail": LineStyle', '"reach-evolved": LineStyle', text)
        text = re.sub(r'(?<=    name = )"phygail"', '"reach-evolved"', text)
        text = re.sub(r'(policy_name: ClassVar\[str\] = )"phygail"', r'\1"reach-evolved"', text)
        text = re.sub(r'\("phygail", ours', '("reach-evolved", ours', text)
        text = text.replace('print(f"phygail, damage', 'print(f"reach-evolved, damage')
        text = text.replace("sidr,phygail,convex", "sidr,reach-evolved,convex").replace(
            "the same gates as phygail,", "the same gates as reach-evolved,"
        )
        text = text.replace('add phygail"', 'add reach-evolved"')
    return text.replace(HOLD, "phygail")


def main():
    weights = ROOT / "src/phygail/weights"
    for old, new in (
        ("phygail-clone", "reach-cloned"),
        ("phygail-paper", "phygail-taught"),
        ("phygail", "reach-evolved"),
    ):
        for path in list(weights.glob(f"{old}.*")):
            git("mv", path, path.with_name(new + path.suffix))
    git("mv", "docs/methods/phygail.md", "docs/methods/reach-evolved.md")
    git("mv", "docs/methods/phygail-paper.md", "docs/methods/phygail-taught.md")
    for path in pages():
        text = path.read_text(encoding="utf-8")
        new = text_of(text, path.suffix == ".py")
        if new != text:
            path.write_text(new, encoding="utf-8")
    overlay = HERE / "names_files"
    words.main()
    names_code.main()
    for path in overlay.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            (ROOT / path.relative_to(overlay)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, ROOT / path.relative_to(overlay))

    finish(ROOT)


main()
