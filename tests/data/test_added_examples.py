"""Examples that were added to a model are read back as they were."""

import pytest

from cptuning.data import ADDED_FILE, AddedExamples, Examples, append_added, read_added
from cptuning.errors import CPTuningError

BATCHES = [
    AddedExamples(Examples(("where is it?\nhere", "in \u2028 Málaga")), ["a", "b"]),
    AddedExamples(Examples(("is it?",), ("it is",)), [True]),
]


@pytest.fixture
def folder(tmp_path):
    for batch in BATCHES:
        append_added(tmp_path, batch)
    return tmp_path


def test_added_examples_are_read_back_in_order(folder):
    assert read_added(folder) == BATCHES


@pytest.mark.parametrize("line", ["[]", '{"texts": ["a"]}', '{"texts": ["a"], "labels": []}'])
def test_a_damaged_batch_is_named(folder, line):
    with (folder / ADDED_FILE).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(CPTuningError, match=r"added\.jsonl, line 3 is damaged"):
        read_added(folder)
