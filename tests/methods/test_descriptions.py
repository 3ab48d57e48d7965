"""Descriptions of labels count as weighted examples, and real examples alone are held out."""

import logging

import numpy as np
import pytest

from cptuning import CPTuningClassifier, load, make_classifier
from cptuning.backbone import load_backbone
from cptuning.data.sample_data import read_sample
from cptuning.errors import CPTuningError
from cptuning.inference.choice import DESCRIPTION_WEIGHTS
from cptuning.storage import load_predictor

WORDS = {
    "account": "log in, password, my account",
    "complaint": "the customer is angry about bad service",
    "delivery": "when will the parcel arrive, shipping",
    "praise": "the customer is happy and says thank you",
    "product_question": "a question about what a product can do",
    "refund": "the customer wants the money back",
}
# Each description stands at another class: it says the wrong thing.
MISLEADING = dict(zip(WORDS, [*list(WORDS.values())[1:], WORDS["account"]], strict=True))
TRAIN, TEST = read_sample("messages_train"), read_sample("messages_test")


def shots(k):
    """The first k examples of each class."""
    rows = [row for c in WORDS for row in np.flatnonzero(np.array(TRAIN.labels) == c)[:k]]
    return TRAIN.examples.take(rows), [TRAIN.labels[row] for row in rows]


def instant(**more):
    return CPTuningClassifier(preset="instant", verbose=False, **more)


def accuracy(classifier):
    return classifier.score(TEST.examples, TEST.labels)


@pytest.fixture(scope="module")
def zero_shot():
    return instant().fit([], [], label_descriptions=WORDS)


def test_descriptions_alone_answer_better_than_chance(zero_shot):
    assert zero_shot.classes_.tolist() == sorted(WORDS)
    assert accuracy(zero_shot) > 0.5
    assert zero_shot.held_out_score_ is None
    assert zero_shot.training_["validation"] == "none"
    assert set(zero_shot.training_["examples"].values()) == {0}
    assert zero_shot.training_["descriptions"] == {"texts": 6, "weight": 1.0}


def test_without_examples_the_nearest_description_in_the_sentence_view_answers(zero_shot):
    queries = zero_shot.transform(TEST.examples)
    described = zero_shot.predictor_.support
    nearest = (queries @ described.embeddings.T).argmax(axis=1)
    assert zero_shot.predict(TEST.examples).tolist() == [
        zero_shot.classes_[described.labels[row]] for row in nearest
    ]
    # Next to nothing is left of the mask view, which is the first part of an embedding.
    views = zero_shot.predictor_.encoder.views
    assert np.abs(queries[:, : views.mask_width]).max() < 0.02


def test_the_names_of_labels_alone_answer_better_than_chance():
    named = instant().fit(None, None, label_descriptions=list(WORDS))
    assert named.predictor_.support.examples.first[4] == "product question"
    assert accuracy(named) > 0.4


def test_every_effort_answers_from_descriptions_alone_in_the_same_way(zero_shot):
    trained = CPTuningClassifier(verbose=False).fit([], [], label_descriptions=WORDS)
    assert trained.predict(TEST.examples).tolist() == zero_shot.predict(TEST.examples).tolist()
    with_torch = instant(backbone=load_backbone("embedded"))
    with_torch.fit([], [], label_descriptions=WORDS)
    assert with_torch.predict(TEST.examples).tolist() == zero_shot.predict(TEST.examples).tolist()


def test_with_one_example_of_each_class_descriptions_help_and_each_example_is_held_out():
    texts, labels = shots(1)
    plain = instant().fit(texts, labels)
    described = instant().fit(texts, labels, label_descriptions=WORDS)
    assert plain.held_out_ is None
    assert described.held_out_.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert described.held_out_rows_.tolist() == [0, 1, 2, 3, 4, 5]
    assert described.settings_.description_weight in DESCRIPTION_WEIGHTS
    assert described.settings_.description_weight > 0
    assert accuracy(described) > accuracy(plain)


def test_held_out_answers_are_about_real_examples_alone():
    texts, labels = shots(3)
    described = instant().fit(texts, labels, label_descriptions=WORDS)
    assert len(described.held_out_.labels) == len(labels)
    assert described.training_["examples"] == dict.fromkeys(sorted(WORDS), 3)


