"""The light install: what flying needs, and one line for what it does not bring along."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from phygail.config import InputError, require_extra

ROOT = Path(__file__).parent.parent
PIP = "pip install 'phygail"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def _without(module: str, *words: str) -> str:
    return (
        f"import sys; sys.modules[{module!r}] = None\nfrom phygail.cli.main import main; sys.exit(main({list(words)}))"
    )


def test_flying_a_rule_loads_no_solver_no_plots_no_tables_and_no_encoder(tmp_path: Path) -> None:
    words = ["recover", "--uavs", "20", "--methods", "sidr,reach", "--json"]
    code = (
        f"import sys; from phygail.cli.main import main; assert main({words}) == 0\n"
        "print({'clarabel', 'matplotlib', 'polars', 'imageio_ffmpeg', 'torch'} & set(sys.modules))"
    )
    done = _python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_light_install_names_neither_polars_nor_ffmpeg() -> None:
    light = " ".join(PROJECT["project"]["dependencies"])
    assert not any(name in light for name in ("polars", "ffmpeg", "torch"))
    extras = PROJECT["project"]["optional-dependencies"]
    assert "polars" in extras["report"][0]
    assert "ffmpeg" in extras["movie"][0]


def test_documents_name_the_python_versions_of_the_classifiers() -> None:
    known = [line.rsplit(" ", 1)[1] for line in PROJECT["project"]["classifiers"] if "Python :: 3." in line]
    readme, start = ((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/start.md"))
    assert PROJECT["project"]["requires-python"] == f">={known[0]}"
    assert f"Python {known[0]} to {known[-1]}" in readme
    assert f"Python {', '.join(known[:-1])} or {known[-1]}" in start


def test_the_source_archive_leaves_the_rows_out() -> None:
    assert "/results" in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["exclude"]


@pytest.mark.parametrize(
    ("module", "words", "line"),
    [
        ("polars", "compare --uavs 20 --damage 0.5 --methods sidr --out o", "comparisons need polars: {}[report]'"),
        ("polars", "reproduce overall --out o", "experiments need polars: {}[report]'"),
        ("imageio_ffmpeg", "recover --uavs 20 --picture o.mp4", "MP4 movies need imageio_ffmpeg: {}[movie]'"),
    ],
)
def test_what_an_extra_brings_is_refused_in_one_line_before_anything_is_flown(module, words, line, tmp_path) -> None:
    done = _python(_without(module, *words.split()), tmp_path)
    assert (done.returncode, done.stderr) == (2, f"phygail: {line.format(PIP)}\n")
    assert not list(tmp_path.iterdir())


def test_a_module_that_is_there_is_no_error_and_is_not_imported() -> None:
    require_extra("flights", "none", "json")
    with pytest.raises(InputError, match=r"flights need nowhere_to_be_found: pip install 'phygail\[none\]'"):
        require_extra("flights", "none", "json", "nowhere_to_be_found")
