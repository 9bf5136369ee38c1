"""Move the package to the new house: `python tools/house/move.py ROOT [--dry]`. Runs on any commit of the old tree.

Reads mapping.py. Whole modules move with their imports rewritten in place; merged and split ones are assembled statement
by statement, each with the imports that it needs. Bodies do not change, except names listed in RENAMES.
"""

from __future__ import annotations

import ast
import io
import re
import shutil
import sys
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

import mapping
from mapping import COPIES, DEFAULT, DROP, GONE, NEW_PACKAGES, RENAMES, SPLITS, TARGETS
from wrap import finish

ROOT = Path(sys.argv[1]).resolve()
SRC = ROOT / "src" / "phygail"
ROOMS = "evaluation|training|models|perception|experts|methods|swarm|envs|web|cli"
ROOT_OLD = "config|files|groups|registry|rng|tensors"
NEW_ROOM = {"evaluation": "experiments", "perception": "sensing", "models": "learning", "training": "learning",
            "experts": "methods.phygail.experts"}  # fmt: skip
PUBLIC = {"methods": {"METHODS", "Method", "make_method", "run_episode"}}
KEEP_ORDER = {"evaluation.paper", "evaluation.beyond", "evaluation.catalog"}  # data that is read in order
problems: list[str] = []
notes: list[str] = []


