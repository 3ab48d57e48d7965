import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cptuning.data.tag_schemes import iob2_of, spans_of
from cptuning.reporting.span_metrics import SpanScores

TAGS = st.lists(st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b"]), min_size=1, max_size=8)


@settings(max_examples=60)
@given(st.lists(st.tuples(TAGS, st.randoms(use_true_random=False)), min_size=1, max_size=5))
def test_scores_are_those_of_seqeval(rows):
    from seqeval.metrics import f1_score, precision_score, recall_score
    from seqeval.scheme import IOB2

    truth, found = [], []
    for tags, draw in rows:
        spans = spans_of(tags)
        guess = [tag if draw.random() < 0.7 else random.Random(1).choice(tags) for tag in tags]
        truth.append(spans)
        found.append(spans_of(guess))
    scores = SpanScores(truth, found)
    lengths = [len(tags) for tags, _ in rows]
    given_tags = [
        [iob2_of(spans, n) for spans, n in zip(side, lengths, strict=True)]
        for side in (truth, found)
    ]
    how = {"mode": "strict", "scheme": IOB2, "zero_division": 0}
    assert scores.f1 == pytest.approx(f1_score(*given_tags, **how))
    assert scores.overall.precision == pytest.approx(precision_score(*given_tags, **how))
    assert scores.overall.recall == pytest.approx(recall_score(*given_tags, **how))
    by_type = f1_score(*given_tags, average=None, **how)
    if any(truth) or any(found):
        np.testing.assert_allclose([one.f1 for one in scores.by_type()], by_type)


def test_the_interval_holds_the_score_and_narrows_with_more_sentences():
    truth = [spans_of(["B-a", "O", "B-b"])] * 40
    found = [spans_of(["B-a", "O", "B-b" if i % 3 else "B-a"]) for i in range(40)]
    few, many = SpanScores(truth, found), SpanScores(truth * 10, found * 10)
    for scores in (few, many):
        low, high = scores.interval
        assert 0 < low < scores.f1 < high < 1
    widths = [high - low for low, high in (few.interval, many.interval)]
    assert widths[1] < widths[0] / 2


def test_nothing_to_find_and_nothing_found_is_zero():
    scores = SpanScores([[], []], [[], []])
    assert scores.f1 == 0
    assert scores.interval == (0, 0)
    assert scores.by_type() == []
