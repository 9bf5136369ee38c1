"""What users see when a method of their own goes wrong: file, line, what was found and what was expected (AUDIT U8)."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from phygail.cli.main import main
from phygail.experiments.rows import read_rows
from phygail.methods.base import METHODS
from phygail.weights import bundled

HEAD = """\
import numpy as np
from phygail.methods.base import GlobalMethod, LocalMethod, SubnetMethod, register


@register
class Mine({base}):
    name = "mine"

    def act(self, view):
"""
ACT, BODY = 9, 10  # lines of the file
BASES = ("LocalMethod", "SubnetMethod", "GlobalMethod")
CASES = ("--uavs", "20", "--damage", "0.5", "--workers", "1", "--out", "run")


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A function that writes mine.py, whose method is forgotten afterward."""
    monkeypatch.chdir(tmp_path)

    def write(body, base="LocalMethod", head=HEAD):
        (tmp_path / "mine.py").write_text(head.format(base=base) + textwrap.indent(body, " " * 8) + "\n")
        return ("--plugin", "mine.py", "--methods", "mine")

    yield write
    METHODS._entries.pop("mine", None)
    sys.modules.pop("phygail_plugin_mine", None)


def recover(capsys, words, *more) -> str:
    """The one line of a recovery that is refused."""
    assert main(["recover", "--uavs", "20", *words, *more]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    return printed.err


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return np.zeros((3, 3))", "act gave the shape (3, 3), expected ("),
        ("return np.zeros(2)", "act gave the shape (2,), expected ("),
        ("return np.zeros((1, 2, 2))", "act gave the shape (1, 2, 2), expected ("),
        ("pass", "act gave nothing (None), expected an array ("),
        ("return 'north'", "act gave 'north' of type str, expected an array ("),
        ("return [[1.0, 2.0], [3.0]]", "act gave [[1.0, 2.0], [3.0]] of type list, expected an array ("),
        ("return np.zeros_like(view.positions) * 1j", "of type ndarray, expected an array ("),
    ],
)
def test_a_wrong_command_is_named_with_its_place_and_the_expectation(capsys, plugin, base, body, found):
    line = recover(capsys, plugin(body, base))
    assert line.startswith(f"phygail: mine.py, line {ACT}: ")
    assert found in line
    assert line.endswith("one velocity [vx, vy] in m/s per UAV of the view\n")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise KeyError('gone')", f"line {BODY}: the method 'mine' raised KeyError: 'gone'"),
        ("return 1 / 0", f"line {BODY}: the method 'mine' raised ZeroDivisionError: division by zero"),
        ("x = 1\nnp.linalg.inv(np.zeros((2, 2)))", f"line {BODY + 1}: the method 'mine' raised LinAlgError"),
        ("raise SystemExit(0)", f"line {BODY}: the method 'mine' raised SystemExit: 0"),
        ("raise BaseException('deep')", f"line {BODY}: the method 'mine' raised BaseException: deep"),
        ("raise GeneratorExit", f"line {BODY}: the method 'mine' raised GeneratorExit"),
        ("self.flag = 7\nreturn np.zeros_like(view.positions)", f"line {ACT}: flag is 7, expected a text"),
        ("raise ValueError('a\\nb' * 500)", "raised ValueError: a ba b"),
        ("class Mute(Exception):\n    def __str__(self): return 1\nraise Mute", "the method 'mine' raised Mute"),
    ],
)
def test_whatever_a_method_raises_is_one_line_with_its_place(capsys, plugin, body, told):
    line = recover(capsys, plugin(body))
    assert line.startswith("phygail: mine.py, line ")
    assert told in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "registers no method: put @register above a class"),
        ("x = 1\n1 / 0\n", "mine.py, line 2 fails on import: ZeroDivisionError: division by zero"),
        ("x = 1\n\nx = = 2\n", "mine.py, line 3 fails on import: SyntaxError"),
        ("import sys\nsys.exit(0)\n", "mine.py, line 2 fails on import: SystemExit: 0"),
        ("raise BaseException('deep')\n", "mine.py, line 1 fails on import: BaseException: deep"),
        (HEAD.format(base="LocalMethod").replace("mine", "sidr") + "        pass\n",
         "mine.py, line 5: method 'sidr' is registered twice"),
        (HEAD.format(base="LocalMethod").replace('name = "mine"', "x = 1") + "        pass\n",
         "mine.py, line 5: the class Mine has no name"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [("recover", "--uavs", "20", "--methods", "mine"), ("methods",)])
