import json

import pytest
from tests.test_tagger import NEW, TOKENS, tags_of


def write_conll(path, texts):
    blocks = [
        "".join(f"{w}\t{t}\n" for w, t in zip(words, tags_of(words), strict=True))
        for words in map(str.split, texts)
    ]
    path.write_text("\n".join(blocks))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tagger of cities and days, as the command fits it."""
    from typer.testing import CliRunner

    from cptuning.cli import app

    place = tmp_path_factory.mktemp("tag")
    train = write_conll(place / "train.conll", TOKENS)
    arguments = ["tag", "fit", train, "--output", place / "model", "--preset", "instant", "--json"]
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["sentences"] == len(TOKENS)
    assert facts["spans"] == {"city": 7, "day": 5}
    assert facts["kept"] == "instant"
    return place


def test_spans_are_predicted_as_jsonl_and_as_conll(run, folder, tmp_path):
    path = tmp_path / "new.txt"
    path.write_text(f"{NEW}\nhello there\n")
    result = run("tag", "predict", folder / "model", path)
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["text"] for row in rows] == [NEW, "hello there"]
    assert [s["label"] for s in rows[0]["spans"]] == ["city", "city", "day"]
    assert all(NEW[s["start"] : s["end"]] == s["text"] for s in rows[0]["spans"])

    out = tmp_path / "new.conll"
    result = run("tag", "predict", folder / "model", path, "--output", out, "--json")
    assert json.loads(result.stdout) == {
        "texts": 2,
        "output": str(out),
        "spans": {"city": 2, "day": 1},
    }
    tags = [line.split("\t")[1] for line in out.read_text().splitlines() if line]
    assert tags == [*tags_of(NEW.split()), "O", "O"]


def test_predictions_of_a_stream_with_reasons(run, folder):
    lines = json.dumps({"text": NEW}) + "\n"
    result = run("tag", "predict", folder / "model", "-", "--reasons", "1", stdin=lines)
    assert result.exit_code == 0, result.stderr
    [row] = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(len(s["nearest"]) == 1 for s in row["spans"])
    assert "3 spans in 1 texts written to standard output" in result.stderr


def test_predictions_are_an_input_of_fit_and_evaluate(run, folder, tmp_path):
    path = tmp_path / "new.txt"
    path.write_text(NEW + "\n")
    out = tmp_path / "new.jsonl"
    assert run("tag", "predict", folder / "model", path, "--output", out, "-q").exit_code == 0
    result = run("tag", "evaluate", folder / "model", out, "--json")
    assert json.loads(result.stdout)["f1"] == 1.0


def test_evaluation_prints_a_table_by_type_and_writes_a_report(run, folder, tmp_path):
    test = write_conll(tmp_path / "test.conll", [NEW, "see you in Rome on <b>", "hello"])
    report = tmp_path / "report.html"
    result = run("tag", "evaluate", folder / "model", test, "--report", report)
    assert result.exit_code == 0, result.stderr
    assert "span F1" in result.stdout
    assert "95 % interval" in result.stdout
    assert "city" in result.stdout
    page = report.read_text()
    assert "<small>city</small></mark>" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page.split("<section><h2>Texts")[1]
    assert "Evaluation of model on test.conll" in page
    summary = json.loads(run("tag", "evaluate", folder / "model", test, "--json").stdout)
    assert summary["n"] == 3
    assert summary["types"]["city"]["spans"] == 3
    low, high = summary["interval"]
    assert low <= summary["f1"] <= high


def test_sentences_of_the_training_data_and_unknown_types_are_warned_of(run, folder, tmp_path):
    test = write_conll(tmp_path / "test.conll", TOKENS[:2])
    test.write_text(test.read_text() + "\nsoup\tB-dish\n")
    result = run("tag", "evaluate", folder / "model", test)
    assert "2 of the 3 sentences are labelled in the tagger too" in result.stderr
    assert "does not know the type 'dish'" in result.stderr


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("to\tO\nRome\tcity\n", "t.conll", "line 2, word 2: the tag 'city'"),
        ('{"text": "to Rome"}\n', "t.jsonl", "line 1 has no tags: give each object"),
        ("to Rome\n", "t.txt", "line 1 has no tags: use a .conll or .jsonl file"),
        ("to\tO\n", "t.conll", "None of the 1 sentences has a marked span"),
        ("to\tO\n", "t.pdf", "unknown kind of file"),
    ],
)
def test_bad_training_files_leave_one_sentence_and_no_folder(run, tmp_path, content, name, message):
    path = tmp_path / name
    path.write_text(content)
    result = run("tag", "fit", path, "--output", tmp_path / "model", "--preset", "instant")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert message in result.stderr
    assert not (tmp_path / "model").exists()


def test_bad_options_are_refused_before_any_work(run, folder, tmp_path):
    train = folder / "train.conll"
    for arguments, message in {
        ("fit", train, "--output", tmp_path / "m", "--set", "marginn=1"): "did you mean margin?",
        ("fit", train, "--output", train): "exists and is not a CP-Tuning model",
        ("fit", tmp_path / "no.conll", "--output", tmp_path / "m"): "does not exist",
        ("predict", tmp_path / "no", train): "There is no model folder",
        ("predict", folder / "model", train, "--output", "x.csv"): "unknown kind of file",
        ("predict", folder / "model", train, "--output", "x.txt"): "name a .jsonl or a .conll",
        ("predict", folder / "model", train, "--json"): "--json prints its summary to stdout",
        ("evaluate", folder / "model", train, "--report", "no/r.html"): "there is no such folder",
    }.items():
        result = run("tag", *arguments)
        assert result.exit_code == 2, message
        assert message in result.stderr


def test_info_describes_it(run, folder):
    result = run("info", folder / "model")
    assert result.exit_code == 0, result.stderr
    for row in ("method tagger", "types city, day", f"labelled sentences {len(TOKENS)}"):
        assert row in " ".join(result.stdout.split())
    facts = json.loads(run("info", folder / "model", "--json").stdout)
    assert (facts["method"], facts["types"]) == ("tagger", ["city", "day"])
    assert (facts["kind"], facts["sentences"]) == ("torch", len(TOKENS))


def test_other_commands_say_that_it_is_a_tagger(run, folder):
    for command in ("predict", "evaluate"):
        result = run(command, folder / "model", folder / "train.conll")
        assert result.exit_code == 2
        assert "Traceback" not in result.stderr
