"""Write docs/equations.md, every equation of the paper and its function: `python docs/update_equations.py`.

A function that is an equation says so at the end of its docstring's first paragraph: `(eq. 22)`, or `(eq. 20, eq. 21)`.
The numbers are those of the paper's own count; `grep -rn "eq. 22" src` finds the one function. A test holds the page to
the code and every number to one place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "phygail"
PAGE = ROOT / "docs" / "equations.md"
LAST = 51
MARK = re.compile(r"\((?:[^()]*, )??(eq\. \d+(?:, eq\. \d+)*)\)\.?$")

# Number: (section, formula in words of mathematics, where we deviate; METHODS 4.4 says why).
EQUATIONS: dict[int, tuple[str, str, str]] = {
    1: ("III-A", "P_ij = P_0 G_tx G_rx (lambda_c / 4 pi d_ij)^2 |h_0|^2", ""),
    2: ("III-A", "N_i = {u_j : e_ij in E}", "a link is d_ij <= D_comm"),
    3: ("III-B", "p_i(t + dt) = p_i(t) + v_i(t) dt", ""),
    4: ("III-B", "|v_i| <= v_max", "projection onto the speed disc, for every method"),
    5: ("III-B", "|p_i - p_j| >= D_safe", "an optional filter; without it contacts are counted"),
    6: ("III-C", "L = D - A", ""),
    7: ("III-D", "v_i = pi(O_i)", ""),
    8: ("III-D", "min E[T_res]", ""),
    9: ("IV-B", "N_i^comm = {u_j alive : d_ij <= D_comm}", ""),
    10: ("IV-B", "e_{j->i} iff u_j among the K_act nearest", "ties by index"),
    11: ("IV-B", "N_i^local = N_i^Kact + N_i^Kdmg + {u_c}", ""),
    12: ("IV-B", "Delta_in^max = K_act + K_dmg + 1", ""),
    13: ("IV-B", "p~_i = (p_i - p_center) / W_scale", "W_scale = W/2"),
    14: ("IV-B", "v~_i = v_i / v_max", "the velocity executed in the step before"),
    15: ("IV-B", "delta~_i = ln(1 + delta_i) / ln(1 + Delta_in^max)", ""),
    16: ("IV-B", "x_i = [p~_i, v~_i, delta~_i]", ""),
    17: ("IV-B", "O_i = [x_i, phi_node(c_i)]", ""),
    18: ("IV-C", "h_i^(0) = O_i", "through an encoder 37-256-128, as a residual of 128 needs"),
    19: ("IV-C", "f_ij = MLP_msg([h_i, h_j - h_i, phi_edge(xi_ij)])", "LayerNorm inside"),
    20: ("IV-C", "[w_att, w_rep] = sigmoid(MLP_gate(f_ij))", ""),
    21: ("IV-C", "S_ij = softplus(MLP_strength(f_ij))", ""),
    22: ("IV-C", "m_{j->i} = f_ij S_ij (w_att - w_rep)", ""),
    23: ("IV-C", "m_i = sum over N_i^local of m_{j->i}", ""),
    24: ("IV-C", "h_i^(l+1) = ReLU(MLP_update([h_i, m_i])) + h_i", "LayerNorm inside"),
    25: ("IV-C", "v_i = v_max tanh(mu_i)", "then onto the speed disc"),
    26: ("IV-C", "h_global = [mean(h_i), max(h_i)]", ""),
    27: ("IV-C", "h_i^combined = [h_i, h_global]", ""),
    28: ("IV-D", "tau_E = {(O_i(t), v_i(t))}", "the observation holds the velocity of the step before"),
    29: ("IV-D", "z_i^A = MLP_act(v_i / v_max)", ""),
    30: ("IV-D", "D = LeakyReLU(MLP_head([h_i^D, z_i^A]))", "a sigmoid at the end, so that D is in (0, 1)"),
    31: ("IV-D", "L_D = -E_expert[l_E log D] - E_policy[(1 - l_A) log(1 - D)]", "both terms of the cross-entropy"),
    32: ("IV-D", "D~ = clip(D, eps, 1 - eps)", ""),
    33: ("IV-D", "r_GAIL = -log(1 - D~)", ""),
    34: ("IV-D", "eta(t) = min(exp(lambda (1 - t / (alpha T_E))), eta_max)", ""),
    35: ("IV-D", "r_success = r_base + r_time eta(t)", ""),
    36: ("IV-D", "R_i = w_IL r_GAIL + r_env", "divided by 20 and clipped; optionally a credit for saved steps"),
    37: ("IV-D", "r_env = r_step + r_safe + r_term", ""),
    38: ("IV-D", "r_safe = -w_col sum of max(0, D_safe - d_ij)", ""),
    39: ("IV-D", "r_term = r_success, or -P_fail N_s at T_max, or 0", ""),
    40: ("IV-E", "||A~||_2 <= sqrt(Delta_in^max Delta_out^max)", "measured, with and without the center"),
    41: ("IV-E", "r_term^+ = r_base + r_speed eta(t)", ""),
    42: ("IV-E", "Var(r_term^+) <= (r_speed eta_max)^2 / 4", "measured"),
    43: ("IV-F", "O(C_pack log K_act + L Delta_in^max d_h^2)", "counted: parameters, bytes stored and sent"),
    44: ("App. A", "||A~||_inf <= K_act + K_dmg + 1", "measured"),
    45: ("App. A", "||A~||_1 <= C_pack = O((D_comm / D_safe)^d)", "by area: (2 D_comm / D_safe + 1)^2"),
    46: ("App. A", "||A~||_2 <= sqrt(||A~||_1 ||A~||_inf)", ""),
    47: ("App. A", "||A~||_2 <= sqrt((K_act + K_dmg + 1) C_pack)", "measured"),
    48: ("App. B", "|m_{j->i}| <= S_max C_f", "from the norms of the weights"),
    49: ("App. B", "|m_i| <= Delta_in^max S_max C_f", "measured"),
    50: ("App. C", "[r_base, r_base + r_speed eta_max]", ""),
    51: ("App. C", "Var(r_term^+) <= (r_speed eta_max)^2 / 4", ""),
}
NOT_BUILT = {
    1: "a link is a distance of at most D_comm: no received power is computed",
    8: "the problem itself; recovery time is what every row reports",
    46: "a step of the proof, true of every matrix",
    50: "the range of eq. 41, from which eq. 42 follows",
    51: "the same as eq. 42",
}


def marks() -> Iterator[tuple[int, str]]:
    """(number, file: function) of every docstring whose first paragraph ends in equations."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        owners = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first = (ast.get_docstring(node) or "").split("\n\n")[0]
                found = MARK.search(first)
                owner = owners[node]
                name = f"{owner.name}.{node.name}" if isinstance(owner, ast.ClassDef) else node.name
                for number in re.findall(r"\d+", found[1]) if found else ():
                    yield int(number), f"{path.relative_to(SOURCE).as_posix()}: {name}"


def page() -> str:
    """The page, from the code."""
    homes = dict(marks())
    lines = [
        "# The paper's equations, and where they are",
        "",
        'Made by `python docs/update_equations.py` from the docstrings; `grep -rn "eq. 22" src` finds the function.',
        "What we do otherwise, and why: `docs/METHODS.md`, 4.4.",
        "",
        "| eq. | section | formula | function | deviation |",
        "|---:|---|---|---|---|",
    ]
    for number, (section, formula, deviation) in EQUATIONS.items():
        home = f"`{homes[number]}`" if number in homes else "*not built*"
        remark = NOT_BUILT.get(number, deviation)
        formula = formula.replace("|", "\\|")
        lines.append(f"| {number} | {section} | {formula} | {home} | {remark} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
