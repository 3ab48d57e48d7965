from io import StringIO

import torch
from rich.console import Console

from cptuning.training import ProgressBar, Score


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
