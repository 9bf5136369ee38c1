import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from phygail.config import InputError
from phygail.files import DRAFT, make_folder, parse_number, read_json, read_text, sweep_drafts, whole_file, write_text


def test_text_round_trips_and_replaces_what_was_there(tmp_path):
    path = tmp_path / "deep" / "er" / "a.txt"
    write_text(path, "first ü\n")
    write_text(path, "second")
    assert read_text(path) == "second"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_a_block_that_fails_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail() -> None:
        with whole_file(path) as draft:
            draft.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_readers_see_nothing_until_the_block_ends(tmp_path):
    path = tmp_path / "a.png"
    with whole_file(path) as draft:
        assert draft.suffix == ".png"  # writers choose the format by it
        draft.write_text("x")
        assert not path.exists()
    assert path.read_text() == "x"


def test_a_folder_is_no_file_and_a_file_is_no_folder(tmp_path):
    with pytest.raises(InputError, match="it is a folder; name a file"):
        write_text(tmp_path, "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to the folder"):
        make_folder(tmp_path / "file")
    with pytest.raises(InputError, match="cannot write to the folder"):
        write_text(tmp_path / "file" / "a.txt", "x")


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none: No such file"):
        read_text(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    with pytest.raises(InputError, match="not a text file"):
        read_text(tmp_path / "binary")


def test_a_byte_order_mark_is_skipped(tmp_path):
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfx_m,y_m")
    assert read_text(tmp_path / "bom") == "x_m,y_m"


def test_devices_pipes_and_impossible_names_are_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(InputError, match="device or pipe"):
            write_text(path, "x")
        assert not path.is_file()
    with pytest.raises(InputError, match="too long"):
        write_text(tmp_path / ("a" * 300), "x")


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    link, file = tmp_path / "link.txt", tmp_path / "there" / "file.txt"
    link.symlink_to(file)
    write_text(link, "x")
    assert link.is_symlink()
    assert file.read_text() == "x"


KILLED = """
import os, signal, sys
from pathlib import Path
from phygail.files import whole_file
with whole_file(Path(sys.argv[1])) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_draft_of_a_killed_process_is_swept_by_the_next_write(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a.png")], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(DRAFT)
    write_text(tmp_path / "b.txt", "x")
    assert [file.name for file in tmp_path.iterdir()] == ["b.txt"]


def test_drafts_of_living_processes_other_machines_and_other_programs_stay(tmp_path):
    """Only what surely nobody writes any more goes: the process of 1 lives, a host of another name may."""
    with whole_file(tmp_path / "mine.txt") as draft:
        living = draft.name.replace(f"-{os.getpid()}-", "-1-")
        foreign = draft.name.replace(f"-{os.getpid()}-", "-999999999-").replace(DRAFT, f"{DRAFT}other-")
        stale = draft.name.replace(f"-{os.getpid()}-", "-999999999-")
        others = {living, foreign, f"{DRAFT}odd", ".draft.txt"}
        reborn = draft.name.replace(draft.suffix, f"x{draft.suffix}")  # of a process that had our number
        for name in (*others, stale, reborn):
            (tmp_path / name).write_text("x")
        sweep_drafts(tmp_path)
        assert {file.name for file in tmp_path.iterdir()} == {draft.name, *others}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' stands twice"),
        ("[" * 100_000, "is not JSON"),
        ("{", "is not JSON"),
        ("1" * 5000, "is not JSON"),
    ],
)
def test_bad_json_is_named(tmp_path, text, named):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=named):
        read_json(tmp_path / "a.json")


def test_equal_keys_in_unlike_objects_are_fine(tmp_path):
    (tmp_path / "a.json").write_text('[{"a": 1}, {"a": {"a": 2}}]')
    assert read_json(tmp_path / "a.json") == [{"a": 1}, {"a": {"a": 2}}]


@pytest.mark.parametrize(("text", "value"), [("1", 1.0), (" -2.5e3 ", -2500.0), ("+.5", 0.5), ("7.", 7.0)])
def test_numbers_are_read_as_written(text, value):
    assert parse_number(text) == value


@pytest.mark.parametrize("text", ["1_0", "\uff11\uff12", "\u0661", "0x10", "", "1 0", "1,0", "one", "1\x000"])
def test_what_only_python_takes_for_a_number_is_none(text):
    with pytest.raises(ValueError, match=r"."):
        parse_number(text)
