"""What relevance judgements teach: who is contrasted with whom, what is kept, and when."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cptuning.backbone.joined_views import unit
from cptuning.inference.ranking_metrics import ndcg
from cptuning.losses import pccl
from cptuning.methods.ranking import JudgedVectors, fit_ranking, pair_view, tuned_view
from cptuning.methods.ranking_settings import RANKING_PRESETS
from cptuning.methods.ranking_task import TunedViewTask

SETTINGS = replace(RANKING_PRESETS["default"]["single"], negatives=5, steps=30, learning_rate=1e-2)


def misleading(seed=0, queries=12, noise=1.5, copies=3, others=60):
    """Vectors whose last half hides what the first half tells: a map can learn to ignore it."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(queries, 8))

    def seen(topic, n):
        return np.concatenate(
            [
                np.tile(topic, (n, 1)) + 0.1 * rng.normal(size=(n, 8)),
                noise * rng.normal(size=(n, 8)),
            ],
            axis=1,
        )

    asked = np.concatenate([seen(topic, 1) for topic in topics])
    answers = np.concatenate([seen(topic, copies) for topic in topics])
    rest = seen(np.zeros(8), others) + np.pad(rng.normal(size=(others, 8)), ((0, 0), (0, 8)))
    relevance = tuple({copies * q + i: 1.0 for i in range(copies)} for q in range(queries))
    documents = unit(np.concatenate([answers, rest])).astype(np.float32)
    return JudgedVectors(unit(asked).astype(np.float32), documents, relevance)


def test_hard_negatives_are_refused_documents_then_the_nearest_that_nobody_judged():
    vectors = misleading()
    judged = replace(vectors, relevance=({0: 1.0, 50: 0.0}, *vectors.relevance[1:]))
    found = judged.hard_negatives(0, 6)
    nearest = [d for d in np.argsort(-judged.similarities[0], kind="stable") if d not in (0, 50)]
    assert found.tolist() == [50, *nearest[:5]]


def test_a_text_belongs_to_the_queries_that_it_answers():
    vectors = JudgedVectors(
        np.eye(4, dtype=np.float32)[:2],
        np.eye(4, dtype=np.float32),
        ({0: 1.0, 2: 2.0}, {2: 1.0, 3: 0.0}),
    )
    rows, labels = vectors.contrasted([0, 1], negatives=1)
    assert len(rows) == len(labels) == 2 + 4
    by_text = {tuple(row): label.tolist() for row, label in zip(rows[2:], labels[2:], strict=True)}
    documents = [tuple(row) for row in np.eye(4, dtype=np.float32)]
    assert labels[:2].tolist() == [[1, 0], [0, 1]]
    assert by_text[documents[0]] == [1, 0]
    assert by_text[documents[2]] == [1, 1]
    assert by_text[documents[1]] == [0, 0]
    assert by_text[documents[3]] == [0, 0]


def test_the_first_step_sees_pccl_of_the_vectors_as_they_are():
    vectors = misleading()
    task = TunedViewTask(vectors, [0, 1, 2], SETTINGS, seed=0)
    inputs = task.inputs(0)
    loss = task.objective(**inputs)["loss"]
    expected = pccl(
        torch.nn.functional.normalize(inputs["vectors"], dim=1),
        inputs["labels"],
        margin=SETTINGS.margin,
        tau_n=SETTINGS.tau_n,
        xi=SETTINGS.xi,
        reduction="mean",
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert np.array_equal(task.matrix(), np.eye(16))


def test_batches_of_queries_take_turns():
    task = TunedViewTask(misleading(), list(range(12)), replace(SETTINGS, batch_size=4), seed=0)
    sizes = [len(task.inputs(batch)["labels"][0]) for batch in range(3)]
    assert sizes == [4, 4, 4]


def test_what_pays_is_kept_and_answers_new_queries_better():
    vectors = misleading(queries=24)
    known = replace(vectors, queries=vectors.queries[:12], relevance=vectors.relevance[:12])
    fitted = fit_ranking(known, replace(SETTINGS, tuned_weight=5.0), seed=0)
    assert fitted.tuned is not None
    assert "tuned view" in fitted.facts["kept"]
    scores = fitted.facts["held_out_ndcg"]
    assert scores["tuned view"] > scores["sentence view"] + 0.05

    def mean_ndcg(queries, documents):
        orders = np.argsort(-(queries @ documents.T), axis=1)
        found = zip(orders[12:], vectors.relevance[12:], strict=True)
        return np.mean([ndcg(order.tolist(), grades) for order, grades in found])

    before = mean_ndcg(vectors.queries, vectors.documents)
    after = mean_ndcg(*map(fitted.tuned.joined, (vectors.queries, vectors.documents)))
    assert after > before + 0.05


def test_nothing_is_kept_of_judgements_that_say_nothing():
    rng = np.random.default_rng(3)
    queries, documents = (unit(rng.normal(size=(n, 16))).astype(np.float32) for n in (8, 80))
    relevance = tuple({int(d): 1.0 for d in rng.permutation(80)[:4]} for _ in range(8))
    fitted = fit_ranking(JudgedVectors(queries, documents, relevance), SETTINGS, seed=0)
    assert fitted.tuned is None
    assert fitted.facts["kept"] == []
    assert fitted.held_out == fitted.facts["held_out_ndcg"]["sentence view"]


def test_a_held_out_query_has_no_part_in_what_answers_it():
    """What query 0 is answered with does not change with what was judged for it."""
    vectors = misleading(queries=4)
    other = replace(vectors, relevance=({40: 1.0}, *vectors.relevance[1:]))
    for learn in (pair_view, lambda *given: tuned_view(*given, seed=0)):
        one, two = (learn(given, [1, 2, 3], SETTINGS) for given in (vectors, other))
        parts = [v.direction if hasattr(v, "direction") else v.matrix for v in (one, two)]
        assert np.array_equal(*parts)


def test_the_pair_view_tells_answers_from_hard_negatives():
    vectors = misleading()
    view = pair_view(vectors, range(12), SETTINGS)
    right = [
        view.scores(vectors.queries[q], vectors.documents[vectors.relevant(q)]).mean()
        - view.scores(vectors.queries[q], vectors.documents[vectors.hard_negatives(q, 5)]).mean()
        for q in range(12)
    ]
    assert np.mean(right) > 0


@pytest.mark.parametrize("judged", [({},), ({0: 1.0},), ({0: 0.0}, {1: 0.0}, {2: 1.0})])
def test_of_fewer_than_two_judged_queries_nothing_can_be_left_out(judged):
    vectors = misleading(queries=4)
    few = JudgedVectors(vectors.queries[: len(judged)], vectors.documents, judged)
    fitted = fit_ranking(few, SETTINGS, seed=0)
    assert (fitted.tuned, fitted.pair, fitted.held_out) == (None, None, None)


def test_without_a_step_of_training_there_is_no_tuned_view():
    fitted = fit_ranking(misleading(), replace(SETTINGS, steps=0), seed=0)
    assert fitted.tuned is None
    assert "tuned view" not in fitted.facts["held_out_ndcg"]


def test_the_same_seed_teaches_the_same():
    one, two = (fit_ranking(misleading(), SETTINGS, seed=5) for _ in range(2))
    assert one.facts == two.facts
