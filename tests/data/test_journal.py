"""What was added survives, whole lines only, whatever happens while it is written."""

import os

import pytest

from cptuning.data import Examples, Journal
from cptuning.data.journal import Lesson
from cptuning.errors import CPTuningError

LESSONS = [
    Lesson(Examples(("where is it?\nhere", "in \u2028 Málaga")), ["a", "b"]),
    Lesson(Examples(("again",)), [3]),
]


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "added.jsonl")
    for lesson in LESSONS:
        journal.append(lesson.examples, lesson.labels)
    return journal


def test_what_was_added_is_read_back_in_order(journal):
    assert journal.lessons() == LESSONS


def test_pairs_are_kept_as_pairs(tmp_path):
    journal = Journal(tmp_path / "added.jsonl")
    journal.append(Examples(("is it?",), ("it is",)), [True])
    assert journal.lessons() == [Lesson(Examples(("is it?",), ("it is",)), [True])]


def test_no_file_is_no_lessons(tmp_path):
    assert Journal(tmp_path / "added.jsonl").lessons() == []


def test_wherever_the_last_line_is_torn_the_others_stay_and_more_can_be_added(journal):
    whole = journal.path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        journal.path.write_bytes(whole[:end])
        assert journal.lessons() == LESSONS[:1]
        journal.append(LESSONS[1].examples, LESSONS[1].labels)
        assert journal.path.read_bytes() == whole


def test_zeros_left_by_a_power_failure_are_a_torn_line(journal):
    with journal.path.open("ab") as file:
        file.write(bytes(100))
    assert journal.lessons() == LESSONS


@pytest.mark.parametrize("line", ["{", "[]", '{"texts": ["a"]}', '{"texts": ["a"], "labels": []}'])
def test_a_damaged_line_is_named(journal, line):
    with journal.path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(CPTuningError, match=r"added\.jsonl, line 3 is damaged"):
        journal.lessons()


def test_a_line_that_could_not_be_synced_is_taken_back(journal, monkeypatch):
    def fail(descriptor):
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        journal.append(Examples(("lost",)), ["a"])
    assert journal.lessons() == LESSONS


def test_a_line_is_synced_before_append_returns(journal, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda d: synced.append(os.fstat(d).st_size))
    journal.append(Examples(("more",)), ["a"])
    assert synced == [journal.path.stat().st_size]
