"""Tables that lose nothing, whatever the width (AUDIT U4)."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from phygail.render.tables import TextTable

HEADER = ("method", "reconnected", "steps", "time s", "bound", "x bound", "contacts per UAV", "first action ms", "flag")
ROWS = [
    ["phygail-taught", "yes", "184", "18.4", "79", "2.33", "0.000", "12.74", ""],
    ["sidr", "no", "1,600", "160.0", "79", "20.25", "0.120", "0.45", "aggregating;late"],
]
TABLE = TextTable("Overall", HEADER, ROWS)
METHODS = TextTable(
    "Methods", ("name", "scope", "what"), [["hero", "local", "flies " * 30], ["reach", "global", "x"]], True
)


def drawn(table: TextTable, width: int) -> str:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=True, color_system=None).print(table)
    return file.getvalue()


def test_a_small_table_by_hand():
    table = TextTable("T", ("method", "mean steps"), [["a", "7"], ["longer", "1,234"]])
    wide = ["T", "method  mean steps", "------  ----------", "a                7", "longer       1,234"]
    assert table.plain() == "\n".join(wide)
    assert table.plain(13) == "\n".join(["T", "         mean", "method  steps", "------  -----", "a           7",
                                         "longer  1,234"])  # fmt: skip


def test_what_does_not_fit_beside_stands_below_under_its_method():
    table = TextTable("T", ("method", "steps", "bound"), [["a", "7", "5"]])
    assert table.plain(14).split("\n\n") == [
        "T\nmethod  steps\n------  -----\na           7",
        "method  bound\n------  -----\na           5",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("table", [TABLE, METHODS], ids=["numbers", "text"])
def test_nothing_is_lost_and_nothing_is_cut_at_any_width(width, boxed, table):
    text = drawn(table, width) if boxed else table.plain(width)
    assert "…" not in text
    cells = [cell for row in table.rows for cell in row]
    assert all(word in text.split() for cell in cells for word in cell.split())
    assert all(word in text for name in table.header for word in name.split())
    if width >= 60:
        assert max(map(len, text.splitlines())) <= width


def test_running_text_goes_on_in_its_own_column():
    lines = METHODS.plain(60).splitlines()
    assert lines[3].startswith("hero   local   flies flies")
    assert lines[4].startswith("               flies")
    assert len(METHODS.plain().splitlines()) == 5  # without a width a row is a line


def test_in_a_pipe_a_table_is_plain_text_as_wide_as_it_needs(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    for columns, most in ((None, 200), ("80", 80), ("nonsense", 200), ("0", 200)):
        if columns is not None:
            monkeypatch.setenv("COLUMNS", columns)
        file = io.StringIO()
        Console(file=file, width=10_000, force_terminal=False, color_system=None).print(TABLE)
        text = file.getvalue()
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= most
        assert (text.count("phygail-taught") == 1) == (most > 80)


def test_a_table_without_header_or_rows_is_still_a_table():
    assert (
        TextTable("The swarm", (), [["UAVs", "20"], ["links", "41"]], True).plain() == "The swarm\nUAVs   20\nlinks  41"
    )
    assert TextTable("None", ("method", "steps"), []).plain() == "None\nmethod  steps\n------  -----"
    assert "method" in drawn(TextTable("None", ("method", "steps"), []), 80)


def test_a_window_narrower_than_a_cell_folds_it():
    text = "".join(drawn(TABLE, 20).split())
    assert all(cell in text for row in TABLE.rows for cell in row)
