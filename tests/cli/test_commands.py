"""The commands as a user types them."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import phygail
from phygail.cli.main import COMMANDS, how_to_resume, main, parse
from phygail.experiments.failures import Failures
from phygail.experiments.grid import Grid
from phygail.experiments.rows import read_rows
from phygail.methods import METHODS
from phygail.swarm.layout import save_layout
from phygail.swarm.scenario import load_scenarios

GRID = ("--uavs", "20", "--damage", "0.5", "--cases", "2")


def phygail_process(*words: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "phygail", *words], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)  # fmt: skip


@pytest.fixture
def flown_here(monkeypatch, here):
    """A comparison flies in this process and draws nothing; others of this file do as for a user."""
    for place in ("runner", "engine"):
        monkeypatch.setattr(f"phygail.experiments.{place}.LocalEngine", type(here))
    for name in ("draw_curves", "draw_over_bound"):
        monkeypatch.setattr(f"phygail.experiments.figures.{name}", lambda rows, path: None)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_a_summary_and_examples(capsys, command):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "For example:" in text
    assert f"phygail {command} " in text


def test_help_imports_nothing_heavy():
    code = "import sys, phygail.cli.main; print(*[m for m in ('numpy', 'scipy', 'polars', 'matplotlib', 'torch') " \
           "if m in sys.modules])"  # fmt: skip
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""


def test_the_version_is_the_one_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"phygail {phygail.__version__}\n"


def test_the_package_exports_what_it_names():
    for name in phygail.__all__:
        assert getattr(phygail, name) is not None
    with pytest.raises(AttributeError):
        _ = phygail.nothing


def test_methods_lists_every_registered_method(capsys):
    assert main(["methods"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in METHODS)


def test_methods_as_json(capsys):
    assert main(["methods", "--json"]) == 0
    methods = json.loads(capsys.readouterr().out)["methods"]
    assert [entry["name"] for entry in methods] == METHODS.names()
    assert methods[0].keys() == {"name", "scope", "learned", "extra", "installed", "summary"}


# A list of commands with what each must show, and the widest line that may come.
TABLES = [
    (
        ("recover", "--uavs", "50", "--methods", "phygail-taught,center-fly,sidr"),
        ["phygail-taught", "center-fly", "steps"],
    ),
    (("methods",), ["phygail-taught", "intra-subnet", "gdr-ts", "learn"]),
    (("inspect", "paper-100"), ["critical UAVs", "damage", "splits"]),
    (("reproduce", "--list"), ["overall", "episodes"]),
]


def plain(text, shown):
    assert all(word in text for word in shown)
    assert text.isascii()
    assert "\x1b" not in text


@pytest.mark.parametrize(("words", "shown"), TABLES, ids=lambda value: value[0])
def test_tables_in_a_pipe_are_plain_and_lose_nothing_at_80_columns(words, shown, monkeypatch, capsys):
    """AUDIT U4."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(words) == 0
    text = capsys.readouterr().out
    plain(text, shown)
    assert max(map(len, text.splitlines())) <= 80


def test_the_widest_table_is_plain_where_nobody_says_how_wide_a_line_may_be():
    """In a process of its own, whose output is a pipe."""
    words, shown = TABLES[0]
    environment = os.environ | {"COLUMNS": "", "FORCE_COLOR": "1"}
    plain(subprocess.check_output([sys.executable, "-m", "phygail", *words], text=True, env=environment), shown)


