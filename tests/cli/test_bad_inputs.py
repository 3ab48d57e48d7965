"""What a user can get wrong: one sentence that says what, where and what to do; exit code 2."""

import json
import shutil

import pytest
from tests.cli.conftest import write_csv


@pytest.fixture
def files(tmp_path, films, pairs, model, pair_model):
    """Everything that the cases below name, good and bad."""
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("text,label\n")
    (tmp_path / "binary.csv").write_bytes(b"text,label\ncaf\x81,a\n")
    (tmp_path / "broken.jsonl").write_text('{"text": "a", "label": "x"}\n{"text": \n')
    (tmp_path / "notes.docx").write_text("text,label\n")
    write_csv(tmp_path / "one-class.csv", ("text", "label"), [("a", "x"), ("b", "x")])
    write_csv(tmp_path / "no-label.csv", ("text", "id", "by"), [("a", "1", "x"), ("b", "2", "y")])
    write_csv(tmp_path / "no-text.csv", ("id", "left", "label"), [("1", "a", "x"), ("2", "b", "y")])
    write_csv(tmp_path / "gap.csv", ("text", "label"), [("a", "x"), ("b", "")])
    write_csv(tmp_path / "odd-dev.csv", ("text", "label"), [("a", "good"), ("b", "odd")])
    write_csv(tmp_path / "taken.csv", ("text", "prediction"), [("a", "x")])
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.txt").write_text("years of work")
    (tmp_path / "a-file").write_text("no folder")
    for name, change in {
        "newer": {"format": 99},
        "damaged": {"settings": {"steps": 1}},
    }.items():
        copy = tmp_path / name
        copy.mkdir()
        facts = json.loads((pair_model / "cptuning.json").read_text())
        (copy / "cptuning.json").write_text(json.dumps(facts | change))
    shutil.copytree(pair_model, tmp_path / "cut")
    support = tmp_path / "cut" / "support.safetensors"
    support.write_bytes(support.read_bytes()[:100])
    names = {path.name: path for path in tmp_path.iterdir()}
    return names | {"films": films, "pairs": pairs, "model": model, "pair-model": pair_model}


