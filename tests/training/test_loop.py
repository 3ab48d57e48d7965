"""The loop on a task small enough to follow by hand: a vector that is pulled to a target."""

import math
import signal
from dataclasses import replace

import pytest
import torch
from torch import nn

from cptuning.errors import CPTuningError
from cptuning.training import Callback, Processes, Score, train
from tests.test_settings import PLAN
from tests.training.test_checkpoint import keeper_in

CPU = Processes(torch.device("cpu"))


class Pull(nn.Module):
    """Loss: the squared distance of a weight vector to a noisy target; dropout draws noise."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4))
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        self.dropout = nn.Dropout(0.5)

    def forward(self, target):
        return {"loss": ((self.dropout(self.weight) - target) ** 2).sum()}


class PullTask:
    replayable = True

    def __init__(self, scores=None, examples=0, seed=0):
        self.examples, self.seed = examples, seed
        self.objective = Pull()
        self.scores = scores
        self.evaluated = []
        self.batches = []

    def parameter_groups(self, learning_rate):
        return [{"params": [self.objective.weight], "lr": learning_rate}]

    def inputs(self, batch):
        self.batches.append(batch)
        return {"target": torch.full((4,), 1.0 + 0.1 * (batch % 3))}

    def evaluate(self, step):
        self.evaluated.append(step)
        if self.scores is None:
            return None
        return Score(self.scores.get(step, 0.0), -float(step), self.examples)


class Log(Callback):
    def __init__(self):
        self.events = []

    def on_start(self, stage, step, last):
        self.events.append(("start", stage, step, last))

    def on_step(self, step, losses):
        self.events.append(("step", step, float(losses["loss"])))

    def on_evaluate(self, step, score):
        self.events.append(("evaluate", step, score.accuracy))

    def on_end(self, step):
        self.events.append(("end", step))


def weights_by_step(plan):
    """The weights after every number of steps, from separate runs."""
    found = []
    for steps in range(plan.steps + 1):
        task = PullTask()
        train(task, plan, CPU, stop_after=steps)
        found.append(task.objective.weight.detach().clone())
    return found


def test_the_weights_of_the_best_evaluation_are_left_in_place():
    task = PullTask(scores={0: 0.1, 5: 0.5, 10: 0.9, 15: 0.4, 20: 0.3})
    history = train(task, PLAN, CPU)
    assert task.evaluated == [0, 5, 10, 15, 20]
    assert history.best_step == 10
    assert history.best.accuracy == 0.9
    assert torch.equal(task.objective.weight, weights_by_step(PLAN)[10])


def test_untrained_weights_win_when_training_only_hurts():
    task = PullTask(scores={0: 0.8, 5: 0.7, 10: 0.6})
    assert train(task, PLAN, CPU).best_step == 0
    assert torch.equal(task.objective.weight, torch.zeros(4))


@pytest.mark.parametrize(
    ("examples", "last", "kept"),
    [
        (32, 0.78, 20),  # an error is 0.065
        (32, 0.70, 5),
        (3200, 0.78, 5),  # now 0.007
        (3200, 0.839, 20),
        (0, 0.78, 5),
    ],
)
def test_the_last_weights_stay_unless_the_best_are_better_by_a_standard_error(examples, last, kept):
    plan = replace(PLAN, selection="one-standard-error")
    task = PullTask({0: 0.8, 5: 0.84, 10: 0.1, 15: 0.2, 20: last}, examples)
    history = train(task, plan, CPU)
    assert history.best_step == kept
    assert history.best.accuracy == (last if kept == 20 else 0.84)
    assert torch.equal(task.objective.weight, weights_by_step(plan)[kept])


def test_a_run_that_was_stopped_early_keeps_its_best_weights():
    plan = replace(PLAN, selection="one-standard-error", patience=2)
    history = train(PullTask({0: 0.1, 5: 0.9, 10: 0.9, 15: 0.9}, 32), plan, CPU)
    assert (history.last_step, history.best_step) == (15, 5)


def test_the_error_of_an_accuracy_is_the_binomial_one_and_never_nothing():
    assert Score(0.84, 0.0, 3200).error == pytest.approx(math.sqrt(0.84 * 0.16 / 3200), rel=1e-3)
    assert 0 < Score(1.0, 0.0, 32).error < 1 / 32


def test_of_equal_accuracies_the_lower_log_loss_wins():
    assert Score(0.5, -0.6) > Score(0.5, -0.7)
    assert Score(0.6, -0.9) > Score(0.5, -0.1)


def test_without_a_score_the_last_weights_stay():
    task = PullTask()
    history = train(task, PLAN, CPU)
    assert history.best_step == history.last_step == 20
    assert torch.equal(task.objective.weight, weights_by_step(PLAN)[20])
    assert task.objective.weight.mean() > 0.005


def test_zero_steps_are_a_valid_plan():
    task = PullTask(scores={0: 0.4})
    assert train(task, replace(PLAN, steps=0), CPU).best_step == 0
    assert task.batches == []


def test_patience_ends_a_run_that_no_longer_improves():
    task = PullTask(scores={0: 0.1, 5: 0.9})
    history = train(task, replace(PLAN, patience=2), CPU)
    assert history.last_step == 15
    assert history.best_step == 5
    assert max(task.batches) == 14


def test_frozen_parameters_never_change():
    task = PullTask()
    train(task, PLAN, CPU)
    assert torch.equal(task.objective.frozen, torch.ones(4))


def test_the_same_seed_gives_the_same_weights_and_another_one_others():
    runs = []
    for seed in (3, 3, 4):
        task = PullTask(seed=seed)
        train(task, PLAN, CPU)
        runs.append(task.objective.weight.detach())
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_accumulated_batches_are_averaged_before_a_step():
    """With one step of plain Adam from zero only the sign counts, so look at the gradients."""
    seen = []
    task = PullTask()
    task.objective.dropout.p = 0.0
    task.objective.weight.register_hook(lambda gradient: seen.append(gradient.clone()))
    train(task, replace(PLAN, steps=1, accumulate=3), CPU)
    assert task.batches == [0, 1, 2]
    # d/dw (w - t)² at w = 0 is -2t, and each of the three counts a third.
    expected = [torch.full((4,), -2 * (1.0 + 0.1 * i) / 3) for i in range(3)]
    assert all(torch.allclose(a, b) for a, b in zip(seen, expected, strict=True))


def test_long_gradients_are_cut_and_zero_leaves_them():
    moved = {}
    for clip in (0.0, 1e-6):
        task = PullTask()
        task.objective.dropout.p = 0.0
        # Adam divides by the gradient's own size, but for its epsilon of 1e-8: with a gradient
        # cut to about 5e-7 a coordinate the step is visibly shorter.
        train(task, replace(PLAN, steps=1, clip_norm=clip, warmup=0.0), CPU)
        moved[clip] = task.objective.weight.detach().norm().item()
    assert moved[1e-6] < 0.99 * moved[0.0]


def test_callbacks_hear_of_everything_in_order():
    log = Log()
    train(PullTask(scores={}), replace(PLAN, steps=2, evaluate_every=1), CPU, callbacks=[log])
    kinds = [event[0] for event in log.events]
    assert kinds == ["start", "evaluate", "step", "evaluate", "step", "evaluate", "end"]
    assert log.events[0] == ("start", "training", 0, 2)
    assert log.events[-1] == ("end", 2)


def test_a_callback_may_watch_the_steps_alone():
    class Steps(Callback):
        seen = 0

        def on_step(self, step, losses):
            self.seen = step

    steps = Steps()
    train(PullTask(scores={}), PLAN, CPU, callbacks=[steps])
    assert steps.seen == PLAN.steps


def test_callbacks_hear_the_end_of_an_interrupted_run():
    class Interrupt(Log):
        def on_step(self, step, losses):
            raise KeyboardInterrupt

    log = Interrupt()
    with pytest.raises(KeyboardInterrupt):
        train(PullTask(), PLAN, CPU, callbacks=[log])
    assert log.events[-1][0] == "end"


class KilledError(Exception):
    pass


class Killer(Log):
    def __init__(self, at):
        super().__init__()
        self.at = at

    def on_step(self, step, losses):
        if step == self.at:
            raise KilledError


@pytest.mark.parametrize("at", [1, 7, 10, 19, 20])
@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_a_run_that_was_cut_off_ends_with_the_weights_of_an_unbroken_one(tmp_path, at, optimizer):
    plan = replace(PLAN, optimizer=optimizer, weight_decay=0.1)
    scores = {0: 0.1, 5: 0.6, 10: 0.6, 15: 0.7, 20: 0.2}
    unbroken = PullTask(scores)
    whole = train(unbroken, plan, CPU)
    keeper = keeper_in(tmp_path, "this run", seconds=0)
    with pytest.raises(KilledError):
        train(PullTask(scores), plan, CPU, checkpointer=keeper, callbacks=[Killer(at)])
    log, resumed = Log(), PullTask(scores)
    history = train(resumed, plan, CPU, checkpointer=keeper, callbacks=[log])
    assert log.events[0] == ("start", "training", at - 1, 20)
    assert torch.equal(resumed.objective.weight, unbroken.objective.weight)
    assert history == whole


def test_a_checkpoint_of_another_run_is_not_used(tmp_path, caplog):
    with pytest.raises(KilledError):
        train(
            PullTask(),
            PLAN,
            CPU,
            checkpointer=keeper_in(tmp_path, "one", seconds=0),
            callbacks=[Killer(9)],
        )
    log = Log()
    train(PullTask(), PLAN, CPU, checkpointer=keeper_in(tmp_path, "other"), callbacks=[log])
    assert log.events[0] == ("start", "training", 0, 20)
    assert "another run" in caplog.text


def test_training_that_ends_in_nan_is_an_error_that_names_the_learning_rate():
    task = PullTask()
    task.inputs = lambda batch: {"target": torch.full((4,), float("nan"))}
    with pytest.raises(CPTuningError, match=r"lower learning_rate, which is 0\.001"):
        train(task, PLAN, CPU)


def test_a_run_that_is_interrupted_saves_the_step_it_was_in_and_goes_on_from_there(tmp_path):
    class CtrlC(Log):
        def on_step(self, step, losses):
            super().on_step(step, losses)
            if step == 3:
                signal.raise_signal(signal.SIGINT)

    task, log = PullTask(), CtrlC()
    with pytest.raises(KeyboardInterrupt):
        train(task, PLAN, CPU, checkpointer=keeper_in(tmp_path, "one"), callbacks=[log])
    assert log.events[-1][0] == "end"
    resumed, again = PullTask(), Log()
    train(resumed, PLAN, CPU, checkpointer=keeper_in(tmp_path, "one"), callbacks=[again])
    assert again.events[0] == ("start", "training", 3, PLAN.steps)
    whole = PullTask()
    train(whole, PLAN, CPU)
    assert torch.equal(resumed.objective.weight, whole.objective.weight)
