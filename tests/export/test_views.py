"""Exports of every view and pooling: the graph gives features, which numpy joins as torch does."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from sklearn.exceptions import NotFittedError
from tests.export import base_install
from tests.tiny import PAIRS, SINGLES, save_sentence_encoder

import cptuning
from cptuning import CPTuningClassifier
from cptuning.backbone import TextEncoder
from cptuning.backbone.joined_views import VIEWS_FILE
from cptuning.backbone.pooling import POOLING_MODES
from cptuning.export.exporter import calibration_samples
from cptuning.export.graph import Graph
from cptuning.export.tracing import OUTPUTS
from cptuning.inference.onnx_encoder import FEATURES, ONNX_FILE
from cptuning.storage import load_predictor

TRAINING = {
    "single": ["great movie", "I loved it", "so good", "dull film", "boring book", "bad food"],
    "pair": [
        *[("is it red?", "yes"), ("is it long?", "it is long"), ("how was it?", "great")],
        *[("is it red?", "the food"), ("is it long?", "a train"), ("how was it?", "no")],
    ],
}
LABELS = ["good"] * 3 + ["bad"] * 3
TEXTS = {
    "single": [*SINGLES, "great " * 99, "", *TRAINING["single"]],
    "pair": [*PAIRS, ("great " * 99, "yes"), ("", "dull " * 99), ("", ""), *TRAINING["pair"]],
}
FEW = {"validation": "none", "verbose": False, "inference": "lda"}
ENCODERS = {
    **{mode: {"modes": [mode]} for mode in POOLING_MODES},
    "joined, dense": {"modes": ["max", "mean"], "dense": [(24, "Tanh"), (8, "Identity")]},
    "normalize": {"normalize": True},
    "prompt": {"prompt": "it is "},
    "prompt that is not pooled": {
        "modes": ["cls", "weightedmean", "lasttoken"],
        "prompt": "it is ",
        "include_prompt": False,
        "architecture": "roberta",
    },
    "lower case": {"lower_case": True, "architecture": "mpnet"},
    "local attention": {"architecture": "modernbert"},
    "two views": {"two_views": True, "dense": [(16, "Identity")]},
    "two views, roberta": {"two_views": True, "architecture": "roberta"},
}
CASES = [
    (name, kind)
    for name in ENCODERS
    for kind in ("single", "pair")
    if kind == "single" or name in ("cls", "mean", "prompt", "two views")
]


def fitted(backbone, kind, **changes):
    classifier = CPTuningClassifier(backbone=str(backbone), **FEW | {"steps": 2} | changes)
    return classifier.fit(TRAINING[kind], LABELS)


def exported(classifier, place, **options):
    classifier.export(place, **options)
    return cptuning.load(place)


def inputs_of(place):
    return {value.name for value in onnx.load(place / ONNX_FILE).graph.input}


def test_the_same_answers(case):
    found, expected = case.exported, case.original
    np.testing.assert_allclose(
        found.transform(case.texts), expected.transform(case.texts), atol=2e-5
    )
    np.testing.assert_allclose(
        found.predict_proba(case.texts), expected.predict_proba(case.texts), atol=2e-3
    )
    assert found.predict(case.texts).tolist() == expected.predict(case.texts).tolist()


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request, tmp_path_factory):
    name, kind = request.param
    place = tmp_path_factory.mktemp("views")
    original = fitted(save_sentence_encoder(place / "encoder", **ENCODERS[name]), kind)
    return SimpleNamespace(
        name=name,
        kind=kind,
        original=original,
        exported=exported(original, place / "exported"),
        place=place / "exported",
        texts=TEXTS[kind],
    )


def test_the_graph_takes_only_what_it_needs(case):
    wanted = {"input_ids"}
    if case.original.predictor_.encoder.module.takes_types:
        wanted.add("token_type_ids")
    if case.name == "cls":  # As with a mask, one row is enough.
        wanted.add(OUTPUTS)
    if case.name.startswith("two views"):
        wanted |= {OUTPUTS, "is_text"}
    assert inputs_of(case.place) == wanted
    assert [value.name for value in onnx.load(case.place / ONNX_FILE).graph.output] == [FEATURES]


def test_a_saved_export_is_whole(case, tmp_path):
    case.exported.save(tmp_path / "again")
    again = cptuning.load(tmp_path / "again")
    np.testing.assert_array_equal(again.transform(case.texts), case.exported.transform(case.texts))


@pytest.fixture(scope="module")
def two_views(tmp_path_factory):
    return save_sentence_encoder(tmp_path_factory.mktemp("two") / "encoder", two_views=True)


INFERENCES = [
    *[
        (kind, {"inference": name})
        for kind in TRAINING
        for name in ("lda", "unit-prototype", "knn")
    ],
    ("pair", {"pooling": "mean"}),
    ("single", {"pooling": "cls"}),
    ("single", {"pooling": "mask"}),
]


@pytest.mark.parametrize(("kind", "changes"), INFERENCES)
def test_in_8_bits_close_calls_are_read_exactly(kind, changes, two_views, tmp_path):
    original = fitted(two_views, kind, **changes)
    found = exported(original, tmp_path / "int8", int8=True)
    texts = TEXTS[kind]
    expected = original.transform(texts)
    predictor = found.predictor_
    rounded = predictor.transform(texts)
    assert 0.95 < (rounded * expected).sum(axis=1).mean() < 1 - 1e-7
    assert 0 < predictor.second_look.clear_lead < 1
    exact = predictor.second_look.encoder.embed(predictor.examples(texts))
    np.testing.assert_allclose(exact, expected, atol=1e-3)
    like = [texts.index(text) for text in TRAINING[kind]]
    agree = found.predict(texts) == original.predict(texts)
    assert agree[like].mean() >= 0.8


def test_the_second_looks_lead_is_of_joined_embeddings(two_views, tmp_path):
    """Of a pair's three sequences, the relation is what is compared."""
    original = fitted(two_views, "pair")
    found = exported(original, tmp_path / "int8", int8=True).predictor_
    encodings = calibration_samples(found.encoder.layout, found.support.examples)
    scores = [
        original.predictor_.scores(encoder.embed_encodings(encodings))
        for encoder in (original.predictor_.encoder, found.encoder)
    ]
    leads = (scores[1] - scores[0]) @ [1, -1]
    assert found.second_look.clear_lead == pytest.approx(2 * np.sqrt((leads**2).mean()), rel=1e-3)


