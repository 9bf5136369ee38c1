import os
from pathlib import Path

import pytest

from phygail.config import InputError
from phygail.files import make_folder, read_text, whole_file, write_text


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
