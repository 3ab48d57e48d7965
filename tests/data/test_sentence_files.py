import gzip
import json

import pytest

from cptuning.data.sentence_files import (
    conll_text,
    iob2_tags,
    read_sentences,
    sentence_format,
)
from cptuning.errors import CPTuningError

COLUMNS = """-DOCSTART- -X- O O

# id = 1
EU NNP I-NP I-ORG
rejects VBZ I-VP O
# CC O O
German JJ I-NP I-MISC

Peter NNP I-NP I-PER
"""


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_conll_2003_is_read_with_its_document_lines_comments_and_scheme(tmp_path):
    found = read_sentences(written(tmp_path, "train.conll", COLUMNS))
    assert [sentence.words for sentence in found.sentences] == [
        ("EU", "rejects", "#", "German"),
        ("Peter",),
    ]
    assert iob2_tags(found.tagged) == [["B-ORG", "O", "O", "B-MISC"], ["B-PER"]]
    assert found.where[1].endswith("train.conll, line 9")


@pytest.mark.parametrize("name", ["t.conll", "t.bio", "T.IOB2", "t.bioes"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_columns_may_be_split_by_tabs_and_lines_end_in_any_way(tmp_path, name, ends):
    text = ends.join(["New York\tS-city", "", "", "\t", "at\tO", "St.\tB-city", "Ives\tE-city"])
    found = read_sentences(written(tmp_path, name, text))
    assert [sentence.words for sentence in found.sentences] == [
        ("New York",),
        ("at", "St.", "Ives"),
    ]
    assert iob2_tags(found.tagged) == [["B-city"], ["O", "B-city", "I-city"]]


def test_gzipped_files_are_read(tmp_path):
    content = gzip.compress(b"Rome\tB-city\n")
    assert len(read_sentences(written(tmp_path, "t.conll.gz", content)).tagged) == 1


def test_json_lines_have_spans_or_tags(tmp_path):
    rows = [
        {"text": "to Rome", "spans": [{"start": 3, "end": 7, "label": "city"}]},
        {"tokens": ["to", "Rome"], "tags": ["O", "I-city"]},
        {"text": "hello", "spans": []},
    ]
    path = written(tmp_path, "t.jsonl", "\n".join(json.dumps(row) for row in rows))
    tagged = read_sentences(path, need_tags=True).tagged
    assert iob2_tags(tagged) == [["O", "B-city"], ["O", "B-city"], ["O"]]


def test_files_without_tags_are_sentences(tmp_path):
    for name, content in {
        "t.txt": "to Rome\n\nback\n",
        "t.conll": "to\nRome\n\nback\n",
        "t.jsonl": '{"text": "to Rome"}\n{"tokens": ["back"]}\n',
    }.items():
        path = written(tmp_path, name, content)
        found = read_sentences(path)
        assert [sentence.words for sentence in found.sentences] == [("to", "Rome"), ("back",)]
        assert found.tagged is None
        with pytest.raises(CPTuningError, match=r", line \d has no tags: "):
            read_sentences(path, need_tags=True)


def test_columns_that_are_written_are_read_back(tmp_path):
    found = read_sentences(written(tmp_path, "t.conll", COLUMNS)).tagged
    pairs = zip(found.sentences, iob2_tags(found), strict=True)
    again = written(tmp_path, "again.conll", "".join(conll_text(*pair) for pair in pairs))
    assert read_sentences(again).tagged == found


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.conll", "", r"t\.conll is empty"),
        ("t.conll", "\n\n", r"has no sentences"),
        ("t.txt", "\n", r"has no sentences"),
        ("t.conll", "to\tO\nRome\n", r"line 2 has 1 column, unlike the line before"),
        ("t.conll", "to\nRome\tO\n", r"line 2 has 2 columns, unlike the line before"),
        ("t.conll", "to\tO\nRome\tcity\n", r"line 2, word 2: the tag 'city' is neither"),
        ("t.conll", "\tO\n", r"line 1 has no word"),
        ("t.conll", b"Z\xfcrich\tO\n", r"line 1 is not UTF-8"),
        ("t.conll.gz", b"Rome\tO\n", r"is not a valid gzip file"),
        ("t.jsonl", '{"words": []}', r'line 1 has neither a "text" nor "tokens"'),
        ("t.jsonl", '{"tokens": "to Rome"}', r"line 1: tokens is not a list of words"),
        (
            "t.jsonl",
            '{"tokens": ["to"], "tags": []}',
            r"line 1: tags is not a list",
        ),
        ("t.jsonl", '{"text": "to", "spans": [[0, 9, "x"]]}', r"line 1: the span from 0 to 9"),
        ("t.csv", "text\n", r"unknown kind of file"),
    ],
)
def test_bad_files_are_named_with_the_line(tmp_path, name, content, message):
    with pytest.raises(CPTuningError, match=message):
        read_sentences(written(tmp_path, name, content), need_tags=True)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(CPTuningError, match="does not exist"):
        read_sentences(tmp_path / "t.conll")
    with pytest.raises(CPTuningError, match="is a folder"):
        read_sentences(tmp_path)
    with pytest.raises(CPTuningError, match="Unknown format 'csv'"):
        sentence_format("-", "csv")
