"""Mutants: one change of a module each (see `tests/mutate.py`, which runs the tests on them)."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_TWINS = ("min max", "minimum maximum", "argmin argmax", "any all", "floor ceil", "cos sin", "fmin fmax",
          "ones zeros", "cumsum cumprod")  # fmt: skip
NAMES = {a: b for pair in _TWINS for a, b in (pair.split(), pair.split()[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One change of a module.

    Attributes:
        node: Number of the changed node in `ast.walk` order. kind: Of the change. which: Its number within the node.
        line: In the file. place: Function or class. text: Before and after.
    """

    node: int
    kind: str
    which: int
    line: int
    place: str
    text: str

    @property
    def order(self) -> bytes:
        """Decides who is in the sample; does not depend on line numbers."""
        return hashlib.sha256(f"{self.place} {self.kind} {self.text}".encode()).digest()


def changes(node: ast.AST) -> Iterator[tuple[str, int]]:
    """(kind, number) of every change that a node offers."""
    match node:
        case ast.Compare(ops=ops):
            yield from (("comparison", k) for k, op in enumerate(ops) if type(op) in COMPARISONS)
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in OPERATORS:
            yield "operator", 0
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield "sign", 0
        case ast.Constant(value=bool() | int() | float()):
            yield "constant", 0
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if not _reversed_by_comparison(test):
            yield "condition", 0
        case ast.Call(keywords=keywords, func=func):
            yield from (("keyword", k) for k, word in enumerate(keywords) if word.arg not in (None, "dtype"))
            if getattr(func, "attr", getattr(func, "id", "")) in NAMES:
                yield "name", 0
    if isinstance(node, ast.AugAssign | ast.Raise | ast.Continue) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield "left out", 0


def _reversed_by_comparison(test: ast.expr) -> bool:
    """Whether the comparison or the `not` in it, changed, is the same mutant."""
    exact = ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn
    compared = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], exact)
    return compared or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


def changed(tree: ast.Module, mutant: Mutant) -> ast.Module:
    """A copy of the module with the change."""
    tree = copy.deepcopy(tree)
    node = list(ast.walk(tree))[mutant.node]
    _change(tree, node, mutant.kind, mutant.which)
    return ast.fix_missing_locations(tree)


def _change(tree: ast.Module, node: ast.AST, kind: str, which: int) -> None:
    if kind == "left out":
        for parent in ast.walk(tree):
            for body in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
                if isinstance(body, list) and any(child is node for child in body):
                    body[[child is node for child in body].index(True)] = ast.copy_location(ast.Pass(), node)
        return
    match node:
        case ast.Compare() if kind == "comparison":
            node.ops[which] = COMPARISONS[type(node.ops[which])]()
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            node.op = OPERATORS[type(node.op)]()
        case ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd()
        case ast.UnaryOp():
            node.operand = ast.UnaryOp(type(node.op)(), node.operand)
        case ast.Constant(value=value):
            node.value = not value if isinstance(value, bool) else _other(value)
        case ast.If() | ast.IfExp() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Call() if kind == "keyword":
            node.keywords.pop(which)
        case ast.Call(func=ast.Attribute() as func):
            func.attr = NAMES[func.attr]
        case ast.Call(func=ast.Name() as func):
            func.id = NAMES[func.id]


def _other(value: float) -> float:
    """0 for 1, twice a large number or one with decimals, else the next."""
    if isinstance(value, int):
        return {1: 0}.get(value, value + 1 if value < 10 else 2 * value)
    return 2.0 * value if value else 1.0


def find_mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of the sample."""
    tree = ast.parse(source)
    found: dict[tuple[str, str, str], Mutant] = {}
    passed_over = {id(node) for part in _silent(tree) for node in ast.walk(part)}
    places = _places(tree)
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in passed_over and not isinstance(node, ast.Raise):
            continue
        for kind, which in changes(node):
            text = _text(tree, node, kind, which)
            place = places.get(id(node), "module")
            for twin in range(1, 99):  # equal changes of equal lines in one function
                full = text if twin == 1 else f"{text} (#{twin})"
                if (place, kind, full) not in found:
                    break
            line = getattr(node, "lineno", 0)
            found[place, kind, full] = Mutant(number, kind, which, line, place, full)
    return sorted(found.values(), key=lambda mutant: mutant.order)


def _silent(tree: ast.Module) -> Iterator[ast.AST]:
    """Parts that decide nothing: annotations, decorators, words of errors, imports for type checkers."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.expr() as part) | ast.AnnAssign(annotation=part):
                yield part
            case ast.FunctionDef(returns=returns, decorator_list=decorators):
                yield from filter(None, [returns, *decorators])
            case ast.ClassDef(decorator_list=decorators):
                yield from decorators
            case ast.Raise() | ast.JoinedStr() | ast.Assert():
                yield node
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node
            case ast.Assign(value=ast.BinOp(op=ast.BitOr(), right=ast.Name())) if node in tree.body:  # A = B | C
                yield node


def _places(tree: ast.Module) -> dict[int, str]:
    """Id of a node -> the function or class that it stands in."""
    places: dict[int, str] = {}

    def visit(node: ast.AST, place: str) -> None:
        places[id(node)] = place or "module"
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            place = f"{place}.{node.name}" if place else node.name
        for child in ast.iter_child_nodes(node):
            visit(child, place)

    visit(tree, "")
    return places


def _text(tree: ast.Module, node: ast.AST, kind: str, which: int) -> str:
    """Before -> after, of the smallest part of the line that shows it."""
    shown = _parent(tree, node) if isinstance(node, ast.Constant) else node
    before = _brief(shown)
    if kind == "left out":
        return f"{before} -> left out"
    twin = copy.deepcopy(shown)
    same = list(ast.walk(twin))[list(ast.walk(shown)).index(node)]
    _change(ast.Module([], []), same, kind, which)
    return f"{before} -> {_brief(ast.fix_missing_locations(twin))}"


def _parent(tree: ast.Module, node: ast.AST) -> ast.AST:
    return next(up for up in ast.walk(tree) if any(child is node for child in ast.iter_child_nodes(up)))


def _brief(node: ast.AST) -> str:
    """The code of a node in one line; of a compound statement its head, of a function its signature."""
    if isinstance(node, ast.arguments):
        return f"({ast.unparse(node)})"
    if isinstance(node, ast.keyword):
        return f"{node.arg}={ast.unparse(node.value)}"
    return ast.unparse(node).splitlines()[0]
