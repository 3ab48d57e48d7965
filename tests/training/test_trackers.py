"""Trackers: TensorBoard's files and MLflow's store are read back; the others are stand-ins."""

import sys
from types import ModuleType

import pytest
from sklearn.base import clone

from cptuning import CPTuningClassifier
from cptuning.errors import CPTuningError
from cptuning.training import (
    MLflowTracker,
    Score,
    TensorBoardTracker,
    TrackioTracker,
    WandbTracker,
)
from tests.cli.conftest import BAD, GOOD


def fitted(tiny, tracker):
    """A classifier that trains four steps in each of two folds, and then on everything."""
    classifier = CPTuningClassifier(
        backbone=tiny("bert"), steps=4, evaluate_every=2, verbose=False, callbacks=[tracker]
    )
    return clone(classifier).fit([*GOOD, *BAD], ["good"] * 4 + ["bad"] * 4)


def test_tensorboard_reads_losses_and_accuracies_by_stage(tiny, tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    classifier = fitted(tiny, TensorBoardTracker(tmp_path, every=2))
    found = events.EventAccumulator(str(tmp_path)).Reload()
    tags = found.Tags()["scalars"]
    assert {tag.rpartition("/")[2] for tag in tags} >= {"loss", "accuracy", "log_loss"}
    assert {tag for tag in tags if tag.startswith("fold ")}
    [loss] = [tag for tag in tags if tag.startswith("fold 1") and tag.endswith("/loss")]
    assert [event.step for event in found.Scalars(loss)] == [2, 4]
    assert clone(classifier).callbacks[0].folder == tmp_path


def test_mlflow_has_the_numbers_in_its_store(tiny, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    try:
        mlflow.set_experiment("films")
        with mlflow.start_run() as run:
            fitted(tiny, MLflowTracker(every=1))
        stored = mlflow.get_run(run.info.run_id).data.metrics
    finally:
        mlflow.set_tracking_uri(None)
    assert all(0 <= stored[name] <= 1 for name in stored if name.endswith("/accuracy"))
    assert [name for name in stored if name.endswith("/loss")]


@pytest.mark.parametrize(
    ("tracker", "name"), [(WandbTracker, "wandb"), (TrackioTracker, "trackio")]
)
def test_one_run_is_begun_unless_there_is_one(monkeypatch, tracker, name):
    calls = []
    tool = ModuleType(name)
    tool.run = None
    tool.init = lambda project: calls.append(project)
    tool.log = lambda numbers: calls.append(numbers)
    monkeypatch.setitem(sys.modules, name, tool)
    watcher = tracker("films", every=2)
    watcher.on_instant(Score(0.5, -0.7))
    watcher.on_start("fold 1 of 2", 0, 2)
    for step in (1, 2):
        watcher.on_step(step, {"loss": 0.25})
    watcher.on_evaluate(2, Score(0.75, -0.5))
    watcher.on_end(2)
    assert calls == [
        "films",
        {"instant/accuracy": 0.5, "training/step": 0},
        {"fold 1 of 2/loss": 0.25, "fold 1 of 2/step": 2},
        {"fold 1 of 2/accuracy": 0.75, "fold 1 of 2/log_loss": 0.5, "fold 1 of 2/step": 2},
    ]
    tool.run = object()
    calls.clear()
    tracker("films").on_instant(Score(0.5, -0.7))
    assert len(calls) == 1


def test_a_tool_that_is_missing_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(CPTuningError, match=r'needs wandb: pip install "cptuning\[tracking\]"'):
        WandbTracker().on_instant(Score(0.5, -0.7))
