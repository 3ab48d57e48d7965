"""cptuning demo: from the package's own data to models and a report."""

from importlib.resources import files

from cptuning.registry import load


def test_the_demo_shows_everything_and_writes_it_down(run, tmp_path):
    result = run("demo", "--fast", "--output", tmp_path)
    assert result.exit_code == 0, result.output
    for words in (
        "CP-Tuning, instant",
        "CP-Tuning, trained",
        "always the most frequent class    16.7 %",
        "TF-IDF + logistic regression",
        "because it is similar to",
        "job_application",
        f"the report is in {tmp_path / 'report.html'}",
    ):
        assert words in result.stdout
    assert "Evaluation of messages on messages_test.csv" in (tmp_path / "report.html").read_text()
    assert len(load(tmp_path / "messages-model").classes_) == 6
    assert load(tmp_path / "same-question-model").n_features_in_ == 2


def test_what_the_demo_adds_is_not_in_its_training_data():
    from cptuning.commands.demo import _NEW_CLASS, _NEW_EXAMPLES, _NEW_TEXTS

    train = (files("cptuning.data") / "demo" / "messages_train.csv").read_text("utf-8")
    assert _NEW_CLASS not in train
    assert not any(text in train for text in (*_NEW_EXAMPLES, *_NEW_TEXTS))
