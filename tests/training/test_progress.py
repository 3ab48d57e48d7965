from io import StringIO

import torch
from rich.console import Console

from cptuning import CPTuningClassifier
from cptuning.training import ProgressBar, Score
from cptuning.training.progress import tell_fitted


def drawn(is_terminal):
    out = StringIO()
    bar = ProgressBar(Console(file=out, force_terminal=is_terminal, width=120))
    bar.on_start("fold 1 of 2", 0, 4)
    for step in range(1, 5):
        bar.on_step(step, {"loss": torch.tensor(0.5)})
    bar.on_evaluate(4, Score(0.75, -0.5))
    bar.on_end(4)
    return out.getvalue()


def test_a_terminal_sees_stage_steps_loss_and_accuracy():
    text = drawn(is_terminal=True)
    for piece in ("Fold 1 of 2", "4/4 steps", "loss 0.500", "dev 75.0 %"):
        assert piece in text


def test_a_terminal_sees_how_far_a_search_is():
    out = StringIO()
    bar = ProgressBar(Console(file=out, force_terminal=True, width=120))
    bar.on_search("search: Auto-L", 0, 3)
    bar.on_search("search: Auto-L", 2, 3)
    bar.on_end(2)
    for piece in ("Search: Auto-L", "2/3 readings"):
        assert piece in out.getvalue()
    assert "loss" not in out.getvalue()


def test_a_file_sees_no_bar():
    assert "steps" not in drawn(is_terminal=False)


def test_an_end_without_a_start_is_harmless():
    ProgressBar().on_end(0)


class Notebook(Console):
    """A console that takes itself for one in a notebook."""

    def __init__(self):
        super().__init__(file=StringIO(), force_jupyter=False)
        self.is_jupyter = True


def test_the_closing_line_is_for_terminals_and_notebooks():
    for console, said in [
        (Console(file=StringIO(), force_terminal=True), True),
        (Notebook(), True),
        (Console(file=StringIO()), False),
    ]:
        tell_fitted(1.25, 0.875, "leave-one-out", console)
        line = "Fitted in 1.2 s; held-out accuracy: 87.5 % (leave-one-out).\n"
        assert console.file.getvalue() == (line if said else "")
    console = Notebook()
    tell_fitted(3, None, "none", console)
    assert console.file.getvalue() == "Fitted in 3.0 s; held-out accuracy: not measured.\n"


def test_a_notebook_without_widgets_has_no_bar_and_no_warning(monkeypatch):
    monkeypatch.setattr("cptuning.training.progress.find_spec", lambda _: None)
    console = Notebook()
    bar = ProgressBar(console)
    bar.on_start("training", 0, 2)
    bar.on_end(2)
    assert console.file.getvalue() == ""


def test_a_classifier_shows_itself_as_scikit_learn_does():
    classifier = CPTuningClassifier(preset="instant", verbose=False)
    assert repr(classifier) == "CPTuningClassifier(preset='instant', verbose=False)"
    texts, labels = ["good film", "great film", "bad film", "dull film"], ["+", "+", "-", "-"]
    before, after = classifier._repr_html_(), classifier.fit(texts, labels)._repr_html_()
    for shown in (before, after):
        assert "CPTuningClassifier" in shown
        assert "instant" in shown
    assert "Not fitted" in before
    assert "Not fitted" not in after
