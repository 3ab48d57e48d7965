"""Which weights are kept, what cross-fitting sees, how a killed run ends."""

import os
import signal
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.methods.cp_tuning import CPTuning
from cptuning.methods.cp_tuning_settings import settings_for
from cptuning.methods.evaluation_log import EvaluationLog, HeldOut
from cptuning.methods.training import LabelledExamples, Split
from cptuning.training import Callback
from tests.methods.toys import training_of
from tests.standstill import ROOT, start_python, wait_for_files


def make_learner(backbone, split, folds=0, callbacks=(), **changes):
    small = {"steps": 6, "evaluate_every": 2, "batch_size": 6, "learning_rate": 1e-3}
    settings = settings_for("default", pair=False, **small | changes)
    return CPTuning(
        training_of(backbone, settings, split, seed=5, folds=folds, callbacks=callbacks)
    )


def embedded(fitted):
    """The training examples as the fitted model sees them."""
    return fitted.task.support().embeddings


def test_with_a_dev_set_the_best_step_is_kept_and_its_answers_too(backbone, data):
    fitted = make_learner(backbone, Split(data, dev=data), selection="best").fit()
    assert set(fitted.history.scores) == {0, 2, 4, 6}
    assert fitted.history.best == max(fitted.history.scores.values())
    assert fitted.held_out.score() == fitted.history.best
    # The weights that were kept give the same answers again.
    again = fitted.task.held_out(data)
    np.testing.assert_allclose(again.scores, fitted.held_out.scores, atol=1e-6)


def test_without_a_dev_set_the_last_weights_are_kept(backbone, data):
    fitted = make_learner(backbone, Split(data)).fit()
    assert fitted.history.best_step == 6
    assert fitted.held_out is None


def test_cross_fitting_answers_every_example_once_by_a_model_that_did_not_see_it(backbone, data):
    seen = []

    class Spy(Callback):
        def on_start(self, stage, step, last):
            seen.append((stage, last))

    fitted = make_learner(backbone, Split(data), folds=3, callbacks=[Spy()]).fit()
    assert [stage for stage, _ in seen] == [
        "fold 1 of 3",
        "fold 2 of 3",
        "fold 3 of 3",
        "training",
    ]
    assert seen[-1][1] == fitted.history.best_step
    assert fitted.held_out.labels.tolist() == data.labels.tolist()  # in the order of the data
    # Nobody met itself: an example that had been in the support set would be at similarity 1.
    assert fitted.held_out.familiarity.max() < 0.9999
    assert len(fitted.task.support()) == len(data.labels)


def test_a_fold_meets_its_examples_as_often_as_the_whole_training(backbone, data):
    learner = make_learner(backbone, Split(data), folds=4, batch_size=8)
    sizes = {}
    make = learner.task

    def spy(split, log):
        task = make(split, log)
        sizes[len(split.train.labels)] = task.batch_size
        return task

    learner.task = spy
    learner.fit()
    assert sizes == {9: 6, 12: 8}


def test_a_small_share_still_leaves_two_pairs_in_a_batch(backbone, data):
    split = Split(data, share=0.1)
    task = make_learner(backbone, split).task(split, EvaluationLog())
    assert task.batch_size == 4


def test_of_very_many_examples_a_sample_is_answered_and_compared_with(backbone, data, monkeypatch):
    monkeypatch.setattr("cptuning.methods.learner._MOST_HELD_OUT", 2)
    monkeypatch.setattr("cptuning.methods.similar_examples.MOST_REFERENCES", 4)
    learner = make_learner(backbone, Split(data), folds=2, steps=2)
    read = []
    embed = learner.encoder.embed_encodings
    learner.encoder.embed_encodings = lambda some: read.append(len(some)) or embed(some)
    fitted = learner.fit()
    assert set(read) == {2 + 4}  # never the six that a fold answers and the six that it learns
    assert len(fitted.held_out_rows) == 4
    assert fitted.held_out.labels.tolist() == data.labels[fitted.held_out_rows].tolist()
    assert len(fitted.task.support()) == len(data.labels)  # in the end, all


@pytest.mark.parametrize(("selection", "kept"), [("best", 2), ("one-standard-error", 6)])
def test_cross_fitting_keeps_the_step_that_the_selection_names(backbone, data, selection, kept):
    def right(count):
        hits = np.arange(12) < count
        chosen = np.where(hits, data.labels, 1 - data.labels)
        return HeldOut(np.eye(2)[chosen], np.ones(12, dtype=np.float32), data.labels)

    learner = make_learner(backbone, Split(data), folds=2, selection=selection)
    answers = {0: right(7), 2: right(9), 4: right(6), 6: right(8)}
    learner._cross_fitted = lambda: answers
    fitted = learner.fit()
    assert fitted.history.best_step == fitted.history.last_step == kept
    assert fitted.held_out is answers[kept]


