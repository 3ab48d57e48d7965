"""Examples that a model was taught are read back as they were."""

import pytest

from cptuning.data import LESSONS_FILE, Examples, Lesson, append_lesson, read_lessons
from cptuning.errors import CPTuningError

LESSONS = [
    Lesson(Examples(("where is it?\nhere", "in \u2028 Málaga")), ["a", "b"]),
    Lesson(Examples(("is it?",), ("it is",)), [True]),
]


@pytest.fixture
def folder(tmp_path):
    for lesson in LESSONS:
        append_lesson(tmp_path, lesson)
    return tmp_path


def test_lessons_are_read_back_in_order(folder):
    assert read_lessons(folder) == LESSONS


@pytest.mark.parametrize("line", ["[]", '{"texts": ["a"]}', '{"texts": ["a"], "labels": []}'])
def test_a_damaged_lesson_is_named(folder, line):
    with (folder / LESSONS_FILE).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(CPTuningError, match=r"added\.jsonl, line 3 is damaged"):
        read_lessons(folder)
