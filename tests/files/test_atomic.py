"""A file is there whole or as it was; what a killed writer leaves can be told from all else."""

import signal

import pytest
from tests.standstill import start_python

from cptuning.errors import CPTuningError
from cptuning.files.atomic import clear_unfinished, whole_file, write_whole

WRITER = """
import sys, time
from pathlib import Path
from cptuning.files.atomic import whole_file

with whole_file(Path(sys.argv[1])) as place:
    place.write_text("half")
    place.with_name(".its-own-temporary-file").write_text("of a library")
    print("writing", flush=True)
    time.sleep(600)
"""


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def write_half(path):
    with whole_file(path) as place:
        place.write_text("half")
        raise OSError("The disk is full.")


def test_a_file_takes_the_place_of_an_older_one(tmp_path):
    name = "é" * 120  # as long as a name can be, nearly
    for content in ("old", "new"):
        with whole_file(tmp_path / name) as place:
            place.write_text(content)
    assert (tmp_path / name).read_text() == "new"
    assert names_in(tmp_path) == [name]


def test_after_an_error_all_is_as_before(tmp_path):
    path = tmp_path / "state"
    path.write_text("old")
    with pytest.raises(OSError, match="full"):
        write_half(path)
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["state"]


def test_what_a_killed_writer_leaves_is_cleared_and_nothing_else(tmp_path):
    path = tmp_path / "state"
    path.write_text("old")
    process = start_python(WRITER, path)
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert path.read_text() == "old"
    [left] = [name for name in names_in(tmp_path) if name != "state"]
    assert left.startswith(".")  # Readers of whole folders pass over it.
    clear_unfinished(tmp_path)
    assert names_in(tmp_path) == ["state"]


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_rest(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    write_whole(target, "old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(CPTuningError, match="No space left"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