def test_descriptions_that_mislead_are_left_out():
    texts, labels = shots(6)
    plain = instant().fit(texts, labels)
    misled = instant().fit(texts, labels, label_descriptions=MISLEADING)
    assert misled.settings_.description_weight == 0
    assert misled.settings_.sentence_weight == plain.settings_.sentence_weight
    assert misled.predictor_.support.is_description is None
    # The temperature may differ: it is fitted to answers of choices without a fold each.
    np.testing.assert_allclose(
        misled.decision_function(TEST.examples), plain.decision_function(TEST.examples), atol=1e-6
    )


def test_misled_by_force_answers_are_worse():
    texts, labels = shots(3)
    forced = instant(description_weight=4.0).fit(texts, labels, label_descriptions=MISLEADING)
    assert accuracy(forced) < accuracy(instant().fit(texts, labels))


def test_a_description_of_a_label_without_examples_is_a_class(caplog):
    texts, labels = shots(4)
    kept = [row for row, label in enumerate(labels) if label != "praise"]
    some = {"praise": WORDS["praise"]}
    with caplog.at_level(logging.WARNING, "cptuning"):
        found = instant().fit(
            texts.take(kept), [labels[row] for row in kept], label_descriptions=some
        )
    assert "The class 'praise' has no examples: it is answered by its description" in caplog.text
    assert found.predict(["thank you, you made me so happy"]).tolist() == ["praise"]
    # It counts once, whatever the descriptions of other classes count.
    assert found.predictor_.support.weights is None


def test_a_description_is_marked_as_one(zero_shot):
    [reasons] = zero_shot.explain(["i want my money back"])
    assert [e.is_description for e in reasons] == [True]
    assert "refund, description  the customer wants the money back" in repr(
        zero_shot.explain(["i want my money back"])
    )
    described = instant(description_weight=1.0)
    described.fit(*shots(2), label_descriptions=WORDS)
    [reasons] = described.explain(["i want my money back"], k=3)
    assert sorted(e.is_description for e in reasons) == [False, False, True]


def test_class_weights_are_those_of_the_examples_and_hold_for_descriptions():
    texts, labels = shots(2)
    rows = [*range(len(labels)), 0, 0]  # account has four, the others two
    found = instant(class_weight="balanced", description_weight=1.0).fit(
        texts.take(rows), [labels[row] for row in rows], label_descriptions=WORDS
    )
    support = found.predictor_.support
    of_descriptions = support.weights[support.is_description]
    np.testing.assert_allclose(of_descriptions, [14 / 24, *[14 / 12] * 5])


def test_a_dev_set_tells_how_well_descriptions_alone_answer():
    found = instant(unknown_threshold="auto").fit(
        [], [], TEST.examples, TEST.labels, label_descriptions=WORDS
    )
    assert found.training_["validation"] == "dev"
    assert found.held_out_score_ == pytest.approx(
        instant().fit([], [], label_descriptions=WORDS).score(TEST.examples, TEST.labels)
    )


def test_saved_and_loaded_with_and_without_torch_it_is_the_same(tmp_path):
    found = instant(description_weight=0.5).fit(*shots(2), label_descriptions=WORDS)
    found.save(tmp_path / "model")
    expected = found.predict_proba(TEST.examples)
    for loaded in (load(tmp_path / "model"), load_predictor(tmp_path / "model")):
        np.testing.assert_allclose(loaded.predict_proba(TEST.examples), expected, atol=1e-4)
        [reasons] = loaded.explain(["i want my money back"], k=3)
        assert any(e.is_description for e in reasons)
    assert "| Descriptions of labels | 6, each weighs 0.5 |" in (
        (tmp_path / "model" / "README.md").read_text("utf-8")
    )
    found.export(tmp_path / "onnx", int8=True)
    exported = load_predictor(tmp_path / "onnx")
    assert exported.predict(TEST.examples).tolist() == found.predict(TEST.examples).tolist()
    assert exported.support.n_examples == 12
    assert len(exported.support) == 18


