"""Exported models on a machine without torch, against the classifiers they were made from."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.export import base_install
from tests.tiny import ARCHITECTURES, PAIRS, SINGLES

import cptuning
from cptuning import CPTuningClassifier
from cptuning.errors import CPTuningError
from cptuning.export import export_onnx

TRAINING = {
    "single": ["great movie", "I loved it", "so good", "dull film", "boring book", "bad food"],
    "pair": [
        *[("is it red?", "yes"), ("is it long?", "it is long"), ("how was it?", "great")],
        *[("is it red?", "the food"), ("is it long?", "a train"), ("how was it?", "no")],
    ],
}
LABELS = ["good"] * 3 + ["bad"] * 3
TEXTS = {
    "single": [*SINGLES, "great " * 99, "", "<mask> [MASK] 😀\u2028", *TRAINING["single"]],
    "pair": [
        *PAIRS,
        *[("great " * 99, "yes"), ("no", "dull " * 99), ("it " * 99, "is " * 99), ("", "")],
        *TRAINING["pair"],
    ],
}
MORE = {
    "single": ["where is the parcel\u2028", "parcel, where\x85is it"],
    "pair": [("where is the parcel\u2028", "at noon"), ("parcel?", "it\x85left")],
}
CASES = [
    (architecture, kind)
    for architecture in ARCHITECTURES
    for kind in ("single", "pair")
    if kind == "pair" or architecture in ("bert", "roberta", "albert")
]


@pytest.fixture(scope="module")
def cases(tiny, tmp_path_factory):
    """Each exported model's answers in a process without torch, beside those of its original."""
    root = tmp_path_factory.mktemp("exports")
    originals, places = {}, {}
    for architecture, kind in CASES:
        place = places[architecture, kind] = root / f"{architecture}-{kind}"
        place.mkdir()
        classifier = CPTuningClassifier(
            backbone=str(tiny(architecture)), steps=2, validation="none", verbose=False
        )
        classifier.fit(TRAINING[kind], LABELS)
        export_onnx(classifier, place / "exported")
        if architecture == "bert":
            classifier.save(place / "saved")
        job = {"texts": TEXTS[kind], "more": MORE[kind]}
        (place / "job.json").write_text(json.dumps(job), "utf-8")
        originals[architecture, kind] = classifier
    command = [sys.executable, base_install.__file__, *map(str, places.values())]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return {
        case: SimpleNamespace(
            original=originals[case],
            place=place,
            texts=TEXTS[case[1]],
            more=MORE[case[1]],
            answers=np.load(place / "answers.npz"),
        )
        for case, place in places.items()
    }


@pytest.fixture(params=CASES, ids="-".join)
def case(request, cases):
    return cases[request.param]


@pytest.mark.parametrize("batches", ["embeddings", "alone", "some"])
def test_embeddings_are_the_same_in_batches_of_any_size_and_length(case, batches):
    expected = case.original.transform(case.texts)
    np.testing.assert_allclose(case.answers[batches], expected, atol=1e-5)
    assert case.answers[batches].dtype == np.float32


def test_answers_are_the_same(case):
    assert case.answers["labels"].tolist() == case.original.predict(case.texts).tolist()
    probabilities = case.original.predict_proba(case.texts)
    np.testing.assert_allclose(case.answers["probabilities"], probabilities, atol=1e-4)
    nearest = [evidence[0].similarity for evidence in case.original.explain(case.texts, k=1)]
    np.testing.assert_allclose(case.answers["nearest"], nearest, atol=1e-5)


@pytest.mark.parametrize("folder", ["again", "exported"])
def test_new_examples_are_taken_and_saved(case, folder):
    assert case.answers[f"{folder} classes"].tolist() == ["bad", "good", "new"]
    assert case.answers[f"{folder} texts"].tolist() == [str(text) for text in case.more]
    original = cptuning.load(case.place / folder)
    labels = original.predict(case.texts + case.more)
    assert case.answers[f"{folder} labels"].tolist() == labels.tolist()


def test_without_torch_training_and_other_models_say_what_is_missing(cases):
    for kind in ("single", "pair"):
        answers = cases["bert", kind].answers
        assert 'pip install "cptuning[train]"' in str(answers["fit"])
        assert 'needs torch: pip install "cptuning[train]"' in str(answers["load"])


def test_exporting_leaves_the_classifier_as_it_was(tiny, tmp_path):
    classifier = CPTuningClassifier(
        backbone=str(tiny("bert")), steps=2, validation="none", verbose=False
    ).fit(TRAINING["single"], LABELS)
    before = classifier.transform(TEXTS["single"])
    export_onnx(classifier, tmp_path / "exported")
    np.testing.assert_array_equal(classifier.transform(TEXTS["single"]), before)


def test_an_exported_model_is_not_exported_again(cases, tmp_path):
    exported = cptuning.load(cases["bert", "single"].place / "exported")
    with pytest.raises(CPTuningError, match="exported already"):
        export_onnx(exported, tmp_path / "twice")
    assert not (tmp_path / "twice").exists()


def test_what_is_no_model_is_not_written_over(cases, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(CPTuningError, match="choose another place"):
        export_onnx(cases["bert", "single"].original, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
