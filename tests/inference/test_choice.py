"""The choice by leave-one-out and its answers, against refits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data import stratified_folds
from cptuning.inference import choice, closed_form
from cptuning.inference.calibration import fit_temperature, log_losses
from cptuning.inference.choice import LeaveOneOut
from cptuning.inference.closed_form import SHRINKAGES, DiscriminantAnalysis


def embeddings(labels, d, signal, seed):
    """Rows of noise, and so much of their class."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(max(labels) + 1, d))
    return (rng.normal(size=(len(labels), d)) + signal * means[labels]).astype(np.float32)


def analyses(candidates, labels):
    return [DiscriminantAnalysis(rows, labels) for rows in candidates]


# A slow loop of refits.


def left_out_by_refits(rows, labels, shrinkage):
    """The rows that are not alone in their class, and the scores of each by a refit without it."""
    left_out = np.flatnonzero(np.bincount(labels)[labels] > 1)
    others = [np.delete(np.arange(len(labels)), row) for row in left_out]
    scores = [
        DiscriminantAnalysis(rows[rest], labels[rest]).discriminants(shrinkage).scores(rows[[row]])
        for row, rest in zip(left_out, others, strict=True)
    ]
    return left_out, np.concatenate(scores)


def judged_by_refits(rows, labels, shrinkage):
    left_out, scores = left_out_by_refits(rows, labels, shrinkage)
    temperature = fit_temperature(scores, labels[left_out])
    return temperature, log_losses(scores, labels[left_out], temperature)


def slow_choice(candidates, labels):
    losses = [[judged_by_refits(x, labels, s)[1] for s in SHRINKAGES] for x in candidates]
    candidate = int(np.argmin([min(map(np.mean, own)) for own in losses]))
    best = min(losses[candidate], key=np.mean)
    excess = [own - best for own in losses[candidate]]
    errors = [each.std(ddof=1) / len(each) ** 0.5 + 1e-9 for each in excess]
    setting = next(i for i, each in enumerate(excess) if each.mean() <= errors[i])
    return candidate, SHRINKAGES[setting]


@pytest.mark.parametrize("seed", [2, 4, 8, 11])
def test_each_row_is_answered_by_the_choice_of_refits_without_its_fold(seed):
    labels = np.array([0, 1, 2] * 5 + [3])  # The last is alone in its class.
    candidates = [embeddings(labels, 5 + i, 0.7, [seed, 5 + i, i]) for i in range(3)]
    found = LeaveOneOut(analyses(candidates, labels))
    final = slow_choice(candidates, labels)
    assert (found.candidate, found.shrinkage) == final
    assert found.rows.tolist() == list(range(15))
    folds, scores, chosen = stratified_folds(labels, 5, seed=0), found.scores(), set()
    for row in range(15):
        rest = (folds != folds[row]) | (labels == 3)
        candidate, shrinkage = slow_choice([x[rest] for x in candidates], labels[rest])
        chosen.add((candidate, shrinkage))
        own = left_out_by_refits(candidates[candidate], labels, shrinkage)[1][row]
        temperature, final_temperature = (
            judged_by_refits(candidates[which], labels, with_)[0]
            for which, with_ in [(candidate, shrinkage), final]
        )
        expected = own * final_temperature / temperature
        np.testing.assert_allclose(scores[row], expected, rtol=2e-4, atol=1e-6)
    assert len(chosen) > 1


# No optimism.


def test_the_least_of_several_losses_is_not_told_as_that_of_new_texts():
    labels = np.arange(16) % 2
    of_the_chosen, told = [], []
    for seed in range(40):
        noise = analyses([embeddings(labels, 4, 0, [seed, i]) for i in range(5)], labels)
        found = LeaveOneOut(noise)
        plain = noise[found.candidate].leave_one_out(found.shrinkage)
        of_the_chosen.append((plain.argmax(axis=1) == labels).mean())
        told.append((found.scores().argmax(axis=1) == labels).mean())
    error = np.std(told, ddof=1) / 40**0.5
    assert abs(np.mean(told) - 0.5) < 2 * error < 0.06
    assert np.mean(of_the_chosen) > 0.5 + 4 * error


# What is chosen.


def test_the_best_candidate_is_chosen_wherever_it_stands():
    labels = np.arange(30) % 3
    candidates = analyses([embeddings(labels, 10, signal, 0) for signal in (0, 1, 3)], labels)
    assert LeaveOneOut(candidates).candidate == 2
    assert LeaveOneOut(candidates[::-1]).candidate == 0


@pytest.mark.parametrize("factor", [1, 0.5, 3])
def test_of_equally_good_candidates_the_first_is_chosen(factor):
    labels = np.arange(30) % 3
    rows = embeddings(labels, 10, 1, 0)
    assert LeaveOneOut(analyses([factor * rows, rows], labels)).candidate == 0
    worse = embeddings(labels, 10, 0, 0)
    assert LeaveOneOut(analyses([worse, rows, factor * rows], labels)).candidate == 1