def test_examples_of_an_old_and_of_a_new_class_are_added_to_descriptions(zero_shot):
    model = instant().fit([], [], label_descriptions=WORDS)
    model.add_examples(["is this vegan?", "i want my money back at once"], ["diet", "refund"])
    assert model.predict(["is the pizza vegan?"]).tolist() == ["diet"]
    [reasons] = model.explain(["my money back at once"])
    assert sorted(e.is_description for e in reasons) == [False, True]


def test_a_new_class_may_come_with_a_description():
    model = instant().fit(*shots(2))
    model.add_examples(["is this vegan?"], ["diet"], label_descriptions={"diet": "eating no meat"})
    model.add_examples([], [], label_descriptions={"jobs": "applying for work at the company"})
    model.add_examples([], [], label_descriptions={"diet": "eating no meat"})  # It knows that.
    assert model.predict(["can i work for your company?"]).tolist() == ["jobs"]
    assert len(model.predictor_.support) == 15
    [reasons] = model.explain(["is the meat vegan?"])
    assert sorted(e.is_description for e in reasons) == [False, True]
    assert model.predictor_.support.n_examples == 13
    with pytest.raises(CPTuningError, match="The description of the label 'x' is empty"):
        model.add_examples([], [], label_descriptions={"x": ""})
    assert len(model.classes_) == 8


def test_training_reads_descriptions_and_holds_out_single_examples(tiny):
    texts, labels = shots(1)
    trained = CPTuningClassifier(
        tiny("bert"), steps=2, evaluate_every=1, instant_first=False, verbose=False, max_length=64
    )
    trained.fit(texts, labels, label_descriptions=WORDS)
    assert len(trained.held_out_.labels) == len(labels)
    assert trained.predictor_.support.n_examples == len(labels)
    with pytest.raises(CPTuningError, match="Every class has a single example"):
        trained.fit(texts, labels)


def test_training_batches_hold_descriptions_with_their_weight(tiny):
    from cptuning.methods.cp_tuning import CPTuning
    from cptuning.methods.evaluation_log import EvaluationLog

    classifier = CPTuningClassifier(
        tiny("bert"), description_weight=0.5, steps=2, verbose=False, max_length=64
    )
    training = classifier.prepare(*shots(2), label_descriptions=WORDS)
    task = CPTuning(training).task(training.split, EvaluationLog())
    train = task.split.train
    assert len(train.labels) == 18
    np.testing.assert_array_equal(train.loss_weights, [1.0] * 12 + [0.5] * 6)
    assert [e.ids.tolist() for e in task.encodings[12:]] == [
        e.ids.tolist() for e in task.layout.encode(training.split.descriptions.examples)
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([], []), "There are no labels|There are no examples"),
        (([], [], None, None), "There are no labels|There are no examples"),
    ],
)
def test_nothing_at_all_is_refused(arguments, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        instant().fit(*arguments)


def test_what_descriptions_cannot_do_is_refused_in_one_sentence():
    texts, labels = shots(2)
    with pytest.raises(CPTuningError, match="The method pet does not read descriptions"):
        make_classifier("pet").fit(texts, labels, label_descriptions=WORDS)
    with pytest.raises(CPTuningError, match="examples of single texts, but pairs"):
        instant().fit([("a", "b"), ("c", "d")], ["x", "y"], label_descriptions={"x": "same"})
    with pytest.raises(CPTuningError, match="one label per text, but label sets"):
        instant().fit(["a", "b"], [["x"], ["y"]], label_descriptions={"x": "same"})
    with pytest.raises(CPTuningError, match="Only the label 'x' is described"):
        instant().fit([], [], label_descriptions={"x": "same"})
    with pytest.raises(CPTuningError, match="The preset 'paper' trains on examples"):
        CPTuningClassifier(preset="paper").fit([], [], label_descriptions=WORDS)
    with pytest.raises(CPTuningError, match='"auto" needs held-out examples, and there are no'):
        instant(unknown_threshold="auto").fit([], [], label_descriptions=WORDS)
    with pytest.raises(CPTuningError, match="description_weight is -1: it must be between 0"):
        instant(description_weight=-1).fit(texts, labels, label_descriptions=WORDS)
