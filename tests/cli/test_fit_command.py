"""cptuning fit: says what it read, trains, says how good it is; goes on after a kill."""

import json
import os
import signal

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.cli.conftest import start, write_csv
from tests.standstill import wait_for_files


@pytest.fixture
def fit(run, tiny, tmp_path, films):
    """Trains on a tiny backbone."""

    def train(*more, data=films, output=tmp_path / "model"):
        words = ("--output", output, "--backbone", tiny("bert"), "--set", "steps=2", *more)
        return run("fit", data, *words)

    return train


def test_it_says_what_it_read_how_long_it_takes_and_how_good_the_model_is(fit, tmp_path):
    result = fit()
    assert result.exit_code == 0
    assert "films.csv: 8 texts in 2 classes (bad 4, good 4)." in result.stderr
    assert "Training will take about 1 s." in result.stderr
    held_out, place, following = result.stdout.splitlines()
    assert held_out.startswith("Held-out accuracy")
    assert "95 % interval" in held_out
    assert "8 texts, cross-fit; always the most frequent class: 50.0 %" in held_out
    assert f"The model is in {tmp_path / 'model'}" in place
    assert (
        following == f"Next: cptuning evaluate {tmp_path / 'model'} TEST.csv --report report.html"
    )
    assert (tmp_path / "model" / "cptuning.json").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]  # No checkpoint is left.


def test_json_is_one_object(fit, tmp_path):
    result = fit("--json", "--quiet")
    answer = json.loads(result.stdout)
    assert answer["model"] == str(tmp_path / "model")
    assert answer["examples"] == {"bad": 4, "good": 4}
    low, high = answer["held_out"]["interval"]
    assert low <= answer["held_out"]["accuracy"] <= high
    assert answer["held_out"]["n"] == 8
    assert result.stderr == ""


def test_it_first_says_what_is_known_without_training(fit):
    result = fit("--json")
    assert "Without training: " in result.stderr
    assert "of 8 held-out examples right." in result.stderr
    answer = json.loads(result.stdout)
    assert answer["kept"] in ("trained", "instant")
    assert 0 <= answer["instant_accuracy"] <= 1


@pytest.mark.parametrize("kept", ["trained", "instant"])
def test_it_says_if_training_was_of_no_use(fit, monkeypatch, kept):
    from cptuning.methods.evaluation_log import HeldOut

    monkeypatch.setattr(HeldOut, "is_clearly_better_than", lambda *_: kept == "instant")
    said = fit().stdout
    assert ("prefer the model without training: it was kept." in said) == (kept == "instant")


def test_quiet_says_nothing(fit):
    result = fit("--quiet", "--validation", "none")
    assert result.exit_code == 0
    assert result.output == ""


def test_without_validation_it_does_not_claim_an_accuracy(fit):
    assert "was not measured" in fit("--validation", "none").stdout


def test_a_dev_file_is_read_and_its_texts_are_counted(fit, films, tmp_path):
    dev = write_csv(
        tmp_path / "dev.csv", ("text", "label"), [("a joy", "good"), ("what a bore", "bad")]
    )
    result = fit("--dev", dev, "--json")
    assert json.loads(result.stdout)["held_out"]["n"] == 2
    assert "dev.csv: 2 texts in 2 classes" in result.stderr
    assert "warning: 1 of the 2 dev texts are in the training file too" in result.stderr


@pytest.mark.parametrize("words", [("--label-words", "good=great,bad=dull"), ("--task", "SST-2")])
def test_cp_tuning_has_no_label_words(fit, words):
    result = fit(*words)
    assert result.exit_code == 2
    assert f"{words[0]} is for methods with label words" in result.stderr


def test_a_training_that_went_astray_is_told_in_one_sentence(fit, tmp_path):
    result = fit("--set", "learning_rate=1e30", "--set", "evaluate_every=1")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("error: Training ended in numbers")
    assert not (tmp_path / "model").exists()


def test_labels_of_a_dev_file_may_be_spelt_as_csv_spells_them(fit, tmp_path):
    train = tmp_path / "train.jsonl"
    lines = [json.dumps({"text": f"text {i}", "label": i % 2}) for i in range(4)]
    train.write_text("\n".join(lines))
    dev = write_csv(tmp_path / "dev.csv", ("text", "label"), [("a", "0"), ("b", "1")])
    assert fit("--dev", dev, data=train).exit_code == 0


def test_empty_texts_are_warned_of(fit, tmp_path):
    rows = [("great", "good"), ("", "good"), (" ", "bad"), ("dull", "bad")]
    data = write_csv(tmp_path / "gaps.csv", ("text", "label"), rows)
    result = fit(data=data)
    assert "gaps.csv, line 3 has no text, and 1 more like it." in result.stderr


def test_doubtful_rows_are_warned_of(fit, tmp_path):
    rows = [("great", "good"), ("great", "good"), ("dull", "bad"), ("dull", "good"), ("bad", "bad")]
    data = write_csv(tmp_path / "odd.csv", ("text", "label"), rows)
    stderr = fit("--validation", "none", data=data).stderr
    assert "odd.csv: 1 row repeats a text and its label." in stderr
    assert f"'dull' has the label 'bad' in {data}, line 4 and 'good' in {data}, line 5." in stderr


