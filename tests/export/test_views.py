"""Exports of every view and pooling: the graph gives features, which numpy joins as torch does."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from tests.export import base_install
from tests.tiny import PAIRS, SINGLES, save_sentence_encoder

import cptuning
from cptuning import CPTuningClassifier
from cptuning.backbone.joined_views import VIEWS_FILE, Views
from cptuning.backbone.pooling import POOLING_MODES
from cptuning.export import precisions
from cptuning.export.graph import Graph
from cptuning.export.tracing import OUTPUTS
from cptuning.inference.onnx_encoder import EXACT_FILE, FEATURES, ONNX_FILE, OnnxEncoder

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
    np.testing.assert_allclose(found.transform(case.texts), expected.transform(case.texts), atol=2e-5)
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
