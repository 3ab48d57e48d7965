"""Many threads may use one model: each gets the answers that it would get alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import load_file

import cptuning
from cptuning import make_classifier
from tests.tiny import SINGLES

THREADS, CALLS = 8, 200
TEXTS = [*SINGLES, "a fine film with a slow end", "dull"]
LABELS = ["good", "bad"]


@pytest.fixture(scope="module")
def fitted(tiny):
    def fit(method):
        classifier = make_classifier(
            method, backbone=str(tiny("bert")), steps=2, validation="none", verbose=False
        )
        return classifier.fit(TEXTS, [LABELS[i % 2] for i in range(len(TEXTS))])

    return fit


def answers_of(classifier, text):
    """Everything that a model can be asked, in one comparable piece."""
    labels = classifier.predict([text]).tolist()
    probabilities = classifier.predict_proba([text]).tobytes()
    if classifier.method != "cp-tuning":
        return labels, probabilities
    [reasons] = classifier.explain([text])
    evidence = [(one.text, one.similarity) for one in reasons]
    return labels, probabilities, classifier.transform([text]).tobytes(), evidence


@pytest.mark.parametrize("loaded", [False, True], ids=["fitted", "loaded"])
def test_predictions_of_many_threads_are_those_of_one(fitted, tmp_path, loaded):
    classifier = fitted("cp-tuning")
    if loaded:
        classifier.save(tmp_path / "model")
        classifier = cptuning.load(tmp_path / "model")
    alone = {text: classifier.predict_proba([text]) for text in TEXTS}

    def predict(thread):
        for call in range(CALLS):
            text = TEXTS[(thread + call) % len(TEXTS)]
            np.testing.assert_array_equal(classifier.predict_proba([text]), alone[text])

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(predict, range(THREADS)))


@pytest.mark.parametrize("method", ["cp-tuning", "fine-tuning", "warp"])
def test_all_that_a_model_can_do_goes_on_at_the_same_time(fitted, method, tmp_path):
    classifier = fitted(method)
    classifier.save(tmp_path / "before")
    alone = {text: answers_of(classifier, text) for text in TEXTS}

    def ask(thread):
        texts = [TEXTS[(thread + call) % len(TEXTS)] for call in range(20)]
        return [answers_of(classifier, text) == alone[text] for text in texts]

    with ThreadPoolExecutor(THREADS + 1) as pool:
        asked = [pool.submit(ask, thread) for thread in range(THREADS)]
        pool.submit(classifier.save, tmp_path / "during").result()
        assert all(all(one.result()) for one in asked)
    before, during = (
        load_file(tmp_path / name / "backbone" / "model.safetensors")
        for name in ("before", "during")
    )
    assert before.keys() == during.keys()
    assert all(np.array_equal(before[name], during[name]) for name in before)