@pytest.mark.parametrize(("words", "shown"), TABLES[:1], ids=lambda value: value[0])
def test_tables_on_a_terminal_of_80_columns_lose_nothing(words, shown):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "LINES"} | {"COLUMNS": "80", "TERM": "xterm"}
    run = subprocess.Popen([sys.executable, "-m", "phygail", *words], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    data = b""
    try:
        while part := os.read(ours, 4096):
            data += part
    except OSError:  # how Linux says that the other end is closed
        pass
    assert run.wait(120) == 0
    text = data.decode()
    assert all(word in text for word in shown)
    assert "\u2026" not in text
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert max(map(len, plain.splitlines())) <= 80


def test_inspect_says_what_no_critical_uav_means(tmp_path, capsys):
    square = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 100.0], [0.0, 100.0]])
    save_layout(tmp_path / "square.csv", square)
    assert main(["inspect", str(tmp_path / "square.csv")]) == 0
    assert "0 (no single loss splits a subnet)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "begun", "said"),
    [
        ("compare --uavs 20 --damage 0.5 --methods sidr --out run", False, "; run the same command again to resume"),
        ("experts --out e.h5", False, "; run the same command again to resume"),
        ("reproduce overall", False, "; run the same command again to resume"),
        ("recover --uavs 20", False, ""),
        ("inspect paper-20", False, ""),
        ("train reach-evolved --out run", False, " before there was anything to resume"),
        ("train reach-evolved --out run", True, "; resume with phygail train reach-evolved --resume run"),
        ("train phygail-taught --resume run", True, "; resume with phygail train phygail --resume run"),
        ("train cr-ma", False, "; the best weights so far are kept"),
    ],
)
def test_an_interruption_says_what_can_be_done_about_it(tmp_path, monkeypatch, words, begun, said):
    """AUDIT U9: recover keeps nothing, and a training is resumed by another command."""
    monkeypatch.chdir(tmp_path)
    if begun:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "config.json").touch()
    assert how_to_resume(parse(words.split())) == said


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_for_the_shell_knows_commands_and_flags(capsys, shell):
    with pytest.raises(SystemExit) as end:
        main(["--tyro-print-completion", shell])
    assert end.value.code in (0, None)
    script = capsys.readouterr().out
    assert all(word in script for word in ("recover", "compare", "--picture", "--trajectory", "--damage"))


def test_scenarios_writes_those_of_the_grid(tmp_path):
    file = tmp_path / "cases.json"
    assert main(["scenarios", *GRID, "--seed", "7", "--out", str(file)]) == 0
    for saved, drawn in zip(load_scenarios(file), Grid((20,), (0.5,), 2, 7).scenarios(), strict=True):
        assert saved.id == drawn.id
        assert np.array_equal(saved.layout, drawn.layout)
        assert np.array_equal(saved.damaged, drawn.damaged)