def test_cross_fitting_starts_each_fold_from_the_untouched_weights(backbone, data):
    learner = make_learner(backbone, Split(data), folds=2, steps=0)
    encoder = learner.encoder
    before = encoder.embed(data.examples)
    learner.fit()
    encoder.module.centre.zero_()
    np.testing.assert_array_equal(encoder.embed(data.examples), before)


def test_an_example_alone_in_its_class_is_never_left_out(backbone, data):
    more = LabelledExamples(
        data.examples + Examples(("the red train",)), np.append(data.labels, 2).astype(np.int64)
    )
    fitted = make_learner(backbone, Split(more), folds=2).fit()
    assert 2 not in fitted.held_out.labels
    assert len(fitted.held_out.labels) == 12


def test_cross_fitting_of_single_examples_is_refused(backbone):
    data = LabelledExamples(Examples(("yes", "no")), np.array([0, 1]))
    with pytest.raises(CPTuningError, match="Every class has a single example"):
        make_learner(backbone, Split(data), folds=2).fit()


def test_a_learner_gives_the_same_model_each_time(backbone, data):
    learner = make_learner(backbone, Split(data))
    first = embedded(learner.fit())
    np.testing.assert_array_equal(embedded(learner.fit()), first)


# Of a seed with which the step that cross-fitting chooses is not 0: there is training to resume.
SCRIPT = """
import sys
from cptuning import CPTuningClassifier
from tests.methods.conftest import GOOD, BAD

backbone, checkpoints, output = sys.argv[1:4]
classifier = CPTuningClassifier(
    backbone, steps=60, evaluate_every=3, batch_size=6, learning_rate=1e-3, folds=2,
    checkpoint_dir=checkpoints or None, checkpoint_seconds=0, verbose=False, random_state=4,
)
classifier.fit(GOOD + BAD, ["good"] * 6 + ["bad"] * 6)
classifier.save(output)
"""


def start(*arguments, **until):
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    pipes = {"stdout": None, "stderr": None}
    return start_python(SCRIPT, *arguments, env=environment, **pipes, **until)


@pytest.mark.parametrize("stage", ["fold-2-of-2.cptuning-state", "training.cptuning-state"])
def test_a_run_killed_at_any_moment_resumes_to_exactly_the_same_model(
    tiny_bert_folder, tmp_path, stage
):
    """SIGKILL while a fold, or the last training, is under way."""
    unbroken = start(tiny_bert_folder, "", tmp_path / "unbroken")
    checkpoints = tmp_path / "state"
    victim = start(tiny_bert_folder, checkpoints, tmp_path / "resumed", until=stage, times=3)
    wait_for_files(checkpoints, stage, victim)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    assert not (tmp_path / "resumed").exists()
    assert start(tiny_bert_folder, checkpoints, tmp_path / "resumed").wait() == 0
    assert unbroken.wait() == 0
    for part in ("backbone/model.safetensors", "prompts.safetensors", "support.safetensors"):
        expected = load_file(tmp_path / "unbroken" / part)
        found = load_file(tmp_path / "resumed" / part)
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected)
    facts = [(tmp_path / m / "cptuning.json").read_text() for m in ("unbroken", "resumed")]
    assert facts[0] == facts[1]
    assert not checkpoints.exists(), "a saved model needs no checkpoint"


@pytest.mark.parametrize(("folds", "has_dev"), [(0, False), (0, True), (3, False)])
def test_the_estimate_grows_with_the_work_and_leaves_no_trace(backbone, data, folds, has_dev):
    split = Split(data, dev=data if has_dev else None)
    learner = make_learner(backbone, split, folds, steps=6)
    before = {name: t.clone() for name, t in learner.module.state_dict().items()}
    short = learner.estimate_seconds()
    after = learner.module.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    long = make_learner(backbone, split, folds, steps=600).estimate_seconds()
    assert 0 < short < long


def test_the_estimate_is_of_the_right_size(backbone, data):
    learner = make_learner(backbone, Split(data), folds=2, steps=60)
    # The middle of three: a busy machine may hold up the one step that is timed.
    estimate = sorted(learner.estimate_seconds() for _ in range(3))[1]
    began = time.perf_counter()
    learner.fit()
    # Cross-fitting may stop early in its last part, and the machine may be busy with other things.
    assert estimate / 8 < time.perf_counter() - began < estimate * 8


def test_an_estimate_before_fitting_does_not_change_the_model(backbone, data):
    learner = make_learner(backbone, Split(data))
    plain = embedded(learner.fit())
    learner.estimate_seconds()
    assert np.array_equal(plain, embedded(learner.fit()))
