"""The command from end to end, as a user types it, on a tiny backbone."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cptuning.cli import app
from tests.test_estimator import LABELS, TEXTS
from tests.tiny import save_tiny

RUNNER = CliRunner()


def run(*arguments, **options):
    return RUNNER.invoke(app, [str(argument) for argument in arguments], **options)


def write_csv(path, texts, labels=None, header="text"):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([header, "label"] if labels else [header])
        writer.writerows(zip(texts, labels, strict=True) if labels else ([t] for t in texts))
    return path


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a backbone, training and test files, and a fitted model."""
    folder = tmp_path_factory.mktemp("work")
    save_tiny("bert", folder / "bert")
    write_csv(folder / "train.csv", TEXTS, LABELS)
    write_csv(folder / "new.csv", TEXTS[:5])
    found = run(
        *("fit", folder / "train.csv", "--output", folder / "model", "--backbone", folder / "bert"),
        *("--set", "steps=2", "--set", "batch_size=6"),
    )
    assert found.exit_code == 0, found.output
    return folder


def test_fit_says_what_it_read_how_long_it_takes_and_how_good_it_is(work):
    found = run(
        *("fit", work / "train.csv", "--output", work / "again", "--backbone", work / "bert"),
        *("--set", "steps=2", "--json"),
    )
    assert found.exit_code == 0
    assert "12 texts in 2 classes" in found.stderr
    assert "Training will take" in found.stderr
    answer = json.loads(found.stdout)
    low, high = answer["held_out"]["interval"]
    assert low <= answer["held_out"]["accuracy"] <= high
    assert not (work / "again.checkpoint").exists()


def test_predict_keeps_the_columns_and_adds_its_answers(work):
    out = work / "out.csv"
    found = run(
        *("predict", work / "model", work / "new.csv", "--output", out),
        *("--probabilities", "--neighbours", 2),
    )
    assert found.exit_code == 0, found.output
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert [row["text"] for row in rows] == TEXTS[:5]
    for row in rows:
        assert row["prediction"] in ("good", "bad")
        assert float(row["p_good"]) + float(row["p_bad"]) == pytest.approx(1, abs=1e-4)
        assert row["neighbour_1"] == row["text"]
        assert float(row["neighbour_1_similarity"]) == pytest.approx(1, abs=1e-4)


def test_predict_reads_standard_input_and_writes_standard_output(work):
    found = run("predict", work / "model", "-", "--output", "-", input="text\ngreat movie\n")
    assert found.exit_code == 0
    [row] = csv.DictReader(found.stdout.splitlines())
    assert row["text"] == "great movie"


def test_evaluate_prints_one_json_object_and_writes_one_page(work):
    report = work / "report.html"
    found = run("evaluate", work / "model", work / "train.csv", "--json", "--report", report)
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert {"accuracy", "macro_f1", "majority", "n"} <= answer.keys()
    assert (answer["n"], answer["majority"]) == (12, 0.5)
    page = report.read_text("utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "<script src" not in page


def test_texts_on_the_page_are_never_read_as_html(work):
    nasty = write_csv(work / "nasty.csv", ["<script>alert(1)</script> great"] * 3, ["bad"] * 3)
    report = work / "nasty.html"
    assert run("evaluate", work / "model", nasty, "--report", report).exit_code == 0
    assert "<script>alert" not in report.read_text("utf-8")


def test_explain_shows_the_nearest_examples(work):
    found = run("explain", work / "model", "great movie", "-k", 2, "--json")
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert "great movie" in json.dumps(answer)


def test_add_teaches_a_new_class_without_training(work):
    more = write_csv(work / "more.csv", ["the red train", "the train at ten"], ["travel"] * 2)
    found = run("add", work / "model", more, "--output", work / "wider")
    assert found.exit_code == 0, found.output
    facts = json.loads(run("info", work / "wider", "--json").stdout)
    assert facts["classes"] == ["bad", "good", "travel"]
    assert json.loads(run("info", work / "model", "--json").stdout)["classes"] == ["bad", "good"]


def test_an_exported_model_answers_the_same(work):
    found = run("export", work / "model", work / "onnx", "--to", "onnx")
    assert found.exit_code == 0, found.output
    answers = [
        run("predict", work / name, work / "new.csv", "--output", "-").stdout
        for name in ("model", "onnx")
    ]
    predictions = [
        [row["prediction"] for row in csv.DictReader(text.splitlines())] for text in answers
    ]
    assert predictions[0] == predictions[1]


def test_the_learning_curve_ends_in_a_verdict(work):
    found = run(
        *("learning-curve", work / "train.csv", "--backbone", work / "bert", "--sizes", "1,2"),
        *("--repeats", 2, "--set", "steps=1", "--json"),
    )
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert "verdict" in answer
    assert [point["size"] for point in answer["sizes"]] == [1, 2]


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "add", "info"])
def test_every_command_has_help(command):
    found = run(command, "--help")
    assert found.exit_code == 0
    assert command in found.output


