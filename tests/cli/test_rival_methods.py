"""The command with every method: fit, then all that can be asked of the model, or a clear no."""

import json
import os
import signal

import pytest
from safetensors.numpy import load_file
from tests.cli.conftest import start, write_csv
from tests.standstill import wait_for_files

from cptuning.registry import list_methods

RIVALS = [name for name in list_methods() if name != "cp-tuning"]
WORDS = ("--label-words", "good=great,bad=dull")


def words_for(method):
    return () if method == "fine-tuning" else WORDS


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folders of the models, fitted when first wanted."""
    return {"root": tmp_path_factory.mktemp("models")}


@pytest.fixture
def fitted(run, tiny, films, models):
    def fit(method):
        if method not in models:
            folder = models["root"] / method
            small = ("--set", "beam=2") if method in ("lm-bff-t", "lm-bff-tl") else ()
            result = run(
                "fit", films, "--output", folder, "--method", method, "--backbone", tiny("bert"),
                "--set", "steps=2", "--set", "evaluate_every=1", *small, *words_for(method),
            )  # fmt: skip
            assert result.exit_code == 0, result.output
            models[method] = (folder, result)
        return models[method]

    return fit


@pytest.mark.parametrize("method", RIVALS)
def test_fit_says_how_good_the_model_is_and_info_tells_what_it_is(run, fitted, method):
    folder, result = fitted(method)
    assert "Held-out accuracy" in result.stdout
    assert ("candidates, tuned for" in result.stdout) == method.startswith("lm-bff")
    facts = json.loads(run("info", folder, "--json").stdout)
    assert facts["method"] == method
    shown = run("info", folder).stdout
    assert method in shown
    if method.startswith("lm-bff"):
        assert "steps a candidate" in shown


@pytest.mark.parametrize("method", RIVALS)
def test_predict_and_evaluate_work_with_its_model(run, fitted, films, tmp_path, method):
    folder, _ = fitted(method)
    out = tmp_path / "out.csv"
    assert run("predict", folder, films, "--output", out, "--probabilities").exit_code == 0
    assert out.read_text().startswith("text,label,prediction,confidence,p_bad,p_good")
    report = tmp_path / "report.html"
    result = run("evaluate", folder, films, "--json", "--report", report)
    assert json.loads(result.stdout)["n"] == 8
    page = report.read_text()
    assert method in page
    assert "Map of the texts" not in page


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "{model}", "a joy"),
        ("add", "{model}", "{films}"),
        ("export", "{model}", "--output", "{new}"),
        ("predict", "{model}", "{films}", "--neighbours", "2"),
    ],
)
def test_what_the_model_cannot_do_is_refused_in_a_sentence(run, fitted, films, tmp_path, words):
    folder, _ = fitted("pet")
    places = {"{model}": folder, "{films}": films, "{new}": tmp_path / "new"}
    result = run(*[places.get(word, word) for word in words])
    assert result.exit_code == 2
    assert "cp-tuning" in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "new").exists()


def test_a_learning_curve_takes_a_method_with_its_words(run, tiny, films):
    result = run(
        "learning-curve", films, "--method", "pet", *WORDS, "--backbone", tiny("bert"),
        "--set", "steps=1", "--sizes", "2", "--repeats", "2", "--json", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["complete"]


def test_the_methods_are_listed(run):
    assert [line.split()[0] for line in run("methods").stdout.splitlines()] == list(list_methods())


def test_a_task_gives_template_and_words(run, tiny, tmp_path):
    rows = [("great", "positive"), ("a joy", "positive"), ("dull", "negative"), ("bad", "negative")]
    train = write_csv(tmp_path / "t.csv", ("text", "label"), rows)
    result = run(
        "fit", train, "--output", tmp_path / "m", "--method", "pet", "--task", "SST-2",
        "--backbone", tiny("roberta"), "--set", "steps=0", "--validation", "none",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    settings = json.loads((tmp_path / "m" / "cptuning.json").read_text())["settings"]
    assert settings["template"] == "{a} It was [MASK]."
    assert settings["label_words"] == {"negative": "terrible", "positive": "great"}


MISTAKES = {
    "no words": ((), "'bad' is not a word of the model's vocabulary"),
    "half the words": (("--label-words", "good=great"), "no word for the label 'bad'"),
    "words without labels": (("--label-words", "great,dull"), "write LABEL=WORD"),
    "an unknown task": (("--task", "IMDB"), "no task 'IMDB'"),
    "a task of other labels": (("--task", "SST-2"), "The task SST-2 has no word for the label"),
    "a template without mask": ((*WORDS, "--template", "{a} it is"), "has no [MASK]"),
    "a setting of another method": ((*WORDS, "--set", "margin=0.3"), "There is no setting"),
    "a threshold": ((*WORDS, "--unknown-threshold", "0.3"), "unknown_threshold"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_clear_sentence(run, tmp_path, case):
    """The embedded backbone knows good and bad, so the labels here are others."""
    rows = [("a", "xq"), ("b", "zzv"), ("c", "xq"), ("d", "zzv")]
    words, sentence = MISTAKES[case]
    words = [w.replace("good=", "xq=").replace("bad=", "zzv=") for w in words]
    sentence = sentence.replace("'bad'", "'xq'" if case == "no words" else "'zzv'")
    train = write_csv(tmp_path / "t.csv", ("text", "label"), rows)
    output = tmp_path / "m"
    result = run("fit", train, "--output", output, "--method", "pet", "--set", "steps=0", *words)
    assert result.exit_code == 2, result.output
    [line] = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert sentence in line
    assert not output.exists()


@pytest.mark.parametrize(
    ("method", "stage", "more"),
    [
        ("p-tuning", "fold-2-of-2", ()),
        ("lm-bff-l", "candidate-2-fold-1-of-2", ("--set", "n_mappings=2")),
        ("warp", "training", ("--validation", "none")),
    ],
)
def test_a_rivals_fit_that_is_killed_resumes_to_exactly_the_same_model(
    run, tiny, tmp_path, films, method, stage, more
):
    words = (
        "fit", films, "--backbone", tiny("bert"), "--method", method, *WORDS, "--quiet",
        "--set", "steps=40", "--set", "evaluate_every=10", "--set", "checkpoint_seconds=0", *more,
    )  # fmt: skip
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    file = f"{stage}.cptuning-state"
    process = start(*words, "--output", broken, env=environment, until=file, times=5)
    wait_for_files(tmp_path / "broken.checkpoint", file, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not broken.exists()
    # As if it had been killed while it wrote: that must not stay for ever.
    (tmp_path / "broken.checkpoint" / f".{file}.1-ab.unfinished").mkdir()
    (tmp_path / "broken.checkpoint" / f".{file}.1-ab.unfinished" / ".tmp").touch()
    assert run(*words, "--output", broken).exit_code == 0
    assert run(*words, "--output", whole).exit_code == 0
    for name in ("backbone/model.safetensors", "prompts.safetensors", "head.safetensors"):
        ours, theirs = load_file(broken / name), load_file(whole / name)
        assert all((ours[key] == theirs[key]).all() for key in theirs)
    assert (broken / "cptuning.json").read_text() == (whole / "cptuning.json").read_text()
    assert not (tmp_path / "broken.checkpoint").exists()