def test_what_is_computed_once_per_text_is_not_rounded(tmp_path):
    """The layers behind pooling: their input is one row per text."""
    encoder = save_sentence_encoder(tmp_path / "encoder", dense=[(8, "Tanh")])
    fitted(encoder, "single").export(tmp_path / "int8", int8=True)
    graph = onnx.load(tmp_path / "int8" / ONNX_FILE).graph
    rounded = [node for node in graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert len(rounded) == 2 * 6  # Six products in each layer.
    assert "Gemm" in {node.op_type for node in graph.node}


def test_only_the_mask_view_is_read_at_one_row(two_views, tmp_path):
    """A sentence view needs all tokens of the last layer, the masked LM's head only one."""
    fitted(two_views, "single").export(tmp_path / "exported")
    graph = Graph(onnx.load(tmp_path / "exported" / ONNX_FILE))
    [gather] = graph.consumers(OUTPUTS)
    of_one_row, erfs = {gather.output[0]}, []
    for node in graph.nodes:
        if of_one_row & set(node.input):
            of_one_row.update(node.output)
        if node.op_type == "Erf":
            erfs.append(node.output[0] in of_one_row)
    assert erfs == [False, False, True]  # Two layers and the head.


@pytest.mark.parametrize(("kind", "sentence_weight"), [("single", 2.0), ("pair", None)])
def test_the_embedded_backbone(kind, sentence_weight, tmp_path):
    original = fitted("embedded", kind, steps=0, sentence_weight=sentence_weight)
    found = exported(original, tmp_path / "exported")
    texts = TEXTS[kind]
    np.testing.assert_allclose(found.transform(texts), original.transform(texts), atol=1e-5)
    assert found.predict(texts).tolist() == original.predict(texts).tolist()


def test_a_model_that_was_loaded_without_torch_is_exported_with_it(tmp_path):
    original = fitted("embedded", "single", steps=0)
    original.save(tmp_path / "saved")
    original.predictor_ = load_predictor(tmp_path / "saved")
    assert not isinstance(original.predictor_.encoder, TextEncoder)
    found = exported(original, tmp_path / "exported")
    texts = TEXTS["single"]
    np.testing.assert_allclose(found.transform(texts), original.transform(texts), atol=1e-5)


def test_an_export_from_before_views_is_still_read(two_views, tmp_path):
    """Its graph gives unit vectors, and no file says how to join."""
    original = fitted(two_views, "single", pooling="mask")
    exported(original, tmp_path / "old")
    path = tmp_path / "old" / ONNX_FILE
    model = onnx.load(path)
    graph = model.graph
    centre = original.predictor_.encoder.module.centre.numpy()
    graph.initializer.append(onnx.numpy_helper.from_array(centre, "centre"))
    graph.node.append(onnx.helper.make_node("Sub", [FEATURES, "centre"], ["moved"]))
    graph.node.append(onnx.helper.make_node("LpNormalization", ["moved"], ["embeddings"], axis=-1))
    graph.output[0].name = "embeddings"
    onnx.save(model, path)
    (tmp_path / "old" / VIEWS_FILE).unlink()
    texts = TEXTS["single"]
    again = cptuning.load(tmp_path / "old")
    np.testing.assert_allclose(again.transform(texts), original.transform(texts), atol=2e-5)
    again.save(tmp_path / "again")
    assert not (tmp_path / "again" / VIEWS_FILE).exists()
    assert (
        cptuning.load(tmp_path / "again").predict(texts).tolist() == again.predict(texts).tolist()
    )


def test_the_base_install_joins_both_views(two_views, tmp_path):
    originals = {}
    for kind in TRAINING:
        originals[kind] = fitted(two_views, kind)
        originals[kind].export(tmp_path / kind / "exported")
        more = TRAINING[kind][:2]
        (tmp_path / kind / "job.json").write_text(json.dumps({"texts": TEXTS[kind], "more": more}))
    command = [sys.executable, base_install.__file__, *(str(tmp_path / kind) for kind in TRAINING)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for kind, original in originals.items():
        answers = np.load(tmp_path / kind / "answers.npz")
        np.testing.assert_allclose(
            answers["embeddings"], original.transform(TEXTS[kind]), atol=2e-5
        )
        np.testing.assert_allclose(answers["alone"], answers["embeddings"], atol=2e-6)
        assert answers["labels"].tolist() == original.predict(TEXTS[kind]).tolist()


def test_a_classifier_is_fitted_before_it_is_exported(tmp_path):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        CPTuningClassifier().export(tmp_path / "exported")
    assert not (tmp_path / "exported").exists()
