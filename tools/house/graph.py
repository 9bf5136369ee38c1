"""Cycles, floors, isolation and sizes of the new tree: python graph.py DIR"""

import ast
import sys
from pathlib import Path

SRC = Path(sys.argv[1]) / "src/phygail"
mods = {}
for p in SRC.rglob("*.py"):
    parts = p.relative_to(SRC).with_suffix("").parts
    mods[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = p
edges = {}
for m, p in mods.items():
    e = set()
    for n in ast.walk(ast.parse(p.read_text())):
        if isinstance(n, ast.ImportFrom) and n.module and n.module.startswith("phygail"):
            base = n.module[8:]
            for a in n.names:
                full = f"{base}.{a.name}" if base else a.name
                t = full if full in mods else base
                if t and t != m:
                    e.add(t)
    edges[m] = e
# tarjan
idx = {}
low = {}
st = []
on = set()
out = []
sys.setrecursionlimit(10000)


def go(v):
    idx[v] = low[v] = len(idx)
    st.append(v)
    on.add(v)
    for w in edges.get(v, ()):
        if w not in idx:
            go(w)
            low[v] = min(low[v], low[w])
        elif w in on:
            low[v] = min(low[v], idx[w])
    if low[v] == idx[v]:
        c = []
        while True:
            w = st.pop()
            on.discard(w)
            c.append(w)
            if w == v:
                break
        if len(c) > 1:
            out.append(c)


for m in edges:
    if m and m not in idx:
        go(m)
print("cycles:", out)
FLOORS = ["root", "swarm", "sensing", "render", "methods", "learning", "methods/", "experiments", "envs", "web", "cli"]
folders = {m for m in mods if m.startswith("methods.") and mods[m].name == "__init__.py" and m.count(".") == 1}


def room(m):
    if m in ("", "__main__"):
        return "cli"
    top = m.split(".")[0]
    if top == "methods":
        return "methods/" if any(m == f or m.startswith(f + ".") for f in folders) else "methods"
    return top if top in FLOORS else "root"


for m, e in sorted(edges.items()):
    for t in sorted(e):
        if FLOORS.index(room(t)) > FLOORS.index(room(m)):
            print("UP", m, "->", t)
        fm = ".".join(m.split(".")[:2])
        ft = ".".join(t.split(".")[:2])
        if fm in folders and ft in folders and fm != ft:
            print("ACROSS", m, "->", t)
from collections import Counter

print(Counter(p.parent.relative_to(SRC).as_posix() for p in mods.values()))
print(
    len(mods),
    "files",
    sum(len(p.read_text().splitlines()) for p in mods.values()),
    "lines;",
    sum(map(len, edges.values())),
    "edges",
)
for m, p in sorted(mods.items()):
    n = len(p.read_text().splitlines())
    if n > 450 or (n < 60 and p.name != "__init__.py" and not m.startswith("cli")):
        print("size", m, n)
