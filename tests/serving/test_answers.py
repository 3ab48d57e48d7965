"""What several models in one server answer: the same as they do in Python."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from tests.serving.conftest import TEXTS

import cptuning

QUERIES = ["a fine movie", "dull", "", "great " * 99, "<mask> [SEP] 😀\u2028é\x00", *TEXTS]
MODELS = ("films", "trained", "rival", "sentences")


@pytest.fixture(scope="module")
def server(start_session, folders):
    return start_session(folders, "--default", "films")


@pytest.fixture(scope="module")
def loaded(folders):
    return {path.name: cptuning.load(path) for path in folders.iterdir()}


def probabilities(answer):
    return [list(p["probabilities"].values()) for p in answer.json["predictions"]]


@pytest.mark.parametrize("name", MODELS)
def test_labels_and_probabilities_are_those_of_the_model(server, loaded, name):
    answer = server.post(f"/models/{name}/predict", {"texts": QUERIES})
    expected = loaded[name].predict_proba(QUERIES)
    np.testing.assert_allclose(probabilities(answer), expected, atol=1e-5)
    found = answer.json["predictions"]
    assert [p["label"] for p in found] == loaded[name].predict(QUERIES).tolist()
    np.testing.assert_allclose([p["confidence"] for p in found], expected.max(axis=1), atol=1e-5)
    assert list(found[0]["probabilities"]) == loaded[name].classes_.tolist()
    assert found[0]["neighbours"] is None


def test_pairs_and_labels_that_are_numbers(server, loaded):
    pairs = [["is it red?", "it is"], ["is it long?", "no"]]
    answer = server.post("/models/pairs/predict", {"texts": pairs, "explain": 1})
    expected = loaded["pairs"].predict_proba([tuple(pair) for pair in pairs])
    np.testing.assert_allclose(probabilities(answer), expected, atol=1e-5)
    assert {p["label"] for p in answer.json["predictions"]} <= {0, 1}
    neighbour = answer.json["predictions"][0]["neighbours"][0]
    assert len(neighbour["text"]) == 2
    assert neighbour["label"] in (0, 1)


def test_the_default_model_is_asked_without_its_name(server):
    named = server.post("/models/films/predict", {"texts": QUERIES}).json
    assert server.post("/predict", {"texts": QUERIES}).json == named
    assert named["model"] == "films"


def test_one_text_needs_no_list(server):
    assert server.post("/predict", {"texts": QUERIES[0]}).json["predictions"] == server.predict(
        QUERIES[0]
    )


@pytest.mark.parametrize("name", ["films", "trained"])
def test_neighbours_are_the_models_own(server, loaded, name):
    answer = server.post(f"/models/{name}/predict", {"texts": QUERIES[:2], "explain": 2}).json
    for prediction, evidence in zip(
        answer["predictions"], loaded[name].explain(QUERIES[:2], k=2), strict=True
    ):
        found = prediction["neighbours"]
        assert [n["text"] for n in found] == [e.text for e in evidence]
        assert [n["label"] for n in found] == [e.label for e in evidence]
        np.testing.assert_allclose(
            [n["similarity"] for n in found], [e.similarity for e in evidence], atol=1e-5
        )


def test_embeddings_are_the_models_own(server, loaded):
    found = server.post("/embed", {"texts": QUERIES}).json["embeddings"]
    np.testing.assert_allclose(found, loaded["films"].transform(QUERIES), atol=1e-5)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("embed", {"texts": ["a"]}),
        ("predict", {"texts": ["a"], "explain": 1}),
        ("examples", {"texts": ["a"], "labels": ["good"]}),
    ],
)
def test_what_a_method_cannot_do_is_said(server, path, body):
    answer = server.post(f"/models/rival/{path}", body)
    assert answer.status == 409
    assert "fine-tuning" in answer.json["error"]


def test_texts_of_the_wrong_kind_are_refused(server):
    for path, texts in (("/models/pairs/predict", ["a"]), ("/predict", [["a", "b"]])):
        answer = server.post(path, {"texts": texts})
        assert answer.status == 409
        assert "The model expects" in answer.json["error"]


def test_the_models_are_listed(server):
    listed = server.get("/models").json
    assert listed["default"] == "films"
    names = [model["name"] for model in listed["models"]]
    assert names == ["films", "pairs", "rival", "sentences", "trained"]
    assert server.get("/models/pairs").json == {
        "name": "pairs",
        "method": "cp-tuning",
        "classes": [0, 1],
        "pairs": True,
        "label_sets": False,
        "examples": 3,
    }
    assert server.get("/models/rival").json["examples"] is None


@pytest.mark.parametrize(
    "name",
    [
        *(
            "nobody",
            "..",
            "../films",
            "..%2ffilms",
            "%2e%2e%2ffilms",
            "films%00",
            "films%2f..%2fpairs",
        ),
        *("%2Fetc%2Fpasswd", "....//films", "films/", "films%5c", "%ff%fe", "FILMS", ".", "%20"),
        *("C:%5Cfilms", "films;a=b", "%E2%80%AEfilms", "{name}", "a" * 3000),
    ],
)
def test_names_are_looked_up_and_never_made_a_path(server, name):
    for method, path in (("POST", "/predict"), ("POST", "/reload"), ("GET", "")):
        body = {"texts": ["a"]} if path == "/predict" else None
        answer = server.ask(method, f"/models/{name}{path}", body)
        assert answer.status in (404, 405), answer.text
        assert answer.json["error"]


def test_a_texts_answer_does_not_depend_on_who_else_asks(server, loaded):
    expected = dict(zip(QUERIES, loaded["films"].predict_proba(QUERIES), strict=True))

    def ask(seed):
        random = Random(seed)
        texts = random.choices(QUERIES, k=random.randint(1, 5))
        return texts, probabilities(server.post("/predict", {"texts": texts}))

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(80)))
    for texts, found in answers:
        np.testing.assert_allclose(found, [expected[text] for text in texts], atol=1e-5)


def test_the_metrics_tell_what_happened(server):
    before = server.metric('cptuning_requests_total{route="/models/{name}/predict",status="200"}')
    server.post("/models/films/predict", {"texts": ["a", "b"]})
    after = server.metric('cptuning_requests_total{route="/models/{name}/predict",status="200"}')
    assert after == before + 1
    assert server.metric('cptuning_batch_rows_sum{model="films"}') >= 2
    assert server.metric('cptuning_examples{model="films"}') == len(TEXTS)
    assert server.metric('cptuning_queue_rows{model="films"}') == 0
    kind = server.get("/metrics").headers["content-type"]
    assert kind.startswith("text/plain; version=")


def test_label_sets_are_the_models_own(server, loaded, start, tiny, tmp_path):
    from cptuning import CPTuningClassifier

    options = {"steps": 0, "inference": "lda", "centred": False, "verbose": False}
    fitted = CPTuningClassifier(tiny("bert"), **options).fit(TEXTS, ["good"] * 3 + ["bad"] * 3)
    fitted.save(tmp_path / "instant")
    own = start(tmp_path / "instant")
    for coverage in (0.5, 0.9):
        answer = own.post("/predict", {"texts": QUERIES, "coverage": coverage})
        found = [prediction["label_set"] for prediction in answer.json["predictions"]]
        assert found == fitted.predict_set(QUERIES, coverage)
    assert own.post("/predict", {"texts": QUERIES[0]}).json["predictions"][0]["label_set"] is None
    refused = server.post("/predict", {"texts": QUERIES, "coverage": 0.9})
    assert refused.status == 409
    assert "no held-out answers" in refused.json["error"]
    for wrong in (0, 1, "0.9", True):
        assert server.post("/predict", {"texts": "a", "coverage": wrong}).status == 422