def wrong(name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", b"", "empty.csv"),
        ("header.csv", b"text,label\n", "header.csv"),
        ("one.csv", b"text,label\na,x\nb,x\n", "at least two classes"),
        ("column.csv", b"body,label\na,x\nb,y\n", "--text"),
        ("nolabel.csv", b"text,label\na,x\nb,\n", "line 3"),
        ("latin.csv", "text,label\ncafé,x\n".encode("latin-1"), "UTF-8"),
        ("bad.jsonl", b'{"text": "a", "label": "x"}\n{oops\n', "line 2"),
        ("data.docx", b"", "docx"),
    ],
)
def test_a_wrong_file_gets_one_sentence_and_exit_code_two(tmp_path, name, content, words):
    path = wrong(name, content, tmp_path)
    found = run("fit", path, "--output", tmp_path / "model")
    assert found.exit_code == 2
    errors = [line for line in found.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert words in found.stderr
    assert "Traceback" not in found.output
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("predict", "nowhere", "new.csv", "--output", "o.csv"), "nowhere"),
        (("predict", "bert", "new.csv", "--output", "o.csv"), "no CP-Tuning model"),
        (("predict", "model", "missing.csv", "--output", "o.csv"), "missing.csv"),
        (("fit", "train.csv", "--output", "m", "--method", "svm"), "svm"),
        (("fit", "train.csv", "--output", "m", "--set", "depth=3"), "depth"),
        (("fit", "train.csv", "--output", "m", "--set", "margin=-1"), "margin is -1"),
        (("fit", "train.csv", "--output", "bert"), "bert"),
        (("fit", "train.csv", "--output", "train.csv/m"), "train.csv"),
        (("fit", "train.csv", "--output", "m", "--backbone", "no/such"), "embedded"),
        (("evaluate", "model", "new.csv"), "label"),
    ],
)
def test_a_wrong_command_gets_one_sentence_and_exit_code_two(work, monkeypatch, arguments, words):
    monkeypatch.chdir(work)
    found = run(*arguments)
    assert found.exit_code == 2
    assert words in found.stderr
    assert "Traceback" not in found.output
    assert not (work / "o.csv").exists()


ROOT = Path(__file__).parents[1]


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", "from cptuning.cli import main; main()", *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_is_one_sentence_and_the_same_command_goes_on(work, tmp_path):
    arguments = (
        *("fit", work / "train.csv", "--output", tmp_path / "model", "--backbone", work / "bert"),
        *("--validation", "none", "--set", "steps=400", "--set", "checkpoint_seconds=0"),
    )
    process = start(*arguments)
    state = tmp_path / "model.checkpoint" / "training.safetensors"
    deadline = time.monotonic() + 120
    while not state.exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert not (tmp_path / "model").exists()
    again = start(*arguments)
    _, said = again.communicate()
    assert again.returncode == 0, said
    assert "step" in said
    assert (tmp_path / "model" / "cptuning.json").is_file()