def test_inspect_names_the_critical_uavs_of_a_chain(tmp_path, capsys):
    save_layout(tmp_path / "chain.csv", np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]]))
    assert main(["inspect", str(tmp_path / "chain.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["critical"] == [1]
    assert [(f["uav"], f["cut_off"], f["stand_ins"]) for f in found["failures"]] == [(1, 1, 1)]
    assert main(["inspect", str(tmp_path / "chain.csv")]) == 0
    text = capsys.readouterr().out
    assert "critical UAVs" in text
    assert "Loss of one critical UAV" in text


def test_scenarios_of_failures_have_a_critical_uav_among_the_failed(tmp_path):
    file = tmp_path / "failures.json"
    words = ["scenarios", "--uavs", "20", "--failures", "1,2", "--source", "region", "--cases", "2"]
    assert main([*words, "--seed", "7", "--out", str(file)]) == 0
    saved = load_scenarios(file)
    assert [s.id for s in saved] == [f"region-20-{k}-{case}-s7" for k in (1, 2) for case in (0, 1)]
    drawn = Failures((20,), (1, 2), "region", 2, 7).scenarios()
    assert all(np.array_equal(a.layout, b.layout) and np.array_equal(a.damaged, b.damaged)
               for a, b in zip(saved, drawn, strict=True))  # fmt: skip


@pytest.mark.usefixtures("flown_here")
def test_compare_on_failures_says_who_moved(tmp_path, capsys):
    out = tmp_path / "run"
    words = ["compare", "--uavs", "20", "--failures", "1", "--cases", "2", "--methods", "dcrmf,sidr", "--workers", "1"]
    assert main([*words, "--out", str(out)]) == 0
    rows = read_rows(out / "rows.csv")
    assert [(r["scenario"], r["method"]) for r in rows] == [
        (f"single-20-1-{case}-s0", name) for case in range(2) for name in ("dcrmf", "sidr")
    ]
    for row in rows:
        assert row["moved"] == (1 if row["method"] == "dcrmf" else 19)
        assert row["failure_pct"] > 0
        assert row["messages"] > 0
        assert (row["plan_moved"] is None) == (row["method"] == "sidr")
    assert "failures 1 (single)" in (out / "summary.md").read_text()
    assert main([*words, "--out", str(out)]) == 0  # resumed: nothing is flown again
    assert read_rows(out / "rows.csv") == rows


def test_compare_prints_the_summary_and_writes_the_folder(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["compare", *GRID, "--methods", "sidr,center-fly", "--out", str(out), "--workers", "1"]) == 0
    assert "Overall" in capsys.readouterr().out
    assert {"rows.csv", "run.json", "summary.md", "curves.png"} <= {f.name for f in out.iterdir()}


@pytest.mark.usefixtures("flown_here")
def test_compare_ends_with_1_and_a_count_when_a_method_raised(tmp_path, capsys):
    file = tmp_path / "faulty.py"
    file.write_text(
        "from phygail.methods.base import LocalMethod, register\n@register\nclass Faulty(LocalMethod):\n"
        "    name = 'faulty'\n    summary = 'raises'\n    def act(self, view):\n        raise ValueError('no')\n"
    )
    words = ["compare", *GRID, "--methods", "faulty", "--plugin", str(file), "--out", str(tmp_path / "run")]
    try:
        assert main([*words, "--workers", "1"]) == 1
    finally:
        METHODS._entries.pop("faulty", None)
        sys.modules.pop("phygail_plugin_faulty", None)
    assert "2 of 2 episodes failed with an error" in capsys.readouterr().err


def test_recover_flies_case_zero_of_the_grid(capsys):
    assert main(["recover", "--uavs", "20", "--damage", "0.5", "--methods", "center-fly,sidr", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["scenario"]["id"] == "n0020-d0.500-c000-s0"
    assert shown["scenario"]["damaged"] == Grid((20,), (0.5,), 1).scenario(0).damaged.tolist()
    steps = [row["steps"] for row in shown["methods"]]
    assert steps == sorted(steps)  # best first
    assert all(shown["bound_steps"] <= s for s in steps)


def test_recover_kills_exactly_who_is_named(tmp_path, capsys):
    save_layout(tmp_path / "chain.csv", np.array([[100.0 * k, 0.0] for k in range(5)]))
    words = ["recover", "--layout", str(tmp_path / "chain.csv"), "--methods", "sidr", "--json"]
    assert main([*words, "--kill", "2"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["scenario"]["damaged"], shown["subnets"], shown["bound_steps"]) == ([2], 2, 40)  # (200-120)/2 m
    assert main([*words, "--strike", "-10,0,15"]) == 0  # a negative coordinate is no flag
    shown = json.loads(capsys.readouterr().out)
    assert (shown["scenario"]["damaged"], shown["methods"][0]["steps"]) == ([0], 0)


def test_recover_says_that_a_connected_swarm_needs_nothing(tmp_path, capsys):
    save_layout(tmp_path / "chain.csv", np.array([[100.0 * k, 0.0] for k in range(5)]))
    assert main(["recover", "--layout", str(tmp_path / "chain.csv"), "--kill", "0", "--methods", "sidr"]) == 0
    assert "still connected" in capsys.readouterr().out


def test_brackets_in_an_id_are_no_markup(tmp_path, capsys):
    file = tmp_path / "cases.json"
    entry = {"id": "[red]:x:[/blue]", "positions": [[100.0 * k, 0.0] for k in range(5)], "damaged": [2]}
    file.write_text(json.dumps({"scenarios": [entry]}))
    assert main(["recover", "--scenarios", str(file), "--methods", "sidr"]) == 0
    assert "[red]:x:[/blue]" in capsys.readouterr().out


def test_trajectories_hold_every_alive_uav_at_every_step(tmp_path, capsys):
    words = ["recover", "--uavs", "20", "--damage", "0.5", "--methods", "sidr", "--json"]
    assert main([*words, "--trajectory", str(tmp_path / "t.csv"), "--picture", str(tmp_path / "p.png")]) == 0
    shown = json.loads(capsys.readouterr().out)
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    steps = shown["methods"][0]["steps"]
    assert list(rows[0]) == ["t", "uav", "x", "y", "vx", "vy"]
    assert len(rows) == 10 * (steps + 1)
    assert float(rows[-1]["t"]) == pytest.approx(steps * 0.1)
    assert {int(r["uav"]) for r in rows}.isdisjoint(shown["scenario"]["damaged"])
    before, after = rows[-20], rows[-10]
    assert float(after["x"]) == pytest.approx(float(before["x"]) + 0.1 * float(after["vx"]))
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_several_methods_give_one_trajectory_file_each(tmp_path, capsys):
    words = ["recover", "--uavs", "20", "--methods", "sidr,center-fly", "--trajectory", str(tmp_path / "t.csv")]
    assert main(words) == 0
    assert {f.name for f in tmp_path.iterdir()} == {"t.sidr.csv", "t.center-fly.csv"}
    said = capsys.readouterr().err.splitlines()
    assert said == [f"phygail: trajectory: {tmp_path / name}" for name in ("t.sidr.csv", "t.center-fly.csv")]


def test_an_interrupted_compare_says_how_to_resume(tmp_path):
    words = ("compare", "--uavs", "200", "--damage", "0.9", "--cases", "400", "--methods", "center-fly")
    run = phygail_process(*words, "--out", str(tmp_path / "run"), "--workers", "1", start_new_session=True)
    deadline = time.monotonic() + 200
    while not (tmp_path / "run" / "rows.csv").exists() and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGINT)  # as Ctrl-C does: the workers get it too
    _, err = run.communicate(timeout=120)
    assert run.returncode == 130
    assert err.splitlines()[-1] == "phygail: interrupted; run the same command again to resume"
    assert "Traceback" not in err


def test_a_reader_that_leaves_causes_no_traceback():
    run = phygail_process("recover", "--uavs", "200", "--damage", "0.1", "--methods", "sidr", "--json")
    assert run.stdout is not None
    run.stdout.close()
    assert run.stderr is not None
    assert "Traceback" not in run.stderr.read()
    run.wait(timeout=120)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device of the test")
def test_a_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "phygail", "methods"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (run.returncode, run.stderr) == (2, "phygail: the output: No space left on device\n")


def test_a_closed_stdout_is_no_reason_to_fail():
    run = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m phygail methods >&-"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_scenarios_damages_the_layouts_it_is_given(tmp_path):
    save_layout(tmp_path / "chain.csv", np.array([[100.0 * k, 0.0] for k in range(5)]))
    words = ["--layout", f"paper-20,{tmp_path / 'chain.csv'}", "--damage", "0.25,0.4", "--cases", "2"]
    assert main(["scenarios", *words, "--seed", "3", "--out", str(tmp_path / "cases.json")]) == 0
    scenarios = load_scenarios(tmp_path / "cases.json")
    assert [s.id for s in scenarios[:2]] == ["paper-20-d0.250-c000-s3", "paper-20-d0.250-c001-s3"]
    assert [s.uavs for s in scenarios] == [20] * 4 + [5] * 4
    assert scenarios[0].width_m == 320.0
    assert len({tuple(s.damaged) for s in scenarios[:4]}) == 4


def test_scenarios_wants_one_source_of_layouts(tmp_path, capsys):
    common = ["--damage", "0.5", "--out", str(tmp_path / "x.json")]
    assert main(["scenarios", *common]) == 2
    assert "give --uavs 100,200 or --layout paper-100" in capsys.readouterr().err
    assert main(["scenarios", "--uavs", "20", "--layout", "paper-20", *common]) == 2
    assert "cannot be combined" in capsys.readouterr().err
