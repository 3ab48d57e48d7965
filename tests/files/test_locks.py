"""Who changes a file holds its lock; who waits sees what took its place."""

import errno
import subprocess
import sys
from threading import Thread

import pytest

from cptuning.files.locks import changing, stamp_of

HOLDER = """
import sys, time
from pathlib import Path
from cptuning.files.locks import changing
with changing(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "facts.json"
    path.write_text("{}")
    return path


def replaced(path):
    new = path.with_suffix(".new")
    new.write_text("{}")
    new.replace(path)


def test_another_process_is_kept_out_until_it_ends(path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TimeoutError, match="Another process is changing"), changing(path, 0.1):
            pass
        holder.kill()
        with changing(path) as stamp:
            assert stamp == stamp_of(path)


def test_a_file_that_is_replaced_has_another_stamp(path):
    before = stamp_of(path)
    replaced(path)
    assert stamp_of(path) not in (before, None)


def test_who_waited_holds_the_lock_of_what_is_there_now(path):
    found = []

    def wait():
        with changing(path) as stamp:
            found.append(stamp)

    with changing(path):
        waiting = Thread(target=wait)
        waiting.start()
        waiting.join(0.1)
        replaced(path)
        assert not found or found == [stamp_of(path)]
    waiting.join()
    assert found == [stamp_of(path)]


def test_where_there_are_no_locks_nobody_is_kept_out(path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with changing(path) as outer, changing(path, 0.0) as inner:
        assert outer == inner == stamp_of(path)


def test_what_is_not_there_can_not_be_changed(tmp_path):
    with pytest.raises(FileNotFoundError), changing(tmp_path / "none"):
        pass
