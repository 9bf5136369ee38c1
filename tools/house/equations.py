"""Issue 17, item 4: `python equations.py DIR` on the moved tree (before or after names)."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

from wrap import finish

ROOT = Path(sys.argv[1]).resolve()
SRC = ROOT / "src/phygail"
HERE = Path(__file__).parent
MARKS = {
    "swarm/links.py": {"find_links": (2, 9), "laplacian": (6,)},
    "swarm/simulator.py": {"step": (3,), "project_speed": (4,)},
    "swarm/safety.py": {"filter_velocities": (5,)},
    "methods/phygail/__init__.py": {"PolicyMethod._decide": (7,)},
    "methods/phygail/graph.py": {
        "_nearest": (10,),
        "assemble": (11,),
        "GraphSpec.slots": (12,),
        "node_features": (13, 14, 15, 16),
    },
    "methods/phygail/network.py": {
        "GraphEncoder.forward": (17, 18),
        "PhyGNNLayer.interactions": (19,),
        "PhyGNNLayer.forces": (20, 21),
        "PhyGNNLayer.messages": (22,),
        "sum_messages": (23,),
        "PhyGNNLayer.forward": (24,),
    },
    "methods/phygail/heads.py": {
        "Actor.mean_action": (25,),
        "_pools": (26,),
        "Critic.forward": (27,),
        "Discriminator.forward": (29, 30),
    },
    "methods/phygail/experts/recipe.py": {"trajectory": (28,)},
    "methods/phygail/gail.py": {"soft_label_loss": (31,), "total_reward": (36,)},
    "methods/phygail/rewards.py": {
        "imitation_reward": (32, 33),
        "speed_bonus": (34,),
        "shared_reward": (35, 39),
        "environment_reward": (37,),
        "crowding_reward": (38,),
    },
    "experiments/propositions.py": {
        "graph_measures": (40, 44, 47),
        "success_reward": (41,),
        "terminal_reward": (42,),
        "cost_per_uav": (43,),
        "packing_bound": (45,),
        "message_bound": (48,),
        "force_measure": (49,),
    },
}
SHORTER = {
    "methods/phygail/graph.py": [
        (
            "senders (n, k), 0 where empty, and which are filled (n, k).",
            "senders (n, k), 0 where empty, and a mask (n, k).",
        ),
        (
            "in the order of `NODE_FEATURES`; the first n nodes are alive, the others neither move nor receive.",
            "in the order of `NODE_FEATURES`.\n\n    The first n nodes are alive, the others neither move nor receive.",
        ),
    ],
    "methods/phygail/heads.py": [
        (
            "of every world, (count, d) each. Rows are grouped by world.",
            "of every world, (count, d) each; rows are grouped by world.",
        )
    ],
    "methods/phygail/rewards.py": [
        ("of the discriminator's logits; equal to softplus, bounded.", "of the logits; equal to softplus, bounded.")
    ],
    "methods/phygail/experts/recipe.py": [
        (
            """(T + 1, n, 2) m and (T, n, 2) m/s: a state carries the velocity of the step before, so entry t of the second
    array is what was executed at t.""",
            """(T + 1, n, 2) m and (T, n, 2) m/s: an expert's states and what it did in each.

    A state carries the velocity of the step before: entry t of the second array is what was executed at t.""",
        )
    ],
    "methods/phygail/__init__.py": [
        (
            "flies its policy. No torch.\n",
            """flies its policy. No torch.

The paper, section by section, with the equations (docs/equations.md) that each file holds:

    III-D  the problem: a command from an observation    here, 7
    IV-B   bounded heterogeneous graph perception        graph.py, 10-16; graph_batch.py for many worlds
    IV-C   physics-informed graph interactions           network.py, 17-24; heads.py, 25-27
    IV-D   expert demonstrations                         experts/, 28
           adversarial imitation                         heads.py, 29-30; gail.py, 31; rewards.py, 32-33
           expert-normalized time, reward design         rewards.py, 34-39, gail.py, 36
           Algorithm 1                                   train.py; rollout.py, mappo.py, learner.py
    IV-E, IV-F and the appendices                        experiments/propositions.py, 40-49

Numbers of a run: config.py. Not the paper's: warm_start.py. What flies is here, made by export.py.
""",
        )
    ],
}
for name, functions in MARKS.items():
    path = SRC / name
    text = path.read_text(encoding="utf-8")
    text = re.sub(r" \((?:paper )?eqs?\. \d+(?:, (?:eq\. )?\d+)*\)", "", text)
    for old, new in SHORTER.get(name, ()):
        if old not in text:
            print("PROBLEM: not found", name, old[:60])
        text = text.replace(old, new)
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.FunctionDef):
                    found[f"{node.name}.{child.name}"] = child
    found |= {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for qualified, numbers in sorted(
        functions.items(), key=lambda item: -found[item[0]].lineno if item[0] in found else 0
    ):
        if qualified not in found:
            print("PROBLEM: no", name, qualified)
            continue
        node = found[qualified]
        mark = "(" + ", ".join(f"eq. {n}" for n in numbers) + ")"
        if ast.get_docstring(node) is None:
            indent = " " * node.body[0].col_offset
            lines.insert(node.body[0].lineno - 1, f'{indent}"""(n, 2) m/s of all alive: v_i = pi(O_i) {mark}."""\n')
            continue
        first = node.body[0].lineno - 1
        last = node.body[0].end_lineno - 1
        k = first
        while k < last and lines[k + 1].strip() not in ("", '"""'):
            k += 1  # end of the first paragraph
        line = lines[k].rstrip("\n")
        closing = '"""' if line.endswith('"""') and (k > first or line.count('"""') == 2) else ""
        body = line[: len(line) - len(closing)] if closing else line
        if re.search(r"\(METHODS [^()]*\)\.?$", body):
            body = re.sub(r"\)\.?$", f", {mark[1:-1]}).", body)
        else:
            body = f"{body[:-1]} {mark}." if body.endswith(".") else f"{body} {mark}"
        lines[k] = body + closing + "\n"
    path.write_text("".join(lines), encoding="utf-8")
for path in SRC.rglob("*.py"):
    text = path.read_text(encoding="utf-8")
    new = re.sub(r"paper III-([BCD])", r"paper IV-\1", text)
    if new != text:
        path.write_text(new, encoding="utf-8")
house = ROOT / "tests/test_house.py"
text = house.read_text(encoding="utf-8")
if "eq\\." not in text:
    house.write_text(
        text.replace(
            "QUESTIONS = {\n",
            'QUESTIONS = {\n    "equation 22": (r"\\(eq\\. 22\\)", "methods/phygail/network.py"),\n',
            1,
        ),
        encoding="utf-8",
    )
index = ROOT / "docs/index.md"
text = index.read_text(encoding="utf-8")
if "equations" not in text:
    if "\nresults\n" not in text:
        print("PROBLEM: toctree of docs/index.md")
    index.write_text(text.replace("\nresults\n", "\nresults\nequations\n"), encoding="utf-8")
for path in (HERE / "equations_files").rglob("*"):
    if path.is_file() and "__pycache__" not in path.parts:
        shutil.copy(path, ROOT / path.relative_to(HERE / "equations_files"))
subprocess.run([sys.executable, "docs/update_equations.py"], cwd=ROOT, check=True)
finish(ROOT)
