"""Models of label sets as ONNX: the base install gives the same sets, and takes new labels."""

import subprocess
import sys

import numpy as np
import pytest
from tests.export.base_install import ABSENT
from tests.methods.test_multi_label import CLASSES, LABELS, NEW, TEXTS

import cptuning
from cptuning import CPTuningClassifier
from cptuning.data import LabelCells
from cptuning.storage import read_facts

QUERIES = [*NEW, *TEXTS]
KINDS = {"float32": {}, "int8": {"int8": True}, "rounded": {"int8": True, "second_look": False}}

IN_BASE_INSTALL = """
import json, sys
from tests.export.base_install import Absent
sys.meta_path.insert(0, Absent())
import cptuning
model, queries = cptuning.load(sys.argv[1]), json.loads(sys.argv[2])
model.add_examples(["where is my parcel?", "it is late"], [["delivery"], ["delivery", "plot"]])
model.save(sys.argv[1])
again = cptuning.load(sys.argv[1])
reasons = {
    label: [example.label for example in because]
    for found in again.explain(queries, k=1)
    for label, because in found.items()
}
same = again.predict(queries) == model.predict(queries)
print(json.dumps([same, again.classes_.tolist(), reasons, "torch" in sys.modules]))
"""


@pytest.fixture(scope="module")
def classifier(tiny):
    fitted = CPTuningClassifier(str(tiny("bert")), preset="instant", verbose=False)
    fitted.fit(TEXTS, LABELS)
    fitted.training_["label_cells"] = LabelCells("|").to_json()
    return fitted


@pytest.fixture(scope="module", params=KINDS)
def exported(request, classifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / request.param
    classifier.export(folder, **KINDS[request.param])
    return folder


def test_an_exported_model_gives_the_same_label_sets(classifier, exported):
    loaded = cptuning.load(exported)
    if exported.name != "rounded":
        assert loaded.predict(QUERIES) == classifier.predict(QUERIES)
    gap = 1e-4 if exported.name == "float32" else 0.2
    shares = classifier.predict_proba(QUERIES)
    np.testing.assert_allclose(loaded.predict_proba(QUERIES), shares, atol=gap)
    assert read_facts(exported).label_cells == LabelCells("|")
    assert (loaded.predictor_.second_look is not None) == (exported.name == "int8")


def test_a_close_call_of_any_label_is_looked_at_again(classifier, tmp_path):
    classifier.export(tmp_path / "int8", int8=True)
    predictor = cptuning.load(tmp_path / "int8").predictor_
    embeddings = predictor.encoder.embed(predictor.examples(QUERIES))
    scores = predictor.scores(embeddings)
    margins = np.abs(predictor.calibration.margins(scores))
    lead = predictor.second_look.clear_lead
    close = [row for row, own in enumerate(margins) if any(m < lead for m in own)]
    assert predictor.close_calls(embeddings, scores).tolist() == close


def test_the_base_install_answers_explains_and_takes_a_new_label(classifier, tmp_path):
    import json

    assert "torch" in ABSENT
    classifier.export(tmp_path / "onnx")
    words = [sys.executable, "-c", IN_BASE_INSTALL, tmp_path / "onnx", json.dumps(QUERIES)]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    same, classes, reasons, has_torch = json.loads(done.stdout)
    assert same
    assert classes == [*CLASSES, "delivery"]
    assert reasons
    assert all(label in labels for label, [labels] in reasons.items())
    assert not has_torch
