"""How documents are ranked: by the sentence view, the tuned view beside it, and by pairs."""

from dataclasses import replace

import numpy as np
import pytest

from cptuning.backbone.joined_views import unit
from cptuning.data import Examples, LabelSpace
from cptuning.errors import CPTuningError
from cptuning.inference import SupportSet
from cptuning.inference.ranked_documents import (
    PairView,
    RankingPredictor,
    SentenceEncoder,
    TunedView,
    with_tuned,
)

RNG = np.random.default_rng(0)
VECTORS = unit(RNG.normal(size=(50, 6))).astype(np.float32)
TEXTS = tuple(f"text {i}" for i in range(50))


class Known:
    """An encoder that knows its texts' vectors, behind a mask view of two numbers."""

    layout = None

    class views:  # noqa: N801 - stands for an object
        mask_width = 2

    def embed(self, examples):
        sentences = np.array([VECTORS[int(text.split()[1])] for text in examples.first])
        return unit(np.concatenate([np.full((len(examples), 2), 3.0), sentences], axis=1))


def ranker(**changes):
    encoder = SentenceEncoder(Known())
    support = SupportSet(Examples(TEXTS), encoder.embed(Examples(TEXTS)), np.arange(50))
    space = LabelSpace(tuple(f"d{i}" for i in range(50)))
    made = RankingPredictor(encoder, support, space, inference="knn", k=1, temperature=1.0)
    return replace(made, **changes)


def test_the_mask_view_plays_no_part():
    assert np.allclose(SentenceEncoder(Known()).embed(Examples(TEXTS)), VECTORS, atol=1e-6)


def test_the_nearest_documents_come_first():
    [found] = ranker().rank(["text 7"], top_k=50)
    expected = np.argsort(-(VECTORS @ VECTORS[7]), kind="stable")
    assert [one.document for one in found] == [f"d{i}" for i in expected]
    assert found[0].document == "d7"
    assert found[0].score == pytest.approx(1)
    assert found[0].text == "text 7"


def test_the_tuned_view_adds_its_similarity_by_the_square_of_its_weight():
    matrix = RNG.normal(size=(6, 6)).astype(np.float32)
    tuned = with_tuned(ranker(), TunedView(matrix, weight=0.7))
    [found] = tuned.rank(["text 3"], top_k=50)
    mapped = unit(VECTORS @ matrix)
    expected = (VECTORS @ VECTORS[3] + 0.49 * mapped @ mapped[3]) / 1.49
    assert {one.document: one.score for one in found} == pytest.approx(
        {f"d{i}": expected[i] for i in range(50)}, abs=1e-5
    )


def test_the_pair_view_reorders_the_best_and_only_them():
    direction = RNG.normal(size=7)
    pair = PairView(direction, weight=5.0)
    plain = [one.document for one in ranker().rank(["text 3"], top_k=10)[0]]
    [found] = ranker(pair=pair, rerank=10).rank(["text 3"], top_k=10)
    assert {one.document for one in found} == set(plain)
    rows = [int(name[1:]) for name in plain]
    similarity, query = VECTORS[rows] @ VECTORS[3], VECTORS[3]
    relations = [[float(v @ query), *np.abs(v - query)] for v in VECTORS[rows]]
    scores = np.array([np.array(r) / np.linalg.norm(r) @ direction for r in relations])
    blend = similarity + 5 * similarity.std() * (scores - scores.mean()) / scores.std()
    assert [one.document for one in found] == [plain[i] for i in np.argsort(-blend)]
    assert [one.score for one in found] == pytest.approx(sorted(blend, reverse=True), abs=1e-4)


def test_an_approximate_index_finds_the_same_few_documents():
    pytest.importorskip("faiss")
    exact = ranker()
    approximate = replace(exact, support=exact.support.searched("approximate"))
    for text in TEXTS[:5]:
        found, expected = (one.rank([text], 3)[0] for one in (approximate, exact))
        assert [one.document for one in found] == [one.document for one in expected]


@pytest.mark.parametrize("top_k", [0, -1, 2.5, True])
def test_a_number_of_documents_that_means_nothing_is_refused(top_k):
    with pytest.raises(CPTuningError, match=r"top_k is .*give a whole number"):
        ranker().rank(["text 3"], top_k)


def test_an_id_is_given_once():
    with pytest.raises(CPTuningError, match="There is a document 'd7' already"):
        ranker().with_documents(Examples(("text 1",)), ["d7"])
    more = ranker().with_documents(Examples(("text 1", "text 2")), ["z", "a"])
    names = {one.document for one in more.rank(["text 1"], 2)[0]}
    assert names == {"d1", "z"}
