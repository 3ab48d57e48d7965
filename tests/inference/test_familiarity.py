"""Known or strange: the similarity to the nearest example, and how well it separates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from cptuning.data import Examples
from cptuning.inference import SupportSet, auroc, familiarity, threshold_for


def test_familiarity_is_the_largest_similarity():
    rng = np.random.default_rng(0)
    known, queries = (rng.normal(size=(n, 4)).astype(np.float32) for n in (9, 30))
    support = SupportSet(Examples(("",) * 9), known, np.arange(9) % 3)
    np.testing.assert_allclose(
        familiarity(queries, support), (queries @ known.T).max(axis=1), rtol=1e-5
    )


# Few different values, so that many are equal.
SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=30).map(np.array)


@given(SCORES, SCORES)
def test_auroc_is_that_of_scikit_learn(known, strange):
    truth = np.concatenate([np.ones(len(known)), np.zeros(len(strange))])
    expected = roc_auc_score(truth, np.concatenate([known, strange]))
    assert auroc(known, strange) == pytest.approx(expected)


def test_auroc_by_hand():
    assert auroc(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 1
    assert auroc(np.array([0.0, 1.0]), np.array([2.0, 3.0])) == 0
    assert auroc(np.array([1.0]), np.array([1.0])) == 0.5


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_the_threshold_refuses_the_share_asked_for(share):
    known = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    assert np.mean(known < threshold_for(known, share)) == pytest.approx(share, abs=0.002)