def test_a_file_that_cannot_be_a_plugin_says_why(tmp_path, capsys, monkeypatch, text, told, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    assert main([*command, "--plugin", "mine.py"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert told in printed.err


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("    def __init__(self): pass\n    def act(self, view): pass\n", "raised TypeError"),
        ("    pass\n", "line 5: the method 'mine' raised TypeError: Can't instantiate abstract class Mine"),
        ("    def __init__(self, rng):\n        raise OSError('no map')\n    def act(self, view): pass\n",
         "line 10: the method 'mine' raised OSError: no map"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["recover", "compare"])
def test_a_method_that_cannot_be_made_says_why(capfd, tmp_path, plugin, method, told, command):
    words = plugin("", head=HEAD.rsplit("    def act", 1)[0] + method)
    assert main([command, *(CASES if command == "compare" else CASES[:2]), *words]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "mine.py, line" in printed.err
    assert told in printed.err
    assert not (tmp_path / "run").exists()


def test_commands_that_are_no_numbers_are_flown_as_zero_and_told(capsys, plugin):
    words = plugin("return np.full(view.positions.shape, np.nan)")
    assert main(["recover", "--uavs", "20", *words, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["methods"][0]["flag"] == "nonfinite"
    assert printed.err.startswith(f"phygail: mine.py, line {ACT}: act gave NaN or infinite velocities")
    assert len(printed.err.splitlines()) == 1


def test_comparisons_tell_every_cause_once_and_log_every_case(capsys, tmp_path, plugin):
    body = "if view.step > 3: raise SystemExit(0)\nreturn np.zeros_like(view.positions)"
    assert main(["compare", *CASES, "--cases", "3", *plugin(body)]) == 1
    told = [line for line in capsys.readouterr().err.splitlines() if "raised" in line]
    assert len(told) == 1
    assert f"failed: mine.py, line {BODY}: the method 'mine' raised SystemExit: 0 (see errors.log)" in told[0]
    assert [row["flag"] for row in read_rows(tmp_path / "run" / "rows.csv")] == ["error:SystemExit"] * 3
    assert (tmp_path / "run" / "errors.log").read_text().count("Traceback") == 3


@pytest.mark.parametrize("place", [0, 1, None])
def test_traceback_shows_where_an_error_comes_from(capsys, plugin, place):
    words = ["recover", "--uavs", "20", *plugin("raise KeyError('gone')")]
    words.insert(len(words) if place is None else place, "--traceback")
    assert main(words) == 2
    err = capsys.readouterr().err
    assert f'mine.py", line {BODY}, in act' in err
    assert err.splitlines()[-1] == f"phygail: mine.py, line {BODY}: the method 'mine' raised KeyError: 'gone'"


def test_traceback_works_for_comparisons_whose_methods_fly_elsewhere(capsys, plugin):
    assert main(["--traceback", "compare", *CASES, "--cases", "1", *plugin("raise KeyError('gone')")]) == 1
    assert f'mine.py", line {BODY}, in act' in capsys.readouterr().err


def test_the_help_names_the_option_for_tracebacks(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--traceback" in capsys.readouterr().out


def test_a_request_to_end_is_no_fault_of_the_method(tmp_path, plugin):
    """SIGTERM raises in the middle of the method, too."""
    words = plugin("import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(9)")
    run = subprocess.run(
        [sys.executable, "-m", "phygail", "recover", "--uavs", "20", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (143, "", "")


@pytest.mark.parametrize("method", ["reach-evolved", "phygail-taught"])
def test_a_damaged_policy_is_the_fault_of_the_file_not_of_the_method(tmp_path, capfd, method):
    file = tmp_path / "damaged.onnx"
    file.write_bytes(bundled(method).with_suffix(".onnx").read_bytes()[:2000])
    assert main(["recover", "--uavs", "20", "--methods", method, "--policy", str(file), "--json"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"phygail: the policy {file} is not an ONNX model")
    assert err.count("\n") == 1
