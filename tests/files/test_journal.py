"""What was appended survives, whole lines only, whatever happens while it is written."""

import os

import pytest

from cptuning.errors import CPTuningError
from cptuning.files.journal import Journal

ENTRIES = [{"texts": ["where is it?\nhere", "in \u2028 Málaga"]}, ["again", 3]]


def identity(entry):
    return entry


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for entry in ENTRIES:
        journal.append(entry)
    return journal


def test_what_was_appended_is_read_back_in_order(journal):
    assert journal.entries(identity) == ENTRIES


def test_no_file_is_no_entries(tmp_path):
    assert Journal(tmp_path / "journal.jsonl").entries(identity) == []


def test_wherever_the_last_line_is_torn_the_others_stay_and_more_can_be_appended(journal):
    whole = journal.path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        journal.path.write_bytes(whole[:end])
        assert journal.entries(identity) == ENTRIES[:1]
        journal.append(ENTRIES[1])
        assert journal.path.read_bytes() == whole


def test_zeros_left_by_a_power_failure_are_a_torn_line(journal):
    with journal.path.open("ab") as file:
        file.write(bytes(100))
    assert journal.entries(identity) == ENTRIES


def test_a_line_that_is_not_json_is_named(journal):
    with journal.path.open("a") as file:
        file.write("{\n")
    with pytest.raises(CPTuningError, match=r"journal\.jsonl, line 3 is damaged"):
        journal.entries(identity)


@pytest.mark.parametrize("error", [KeyError, TypeError, ValueError])
def test_a_line_that_cannot_be_parsed_is_named(journal, error):
    def refuse_lists(entry):
        if isinstance(entry, list):
            raise error("not an object")

    with pytest.raises(CPTuningError, match=r"journal\.jsonl, line 2 is damaged .*not an object"):
        journal.entries(refuse_lists)


def test_a_line_that_could_not_be_synced_is_taken_back(journal, monkeypatch):
    def fail(descriptor):
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        journal.append("lost")
    assert journal.entries(identity) == ENTRIES


def test_a_line_is_synced_before_append_returns(journal, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda d: synced.append(os.fstat(d).st_size))
    journal.append("more")
    assert synced == [journal.path.stat().st_size]
