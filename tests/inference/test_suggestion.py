"""What to label next: unsure texts, unlike each other."""

import numpy as np
import pytest

from cptuning.inference import suggested, uncertainty


def on_the_circle(*degrees):
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_uncertainty_falls_with_the_margin_between_the_two_likeliest_classes():
    shares = np.array([[0.4, 0.4, 0.2], [0.6, 0.2, 0.2], [1.0, 0.0, 0.0]])
    assert uncertainty(shares) == pytest.approx([1.0, 0.6, 0.0])


def test_a_single_class_leaves_nothing_unsure():
    assert uncertainty(np.ones((2, 1))).tolist() == [0, 0]


def test_the_most_unsure_text_comes_first():
    assert suggested(on_the_circle(0, 90, 180), np.array([0.1, 0.9, 0.2]), n=1).tolist() == [1]


def test_unsure_texts_that_are_alike_do_not_come_together():
    vectors = on_the_circle(0, 1, 2, 90, 180)
    chosen = suggested(vectors, np.array([0.9, 0.9, 0.9, 0.5, 0.4]), n=3)
    assert chosen.tolist() == [0, 4, 3]


def test_sure_texts_are_no_candidates_however_different():
    vectors = on_the_circle(0, 10, 20, 30, 180)
    assert 4 not in suggested(vectors, np.array([0.9, 0.8, 0.7, 0.6, 0.0]), n=1)


def test_the_same_text_is_taken_once():
    assert len(suggested(on_the_circle(0, 0, 0, 90), np.full(4, 0.5), n=4)) == 2


@pytest.mark.parametrize("n", [0, 3, 100])
def test_there_are_never_more_than_wanted_nor_than_there_are(n):
    vectors = on_the_circle(*range(0, 50, 5))
    chosen = suggested(vectors, np.linspace(0, 1, 10), n)
    assert len(chosen) == len(set(chosen.tolist())) == min(n, 10)