def test_settings_columns_and_options_reach_the_model(fit, tmp_path):
    rows = [("a", "one", "x"), ("b", "two", "y"), ("c", "three", "x"), ("d", "four", "y")]
    data = write_csv(tmp_path / "named.csv", ("left", "right", "answer"), rows)
    result = fit(
        "--text", "left", "--text-b", "right", "--label", "answer", "--set", "loss=triplet",
        "--set", "k=2", "--seed", "7", "--unknown-threshold", "0.25", "--validation", "none",
        "--preset", "paper", data=data,
    )  # fmt: skip
    assert result.exit_code == 0
    facts = json.loads((tmp_path / "model" / "cptuning.json").read_text())
    assert facts["settings"]["loss"] == "triplet"
    assert facts["settings"]["k"] == 2
    assert facts["settings"]["template"] == "{a} ? [MASK] {b}"
    assert facts["training"]["seed"] == 7
    assert facts["unknown_threshold"] == 0.25


def test_it_reads_standard_input_and_unlabelled_texts(run, tiny, tmp_path, films):
    more = write_csv(tmp_path / "more.csv", ("text",), [("the train leaves at ten",)] * 3)
    result = run(
        "fit", "-", "--output", tmp_path / "m", "--backbone", tiny("bert"), "--set", "steps=1",
        "--unlabeled", more, "--validation", "none", stdin=films.read_text(),
    )  # fmt: skip
    assert result.exit_code == 0
    assert "standard input: 8 texts" in result.stderr
    assert "3 texts without labels." in result.stderr


def test_it_starts_from_another_model(fit, tmp_path):
    assert fit(output=tmp_path / "first").exit_code == 0
    first = tmp_path / "first"
    result = fit("--init-from", first, "--set", "steps=0", "--validation", "none")
    assert result.exit_code == 0
    weights = [load_file(f / "backbone" / "model.safetensors") for f in (first, tmp_path / "model")]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_what_is_not_ours_in_the_checkpoint_folder_stays(fit, tmp_path):
    folder = tmp_path / "model.checkpoint"
    folder.mkdir()
    theirs = ["model.safetensors", "notes.txt", "training.safetensors", "x.unfinished"]
    for name in theirs:
        (folder / name).write_text("mine")
    assert fit("--set", "checkpoint_seconds=0").exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == theirs


def test_a_fit_that_is_killed_and_then_stopped_ends_as_if_nothing_had_happened(
    run, tiny, tmp_path, films
):
    settings = ("--set", "steps=120", "--set", "evaluate_every=40", "--quiet")
    words = ("fit", films, "--backbone", tiny("bert"), *settings, "--set")
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    # One thread, as in this process: sums of another order would differ in the last digit.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    checkpoints, fold = tmp_path / "broken.checkpoint", "fold-2-of-2.cptuning-state"

    process = start(*words, "checkpoint_seconds=0", "--output", broken, env=environment, until=fold)
    wait_for_files(checkpoints, fold, process)
    process.send_signal(signal.SIGKILL)
    process.wait()

    loud = [word for word in words if word != "--quiet"]
    stage = {"until": fold, "times": 3}
    process = start(*loud, "checkpoint_seconds=0", "--output", broken, env=environment, **stage)
    going_on = ""
    while "Resuming" not in going_on:
        going_on = process.stderr.readline()
        assert going_on, "it did not go on"
    assert "fold 2 of 2 at step" in going_on
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate()
    assert process.returncode == 130
    assert stderr.splitlines() == [
        f"Stopped: the state is in {checkpoints}, give the same command again to resume from there."
    ]
    assert not broken.exists()

    result = run(*loud, "checkpoint_seconds=3600", "--output", broken)
    assert result.exit_code == 0
    assert "Resuming " in result.stderr
    assert not checkpoints.exists()
    assert run(*words, "checkpoint_seconds=3600", "--output", whole).exit_code == 0
    for name in ("support.safetensors", "backbone/model.safetensors", "prompts.safetensors"):
        ours, theirs = load_file(broken / name), load_file(whole / name)
        assert all(np.array_equal(ours[key], theirs[key]) for key in theirs)


def test_sigterm_leaves_a_checkpoint_as_ctrl_c_does(run, tiny, tmp_path, films):
    words = ("fit", films, "--backbone", tiny("bert"), "--output", tmp_path / "model")
    words += ("--set", "checkpoint_seconds=0", "--set", "steps=40", "--validation", "none")
    state = "training.cptuning-state"
    process = start(*words, until=state, times=2)
    wait_for_files(tmp_path / "model.checkpoint", state, process)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate()
    assert process.returncode == 143, stderr
    assert "give the same command again to resume from there." in stderr.splitlines()[-1]
    result = run(*words)
    assert result.exit_code == 0
    assert "Resuming training at step" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_backbone_is_loaded_once_for_the_estimate_and_the_fit(fit, monkeypatch):
    from cptuning import backbone

    plain, loaded = backbone.load_backbone, []
    monkeypatch.setattr(
        backbone, "load_backbone", lambda name, **rest: loaded.append(name) or plain(name, **rest)
    )
    assert fit().exit_code == 0
    assert len(loaded) == 1
