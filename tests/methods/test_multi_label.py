"""Multi-label classification from fit to a saved folder: what goes in comes out."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.preprocessing import MultiLabelBinarizer

import cptuning
from cptuning import CPTuningClassifier, list_methods, make_classifier
from cptuning.errors import CPTuningError

TEXTS = [
    "great film and great music", "i loved the acting", "the music was awful", "boring plot",
    "lovely songs", "what a plot twist", "terrible songs and acting", "good story",
    "bad soundtrack", "i will see it tomorrow",
]  # fmt: skip
LABELS = [
    ["praise", "music"], ["praise", "acting"], ["music", "complaint"], ["complaint", "plot"],
    ["praise", "music"], ["praise", "plot"], ["complaint", "music", "acting"], ["praise", "plot"],
    ["complaint", "music"], [],
]  # fmt: skip
CLASSES = ["acting", "complaint", "music", "plot", "praise"]
MATRIX = MultiLabelBinarizer().fit_transform(LABELS)
NEW = ["the songs are bad", "a good plot", "hello"]


def instant(**parameters):
    return CPTuningClassifier(preset="instant", verbose=False, **parameters)


@pytest.fixture(scope="module")
def fitted():
    return instant().fit(TEXTS, LABELS)


def test_lists_go_in_and_come_out(fitted):
    assert fitted.classes_.tolist() == CLASSES
    assert fitted.predict(NEW)[0] == ["complaint", "music"]
    shares = fitted.predict_proba(NEW)
    assert shares.shape == (3, 5)
    assert ((shares > 0) & (shares < 1)).all()
    threshold = fitted.predictor_.calibration.threshold
    for labels, row in zip(fitted.predict(NEW), shares, strict=True):
        assert labels == [c for c, p in zip(CLASSES, row, strict=True) if p >= threshold]


@pytest.mark.parametrize("kind", [np.array, csr_matrix])
def test_a_matrix_goes_in_and_comes_out_and_answers_are_those_of_lists(fitted, kind):
    classifier = instant().fit(TEXTS, kind(MATRIX))
    assert classifier.classes_.tolist() == [0, 1, 2, 3, 4]
    answers = classifier.predict(NEW)
    assert issparse(answers) == (kind is csr_matrix)
    binarizer = MultiLabelBinarizer().fit(LABELS)
    dense = answers.toarray() if issparse(answers) else answers
    assert dense.tolist() == binarizer.transform(fitted.predict(NEW)).tolist()
    np.testing.assert_allclose(classifier.predict_proba(NEW), fitted.predict_proba(NEW))
    assert classifier.score(TEXTS, kind(MATRIX)) == fitted.score(TEXTS, LABELS)


def test_the_decision_is_above_zero_where_a_label_is_given(fitted):
    given = MultiLabelBinarizer().fit(LABELS).transform(fitted.predict(TEXTS))
    assert ((fitted.decision_function(TEXTS) >= 0) == given).all()


def test_the_score_is_subset_accuracy(fitted):
    exact = [sorted(a) == sorted(b) for a, b in zip(fitted.predict(TEXTS), LABELS, strict=True)]
    assert fitted.score(TEXTS, LABELS) == np.mean(exact)


def test_each_label_has_reasons_that_have_it(fitted):
    for text, labels, reasons in zip(
        NEW, fitted.predict(NEW), fitted.explain(NEW, k=2), strict=True
    ):
        assert list(reasons) == labels, text
        for label, examples in reasons.items():
            assert len(examples) == 2
            assert all(label in example.label for example in examples)
            similarities = [example.similarity for example in examples]
            assert similarities == sorted(similarities, reverse=True)
            if examples.against is not None:
                assert label not in examples.against.label
                assert examples.against.similarity > similarities[0]


def test_held_out_answers_are_leave_one_out_and_every_text_counts(fitted):
    assert fitted.training_["validation"] == "leave-one-out"
    assert fitted.training_["examples"] == dict(zip(CLASSES, [2, 4, 5, 3, 5], strict=True))
    assert fitted.training_["texts"] == 10
    assert fitted.held_out_rows_.tolist() == list(range(10))
    assert 0 < fitted.held_out_score_ < 1


def test_examples_of_a_new_label_and_of_none_are_added(fitted):
    more = instant().fit(TEXTS, LABELS)
    more.add_examples(
        ["where is my parcel?", "the parcel is late", "good morning"],
        [["delivery"], ["delivery", "complaint"], []],
    )
    assert more.classes_.tolist() == [*CLASSES, "delivery"]
    assert "delivery" in more.predict(["my parcel did not come"])[0]
    # The calibration of the known labels is kept.
    before, after = fitted.predictor_.calibration, more.predictor_.calibration
    assert after.biases[:5].tolist() == before.biases.tolist()
    assert after.threshold == before.threshold


def test_forgotten_examples_take_their_last_label_with_them(fitted):
    predictor = fitted.predictor_.without_examples([1, 6])
    assert predictor.label_space.classes == ("complaint", "music", "plot", "praise")
    again = instant().fit(
        [t for i, t in enumerate(TEXTS) if i not in (1, 6)],
        [labels for i, labels in enumerate(LABELS) if i not in (1, 6)],
    )
    weights = [c.settings_.sentence_weight for c in (fitted, again)]
    if weights[0] == weights[1]:
        np.testing.assert_allclose(
            predictor.decision_scores(NEW), again.predictor_.decision_scores(NEW), atol=1e-5
        )


@pytest.mark.parametrize("labels", [LABELS, MATRIX, csr_matrix(MATRIX)])
def test_a_saved_model_answers_as_before(tmp_path, labels):
    classifier = instant().fit(TEXTS, labels)
    classifier.save(tmp_path / "model")
    loaded = cptuning.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(NEW), classifier.predict_proba(NEW), atol=1e-4)
    assert type(loaded.predict(NEW)) is type(classifier.predict(NEW))
    assert loaded.training_["texts"] == 10


def test_examples_that_weigh_more_count_more():
    twice = instant().fit([*TEXTS, TEXTS[0]], [*LABELS, LABELS[0]])
    weight = twice.settings_.sentence_weight
    weighted = instant(sentence_weight=weight).fit(TEXTS, LABELS, sample_weight=[2] + [1] * 9)
    copied = instant(sentence_weight=weight).fit([*TEXTS, TEXTS[0]], [*LABELS, LABELS[0]])
    scores = [
        c.predictor_.support.analysis.discriminants(1.0).scores(c.transform(NEW))
        for c in (weighted, copied)
    ]
    np.testing.assert_allclose(*scores, atol=1e-5)


def test_a_dev_set_calibrates():
    classifier = instant().fit(TEXTS, LABELS, X_dev=NEW, y_dev=[["complaint", "music"], [], []])
    assert classifier.training_["dev_examples"]["music"] == 1
    assert classifier.training_["validation"] == "dev"


@pytest.mark.slow
def test_label_sets_are_trained_with_pccl():
    classifier = CPTuningClassifier(verbose=False, steps=4, evaluate_every=2, instant_first=False)
    classifier.fit(TEXTS, LABELS)
    assert classifier.training_["best_step"] in (0, 2, 4)
    assert classifier.training_["validation"] == "cross-fit"
    assert len(classifier.predict(NEW)) == 3
    assert classifier.predictor_.support.labels.tolist() == MATRIX.tolist()


@pytest.mark.parametrize("method", [m for m in list_methods() if m != "cp-tuning"])
def test_rivals_refuse_label_sets_in_one_sentence(method):
    with pytest.raises(CPTuningError, match=f"The method {method} answers one label per text"):
        make_classifier(method, verbose=False).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"class_weight": "balanced"}, "class_weight is for one label per text"),
        ({"class_prior": [0.2] * 5}, "class_prior is for one label per text"),
        ({"unknown_threshold": 0.1}, "unknown_threshold is for one label per text"),
        ({"inference": "knn"}, "inference is 'knn', which answers one label per text"),
        ({"loss": "circle"}, "The loss is 'circle', which compares single labels"),
    ],
)
def test_what_means_nothing_for_label_sets_is_refused(parameters, message):
    with pytest.raises(CPTuningError, match=message):
        instant(**parameters).fit(TEXTS, LABELS)


def test_an_unknown_label_in_a_dev_set_is_refused():
    with pytest.raises(CPTuningError, match="The label 'odd' in row 1 is not one of the classes"):
        instant().fit(TEXTS, LABELS, X_dev=["a"], y_dev=[["odd"]])