def clearly_worse(rows, best, labels):
    """Whether the best losses of one embedding are above those of another, beyond chance."""
    own, others = (
        min((judged_by_refits(x, labels, s)[1] for s in SHRINKAGES), key=np.mean)
        for x in (rows, best)
    )
    return np.mean(own - others) > np.std(own - others, ddof=1) / len(own) ** 0.5


@pytest.mark.parametrize("signal", [0, 0.4, 0.9, 1.2])
def test_a_preferred_candidate_is_left_only_for_a_clearly_better_one(signal):
    labels = np.arange(24) % 3
    preferred, best = (embeddings(labels, 10, s, [1, i]) for i, s in enumerate([signal, 1.2]))
    candidates = analyses([preferred, best], labels)
    assert candidates[1].least_loss < candidates[0].least_loss  # It alone decides otherwise.
    assert LeaveOneOut(candidates).candidate == 1
    is_worse = clearly_worse(preferred, best, labels)
    assert is_worse == (signal in (0, 0.4))
    assert LeaveOneOut(candidates, preferred=1).candidate == int(is_worse)


def test_of_preferred_groups_the_best_candidate_of_the_first_good_one_is_chosen():
    labels = np.arange(24) % 3
    noise, good, best = (embeddings(labels, 10, s, [1, i]) for i, s in enumerate([0, 0.9, 1.2]))
    groups = analyses([noise, noise, noise, good, noise, best], labels)
    assert LeaveOneOut(groups, group_size=2).candidate == 5
    assert LeaveOneOut(groups, group_size=2, preferred=1).candidate == 5
    assert LeaveOneOut(groups, group_size=2, preferred=2).candidate == 3


def test_without_answers_the_first_preferred_candidate_is_chosen():
    labels = np.arange(3)
    candidates = analyses([embeddings(labels, 4, 1, i) for i in range(4)], labels)
    assert LeaveOneOut(candidates, group_size=2, preferred=2).candidate == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_single_candidate_has_the_shrinkage_of_its_analysis(seed):
    labels = np.arange(24) % 3
    analysis = DiscriminantAnalysis(embeddings(labels, 12, 0.5, seed), labels)
    found = LeaveOneOut([analysis])
    assert (found.candidate, found.shrinkage) == (0, analysis.shrinkage)


def test_of_many_rows_a_sample_is_split_and_the_rest_gets_the_choice_by_all(monkeypatch):
    labels = np.arange(60) % 3
    candidates = analyses([embeddings(labels, 8, 0.5, i) for i in range(3)], labels)
    for module in (choice, closed_form):
        monkeypatch.setattr(module, "MOST_ANSWERS", 12)
    found = LeaveOneOut(candidates)
    by_all = candidates[found.candidate].leave_one_out(found.shrinkage)
    same = (found.scores() == by_all).all(axis=1)
    assert 48 <= same.sum() < 60


# Extremes.


@st.composite
def extremes(draw):
    """Candidates that are noise, copies, all alike or huge, and labels with rare classes."""
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=1, max_size=12)))
    kinds = st.sampled_from(["noise", "pairs", "collapsed", "zero", "huge", "classes"])
    candidates = []
    for number, kind in enumerate(draw(st.lists(kinds, min_size=1, max_size=3))):
        rows = embeddings(labels, draw(st.sampled_from([1, 3, 20])), 0.5, number)
        if kind == "pairs":
            rows[1::2] = rows[: len(rows) - 1 : 2]
        elif kind == "collapsed":
            rows[:] = rows[0]
        elif kind == "classes":
            rows = rows[np.unique(labels, return_index=True)[1]][
                np.unique(labels, return_inverse=True)[1]
            ]
        candidates.append(rows * {"zero": 0, "huge": 1e6}.get(kind, 1))
    return candidates, labels


@given(extremes())
def test_whatever_the_rows_there_is_a_choice_and_the_answers_are_finite(data):
    candidates, labels = data
    found = LeaveOneOut(analyses(candidates, labels))
    assert found.candidate in range(len(candidates))
    assert found.shrinkage in SHRINKAGES
    counts = np.bincount(labels)
    assert found.rows.tolist() == [i for i, label in enumerate(labels) if counts[label] > 1]
    scores = found.scores()
    assert scores.shape == (len(found.rows), len(counts))
    assert np.isfinite(scores).all()
    assert set(scores.argmax(axis=1)) <= set(labels)


def test_nothing_to_leave_out_leaves_the_preferred_candidate_and_the_nearest_mean():
    labels = np.arange(3)
    found = LeaveOneOut(analyses([embeddings(labels, 4, 1, i) for i in range(2)], labels))
    assert (found.candidate, found.shrinkage) == (0, 1)
    assert found.scores().shape == (0, 3)


def test_a_single_class_is_certain():
    labels = np.zeros(6, dtype=int)
    found = LeaveOneOut(analyses([embeddings(labels, 4, 0, i) for i in range(2)], labels))
    assert (found.candidate, found.shrinkage) == (0, 1)
    np.testing.assert_array_equal(found.scores(), np.zeros((6, 1)))
