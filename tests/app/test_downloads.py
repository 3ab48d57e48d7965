"""What visitors take away: classified files, tables, the model."""

import csv
import json
import zipfile

import pytest
from tests.app.conftest import GOOD

import cptuning
from cptuning.app import downloads
from cptuning.app.user_examples import Example, TableColumns, examples_from_file
from cptuning.errors import CPTuningError


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_file_comes_back_classified(trained, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("id,text\n1,what a joy\n2,what a bore\n")
    target, first = downloads.classified_file(trained, path)
    assert target.name == "new-classified.csv"
    rows = rows_of(target)
    assert [row["id"] for row in rows] == ["1", "2"]
    assert [row["prediction"] for row in rows] == [row["prediction"] for row in first]


def test_lines_of_json_stay_lines_of_json(trained, tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_text('{"text": "what a joy"}\n')
    target, _ = downloads.classified_file(trained, path)
    assert json.loads(target.read_text())["prediction"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_cells_that_start_a_formula_are_made_harmless(trained, tmp_path, start):
    path = tmp_path / "new.csv"
    path.write_text(f'text,{start}note\n"{start}1+1","{start}cmd"\n')
    target, _ = downloads.classified_file(trained, path)
    [row] = rows_of(target)
    assert row["text"] == f"'{start}1+1"
    assert not any(cell.startswith(start) for cell in row.values())


def test_labels_that_start_a_formula_are_made_harmless_too(trained):
    trained.add([Example("=1+1", "=sum")])
    assert rows_of(downloads.examples_file(trained))[-1] == {"text": "'=1+1", "label": "'=sum"}


def test_a_wrong_file_is_told_by_its_own_name(trained, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("first,second\nhello,you\n")
    with pytest.raises(CPTuningError, match=r"^new\.csv has no column 'text'"):
        downloads.classified_file(trained, path)


def test_a_file_without_an_ending_is_refused(trained, tmp_path):
    path = tmp_path / "new"
    path.write_text("text\nhello\n")
    with pytest.raises(CPTuningError, match="unknown kind of file"):
        downloads.classified_file(trained, path)


def test_a_table_is_read_by_the_chosen_columns(trained, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("what a joy;1\nwhat a bore;2\n")
    columns = TableColumns("column 1", header=False)
    target, _ = downloads.classified_file(trained, path, columns)
    assert [row["column 2"] for row in rows_of(target)] == ["1", "2"]


def test_suggestions_wait_for_their_labels(trained, tmp_path):
    path = tmp_path / "pool.csv"
    path.write_text(f"id,text\n7,so so\n8,{GOOD[0]}\n9,the train is red\n")
    pool, found = trained.suggest(path, 5)
    rows = rows_of(downloads.suggestions_file(trained, pool, found))
    assert sorted(row["id"] for row in rows) == ["7", "9"]
    assert sorted(row["text"] for row in rows) == ["so so", "the train is red"]
    assert all(row["label"] == "" for row in rows)


def test_the_examples_come_back_as_they_were(trained):
    assert examples_from_file(downloads.examples_file(trained)) == trained.examples


def test_the_model_is_used_as_the_code_says(trained, tmp_path, monkeypatch, capsys):
    with zipfile.ZipFile(downloads.model_file(trained)) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(downloads.python_code(trained))
    assert "because it is similar to" in capsys.readouterr().out
    assert cptuning.load("model").classes_.tolist() == ["bad", "good"]


def test_pairs_are_taken_away_too(trained_on_pairs, tmp_path):
    assert (
        examples_from_file(downloads.examples_file(trained_on_pairs)) == trained_on_pairs.examples
    )
    path = tmp_path / "new.csv"
    path.write_text("text_a,text_b\nis it new?,it is new.\n")
    _, [row] = downloads.classified_file(trained_on_pairs, path)
    assert row["prediction"] in ("yes", "no", "unknown")


def test_label_sets_are_joined_in_tables_and_lists_in_lines_of_json(session, tmp_path):
    session.add([Example("a", ("x", "y")), Example("b", ("x",)), Example("c", ("y",))])
    session.add([Example("d", ())])
    path, lines = tmp_path / "new.csv", tmp_path / "new.jsonl"
    path.write_text("text\na\nd\n")
    lines.write_text('{"text": "a"}\n{"text": "d"}\n')
    target, _ = downloads.classified_file(session, path)
    assert [row["prediction"] for row in rows_of(target)] == ["x; y", ""]
    target, _ = downloads.classified_file(session, lines)
    assert [json.loads(line)["prediction"] for line in target.open()] == [["x", "y"], []]
    assert rows_of(downloads.examples_file(session))[0] == {"text": "a", "label": "x; y"}