def dotted(path: Path) -> str:
    parts = list(path.relative_to(SRC).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass
class Seg:
    node: ast.stmt
    names: tuple[str, ...]
    start: int  # first line, 0-based, comments above included
    end: int  # last line + 1
    blanks: int


@dataclass
class Module:
    name: str
    path: Path
    source: str
    tree: ast.Module
    package: bool
    segs: list[Seg] = field(default_factory=list)
    env: dict[str, list[tuple]] = field(default_factory=dict)  # name -> [(kind, ...)]
    future: bool = False


def names_of(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return (node.name,)
    if isinstance(node, ast.Assign):
        found = []
        for target in node.targets:
            found += [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return tuple(found)
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)) and isinstance(node.target, ast.Name):
        return (node.target.id,)
    if isinstance(node, ast.Try):
        return tuple(
            dict.fromkeys(
                a.asname or a.name
                for n in ast.walk(node)
                if isinstance(n, (ast.Import, ast.ImportFrom))
                for a in n.names
            )
        )
    return ()


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def add_import(module: Module, node: ast.stmt, typed: bool) -> None:
    if isinstance(node, ast.Import):
        for a in node.names:
            local = a.asname or a.name.split(".")[0]
            module.env.setdefault(local, []).append(
                ("ext", f"import {a.name}" + (f" as {a.asname}" if a.asname else ""), typed)
            )
    elif isinstance(node, ast.ImportFrom):
        if node.module == "__future__":
            module.future = True
            return
        assert node.level == 0, (module.name, node.lineno)
        for a in node.names:
            local = a.asname or a.name
            if node.module == "phygail" or node.module.startswith("phygail."):
                module.env.setdefault(local, []).append(("own", node.module[8:], a.name, a.asname, typed))
            else:
                text = f"from {node.module} import {a.name}" + (f" as {a.asname}" if a.asname else "")
                module.env.setdefault(local, []).append(("ext", text, typed))


def read(path: Path) -> Module:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    module = Module(dotted(path), path, source, tree, path.name == "__init__.py")
    lines = source.splitlines()
    previous = 0
    for number, node in enumerate(tree.body):
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        if (
            number == 0
            and isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            previous = node.end_lineno
            continue
        start = previous
        blanks = 0
        while start < first and not lines[start].strip():
            start, blanks = start + 1, blanks + 1
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            add_import(module, node, False)
            if start < first:
                problems.append(f"{module.name}:{first}: a comment above an import: {lines[start:first]}")
        elif is_type_checking(node):
            for inner in node.body:
                add_import(module, inner, True)
        else:
            names = names_of(node)
            module.segs.append(Seg(node, names, start, node.end_lineno, blanks))
            for name in names:
                module.env[name] = [("def",)]
        previous = node.end_lineno
    if module.segs and any(line.strip() for line in lines[previous:]):
        problems.append(f"{module.name}: text after the last statement")
    return module


MODULES = {m.name: m for m in map(read, sorted(SRC.rglob("*.py")))}
CONTRIBUTES: dict[str, list[str]] = {}
for _target, (_, _sources) in TARGETS.items():
    for _old in _sources:
        CONTRIBUTES.setdefault(_old, []).append(_target)


def default_target(old: str) -> str:
    if old in DEFAULT:
        return DEFAULT[old]
    if old in CONTRIBUTES:
        assert len(CONTRIBUTES[old]) == 1, f"{old} needs a default"
        return CONTRIBUTES[old][0]
    room, _, rest = old.partition(".")
    if room in NEW_ROOM and rest:
        notes.append(f"NEW FILE {old} -> {NEW_ROOM[room]}.{rest} by default")
        return f"{NEW_ROOM[room]}.{rest}"
    return old


def target_of(old: str, name: str) -> str:
    return SPLITS.get(old, {}).get(name, default_target(old))


def new_name(old: str, name: str) -> str:
    return RENAMES.get((old, name), name)


def resolve(old: str, name: str) -> tuple[str, str, str]:
    """('module', m, '') or ('symbol', home module, name)."""
    module = MODULES.get(old)
    if module is None:
        return ("unknown", old, name)
    entries = module.env.get(name)
    if entries and entries[0][0] == "def":
        return ("symbol", old, name)
    if entries and entries[0][0] == "own":
        return resolve(entries[0][1], entries[0][2])
    inner = f"{old}.{name}" if old else name
    if inner in MODULES:
        return ("module", inner, "")
    if entries:
        return ("symbol", old, name)  # an external name taken from a module
    return ("unknown", old, name)


def place(old: str, name: str, inside: str) -> tuple[str, str]:
    """(new module, new name) from which `inside` imports what `from phygail.old import name` meant."""
    if old == "":
        return "", name
    kind, home, symbol = resolve(old, name)
    if kind == "unknown":
        problems.append(f"cannot resolve phygail.{old}.{name} (asked in {inside})")
        return default_target(old), name
    if old in PUBLIC and name in PUBLIC[old] and not inside.startswith("methods"):
        return old, name
    return target_of(home, symbol), new_name(home, symbol)


def import_entries(
    module: str, aliases: list[tuple[str, str | None]], inside: str
) -> list[tuple[str, str, str | None]]:
    """(new module, name, asname) of the names of one `from phygail... import`; those that `inside` itself defines are left out."""
    found = []
    old = module[8:] if module != "phygail" else ""
    for name, asname in aliases:
        if resolve(old, name)[0] == "module":
            new = default_target(resolve(old, name)[1])
            parent, _, base = new.rpartition(".")
            local = asname or name
            found.append((parent, base, local if local != base else None))
            continue
        new, symbol = place(old, name, inside)
        if new == inside:
            if asname and asname != symbol:
                problems.append(f"{inside}: {symbol} is used as {asname} inside its own module")
            continue
        found.append((new, symbol, asname))
    return found


def import_lines(entries: list[tuple[str, str, str | None]]) -> list[str]:
    by: dict[str, list[str]] = {}
    for new, symbol, asname in entries:
        by.setdefault(new, []).append(symbol + (f" as {asname}" if asname else ""))
    return [
        f"from phygail{'.' + new if new else ''} import {', '.join(sorted(set(names)))}"
        for new, names in sorted(by.items())
    ]


# --- text: strings, comments, pages ---------------------------------------------------------------------------------

_FROM = re.compile(r"from (phygail(?:\.\w+)*) import (\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)")
_DOTTED = re.compile(rf"(?<![\w/.])phygail\.((?:{ROOMS}|{ROOT_OLD})\b(?:\.\w+)*)")
_TICKED = re.compile(rf"(?<![\w/.])((?:{ROOMS})\.\w+(?:\.\w+)*)")
_PATH = re.compile(rf"(?<![\w/])((?:src/)?(?:phygail/)?)((?:{ROOMS})/\w+|(?:{ROOT_OLD}))\.py\b")
_TEST = re.compile(r"(?<![\w/])tests/(?:\w+/)?test_\w+\.py")


def new_dotted(words: str) -> str:
    """A dotted name without the leading `phygail.`: the longest module in front of it moves, a symbol to its home."""
    parts = words.split(".")
    for count in range(len(parts), 0, -1):
        old = ".".join(parts[:count])
        if old in MODULES:
            rest = parts[count:]
            if rest and MODULES[old].env.get(rest[0], [("",)])[0][0] == "def":
                return ".".join([target_of(old, rest[0]), new_name(old, rest[0]), *rest[1:]])
            if rest and any(
                isinstance(n, ast.Constant) and n.value == rest[0]
                for seg in MODULES[old].segs
                if "__all__" in seg.names
                for n in ast.walk(seg.node)
            ):
                kind, home, symbol = resolve(old, rest[0])
                if kind == "symbol" and old not in PUBLIC:
                    return ".".join([target_of(home, symbol), new_name(home, symbol), *rest[1:]])
            if old in GONE or (old in ROOMS.split("|") and not rest):
                return words
            return ".".join([default_target(old), *rest])
    return words


def rewrite_text(text: str, inside: str) -> str:
    held: list[str] = []

    def hold(new: str) -> str:
        held.append(new)
        return f"\0{len(held) - 1}\0"

    def from_import(match: re.Match[str]) -> str:
        aliases = [(a, b or None) for a, _, b in (part.partition(" as ") for part in match[2].split(", "))]
        if match[1] == "phygail":
            return hold(match[0])
        return hold("; ".join(import_lines(import_entries(match[1], aliases, "text"))))

    text = _FROM.sub(from_import, text)
    text = _DOTTED.sub(lambda m: hold("phygail." + new_dotted(m[1])), text)
    text = _TICKED.sub(lambda m: hold(new_dotted(m[1])) if ".".join(m[1].split(".")[:2]) in MODULES else m[0], text)

    def path(match: re.Match[str]) -> str:
        old = match[2].replace("/", ".")
        if old not in MODULES:
            return match[0]
        return hold(match[1] + file_of(default_target(old)).relative_to(SRC).as_posix())

    text = _PATH.sub(path, text)
    text = _TEST.sub(lambda m: hold(TESTS.get(m[0], m[0])), text)
    return re.sub("\0(\\d+)\0", lambda m: held[int(m[1])], text)


# --- edits of Python source -----------------------------------------------------------------------------------------


class Source:
    """Text with edits at positions as ast and tokenize give them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.edits: list[tuple[int, int, str]] = []

    def at(self, line: int, byte_column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:byte_column].decode())

    def replace(self, start: int, end: int, new: str) -> None:
        self.edits.append((start, end, new))

    def cut(self, first: int, last: int) -> str:
        """Lines first..last (0-based, last excluded) with the edits in them."""
        begin, stop = self.starts[first], self.starts[last]
        text, place_ = "", begin
        for start, end, new in sorted(set(self.edits)):
            if begin <= start and end <= stop:
                assert start >= place_, (self.text[place_ : end + 20], new)
                text += self.text[place_:start] + new
                place_ = end
        return text + self.text[place_:stop]


def bound_names(function: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and node is not function:
            found |= {a.asname or a.name.split(".")[0] for a in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node is not function:
            found.add(node.name)
    return found


def rename_names(source: Source, tree: ast.AST, renames: dict[str, str]) -> None:
    """Every use of a module-level name, but not where a function binds the same name itself."""

    def visit(node: ast.AST, hidden: frozenset[str]) -> None:
        if isinstance(node, ast.Name) and node.id in renames and node.id not in hidden:
            source.replace(
                source.at(node.lineno, node.col_offset),
                source.at(node.end_lineno, node.end_col_offset),
                renames[node.id],
            )
        if (
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and node.name in renames
            and node in getattr(tree, "body", [])
        ):
            start = source.at(node.lineno, node.col_offset)
            match = re.compile(r"(?:def|class)\s+(\w+)").match(source.text, start)
            assert match
            source.replace(match.start(1), match.end(1), renames[node.name])
        inner = hidden
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            inner = hidden | frozenset(bound_names(node) & set(renames))
            for part in (*getattr(node, "decorator_list", []), node.args):
                visit(part, hidden)
            body = node.body if isinstance(node.body, list) else [node.body]
            returns = getattr(node, "returns", None)
            for part in (*body, *([returns] if returns else [])):
                visit(part, inner)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, inner)

    if renames:
        visit(tree, frozenset())


def rewrite_strings(source: Source, inside: str) -> None:
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            new = rewrite_text(token.string, inside)
            if new != token.string:
                start = source.starts[token.start[0] - 1] + token.start[1]
                end = source.starts[token.end[0] - 1] + token.end[1]
                source.replace(start, end, new)


def own_import(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.ImportFrom)
        and node.module is not None
        and (node.module == "phygail" or node.module.startswith("phygail."))
    )


def rewrite_imports(source: Source, nodes: list[ast.AST], inside: str) -> dict[str, str]:
    """Rewrite the imports of the package among these nodes; the local names that change."""
    renames: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("phygail."):
                    start, end = (
                        source.at(node.lineno, node.col_offset),
                        source.at(node.end_lineno, node.end_col_offset),
                    )
                    new = "phygail." + new_dotted(alias.name[8:])
                    source.replace(start, end, source.text[start:end].replace(alias.name, new))
                    if not alias.asname and new != alias.name:
                        problems.append(f"{inside}: `import {alias.name}` without an alias")
            continue
        if not own_import(node):
            continue
        aliases = [(a.name, a.asname) for a in node.names]
        for name, asname in aliases:
            if node.module != "phygail" and resolve(node.module[8:], name)[0] == "symbol" and not asname:
                _, home, symbol = resolve(node.module[8:], name)
                if new_name(home, symbol) != name:
                    renames[name] = new_name(home, symbol)
        lines = import_lines(import_entries(node.module, aliases, inside))
        start = source.at(node.lineno, node.col_offset)
        end = source.at(node.end_lineno, node.end_col_offset)
        indent = " " * node.col_offset
        stop = source.text.find("\n", end)
        comment = source.text[end:stop]
        if not lines:
            source.replace(start - node.col_offset, stop + 1, "")
        else:
            source.replace(start, stop, f"\n{indent}".join(line + comment for line in lines))
    return renames


def whole(module: Module, inside: str) -> str:
    """A module that moves whole."""
    source = Source(module.source)
    renames = rewrite_imports(source, list(ast.walk(module.tree)), inside)
    renames |= {name: new for (old, name), new in RENAMES.items() if old == module.name}
    rename_names(source, module.tree, renames)
    rewrite_strings(source, inside)
    if module.name == "":
        source.edits = [
            edit for edit in source.edits if not any(a <= edit[0] < b for a, b in front_door(source, module))
        ]
    return source.cut(0, len(source.lines))


def front_door(source: Source, module: Module) -> list[tuple[int, int]]:
    """_HOMES anew: every name from where it lives now."""
    places = []
    for seg in module.segs:
        if seg.names == ("_HOMES",):
            homes: dict[str, list[str]] = {}
            for old, names in ast.literal_eval(seg.node.value).items():
                for name in names:
                    new, symbol = place(old[8:], name, "front door")
                    homes.setdefault(f"phygail.{new}", []).append(symbol)
            lines = "".join(
                f"    {home!r}: ({', '.join(map(repr, sorted(names)))}{',' * (len(names) == 1)}),\n".replace("'", '"')
                for home, names in sorted(homes.items())
            )
            start, end = source.starts[seg.start], source.starts[seg.end]
            if (start, end) not in places:
                places.append((start + 1, end))
                if not any(edit[0] == start for edit in source.edits):
                    source.edits.append((start, end, "_HOMES = {\n" + lines + "}\n"))
    return places


# --- assembled modules ----------------------------------------------------------------------------------------------


def used_names(text: str) -> set[str]:
    """Names that a statement may use, those in short strings (quoted types) too: too many does no harm, ruff removes them."""
    found: set[str] = set()
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and before != ".":
            found.add(token.string)
        elif token.type == tokenize.STRING:
            if len(token.string) < 60 and not token.string.startswith(('"""', "'''")):
                found |= set(re.findall(r"[A-Za-z_]\w*", token.string))
            if re.match(r"[rRbB]*[fF]", token.string):
                found |= set(re.findall(r"[A-Za-z_]\w*", token.string))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.string
    return found


def docstring_rest(module: Module, inside: str) -> str:
    text = ast.get_docstring(module.tree, clean=False)
    if not text or "\n" not in text:
        return ""
    node = module.tree.body[0]
    raw = "\n".join(module.source.splitlines()[node.lineno - 1 : node.end_lineno])
    raw = rewrite_text(raw[raw.index('"""') + 3 : raw.rindex('"""')], inside)
    paragraphs = raw.split("\n\n", 1)
    return paragraphs[1].strip("\n") if len(paragraphs) > 1 else ""


def assemble(target: str) -> str:
    headline, sources = TARGETS[target]
    sources = [name for name in sources if name in MODULES]
    body: list[str] = []
    top: list[str] = []
    high: set[str] = set()
    runtime: dict[str, set[str]] = {}  # local name -> import lines
    typed: dict[str, set[str]] = {}
    defined: dict[str, str] = {}
    future = False
    rests = []
    for old in sources:
        module = MODULES[old]
        mine = [seg for seg in module.segs
                if ((target_of(old, seg.names[0]) if seg.names else default_target(old)) == target
                    or (seg.names and (old, seg.names[0]) in COPIES.get(target, ())))
                and not (seg.names and (old, seg.names[0]) in DROP)]  # fmt: skip
        if not mine:
            if default_target(old) != target:
                problems.append(f"{target}: takes nothing from {old}")
            elif module.segs:
                notes.append(f"{target}: nothing of {old}")
            continue
        future |= module.future
        if default_target(old) == target:
            rests.append(docstring_rest(module, target))
        source = Source(module.source)
        nested = [
            n
            for seg in mine
            for n in ast.walk(seg.node)
            if n is not seg.node and isinstance(n, (ast.Import, ast.ImportFrom))
        ]
        nested = [
            n
            for n in nested
            if not any(
                isinstance(seg.node, ast.Try) and seg.node.lineno <= n.lineno <= seg.node.end_lineno for seg in mine
            )
        ]
        renames = rewrite_imports(source, nested, target)
        renames |= {name: new for (o, name), new in RENAMES.items() if o == old}
        for local, entries in module.env.items():
            for entry in entries:
                if entry[0] == "own" and entry[1]:
                    kind, home, symbol = resolve(entry[1], entry[2])
                    if kind == "symbol":
                        new = new_name(home, symbol)
                        if entry[3] is None and new != local:
                            renames[local] = new
                        if entry[3] is not None and target_of(home, symbol) == target and entry[3] != new:
                            renames[local] = new
        rename_names(source, module.tree, renames)
        rewrite_strings(source, target)
        last = None
        leading = True
        for seg in mine:
            text = source.cut(seg.start, seg.end)
            if not text.endswith("\n"):
                text += "\n"
            duplicate = False
            for name in seg.names:
                final = renames.get(name, name)
                plain = "\n".join(line.split("  #")[0] for line in text.strip().splitlines())
                if final in defined and defined[final] == plain:
                    duplicate = True
                elif final in defined:
                    problems.append(f"COLLISION in {target}: {final} of {old}")
                defined[final] = plain
            used = used_names("".join(Source(module.source).lines[seg.start : seg.end]))
            for name in used:
                for entry in module.env.get(name, []):
                    if entry[0] == "def":
                        home = target_of(old, name)
                        if home != target and (old, name) not in DROP and (old, name) not in COPIES.get(target, ()):
                            new = new_name(old, name)
                            runtime.setdefault(new, set()).add(f"from phygail.{home} import {new}")
                    elif entry[0] == "ext":
                        (typed if entry[2] else runtime).setdefault(name, set()).add(entry[1])
                    else:
                        lines = import_lines(
                            import_entries(
                                "phygail" + ("." + entry[1] if entry[1] else ""), [(entry[2], entry[3])], target
                            )
                        )
                        (typed if entry[4] else runtime).setdefault(renames.get(name, name), set()).update(lines)
            if duplicate:
                continue
            blanks = seg.blanks if last is not None else 2
            own = {n for n in used if module.env.get(n, [("",)])[0][0] == "def" and n not in seg.names} - high
            inner = {
                n
                for n in used
                if any(
                    e[0] == "own" and target_of(*resolve(e[1], e[2])[1:]) == target
                    for e in module.env.get(n, [])
                    if e[0] == "own" and e[1]
                )
            } - high
            constant = isinstance(seg.node, (ast.Assign, ast.AnnAssign)) and not own and not inner
            if constant and leading and old not in KEEP_ORDER:
                top.append(
                    "\n" * (1 if seg is mine[0] and top else min(seg.blanks, 1) if seg is not mine[0] else 0) + text
                )
                high |= set(seg.names)
                continue
            leading = False
            body.append("\n" * blanks + text)
            last = seg
    for name, lines in runtime.items():
        if len({line for line in lines if line.startswith("from")}) > 1:
            problems.append(f"COLLISION in {target}: imports {sorted(lines)}")
        if name in defined and lines:
            problems.append(f"COLLISION in {target}: {name} is defined and imported {sorted(lines)}")
    for name, lines in typed.items():
        if name in defined and lines:
            problems.append(f"COLLISION in {target}: {name} is defined and imported for types {sorted(lines)}")
    late = sorted({line for name, lines in typed.items() if name not in runtime for line in lines})
    head = f'"""{headline}'
    rests = [rest for rest in rests if rest]
    head += ("\n\n" + "\n\n".join(rests) + '\n"""\n') if rests else '"""\n'
    text = head + "\n" + ("from __future__ import annotations\n\n" if future else "")
    text += "\n".join(sorted({line for lines in runtime.values() for line in lines})) + "\n"
    if late:
        text += "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n" + "".join(f"    {line}\n" for line in late)
    return text + "\n" + "".join(top) + "".join(body)


# --- where files go -------------------------------------------------------------------------------------------------

ALL_TARGETS = (
    {t for t, (_, olds) in TARGETS.items() if any(o in MODULES for o in olds)}
    | set(NEW_PACKAGES)
    | {default_target(old) for old in MODULES if old not in GONE}
)
PACKAGES = {t for t in ALL_TARGETS if any(o.startswith(t + ".") for o in ALL_TARGETS)} | {
    m.name for m in MODULES.values() if m.package and default_target(m.name) == m.name
}


def file_of(target: str) -> Path:
    if target == "":
        return SRC / "__init__.py"
    path = SRC.joinpath(*target.split("."))
    return path / "__init__.py" if target in PACKAGES else path.with_suffix(".py")


def test_home(path: Path) -> str:
    """Where a test file goes: beside its module, test_MODULE.py or test_MODULE_PART.py."""
    relative = path.relative_to(ROOT).as_posix()
    if relative in mapping.TEST_FILES:
        return mapping.TEST_FILES[relative]
    parts = path.relative_to(ROOT / "tests").with_suffix("").parts
    if len(parts) == 1 or not parts[-1].startswith("test_"):
        return relative
    old = ".".join([*parts[:-1], parts[-1][5:]])
    if old not in MODULES:
        room = parts[0]
        if f"{ROOMS}".find(room) >= 0 and room in NEW_ROOM:
            notes.append(f"TEST {relative} has no module: {NEW_ROOM[room]}")
            return f"tests/{NEW_ROOM[room].replace('.', '/')}/{parts[-1]}.py"
        return relative
    target = default_target(old)
    base, stem = target.rpartition(".")[2], parts[-1][5:]
    folder = target.replace(".", "/") if target in PACKAGES else target.rpartition(".")[0].replace(".", "/")
    name = f"test_{base}.py" if base == stem or target in PACKAGES else f"test_{base}_{stem}.py"
    return f"tests/{folder}/{name}"


TEST_PATHS = sorted((ROOT / "tests").rglob("*.py"))
TESTS = {path.relative_to(ROOT).as_posix(): test_home(path) for path in TEST_PATHS}


def main() -> None:
    out: dict[Path, str] = {}
    for target, (headline, sources) in TARGETS.items():
        present = [s for s in sources if s in MODULES]
        if not present:
            continue
        if headline is None and len(present) == 1 and present[0] not in SPLITS:
            out[file_of(target)] = whole(MODULES[present[0]], target)
        elif headline is None:
            text = ast.get_docstring(MODULES[present[0]].tree, clean=False)
            TARGETS[target] = (rewrite_text(text.split("\n\n")[0].rstrip("\n"), target), sources)
            out[file_of(target)] = assemble(target)
        elif present:
            out[file_of(target)] = assemble(target)
    for old, module in MODULES.items():
        if old not in CONTRIBUTES and old not in GONE:
            target = default_target(old)
            if target != old or old.count(".") > 0 or True:
                out[file_of(target)] = whole(module, target)
    for package, text in NEW_PACKAGES.items():
        out[file_of(package)] = text
    seen = {old: {target_of(old, n) for seg in m.segs for n in seg.names} for old, m in MODULES.items()}
    for old, targets in seen.items():
        for target in targets:
            if old in CONTRIBUTES and target not in CONTRIBUTES[old]:
                problems.append(f"{target} does not list {old}")
    tests = {}
    for path in TEST_PATHS:
        new = ROOT / TESTS[path.relative_to(ROOT).as_posix()]
        if new in tests:
            problems.append(f"two tests go to {new}")
        tests[new] = python_text(path)
    others = {
        path: python_text(path)
        for folder in ("examples", "benchmarks", "docs", "results")
        for path in (ROOT / folder).rglob("*.py")
    }
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "CITATION.cff")]
    pages += [*list((ROOT / "docs").rglob("*.md")), ROOT / "results" / "README.md"]
    texts = {path: rewrite_text(path.read_text(encoding="utf-8"), "text") for path in pages if path.exists()}
    for line in dict.fromkeys(notes):
        print("note:", line)
    for line in dict.fromkeys(problems):
        print("PROBLEM:", line)
    if "--dry" in sys.argv:
        return
    for module in MODULES.values():
        module.path.unlink()
    for path in TEST_PATHS:
        path.unlink()
    for path, text in {**out, **tests, **others, **texts}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for folder in sorted([p for top in (SRC, ROOT / "tests") for p in top.rglob("*") if p.is_dir()], reverse=True):
        if folder.name == "__pycache__" or not any(folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
    for path, pairs in mapping.PATCHES.items():
        file = ROOT / path
        if not file.exists():
            print("PROBLEM: no file to patch:", path)
            continue
        text = file.read_text(encoding="utf-8")
        for old, new in pairs:
            if old not in text:
                print(f"PROBLEM: {path}: patch not found: {old[:80]!r}")
            text = text.replace(old, new)
        file.write_text(text, encoding="utf-8")
    write_moved()
    overlay = Path(__file__).parent / "move_files"
    for path in overlay.rglob("*"):
        if path.is_file():
            (ROOT / path.relative_to(overlay)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, ROOT / path.relative_to(overlay))
    finish(ROOT)


def write_moved() -> None:
    """phygail/_moved.py: signposts at the old import paths."""
    template = (Path(__file__).parent / "moved_template.txt").read_text()
    modules, names = {}, {}
    for old, module in MODULES.items():
        if not old or old in NEW_ROOM or old == "__main__":
            continue
        target = default_target(old)
        if file_of(old).exists() or SRC.joinpath(*old.split("."), "__init__.py").exists():
            continue  # the place is still inhabited
        if old not in NEW_ROOM:
            modules[old] = target
        listed = {
            n.value
            for seg in module.segs
            if "__all__" in seg.names
            for n in ast.walk(seg.node)
            if isinstance(n, ast.Constant)
        }
        for name, entries in module.env.items():
            if name.startswith("_") or not (entries[0][0] == "def" or name in listed):
                continue
            kind, home, symbol = resolve(old, name)
            if kind == "symbol" and (target_of(home, symbol) != target or new_name(home, symbol) != name):
                names[old, name] = (target_of(home, symbol), new_name(home, symbol))
    text = template.replace("@ROOMS@", ", ".join(f'"{room}"' for room in sorted(NEW_ROOM)))
    text = text.replace("@MODULES@", "\n".join(f'    "{a}": "{b}",' for a, b in sorted(modules.items())))
    text = text.replace(
        "@NAMES@", "\n".join(f'    ("{a}", "{n}"): ("{b}", "{m}"),' for (a, n), (b, m) in sorted(names.items()))
    )
    (SRC / "_moved.py").write_text(text)


def python_text(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.name in mapping.FROZEN:
        return text
    tree = ast.parse(text)
    source = Source(text)
    renames = rewrite_imports(source, list(ast.walk(tree)), path.name)
    rename_names(source, tree, renames)
    rewrite_strings(source, "text")
    check_modules(path, tree)
    return source.cut(0, len(source.lines))


def check_modules(path: Path, tree: ast.Module) -> None:
    """Attributes of imported modules must live in the module's default target."""
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if own_import(node):
            for a in node.names:
                old = node.module[8:] if node.module != "phygail" else ""
                if resolve(old, a.name)[0] == "module":
                    imported[a.asname or a.name] = resolve(old, a.name)[1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            old = imported[node.value.id]
            entries = MODULES[old].env.get(node.attr)
            if entries and entries[0][0] == "def" and target_of(old, node.attr) != default_target(old):
                notes.append(
                    f"{path.name}:{node.lineno}: {node.value.id}.{node.attr} lives in {target_of(old, node.attr)} now"
                )


main()
