"""Issue 17, item 2: the code behind the names. `python names_code.py DIR`, after names.py and words.py."""

import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
EDITS = {
    "src/phygail/__init__.py": [('__version__ = "0.1.0"', '__version__ = "0.2.0"')],
    "src/phygail/registry.py": [
        (
            '''    Attributes:
        kind: What the entries are, for error messages ("method").
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
''',
            '''    Attributes:
        kind: What the entries are, for error messages ("method").

    Args:
        kind: See above.
        aliases: Other names of entries.
        retired: Names that nothing may carry, each with the line that says what became of it.
    """

    def __init__(
        self, kind: str, aliases: Mapping[str, str] | None = None, retired: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._aliases = dict(aliases or {})
        self._retired = dict(retired or {})
''',
        ),
        (
            '''        """Register `entry` under `name`; a name is given once."""
''',
            '''        """Register `entry` under `name`; a name is given once."""
        if name in self._retired:
            raise InputError(f"{self.kind} {name!r}: {self._retired[name]}")
        if name in self._aliases:
            raise InputError(f"{self.kind} {name!r} is another name of {self._aliases[name]}: choose another name")
''',
        ),
        (
            '''        """The entry called `name`, or a clear error with the nearest names."""
        if name not in self._entries:
''',
            '''        """The entry called `name`, or a clear error with the nearest names."""
        name = self.canonical(name)
        if name in self._retired:
            raise InputError(f"{self.kind} {name!r}: {self._retired[name]}")
        if name not in self._entries:
''',
        ),
        (
            """    def names(self) -> list[str]:
""",
            '''    def canonical(self, name: str) -> str:
        """The one name of an entry that may have several."""
        return self._aliases.get(name, name)

    def names(self) -> list[str]:
''',
        ),
        (
            """    def __contains__(self, name: object) -> bool:
        return name in self._entries
""",
            """    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._aliases
""",
        ),
        ("from collections.abc import Iterator\n", "from collections.abc import Iterator, Mapping\n"),
    ],
    "src/phygail/methods/base.py": [
        (
            '''        flag: Set during the episode when a fallback fired; goes into the row.
    """

    name: ClassVar[str]
''',
            '''        stream: Key of its randomness where that is not its name: a method that was renamed flies as before.
        flag: Set during the episode when a fallback fired; goes into the row.
    """

    name: ClassVar[str]
    stream: ClassVar[str] = ""
''',
        ),
        (
            """METHODS: Registry[type[Method]] = Registry("method")
""",
            """# Names of version 0.1. `phygail` is kept for the policy that the paper's recipe learns from scratch.
OLD_NAMES = {"phygail": "reach-evolved", "phygail-clone": "reach-cloned", "phygail-paper": "phygail-taught"}
OLD_VERSION = "0.1."
METHODS: Registry[type[Method]] = Registry(
    "method",
    aliases={"phygail-paper": "phygail-taught"},
    retired={
        "phygail": "it was the evolved rule of version 0.1, which is reach-evolved now; "
        "the name is kept for the policy that PhyGAIL itself learns",
        "phygail-clone": "it was the start of the evolved rule in version 0.1, which is reach-cloned now",
    },
)
""",
        ),
        (
            """    if not names or not all(names):
        raise InputError("an empty method name: give names separated by commas, or all")
""",
            """    if not names or not all(names):
        raise InputError("an empty method name: give names separated by commas, or all")
    names = [METHODS.canonical(name) for name in names]
""",
        ),
        (
            'generator(scenario.seed or 0, "method", method.name, scenario.id)',
            'generator(scenario.seed or 0, "method", method.stream or method.name, scenario.id)',
        ),
    ],
    "src/phygail/methods/phygail/__init__.py": [
        (
            """    name = "phygail-taught"
    summary = "the paper's physics-gated graph policy, trained on 20 UAVs"
""",
            """    name = "phygail-taught"
    stream = "phygail-paper"
    summary = "the paper's physics-gated graph policy, taught by SIDR and trained on 20 UAVs"
""",
        ),
    ],
    "src/phygail/methods/reach_evolved/__init__.py": [
        (
            """    name = "reach-evolved"
""",
            """    name = "reach-evolved"
    stream = "phygail"
""",
        ),
        (
            """    name = "reach-cloned"
""",
            """    name = "reach-cloned"
    stream = "phygail-clone"
""",
        ),
    ],
    "src/phygail/methods/phygail/train.py": [
        (
            'KIND = "phygail-taught"\n',
            'KIND = "phygail"\nOLD_KIND = "phygail-paper"  # of version 0.1, in which `phygail` was the evolved rule\n',
        ),
        (
            """    if not isinstance(about, dict) or about.get("kind") != KIND:
""",
            """    if isinstance(about, dict) and str(about.get("package")).startswith(OLD_VERSION) and about.get("kind") in OLD_NAMES:
        raise InputError(
            f"{folder} is a run of {about['kind']} of version {about['package']}, which is "
            f"{KIND if about['kind'] == OLD_KIND else OLD_NAMES[about['kind']]} now: rename it first "
            "(results/rename_methods.py)"
        )
    if not isinstance(about, dict) or about.get("kind") != KIND:
""",
        ),
    ],
    "src/phygail/methods/reach_evolved/train.py": [
        ('KIND = "phygail"\n', 'KIND = "reach-evolved"\nOLD_KIND = "phygail"  # of runs of version 0.1\n'),
        (
            '''    """Continue a run where it stands."""
    try:
''',
            '''    """Continue a run where it stands."""
    _refuse_old(folder)
    try:
''',
        ),
        (
            """def resume_evolution(""",
            '''def _refuse_old(folder: Path) -> None:
    """A run of version 0.1 is renamed first: its kind means another training now."""
    try:
        about = read_json(folder / CONFIG)
    except (InputError, OSError, ValueError):
        return
    if isinstance(about, dict) and about.get("kind") == OLD_KIND and str(about.get("package")).startswith(OLD_VERSION):
        raise InputError(
            f"{folder} is a run of {OLD_KIND} of version {about['package']}, which is {KIND} now: rename it first "
            "(results/rename_methods.py)"
        )


def resume_evolution(''',
        ),
        ("holds no run of phygail to resume", "holds no run of reach-evolved to resume"),
    ],
    "src/phygail/experiments/rows.py": [
        (
            """            raise InputError(f"{path}, row {number} is damaged: delete this row and run again") from None
    return rows
""",
            '''            raise InputError(f"{path}, row {number} is damaged: delete this row and run again") from None
        _refuse_old_name(path, rows[-1])
    return rows


def _refuse_old_name(path: Path, row: Row) -> None:
    """A name of version 0.1 means something else now, or nothing."""
    if row["method"] in OLD_NAMES and row["version"].startswith(OLD_VERSION):
        raise InputError(
            f"{path} holds rows of {row['method']} of version {row['version']}, which is {OLD_NAMES[row['method']]} "
            "now: rename them first (results/rename_methods.py)"
        )
''',
        ),
    ],
    "src/phygail/methods/reach_evolved/gates.py": [
        (
            'KIND = "phygail"  # of weight and policy files',
            'KIND = "phygail"  # of weight and policy files of the evolved rule, as in version 0.1',
        )
    ],
    "src/phygail/cli/main.py": [
        (
            """    ("train", "phygail"): TrainPhygail,
""",
            """    ("train", "phygail"): TrainPhygail,
    ("train", "phygail-paper"): TrainPhygail,
""",
        ),
    ],
    "src/phygail/cli/train.py": [
        ("phygail and phygail-taught have their own.", "phygail and reach-evolved have their own.")
    ],
    "src/phygail/cli/export.py": [
        ("Weights of phygail-taught or phygail, with", "Weights of phygail or reach-evolved, with")
    ],
    "docs/methods/reach-evolved.md": [("# phygail\n", "# reach-evolved\n")],
    "docs/methods/index.md": [
        (
            "\nResults on these pages quote",
            """
The name `phygail` is kept for the policy that PhyGAIL itself learns from scratch (`phygail train phygail`); until it exists the name is refused. In
version 0.1 it was `reach-evolved`. `phygail-paper` is another name of `phygail-taught`.

Results on these pages quote""",
        ),
    ],
    "tests/test_house.py": [],
}


def main():
    """Make every edit; what is not found is reported."""
    for name, pairs in EDITS.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        for old, new in pairs:
            if old not in text:
                print(f"PROBLEM {name}: {old[:90]!r}")
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    # imports that the edits need
    for name, old, new in (
        (
            "src/phygail/methods/phygail/train.py",
            "from phygail.files import",
            "from phygail.methods.base import OLD_NAMES, OLD_VERSION\nfrom phygail.files import",
        ),
        (
            "src/phygail/methods/reach_evolved/train.py",
            "from phygail.files import",
            "from phygail.methods.base import OLD_VERSION\nfrom phygail.files import",
        ),
        (
            "src/phygail/experiments/rows.py",
            "from phygail.files import",
            "from phygail.methods.base import OLD_NAMES, OLD_VERSION\nfrom phygail.files import",
        ),
    ):
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if old not in text:
            print("PROBLEM import", name)
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