FIT = ("fit", "{films}", "--output", "{new}")
CASES = {
    "an empty file": (("fit", "{empty.csv}", "--output", "{new}"), "empty.csv is empty"),
    "a header alone": (("fit", "{header.csv}", "--output", "{new}"), "has a header but no rows"),
    "a missing file": (("fit", "{new}.csv", "--output", "{new}"), "does not exist"),
    "one class": (("fit", "{one-class.csv}", "--output", "{new}"), "at least two classes"),
    "no label column": (("fit", "{no-label.csv}", "--output", "{new}"), "no column 'label'"),
    "no text column": (("fit", "{no-text.csv}", "--output", "{new}"), "no column 'text'"),
    "a missing label": (("fit", "{gap.csv}", "--output", "{new}"), "gap.csv, line 3 has no label"),
    "another encoding": (("fit", "{binary.csv}", "--output", "{new}"), "line 2 is not UTF-8"),
    "broken JSON": (("fit", "{broken.jsonl}", "--output", "{new}"), "line 2 is not valid JSON"),
    "another kind of file": (("fit", "{notes.docx}", "--output", "{new}"), "unknown kind of file"),
    "a folder as file": (("fit", "{foreign}", "--output", "{new}"), "is a folder"),
    "a misnamed column": ((*FIT, "--text", "body"), "no column 'body'"),
    "a dev label of its own": (
        (*FIT, "--dev", "{odd-dev.csv}"),
        "odd-dev.csv, line 3: the label 'odd' does not occur in",
    ),
    "dev pairs for texts": ((*FIT, "--dev", "{pairs}"), "has pairs of texts"),
    "unlabelled pairs": ((*FIT, "--unlabeled", "{pairs}"), "has pairs of texts"),
    "an unknown method": ((*FIT, "--method", "magic"), "no method 'magic': use one of cp-tuning"),
    "an unknown preset": ((*FIT, "--preset", "magic"), "no preset 'magic'"),
    "an unknown setting": ((*FIT, "--set", "stepps=3"), "did you mean steps?"),
    "a setting of no kind": ((*FIT, "--set", "steps=many"), "steps is 'many'"),
    "a setting without value": ((*FIT, "--set", "steps"), "write NAME=VALUE"),
    "a setting out of range": ((*FIT, "--set", "steps=-1"), "at least 0"),
    "an option as setting": ((*FIT, "--set", "device=cpu"), "see the other options"),
    "an unknown validation": ((*FIT, "--validation", "magic"), "validation is 'magic'"),
    "an unknown device": ((*FIT, "--device", "abacus"), "'abacus' is not available"),
    "an unknown backbone": ((*FIT, "--backbone", "no/such"), "neither a folder here nor"),
    "a threshold of words": ((*FIT, "--unknown-threshold", "far"), "between -1 and 1"),
    "a threshold without dev": (
        (*FIT, "--unknown-threshold", "auto", "--validation", "none", "--set", "steps=1"),
        "needs held-out examples",
    ),
    "a foreign output folder": (
        ("fit", "{films}", "--output", "{foreign}"),
        "exists and is not a CP-Tuning model",
    ),
    "an output inside a file": (
        ("fit", "{films}", "--output", "{a-file}/model"),
        "can't be written",
    ),
    "a missing model": (("predict", "{new}", "{films}"), "There is no model folder"),
    "a foreign folder as model": (("info", "{foreign}"), "does not hold a CP-Tuning model"),
    "a newer model": (("evaluate", "{newer}", "{pairs}"), "written by a newer cptuning"),
    "a damaged model": (("predict", "{damaged}", "{pairs}"), "is damaged"),
    "a model cut short": (("explain", "{cut}", "a", "--text-b", "b"), "is damaged"),
    "single texts for pairs": (
        ("predict", "{pair-model}", "{films}"),
        "has single texts but the model takes pairs: name the column of the second text",
    ),
    "pairs for single texts": (("evaluate", "{model}", "{pairs}"), "the model takes single texts"),
    "a test without labels": (("evaluate", "{model}", "{no-label.csv}"), "no column 'label'"),
    "a taken column": (("predict", "{model}", "{taken.csv}"), "already has a column 'prediction'"),
    "a summary among rows": (("predict", "{model}", "{films}", "--json"), "name a file with"),
    "a format for files": (
        ("predict", "{model}", "{films}", "--output", "{new}.csv", "--format", "csv"),
        "--format is only for stdin and stdout",
    ),
    "an output nowhere": (
        ("predict", "{model}", "{films}", "--output", "{new}/out.csv"),
        "there is no folder",
    ),
    "a report nowhere": (
        ("evaluate", "{model}", "{films}", "--report", "{new}/report.html"),
        "report.html can't be written",
    ),
    "nothing to explain": (("explain", "{model}"), "Give either a text"),
    "half a pair": (("explain", "{pair-model}", "a"), "give the second text with --text-b"),
    "a pair too many": (("explain", "{model}", "a", "--text-b", "b"), "omit --text-b"),
    "pairs added to texts": (("add", "{model}", "{pairs}"), "the model takes single texts"),
    "an unknown export": (("export", "{model}", "--to", "word"), "use --to onnx"),
    "sizes of words": (("learning-curve", "{films}", "--sizes", "few"), "such as 2,4,8"),
    "sizes too large": (("learning-curve", "{films}", "--sizes", "99"), "no class has more than"),
    "a curve as text": (("learning-curve", "{films}", "--output", "c.txt"), ".html or .png"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_one_clear_sentence(run, files, tmp_path, case):
    words, sentence = CASES[case]
    places = files | {"new": tmp_path / "new"}
    filled = []
    for word in words:
        for name, path in places.items():
            word = word.replace("{" + name + "}", str(path))
        filled.append(word)
    before = sorted(tmp_path.iterdir())
    result = run(*filled)
    assert result.exit_code == 2, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert sentence in errors[0]
    assert "Traceback" not in result.output
    assert result.stdout == ""
    # Nothing half made is left behind, and nobody's files are touched.
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "foreign" / "thesis.txt").read_text() == "years of work"
