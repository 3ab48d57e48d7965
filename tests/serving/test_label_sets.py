"""The service with a model of label sets: lists of labels, reasons for each, new labels."""

import numpy as np
import pytest
from tests.methods.test_multi_label import CLASSES, LABELS, NEW, TEXTS

import cptuning
from cptuning import CPTuningClassifier


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    classifier = CPTuningClassifier(preset="instant", verbose=False)
    classifier.fit(TEXTS, LABELS).save(root / "sets")
    classifier.save(root / "shown")
    classifier.fit(TEXTS[:4], ["good", "good", "bad", "bad"]).save(root / "single")
    return root


@pytest.fixture(scope="module")
def server(start_session, folder):
    return start_session(folder, "--default", "sets")


def test_labels_are_lists_and_each_has_its_reasons(server, folder):
    model = cptuning.load(folder / "sets")
    found = server.predict(*NEW, explain=2)
    assert [p["label"] for p in found] == model.predict(NEW)
    shares = model.predict_proba(NEW)
    told = [list(p["probabilities"].values()) for p in found]
    np.testing.assert_allclose(told, shares, atol=1e-4)
    assert found[0]["confidence"] == pytest.approx(shares[0][[1, 2]].min(), abs=1e-4)
    for prediction, reasons in zip(found, model.explain(NEW, k=2), strict=True):
        assert prediction["neighbours"] is None
        assert list(prediction["reasons"]) == list(reasons)
        for label, because in reasons.items():
            neighbours = prediction["reasons"][label]["neighbours"]
            assert [n["text"] for n in neighbours] == [e.text for e in because]
            assert all(label in n["label"] for n in neighbours)
    assert server.predict(NEW[0])[0]["reasons"] is None


def test_the_document_says_that_texts_may_have_several_labels(server):
    info = server.get("/models/sets").json
    assert info["label_sets"] is True
    assert info["classes"] == CLASSES
    assert server.get("/models/single").json["label_sets"] is False
    paths = server.get("/openapi.json").json["paths"]
    body = paths["/examples"]["post"]["requestBody"]["content"]["application/json"]
    [example, *_] = body["examples"].values()
    assert server.post("/models/shown/examples", example["value"]).status == 200


def test_examples_of_a_new_label_and_of_none_are_added_once_and_kept(server, folder):
    body = {
        "texts": ["where is my parcel?", "the parcel is late", "good morning"],
        "labels": [["parcel"], ["complaint", "parcel"], []],
    }
    added = server.post("/examples", body).json
    assert added["added"] == 3
    assert added["new_classes"] == ["parcel"]
    # The same labels in another order are known.
    again = body | {"labels": [["parcel"], ["parcel", "complaint"], []]}
    assert server.post("/examples", again).json["known_already"] == 3
    assert "parcel" in server.predict("my parcel did not come")[0]["label"]
    kept = cptuning.load(folder / "sets")
    assert "parcel" in kept.predict(["my parcel did not come"])[0]


@pytest.mark.parametrize(
    ("model", "labels", "status", "words"),
    [
        ("sets", ["late"], 409, "is 'late', not a list of labels"),
        ("sets", [["late", 3]], 422, "the label 3 in row 1 is of type int"),
        ("sets", [["late", None]], 422, "label in row 1 must be"),
        ("sets", ["late", ["rude"]], 422, "label in row 2 must be"),
        ("sets", [["late"], ["rude"]], 422, "1 texts but 2 labels"),
        ("single", [["good"]], 409, "The model gives one label per text, but label sets were"),
    ],
)
def test_labels_that_do_not_fit_are_refused(server, model, labels, status, words):
    answer = server.post(f"/models/{model}/examples", {"texts": ["a"], "labels": labels})
    assert answer.status == status, answer.text
    assert words.lower() in answer.json["error"].lower()
