"""The benchmark of label sets: its splits, its scores, and the table that the documentation has."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from benchmarks.everyday.rows import Places
from benchmarks.label_sets import data, report, rows
from benchmarks.label_sets.__main__ import RECORDS, main
from cptuning.files.journal import Journal

FOLDER = Path(__file__).parents[2]
WORDS = {"a": "apple", "b": "bread", "c": "cake"}


def sets(n, seed):
    rng = np.random.default_rng(seed)
    for number in range(n):
        own = [label for label in WORDS if rng.random() < (0.5 if label != "c" else 0.05)]
        yield {"text_a": " ".join([f"text {seed} {number}", *map(WORDS.get, own)]), "labels": own}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three words, each of which is a label; a test text is in the training file, too."""
    monkeypatch.setenv("CPTUNING_DATA", str(tmp_path))
    (tmp_path / data.DATASET).mkdir()
    tested = list(sets(40, 1))
    for part, own in (("train", [*sets(200, 0), tested[0]]), ("test", tested)):
        with gzip.open(tmp_path / data.DATASET / f"{part}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in own)
    data.load_split.cache_clear()
    data._read.cache_clear()
    yield tmp_path
    data.load_split.cache_clear()
    data._read.cache_clear()


def test_each_label_has_sixteen_texts_or_as_many_as_there_are(folder):
    split = data.load_split(13)
    assert split.labels == ["a", "b", "c"]
    for label in split.labels:
        there = sum(label in row["labels"] for row in sets(200, 0))
        drawn = sum(label in own for own in split.train.labels)
        assert drawn >= min(data.SHOTS, there)
    assert len(split.train.labels) < 200
    assert not set(split.train.examples) & set(split.test.examples)
    assert data.load_split(21).digest != split.digest


def test_the_command_goes_on_where_it_was_ended_and_scores_as_scikit_learn(
    folder, tmp_path, capsys
):
    output = tmp_path / "records.jsonl"
    words = ["--only", "constant", "tfidf", "--splits", "13", "--output", str(output)]
    main(words)
    records = Journal(output).entries(dict)
    assert [record["row"] for record in records] == ["constant", "tfidf"]
    main(words)
    assert Journal(output).entries(dict) == records
    assert "2 runs, 0 of them left" in capsys.readouterr().out
    split = data.load_split(13)
    found = rows.tfidf(split)
    truth = rows._matrix(split.test.labels, split.labels)
    expected = f1_score(truth, found.given, average="micro")
    assert records[1]["micro_f1"] == pytest.approx(expected, abs=1e-4)
    assert records[1]["average_precision"] > 0.9  # each label is a word
    assert output.with_suffix(".md").read_text("utf-8").count("| TF-IDF") == 1


def test_rows_that_need_an_encoder_say_so():
    obstacles = {row.title: row.obstacle(Places({}, Path())) for row in rows.ROWS}
    told = {title: obstacle for title, obstacle in obstacles.items() if obstacle}
    assert len(told) == 4
    for title, obstacle in told.items():
        missing = "setfit" in obstacle and "SetFit" in title  # It need not be installed.
        assert missing or obstacle == "name its folder with --encoder gte-small=FOLDER"


def test_the_shipped_runs_make_the_documented_table():
    records = Journal(FOLDER / RECORDS).entries(dict)
    assert report.table(records) in (FOLDER / "docs/multi-label.md").read_text("utf-8")
    made = (FOLDER / RECORDS).with_suffix(".md").read_text("utf-8")
    assert made == report.report(records)
