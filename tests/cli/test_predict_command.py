"""cptuning predict: every row comes out again, in order, with its answer."""

import json

import pytest
from tests.cli.conftest import GOOD, read_csv, start, write_csv


@pytest.fixture
def new(tmp_path):
    rows = [("7", "what a wonderful joy", "=1+1"), ("8", 'dull, "terrible"\nmess', "é")]
    return write_csv(tmp_path / "new.csv", ("id", "text", "note"), rows)


def test_rows_keep_their_columns_and_gain_an_answer(run, model, new, tmp_path):
    result = run("predict", model, new, "--output", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "2 rows written to" in result.stderr
    first, second = read_csv_file(tmp_path / "out.csv")
    assert list(first) == ["id", "text", "note", "prediction", "confidence"]
    assert (first["id"], first["note"], first["prediction"]) == ("7", "=1+1", "good")
    assert (second["text"], second["prediction"]) == ('dull, "terrible"\nmess', "bad")
    assert 0.5 <= float(first["confidence"]) <= 1


def read_csv_file(path):
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_probabilities_sum_to_one_and_hold_the_confidence(run, model, new):
    rows = read_csv(run("predict", model, new, "--probabilities").stdout.replace("\nmess", "mess"))
    for row in rows:
        shares = {label: float(row[f"p_{label}"]) for label in ("good", "bad")}
        assert sum(shares.values()) == pytest.approx(1)
        assert shares[row["prediction"]] == float(row["confidence"])


def test_neighbours_are_training_examples_with_label_and_similarity(run, model, tmp_path):
    new = write_csv(tmp_path / "new.csv", ("text",), [(GOOD[0],)])
    [row] = read_csv(run("predict", model, new, "--neighbours", "2").stdout)
    assert row["neighbour_1"] == GOOD[0]
    assert row["neighbour_1_label"] == "good"
    assert float(row["neighbour_1_similarity"]) == pytest.approx(1, abs=1e-4)
    assert float(row["neighbour_2_similarity"]) < 1
    assert "neighbour_3" not in row
    assert row["against"] == row["against_label"] == row["against_similarity"] == ""


def test_no_more_neighbours_than_examples(run, pair_model, pairs):
    rows = read_csv(run("predict", pair_model, pairs, "--neighbours", "99").stdout)
    assert "neighbour_4_label" in rows[0]
    assert "neighbour_5_label" not in rows[0]
    assert rows[0]["neighbour_1_a"] == rows[0]["text_a"]
    assert rows[0]["neighbour_1_b"] == rows[0]["text_b"]


def test_a_far_text_is_unknown_and_has_no_confidence(run, model, tmp_path):
    facts = json.loads((model / "cptuning.json").read_text())
    import shutil

    strict = shutil.copytree(model, tmp_path / "strict")
    (strict / "cptuning.json").write_text(json.dumps(facts | {"unknown_threshold": 0.999}))
    new = write_csv(tmp_path / "new.csv", ("text",), [(GOOD[0],), ("the train leaves at ten",)])
    known, far = read_csv(run("predict", strict, new).stdout)
    assert known["prediction"] == "good"
    assert (far["prediction"], far["confidence"]) == ("unknown", "")


def test_jsonl_goes_in_and_comes_out_with_its_types(run, model, tmp_path):
    new = tmp_path / "new.jsonl"
    new.write_text('{"text": "a joy", "tags": ["x"], "n": 3}\n')
    row = json.loads(run("predict", model, new).stdout)
    assert row["tags"] == ["x"]
    assert row["n"] == 3
    assert isinstance(row["confidence"], float)


def test_standard_input_and_output_in_a_named_format(run, model):
    result = run("predict", model, "-", "--format", "tsv", stdin="text\tid\na joy\t1\n")
    assert result.stdout.splitlines()[0] == "text\tid\tprediction\tconfidence"
    assert result.stdout.splitlines()[1].startswith("a joy\t1\tgood\t")


def test_json_is_a_summary_beside_the_file(run, model, new, tmp_path):
    result = run("predict", model, new, "--output", tmp_path / "o.csv", "--json")
    assert json.loads(result.stdout) == {
        "rows": 2,
        "output": str(tmp_path / "o.csv"),
        "predictions": {"good": 1, "bad": 1},
    }


def test_an_error_in_the_middle_leaves_the_old_output_alone(run, model, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("text\n" + "a joy\n" * 300 + "one,cell,too,many\n")
    out = tmp_path / "out.csv"
    out.write_text("from last week")
    result = run("predict", model, new, "--output", out)
    assert result.exit_code == 2
    assert "new.csv, line 302 has 4 cells" in result.stderr
    assert out.read_text() == "from last week"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "out.csv"]


def test_answers_come_while_rows_are_still_being_written(pair_model):
    process = start("predict", pair_model, "-", "--quiet")
    process.stdin.write("text_a,text_b\n" + "is it red?,it is.\n" * 300)
    process.stdin.flush()
    # Standard input is still open: only a stream can answer now.
    assert process.stdout.readline() == "text_a,text_b,prediction,confidence\n"
    assert process.stdout.readline().startswith("is it red?,it is.,")
    process.stdin.write("is it big?,no.\n")
    process.stdin.close()
    rest = process.stdout.readlines()
    assert len(rest) == 300
    assert rest[-1].startswith("is it big?,no.,")
    assert process.stderr.read() == ""
    assert process.wait() == 0


def test_empty_texts_are_answered_too(run, model):
    result = run("predict", model, "-", stdin='text,id\n"",1\n')
    [row] = read_csv(result.stdout)
    assert row["prediction"] in ("good", "bad")
