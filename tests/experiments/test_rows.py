"""rows.csv: exact round trip, torn lines, damage."""

from __future__ import annotations

import pytest

from phygail.config import InputError
from phygail.experiments.rows import (
    COLUMNS,
    CURVE,
    MEASURED,
    Journal,
    csv_text,
    key_of,
    read_rows,
    rows_table,
    save_rows,
)

WORLD_HEADER = "world,split_steps,resplits,connected_share,largest_share,first_step,alive_end\n"
DESIGN_HEADER = (
    "scenario,method,uavs,damaged,alive,subnets,converged,steps,time_s,bound_steps,contact_events_per_uav,"
    "contact_rate_raw,contact_rate_capped,distance_m_per_uav,max_speed_mps,first_action_ms,solve_s,seed,safety,variant,"
    "flag,version"
)


def sample_row(scenario: str = "a", method: str = "m", **cells):
    row = {name: {str: "", int: 3, float: 0.1 + 0.2}[kind] for name, kind in COLUMNS.items()}
    return row | {"scenario": scenario, "method": method} | cells


def test_the_header_is_the_one_of_the_contract_and_further_columns_follow():
    assert csv_text([], header=True) == DESIGN_HEADER + ",noise_m,delay_steps,bias_m," + WORLD_HEADER


@pytest.mark.parametrize(("missing", "known"), [(10, {"noise_m": 0.0, "delay_steps": 0}), (8, {"noise_m": 4.0})])
def test_rows_from_before_the_further_columns_are_read_as_perfect_in_what_they_lack(tmp_path, missing, known):
    path, row = tmp_path / "rows.csv", sample_row("a", bias_m=0.0, world="", **dict.fromkeys(CURVE), **known)
    save_rows(path, [row])
    lines = [line.rsplit(",", missing)[0] for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")
    assert read_rows(path) == [row]


@pytest.mark.parametrize(
    "header", [DESIGN_HEADER.rsplit(",", 1)[0], f"{DESIGN_HEADER},noise_m,delay_steps,bias_m,world,more"]
)
def test_a_file_with_other_columns_is_refused(tmp_path, header):
    (tmp_path / "rows.csv").write_text(f"{header}\n")
    with pytest.raises(InputError, match="does not begin with the columns of a comparison"):
        read_rows(tmp_path / "rows.csv")


def test_rows_survive_the_file_exactly(tmp_path):
    rows = [sample_row('odd, "id"', seed=None), sample_row("é", contact_rate_raw=None, flag="a;b")]
    save_rows(tmp_path / "rows.csv", rows)
    assert read_rows(tmp_path / "rows.csv") == rows


def test_saved_rows_are_sorted_by_scenario_and_method(tmp_path):
    rows = [sample_row(s, m) for s, m in (("b", "x"), ("a", "y"), ("a", "x"))]
    save_rows(tmp_path / "rows.csv", rows)
    assert [key_of(r) for r in read_rows(tmp_path / "rows.csv")] == [("a", "x"), ("a", "y"), ("b", "x")]


def test_a_line_torn_at_any_byte_costs_only_itself(tmp_path):
    path = tmp_path / "rows.csv"
    save_rows(path, [sample_row("ä1"), sample_row("ä2")])
    data = path.read_bytes()
    second = data.rindex(b"\n", 0, -1) + 1
    for cut in range(second, len(data)):
        path.write_bytes(data[:cut])
        assert [r["scenario"] for r in read_rows(path)] == ["ä1"]


def test_a_torn_header_means_no_rows(tmp_path):
    path = tmp_path / "rows.csv"
    for text in ("", "scenario,met"):
        path.write_text(text)
        assert read_rows(path) == []


def test_damage_before_the_end_is_an_error_that_names_the_row(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        csv_text([sample_row("a")], header=True) + "torn,line\n" + csv_text([sample_row("b")], header=False)
    )
    with pytest.raises(InputError, match="row 3 is damaged"):
        read_rows(path)
    path.write_text("x,y\n1,2\n")
    with pytest.raises(InputError, match="columns"):
        read_rows(path)


def test_appended_rows_are_on_disk_at_once(tmp_path):
    path = tmp_path / "rows.csv"
    save_rows(path, [])
    journal = Journal(path)
    journal.append([sample_row("a"), sample_row("b")])
    assert [r["scenario"] for r in read_rows(path)] == ["a", "b"]
    journal.close()


def test_the_frame_has_the_columns_and_keeps_empty_cells_empty():
    table = rows_table([sample_row(seed=None)])
    assert table.columns == list(COLUMNS)
    assert table["seed"].to_list() == [None]


@pytest.mark.parametrize(
    "edit",
    [
        lambda line: line.replace(",m,", ",m\r,"),
        lambda line: line.replace("a,m,3,", "a,m,3_0,"),
        lambda line: line.replace("a,m,3,", "a,m,\uff13,"),
        lambda line: line.replace("0.30000000000000004", "0_3.0", 1),
        lambda line: line.replace("a,m", 'a,"m'),
        lambda line: line.replace("a,m", "a,m" + "x" * 200_000 + '"'),
        lambda line: "",
        lambda line: line.replace("a,m,3,", "a,m,3.0,"),
    ],
)
def test_damage_of_any_kind_is_one_error_that_names_the_line(tmp_path, edit):
    """A stray carriage return raised a csv.Error, an open quote swallowed the rows behind it (AUDIT R4, R8)."""
    path = tmp_path / "rows.csv"
    lines = csv_text([sample_row("b"), sample_row("a"), sample_row("c")], header=True).split("\n")
    lines[2] = edit(lines[2])
    path.write_bytes("\n".join(lines).encode())
    with pytest.raises(InputError, match=r"rows\.csv, row 3 is damaged: delete this row"):
        read_rows(path)


def test_a_file_with_the_line_ends_of_another_system_is_read(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [sample_row("a"), sample_row('odd, "id"')]
    path.write_bytes(csv_text(rows, header=True).replace("\n", "\r\n").encode())
    assert read_rows(path) == rows


def test_measured_columns_follow_and_survive_the_file(tmp_path):
    measured = {name: {int: 3, float: 0.1 + 0.2}[kind] for name, kind in MEASURED.items()}
    rows = [sample_row("a") | measured, sample_row("b") | dict.fromkeys(MEASURED)]
    path = tmp_path / "rows.csv"
    save_rows(path, rows[:1], measured=True)
    journal = Journal(path, measured=True)
    journal.append(rows[1:])
    journal.close()
    assert read_rows(path) == rows
    assert rows_table(rows).columns == [*COLUMNS, *MEASURED]
    assert rows_table([sample_row()]).columns == list(COLUMNS)
