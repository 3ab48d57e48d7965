"""Texts with several labels, in the shell: from a file to a model, its answers, and mistakes."""

import json

import pytest
from tests.cli.conftest import read_csv, write_csv
from tests.methods.test_multi_label import CLASSES, LABELS, NEW, TEXTS

import cptuning
from cptuning.storage import read_facts

COLUMNS = ("text", *CLASSES)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same examples with joined labels, with a column per label, and as lists."""
    folder = tmp_path_factory.mktemp("sets")
    joined = [(t, ";".join(labels)) for t, labels in zip(TEXTS, LABELS, strict=True)]
    flags = [(t, *(int(c in labels) for c in CLASSES))
             for t, labels in zip(TEXTS, LABELS, strict=True)]  # fmt: skip
    lists = [{"text": t, "label": labels} for t, labels in zip(TEXTS, LABELS, strict=True)]
    jsonl = folder / "lists.jsonl"
    jsonl.write_text("\n".join(map(json.dumps, lists)), "utf-8")
    return {
        "joined": write_csv(folder / "joined.csv", ("text", "label"), joined),
        "columns": write_csv(folder / "columns.csv", COLUMNS, flags),
        "lists": jsonl,
        "single": write_csv(folder / "single.csv", ("text", "label"), [("a", "x"), ("b", "y")]),
        "new": write_csv(folder / "new.csv", ("text",), [(text,) for text in NEW]),
    }


TELLING = {
    "joined": ("--label-separator", ";"),
    "columns": ("--label-columns", ",".join(CLASSES)),
    "lists": (),
}


@pytest.fixture(scope="module")
def models(files, tmp_path_factory):
    """A model of each file, fitted with the command."""
    from typer.testing import CliRunner

    from cptuning.cli import app

    folder = tmp_path_factory.mktemp("models")
    for kind, telling in TELLING.items():
        words = ["fit", files[kind], "--output", folder / kind, "--preset", "instant", *telling]
        result = CliRunner().invoke(app, list(map(str, words)))
        assert result.exit_code == 0, result.output
    return {kind: folder / kind for kind in TELLING}


def test_all_files_make_the_same_model_and_it_remembers_how_they_hold_labels(models):
    answers = [cptuning.load(models[kind]).predict(NEW) for kind in TELLING]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == ["complaint", "music"]
    cells = [read_facts(models[kind]).label_cells for kind in TELLING]
    assert cells[0].separator == ";"
    assert cells[1].columns == tuple(CLASSES)
    assert cells[2] is None


def test_fit_tells_the_labels_and_the_f1_of_held_out_texts(run, files, tmp_path):
    words = ("fit", files["joined"], "--output", tmp_path / "m", "--preset", "instant")
    result = run(*words, "--label-separator", ";")
    assert "10 texts with 5 labels (acting 2, complaint 4, " in result.stderr
    assert "1 without any" in result.stderr
    assert "the mean over 10 texts, leave-one-out" in result.stdout
    told = json.loads(run(*words, "--label-separator", ";", "--json").stdout)["held_out"]
    assert told.keys() == {"sample_f1", "n"}
    assert told["n"] == 10
    assert "labels" in run("info", tmp_path / "m").stdout
    assert "Labels, several per text" in (tmp_path / "m" / "README.md").read_text()


def test_answers_are_joined_with_a_column_of_probabilities_per_label(run, models, files):
    result = run("predict", models["joined"], files["new"], "--probabilities", "--neighbours", 1)
    rows = read_csv(result.stdout)
    assert rows[0]["prediction"] == "complaint;music"
    assert [name for name in rows[0] if name.startswith("p_")] == [f"p_{c}" for c in CLASSES]
    shares = cptuning.load(models["joined"]).predict_proba(NEW)
    assert float(rows[0]["p_music"]) == pytest.approx(shares[0][2], abs=1e-3)
    assert float(rows[0]["confidence"]) == pytest.approx(shares[0][[1, 2]].min(), abs=1e-3)
    assert set(rows[0]["neighbour_1_label"].split(";")) & {"complaint", "music"}
    other = run("predict", models["joined"], files["new"], "--label-separator", " + ")
    assert read_csv(other.stdout)[0]["prediction"] == "complaint + music"


def test_answers_in_jsonl_are_lists_and_labels_are_counted_one_by_one(run, models, files, tmp_path):
    output = tmp_path / "out.jsonl"
    result = run("predict", models["columns"], files["new"], "--output", output, "--json")
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["prediction"] for row in rows] == cptuning.load(models["columns"]).predict(NEW)
    counts = json.loads(result.stdout)
    assert counts["rows"] == 3
    assert counts["predictions"]["music"] == sum("music" in row["prediction"] for row in rows)


@pytest.mark.parametrize("kind", ["joined", "columns", "lists"])
def test_what_suggest_writes_can_be_filled_in_and_added(run, models, files, tmp_path, kind):
    guesses = tmp_path / "label.csv"
    assert run("suggest", models[kind], files["new"], "--output", guesses).exit_code == 0
    rows = read_csv(guesses.read_text())
    assert {row["guess"] for row in rows} >= {"complaint;music"}
    filled = [row | ({"plot": "1"} if kind == "columns" else {"label": "new;plot"}) for row in rows]
    path = write_csv(tmp_path / "filled.csv", list(filled[0]), [list(r.values()) for r in filled])
    telling = ("--label-separator", ";") if kind == "lists" else ()
    words = ("add", models[kind], path, "--output", tmp_path / "more", *telling)
    told = json.loads(run(*words, "--json").stdout)
    assert told["added"] == 3
    assert told["new_classes"] == ([] if kind == "columns" else ["new"])
    again = run("add", tmp_path / "more", path, *telling)
    assert "0 new examples added, 3 known already." in again.stdout
    assert "13 examples of" in again.stdout


def test_labels_are_explained_one_by_one(run, models):
    told = json.loads(run("explain", models["joined"], NEW[0], "--json").stdout)
    assert told["prediction"] == ["complaint", "music"]
    assert all("music" in e["label"] for e in told["reasons"]["music"]["neighbours"])
    shown = run("explain", models["joined"], NEW[0]).stdout
    assert shown.count("because it is similar to") == 2


def test_texts_that_are_repeated_with_other_labels_are_warned_of(run, tmp_path):
    rows = [("a", "x;y"), ("a", "y;x"), ("b", "x"), ("b", "")]
    path = write_csv(tmp_path / "t.csv", ("text", "label"), rows)
    words = ("fit", path, "--output", tmp_path / "m", "--preset", "instant")
    stderr = run(*words, "--label-separator", ";").stderr
    assert "1 row repeats a text and its labels." in stderr
    assert "'b' has the labels 'x' in" in stderr
    assert "and no label in" in stderr


MISTAKES = {
    "evaluate": "tell how the file holds them with --label-separator or --label-columns",
    "add": "has one label per text, but the model has label sets",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_single_labels_for_a_model_of_label_sets_are_refused(run, files, models, command):
    """What else can be wrong is in bad_inputs.py."""
    result = run(command, models["lists"], files["single"])
    assert result.exit_code == 2
    assert MISTAKES[command] in result.stderr
    assert result.stdout == ""


def test_a_separator_within_a_label_is_refused(run, files, models):
    result = run("predict", models["lists"], files["new"], "--label-separator", "s")
    assert result.exit_code == 2
    assert "The label 'music' contains 's', which joins labels" in result.stderr


def test_a_learning_curve_of_label_sets(run, files):
    words = ("learning-curve", files["joined"], "--label-separator", ";", "--preset", "instant")
    result = run(*words, "--sizes", "1,2", "--repeats", 2, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["metric"] == "micro-F1"
    assert [point["size"] for point in told["sizes"]] == [1, 2]
    assert all(0 <= value <= 1 for point in told["sizes"] for value in point["repeats"])
    assert 0 < told["majority"] < 1
    assert "examples per label: " in result.stderr


def test_who_forgets_the_separator_is_told(run, files, tmp_path):
    words = ("fit", files["joined"], "--output", tmp_path / "m", "--preset", "instant")
    # The row without labels has no label then.
    assert "has no label" in run(*words).stderr
    path = write_csv(tmp_path / "t.csv", ("text", "label"), [("a", "x;y"), ("b", "x"), ("c", "y")])
    stderr = run("fit", path, *words[2:]).stderr
    assert (
        "the label 'x;y' looks like several labels: if it is, use --label-separator ';'" in stderr
    )
