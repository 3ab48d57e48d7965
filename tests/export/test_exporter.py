"""Exported models on a machine without torch, against the classifiers they were made from."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from tests.export import base_install
from tests.tiny import ARCHITECTURES, PAIRS, SINGLES

import cptuning
from cptuning import CPTuningClassifier
from cptuning.data import Examples, LabelSpace
from cptuning.errors import CPTuningError
from cptuning.export import export_onnx, precisions
from cptuning.export.exporter import _clear_lead
from cptuning.export.tracing import OUTPUTS
from cptuning.inference import EmbeddingPredictor, SecondLook, SupportSet
from cptuning.inference.onnx_encoder import EXACT_FILE, ONNX_FILE

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
INT8_CASES = [("bert", "single"), ("albert", "single"), ("modernbert", "pair")]
# DeBERTa and MPNet compute attention in a way of their own: its parts stay apart.
ONE_OPERATOR = ("bert", "roberta", "albert", "electra", "distilbert", "modernbert")
# ModernBERT's local attention has a bias with a row for each query: they all stay.
ONE_QUERY = ("bert", "roberta", "albert", "electra", "distilbert")
ONE_ROW = tuple(name for name in ARCHITECTURES if name != "deberta-v2")
# Centring leaves a twentieth of tiny ALBERT's vectors, and all that rounding did to them.
ROUNDING = 5e-5


def write_job(place, kind):
    job = {"texts": TEXTS[kind], "more": MORE[kind]}
    (place / "job.json").write_text(json.dumps(job), "utf-8")


@pytest.fixture(scope="module")
def cases(tiny, tmp_path_factory):
    """Each exported model's answers in a process without torch, beside those of its original."""
    root = tmp_path_factory.mktemp("exports")
    originals, places, graphs = {}, {}, {}
    for architecture, kind in CASES:
        place = places[architecture, kind] = root / f"{architecture}-{kind}"
        place.mkdir()
        classifier = CPTuningClassifier(
            backbone=str(tiny(architecture)), steps=2, validation="none", verbose=False
        )
        classifier.fit(TRAINING[kind], LABELS)
        export_onnx(classifier, place / "exported")
        graphs[architecture, kind] = onnx.load(place / "exported" / ONNX_FILE).graph
        if architecture == "bert":
            classifier.save(place / "saved")
        write_job(place, kind)
        originals[architecture, kind] = classifier
    for architecture, kind in INT8_CASES:
        case = architecture, kind, "int8"
        place = places[case] = root / "-".join(case)
        place.mkdir()
        originals[case] = originals[architecture, kind]
        export_onnx(originals[case], place / "exported", int8=True)
        graphs[case] = onnx.load(place / "exported" / ONNX_FILE).graph
        write_job(place, kind)
    command = [sys.executable, base_install.__file__, *map(str, places.values())]
    home = root / "home"
    home.mkdir()
    usual = {name: value for name, value in os.environ.items() if "TELEMETRY" not in name}
    there = usual | {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    run = subprocess.run(command, capture_output=True, text=True, env=there)
    assert run.returncode == 0, run.stderr
    assert not any(home.iterdir()), "ONNX Runtime keeps an identifier there for its reports."
    return {
        case: SimpleNamespace(
            original=originals[case],
            place=place,
            texts=TEXTS[case[1]],
            more=MORE[case[1]],
            graph=graphs[case],
            answers=np.load(place / "answers.npz"),
        )
        for case, place in places.items()
    }


@pytest.fixture(params=CASES, ids="-".join)
def case(request, cases):
    return cases[request.param]


@pytest.fixture(params=INT8_CASES, ids="-".join)
def int8(request, cases):
    return cases[*request.param, "int8"]


@pytest.mark.parametrize("batches", ["embeddings", "alone", "some"])
def test_embeddings_are_the_same_in_batches_of_any_size_and_length(case, batches):
    expected = case.original.transform(case.texts)
    np.testing.assert_allclose(case.answers[batches], expected, atol=ROUNDING)
    assert case.answers[batches].dtype == np.float32


def test_answers_are_the_same(case):
    assert case.answers["labels"].tolist() == case.original.predict(case.texts).tolist()
    probabilities = case.original.predict_proba(case.texts)
    np.testing.assert_allclose(case.answers["probabilities"], probabilities, atol=1e-4)
    nearest = [evidence[0].similarity for evidence in case.original.explain(case.texts, k=1)]
    np.testing.assert_allclose(case.answers["nearest"], nearest, atol=ROUNDING)


def attention_of(case):
    return [node for node in case.graph.node if node.op_type == "MultiHeadAttention"]


@pytest.mark.parametrize("architecture", ONE_OPERATOR)
def test_attention_is_one_operator_a_layer(cases, architecture):
    assert len(attention_of(cases[architecture, "pair"])) == 2


@pytest.mark.parametrize("architecture", ONE_QUERY)
def test_the_last_attention_has_one_query(cases, architecture):
    graph = cases[architecture, "pair"].graph
    first, last = attention_of(cases[architecture, "pair"])
    assert [value in of_one_row(graph) for value in first.input] == [False, False, False]
    assert [value in of_one_row(graph) for value in last.input] == [True, False, False]


@pytest.mark.parametrize("architecture", ONE_QUERY)
def test_attention_reads_products_as_they_are(cases, architecture):
    assert "Transpose" not in {node.op_type for node in cases[architecture, "pair"].graph.node}


def of_one_row(graph):
    """The values that are computed for [OMSK] alone."""
    found = {OUTPUTS}
    for node in graph.node:
        if found & set(node.input):
            found.update(node.output)
    return found


@pytest.mark.parametrize("architecture", ONE_ROW)
def test_feed_forward_and_head_of_the_last_layer_read_one_row(cases, architecture):
    graph = cases[architecture, "pair"].graph
    activations = [node for node in graph.node if node.op_type in ("Erf", "Tanh")]
    of_all_rows = [node for node in activations if node.output[0] not in of_one_row(graph)]
    assert len(of_all_rows) == 1  # the first layer's


def test_int8_answers_are_nearly_the_same(int8):
    # Of texts that are like the labelled examples: it is these that the scales are made for.
    like = [int8.texts.index(text) for text in int8.original.predictor_.support.examples]
    expected = int8.original.transform(int8.texts)[like]
    assert (int8.answers["embeddings"][like] * expected).sum(axis=1).mean() > 0.98
    agree = int8.answers["labels"] == int8.original.predict(int8.texts)
    assert agree[like].mean() >= 0.8
    assert int8.answers["again classes"].tolist() == ["bad", "good", "new"]


@pytest.mark.parametrize("batches", ["alone", "some"])
def test_an_int8_answer_does_not_depend_on_the_other_texts(int8, batches):
    np.testing.assert_allclose(int8.answers[batches], int8.answers["embeddings"], atol=1e-6)


def test_close_calls_in_8_bits_and_no_others_get_the_embeddings_of_torch(int8):
    place = shutil.copytree(int8.place / "again", int8.place / "wary")
    predictor = cptuning.load(place).predictor_
    rounded = predictor.transform(int8.texts)
    leads = np.sort(predictor.scores(rounded), axis=1)
    change_fact(place, "clear_lead", float(np.median(leads[:, -1] - leads[:, -2])))
    predictor = cptuning.load(place).predictor_
    close = predictor.close_calls(rounded, predictor.scores(rounded))
    assert 0 < len(close) < len(int8.texts)
    answered = predictor.answer(int8.texts)
    expected = int8.original.transform(int8.texts)
    np.testing.assert_allclose(answered.embeddings[close], expected[close], atol=1e-3)
    others = np.delete(np.arange(len(int8.texts)), close)
    np.testing.assert_allclose(answered.embeddings[others], rounded[others], atol=1e-6)


def test_examples_that_an_8_bit_model_is_given_are_read_exactly(int8):
    support = cptuning.load(int8.place / "again").predictor_.support
    new = support.embeddings[-len(int8.more) :]
    np.testing.assert_allclose(new, int8.original.transform(int8.more), atol=1e-3)


@pytest.mark.parametrize("settings", [{"steps": 2}, {"steps": 0, "inference": "lda"}])
def test_what_rounding_may_decide_is_what_it_was_seen_to_change(tiny, tmp_path, settings):
    classifier = CPTuningClassifier(
        backbone=str(tiny("bert")), **settings, validation="none", verbose=False
    ).fit(TRAINING["single"], LABELS)
    export_onnx(classifier, tmp_path / "int8", int8=True)
    predictor = cptuning.load(tmp_path / "int8").predictor_
    joined = " ".join(TRAINING["single"])
    changes = []
    for text in [*TRAINING["single"], joined]:
        exact, rounded = (
            scored.scores(scored.transform([text]))[0]
            for scored in (classifier.predictor_, predictor)
        )
        changes.append((exact[1] - exact[0]) - (rounded[1] - rounded[0]))
    usual = np.sqrt(np.mean(np.square(changes)))
    assert predictor.second_look.clear_lead == pytest.approx(2 * usual, rel=1e-3)


def test_the_lead_of_discriminants_catches_nearly_all_answers_that_rounding_changes():
    rng = np.random.default_rng(0)
    labels, means = np.arange(32) % 4, rng.normal(size=(4, 60))

    def unit(rows):
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def texts(labels):
        return unit(0.3 * means[labels] + rng.normal(size=(len(labels), 60)))

    def rounded(rows):
        return unit(rows + rng.normal(0, 0.01, rows.shape))

    support = SupportSet(Examples(("",) * 32), texts(labels), labels)
    space = LabelSpace.from_labels(labels.tolist())
    predictor = EmbeddingPredictor(None, support, space, "lda", k=1, temperature=0.1)
    lead = _clear_lead(predictor, support.embeddings, rounded(support.embeddings))
    predictor = replace(predictor, second_look=SecondLook(None, lead))
    exact = texts(np.arange(2000) % 4)
    found = rounded(exact)
    before, after = predictor.scores(exact), predictor.scores(found)
    changed = np.flatnonzero(before.argmax(axis=1) != after.argmax(axis=1))
    close = predictor.close_calls(found, after)
    assert len(changed) > 20
    assert np.isin(changed, close).mean() > 0.95
    assert len(close) < 0.2 * len(exact)


def test_without_a_second_look_there_is_no_exact_model(int8, tmp_path):
    export_onnx(int8.original, tmp_path / "small", int8=True, second_look=False)
    assert not (tmp_path / "small" / EXACT_FILE).exists()
    predictor = cptuning.load(tmp_path / "small").predictor_
    assert predictor.second_look is None
    rounded = predictor.transform(int8.texts)
    np.testing.assert_allclose(predictor.answer(int8.texts).embeddings, rounded, atol=1e-6)
    assert int8.original.predictor_.second_look is None  # It is the folder that has one.


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda place: (place / EXACT_FILE).unlink(), r"exact\.onnx is not a readable ONNX model"),
        (lambda place: (place / EXACT_FILE).write_bytes(b"x"), r"exact\.onnx is not a readable"),
        (
            lambda place: change_fact(place, "clear_lead", "wide"),
            "clear_lead is 'wide', not a number",
        ),
        (lambda place: change_fact(place, "clear_lead", float("nan")), "it holds NaN"),
    ],
    ids=["missing", "junk", "a word", "not a number"],
)
def test_a_damaged_second_look_is_named(cases, tmp_path, damage, said):
    place = shutil.copytree(cases["bert", "single", "int8"].place / "again", tmp_path / "copy")
    damage(place)
    with pytest.raises(CPTuningError, match=said):
        cptuning.load(place)


