"""Bring folders of version 0.1 to the names of 0.2: `python results/rename_methods.py FOLDER...`

`phygail` of version 0.1, the evolved rule, is `reach-evolved`; `phygail-clone` is `reach-cloned`; `phygail-paper` is
`phygail-taught`, and its training is `phygail train phygail`. Renamed are rows, records of runs and their commands, the
kind of training folders, and files and folders that carry an old name. Weights and policy files keep their content.
Nothing is flown: run.json keeps in `flown_by` which version flew. A folder of version 0.2 or later is refused, and with
it everything that was asked for, so that nothing is renamed twice.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

OLD, NEW = "0.1.", "0.2.0"
METHODS = {"phygail": "reach-evolved", "phygail-clone": "reach-cloned", "phygail-paper": "phygail-taught"}
FILES = {
    **METHODS,
    "phygail-second-seed": "reach-evolved-second-seed",
    "phygail-third-seed": "reach-evolved-third-seed",
}
KINDS = {"phygail": "reach-evolved", "phygail-paper": "phygail"}  # of training folders: what is trained
RECORDS = {
    "run.json": "version",
    "config.json": "package",
    "training.json": "package",
}  # where a folder says its version


class RefusedError(ValueError):
    """One line for the user; nothing has been changed."""


def renamed_command(text: str) -> str:
    """A command line of version 0.1 as one types it now."""
    text = re.sub(r"(?<=train )phygail(-paper)?(?![\w-])", lambda m: "phygail" if m[1] else "reach-evolved", text)
    text = re.sub(r"(?<=--methods )\S+", lambda m: ",".join(METHODS.get(n, n) for n in m[0].split(",")), text)
    named = r"(?<=/)phygail-(?:clone|paper|second-seed|third-seed)(?![\w-])"
    return re.sub(named, lambda m: FILES[m[0]], text)


def renamed(value: Any) -> Any:
    """A record with new names: lists of methods, keys that name a method, commands, paths."""
    if isinstance(value, dict):
        return {_renamed_key(key): _renamed_kind(key, renamed(inner)) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner) for inner in value]
    if isinstance(value, str):
        return METHODS.get(value, renamed_command(value))
    return value


def _renamed_key(key: str) -> str:
    return re.sub(r"^(weights of )?(phygail(?:-clone|-paper)?)$", lambda m: f"{m[1] or ''}{METHODS[m[2]]}", key)


def _renamed_kind(key: str, value: Any) -> Any:
    return sorted(value) if key == "methods" and isinstance(value, list) else value


def renamed_rows(text: str) -> str:
    """rows.csv with new names, sorted by scenario and method as before."""
    header, *rows = csv.reader(io.StringIO(text))
    method, variant, version = (header.index(name) for name in ("method", "variant", "version"))
    for row in rows:
        row[method] = METHODS.get(row[method], row[method])
        row[variant] = FILES.get(row[variant], row[variant])
        row[version] = NEW
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *sorted(rows, key=lambda row: (row[0], row[method]))])
    return out.getvalue()


def check(folder: Path) -> list[Path]:
    """The records below a folder; one of another version is refused."""
    records = [path for name in RECORDS for path in sorted(folder.rglob(name))]
    for path in records:
        version = str(_read(path).get(RECORDS[path.name], ""))
        if not version.startswith(OLD):
            raise RefusedError(f"{path.parent} is of version {version or 'unknown'}: only folders of 0.1 are renamed")
    if not records:
        raise RefusedError(f"{folder} holds no run of version 0.1 (no run.json, no config.json)")
    return records


def rename(folder: Path) -> None:
    """Rename everything below a checked folder, the folder itself included."""
    for path in check(folder):
        record = _read(path)
        key = RECORDS[path.name]
        if path.name != "run.json":
            if record.get("kind") not in KINDS:
                continue
            settings, kind = record.pop("config"), KINDS[record["kind"]]
            record = {**renamed(record), "kind": kind, "config": settings}
            record |= {key: NEW, "begun_with": record[key]}
            path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        else:
            record = {**renamed(record), key: NEW, "flown_by": record[key]}
            path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            rows = path.with_name("rows.csv")
            if rows.exists():
                rows.write_text(renamed_rows(rows.read_text(encoding="utf-8")), encoding="utf-8")
    for path in sorted(folder.rglob("measures.csv")):
        path.write_text(
            re.sub(rf",{re.escape(OLD)}\d+$", f",{NEW}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        )
    for path in sorted(folder.rglob("experiment.json")):
        path.write_text(json.dumps(renamed(_read(path)), indent=1) + "\n", encoding="utf-8")
    for path in sorted([*folder.rglob("*"), folder], key=lambda p: -len(p.parts)):  # the innermost first
        if path.stem in FILES:
            path.rename(path.with_name(FILES[path.stem] + path.suffix))


def _read(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise RefusedError(f"{path} is not a record of phygail")
    return content


def main(words: list[str]) -> int:
    """Rename the folders, all or none."""
    try:
        for word in words:
            check(Path(word))
    except (OSError, ValueError) as error:
        print(f"rename_methods: {error}", file=sys.stderr)
        return 2
    for word in words:
        rename(Path(word).resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
