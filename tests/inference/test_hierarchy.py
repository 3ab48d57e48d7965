"""Labels with levels: a tree of classes, sums along it, and answers at the level that is sure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning import CPTuningClassifier
from cptuning.errors import CPTuningError
from cptuning.inference import UNKNOWN, Hierarchy
from cptuning.reporting.levels import scores_by_level

CLASSES = ["billing > refund > card", "billing > refund > cash", "billing > invoice", "praise"]
TREE = Hierarchy.of(CLASSES)


@st.composite
def shares(draw):
    """Probabilities of the four classes."""
    parts = np.array(draw(st.lists(st.floats(0.01, 1), min_size=4, max_size=4)))
    return parts / parts.sum()


@given(shares())
def test_probabilities_add_up_along_the_tree(of_classes):
    found = dict(zip(TREE.nodes, TREE.probabilities(of_classes[None])[0], strict=True))
    for node in TREE.nodes:
        below = [c for c in CLASSES if c == node or c.startswith(f"{node} > ")]
        expected = sum(of_classes[CLASSES.index(c)] for c in below)
        assert found[node] == pytest.approx(expected)
    assert found["billing"] + found["praise"] == pytest.approx(1)


@given(shares(), st.floats(0, 1))
def test_the_answer_is_the_deepest_node_that_is_certain_enough(of_classes, least):
    found = dict(zip(TREE.nodes, TREE.probabilities(of_classes[None])[0], strict=True))
    answer, confidence = TREE.answer(of_classes, least)
    if answer is None:
        assert confidence == max(found["billing"], found["praise"])
        assert confidence < least
        return
    assert confidence == pytest.approx(found[answer])
    assert confidence >= least
    path = answer.split(" > ")
    children = [n for n in found if n.startswith(f"{answer} > ") and n.count(" > ") == len(path)]
    assert all(found[child] < least for child in children)
    if least > 0.5:  # Then no other node of this depth, and none deeper, is certain enough.
        certain = [node for node, share in found.items() if share >= least]
        assert answer == max(certain, key=lambda node: node.count(" > "))


def test_without_a_least_probability_a_leaf_answers():
    assert TREE.answer(np.array([0.3, 0.2, 0.1, 0.4]), 0.0) == ("billing > refund > card", 0.3)


def test_a_leaf_is_spelled_as_its_class_and_spaces_do_not_count():
    tree = Hierarchy.of(["a>x", "a >y", "b"], " > ")
    assert tree.nodes == ("a", "a>x", "a >y", "b")
    assert tree.answer(np.array([0.9, 0.1, 0.0]), 0.5) == ("a>x", 0.9)


@pytest.mark.parametrize(
    ("classes", "separator", "sentence"),
    [
        (["a", "a > b"], " > ", "The label 'a' is also the parent of 'a > b'"),
        (["a > b > a", "c"], " > ", "'a > b > a' leads back to 'a': a hierarchy has no loops"),
        (["a > ", "c"], " > ", "The label 'a > ' has an empty level"),
        (["a > b", "a>b"], " > ", "'a > b' and 'a>b' are the same place"),
        (["a", "b"], " > ", "No label contains '>', so there is no hierarchy"),
        ([1, 2], " > ", "The label 1 is not a text, so it has no levels"),
        (["a > b", "c"], " ", "The separator of the hierarchy is ' '"),
    ],
)
def test_what_is_no_tree_is_refused_in_one_sentence(classes, separator, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        Hierarchy.of(classes, separator)


def test_scores_are_told_level_by_level():
    answers = np.array(
        [[0.9, 0.05, 0.05, 0.0], [0.5, 0.4, 0.1, 0.0], [0.1, 0.1, 0.2, 0.6], [0.3, 0.3, 0.0, 0.4]]
    )
    truth = [CLASSES[0], CLASSES[1], CLASSES[3], CLASSES[2]]
    first, second, third = scores_by_level(TREE, answers, truth, 0.8)
    assert (first.texts, first.accuracy, first.answered, first.right) == (4, 1.0, 2, 2)
    assert (second.texts, second.accuracy, second.answered, second.right) == (3, 2 / 3, 2, 2)
    assert (third.texts, third.accuracy, third.answered, third.right) == (2, 0.5, 1, 1)


def test_a_classifier_answers_at_the_level_that_is_certain_enough():
    texts = ["give me my money back", "i want a refund", "send me the bill", "where is my invoice"]
    texts += ["thank you so much", "what a great shop"]
    labels = ["billing > refund"] * 2 + ["billing > invoice"] * 2 + ["praise"] * 2
    classifier = CPTuningClassifier(preset="instant", verbose=False).fit(texts, labels)
    shares = classifier.predict_proba(texts)
    tree = Hierarchy.of(classifier.classes_.tolist())
    for least in (0.0, 0.6, 0.9, 1.0):
        expected = [tree.answer(row, least)[0] for row in shares]
        assert classifier.predict_levels(texts, least).tolist() == expected
    assert classifier.predict_levels(texts, 1.0).tolist() == [None] * 6
    strict = CPTuningClassifier(preset="instant", verbose=False, unknown_threshold=0.9999)
    answers = strict.fit(texts, labels).predict_levels(["an umbrella"], 0.0)
    assert answers.tolist() == [UNKNOWN]
    with pytest.raises(CPTuningError, match="min_confidence is 2: give a probability"):
        classifier.predict_levels(texts, 2)
    sets = CPTuningClassifier(preset="instant", verbose=False)
    sets.fit(texts, [[label] for label in labels])
    with pytest.raises(CPTuningError, match="this model gives label sets"):
        sets.predict_levels(texts)
