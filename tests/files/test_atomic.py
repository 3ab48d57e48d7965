"""A file is there whole or as it was; what a killed writer leaves can be told from all else."""

import os
import shutil
import signal

import pytest
from tests.standstill import start_python

from cptuning.errors import CPTuningError
from cptuning.files.atomic import clear_unfinished, restore, whole_file, whole_folder, write_whole

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


REPLACER = """
import os, signal, sys
from pathlib import Path
from cptuning.files.atomic import whole_folder

path, deadly = Path(sys.argv[1]), int(sys.argv[2])
calls = 0


def killing(function):
    def wrapped(*arguments, **options):
        global calls
        for step in (lambda: None, lambda: function(*arguments, **options)):
            result = step()
            calls += 1
            if calls == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
        return result

    return wrapped


for name in ("mkdir", "rename", "replace", "fsync", "unlink", "rmdir"):
    setattr(os, name, killing(getattr(os, name)))
with whole_folder(path) as place:
    (place / "a").write_text("new")
    (place / "b").mkdir()
    (place / "b" / "c").write_text("new")
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


@pytest.mark.parametrize("is_there", [True, False])
def test_wherever_a_replacement_is_killed_the_old_or_the_new_folder_is_whole(tmp_path, is_there):
    """Killed before and after each of its system calls, and taken up again by the next process."""
    path = tmp_path / "model"
    seen = set()
    deadly, killed = 1, True
    while killed:
        if is_there:
            (path / "b").mkdir(parents=True)
            (path / "a").write_text("old")
            (path / "b" / "c").write_text("old")
        process = start_python(REPLACER, path, str(deadly))
        process.communicate()
        killed = process.returncode == -signal.SIGKILL
        assert killed or process.returncode == 0
        restore(path)
        contents = [(path / name).read_text() for name in ("a", "b/c") if (path / name).exists()]
        assert contents in ([["old"] * 2] if is_there else [[]]) + [["new"] * 2]
        seen.add(tuple(contents))
        for left in tmp_path.glob(".*"):  # An empty folder might be of a process that is alive.
            assert names_in(left) == []
            os.utime(left, (0, 0))
        restore(path)
        assert set(names_in(tmp_path)) <= {"model"}
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        deadly += 1
    assert deadly > 20
    assert seen == {("old",) * 2 if is_there else (), ("new",) * 2}


def test_a_replacement_that_fails_leaves_the_old_folder(tmp_path, monkeypatch):
    path = tmp_path / "model"
    with whole_folder(path) as place:
        (place / "a").write_text("old")

    def fail(self, target):
        if target == path and self.name == "new":
            raise OSError(5, "Input/output error")
        return self.replace(target)

    monkeypatch.setattr(type(path), "rename", fail)
    with pytest.raises(OSError, match="Input"), whole_folder(path) as place:
        (place / "a").write_text("new")
    assert (path / "a").read_text() == "old"
    assert names_in(tmp_path) == ["model"]


def test_what_a_living_process_is_writing_is_left_alone(tmp_path):
    path = tmp_path / "state"
    process = start_python(WRITER, path)
    assert process.stdout.readline() == "writing\n"
    before = names_in(tmp_path)
    clear_unfinished(tmp_path)
    write_whole(path, "of this process")
    assert set(names_in(tmp_path)) == {*before, "state"}
    process.kill()
    process.communicate()
    write_whole(path, "again")
    assert names_in(tmp_path) == ["state"]


def test_folders_of_others_that_have_such_a_name_are_left_alone(tmp_path):
    mine = tmp_path / ".state.0123456789abcdef.unfinished"
    (mine / "old").mkdir(parents=True)
    (mine / "thesis.txt").write_text("years of work")
    clear_unfinished(tmp_path)
    write_whole(tmp_path / "state", "content")
    assert (mine / "thesis.txt").read_text() == "years of work"