def change_fact(place, name, value):
    facts = json.loads((place / "cptuning.json").read_text("utf-8"))
    (place / "cptuning.json").write_text(json.dumps(facts | {name: value}), "utf-8")


def test_a_graph_that_is_wrong_or_fails_is_not_taken(cases, tmp_path, monkeypatch):
    original = cases["bert", "single"].original
    plain = precisions._plain_graph

    def wrong(module):
        module = deepcopy(module)
        module.prompts.data *= -3
        return plain(module)

    def failing(module):
        raise RuntimeError("no such operator")

    monkeypatch.setattr(precisions, "_fused_graph", wrong)
    monkeypatch.setattr(precisions, "_eager_graph", failing)
    export_onnx(original, tmp_path / "plain")
    found = cptuning.load(tmp_path / "plain").transform(TEXTS["single"])
    np.testing.assert_allclose(found, original.transform(TEXTS["single"]), atol=1e-5)

    monkeypatch.setattr(precisions, "_plain_graph", failing)
    with pytest.raises(CPTuningError, match="can't be exported"):
        export_onnx(original, tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_threads_that_predict_at_once_get_the_answers_of_one(cases, precision):
    case = cases["bert", "single", "int8"] if precision == "int8" else cases["bert", "single"]
    model = cptuning.load(case.place / "again")
    expected = [(model.predict([text]), model.predict_proba([text])) for text in case.texts]

    def wrong_answers(start):
        """How many of 200 answers differ; every thread starts at another text."""
        wrong = 0
        for number in range(start, start + 200):
            label, probabilities = expected[number % len(expected)]
            text = [case.texts[number % len(expected)]]
            same = model.predict_proba(text).tobytes() == probabilities.tobytes()
            wrong += not (same and model.predict(text).tolist() == label.tolist())
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(wrong_answers, range(8))) == [0] * 8


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
