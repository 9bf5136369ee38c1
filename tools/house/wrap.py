"""Docstrings and comments that became too long are filled again; then ruff sorts, formats and reports."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path


def wrapped(text: str) -> str:
    """Docstring paragraphs and comments with lines that became too long, filled again to 120 columns."""
    lines = []
    for line in text.splitlines():
        if len(line) > 120 and line.strip().startswith("# "):
            cut = line.rfind(" ", 0, 121)
            lines += [line[:cut], re.match(r" *", line)[0] + "# " + line[cut + 1 :]]
        else:
            lines.append(line)
    text = "\n".join(lines) + "\n"
    spans = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            spans.append((node.body[0].lineno - 1, node.body[0].end_lineno))
    for first, last in sorted(spans, reverse=True):
        while True:
            long = next((k for k in range(first, last) if len(lines[k]) > 120), None)
            if long is None:
                break
            indent = re.match(r" *", lines[long])[0]
            if long == first and last == first + 1 and lines[long].rstrip().endswith('"""'):
                lines[long] = lines[long].rstrip()[:-3]
                lines.insert(long + 1, indent + '"""')
                last += 1
            cut = lines[long].rfind(" ", 0, 121)
            if lines[long][:cut].endswith("eq."):
                cut = lines[long].rfind(" ", 0, cut)
            rest = lines[long][cut + 1 :]
            lines[long] = lines[long][:cut]
            following = lines[long + 1] if long + 1 < last else ""
            plain = (
                following.strip()
                and following.strip() != '"""'
                and re.match(r" *", following)[0] == indent
                and long + 1 < last
            )
            if plain and not re.match(r" *\w+: ", following):
                lines[long + 1] = f"{indent}{rest} {following.strip()}"
            else:
                lines.insert(long + 1, indent + rest)
                last += 1
    return "\n".join(lines) + "\n"


def finish(root: Path) -> None:
    """Wrap what is too long, format, and print what ruff still finds."""
    for top in ("src", "tests", "benchmarks", "results", "examples", "docs"):
        for path in (root / top).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if any(len(line) > 120 for line in text.splitlines()):
                path.write_text(wrapped(text), encoding="utf-8")
    ruff = root / ".venv" / "bin" / "ruff"
    parts = ["src", "tests", "examples", "benchmarks", "results", "docs"]
    subprocess.run([ruff, "check", "-q", "--fix", "--select", "I,F401,D209", *parts], cwd=root, check=False)
    subprocess.run([ruff, "format", "-q", *parts], cwd=root, check=False)
    subprocess.run([ruff, "check", "-q", "--fix", "--output-format", "concise", *parts], cwd=root, check=False)
