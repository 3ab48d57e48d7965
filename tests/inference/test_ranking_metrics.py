"""The measures of rankings, against ir_measures, which calls trec_eval."""

import ir_measures
import numpy as np
import pytest
from ir_measures import RR, R, nDCG

from cptuning.inference.ranking_metrics import ndcg, recall, reciprocal_rank


@pytest.mark.parametrize("seed", range(20))
def test_they_are_those_of_ir_measures(seed):
    rng = np.random.default_rng(seed)
    names = [f"d{i}" for i in range(30)]
    ranking = list(rng.permutation(names)[: rng.integers(1, 30)])
    judged = rng.choice(names, size=rng.integers(1, 20), replace=False)
    grades = {name: int(rng.integers(-1, 4)) for name in judged}
    grades["relevant"] = 1  # trec_eval leaves out a query without a relevant document
    qrels = [ir_measures.Qrel("q", name, grade) for name, grade in grades.items()]
    run = [ir_measures.ScoredDoc("q", name, -place) for place, name in enumerate(ranking)]
    expected = ir_measures.calc_aggregate([nDCG @ 10, RR, R @ 10], qrels, run)
    assert ndcg(ranking, grades, 10) == pytest.approx(expected[nDCG @ 10], abs=1e-4)
    assert reciprocal_rank(ranking, grades) == pytest.approx(expected[RR], abs=1e-4)
    assert recall(ranking, grades, 10) == pytest.approx(expected[R @ 10], abs=1e-4)


def test_a_query_without_relevant_documents_scores_zero():
    grades = {"a": 0, "b": -1}
    assert ndcg(["a", "b"], grades) == 0
    assert reciprocal_rank(["a", "b"], grades) == 0
    assert recall(["a", "b"], grades, 2) == 0
