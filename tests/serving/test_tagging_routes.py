"""/tag: what a server's taggers find, and what is refused."""

import pytest
from tests.test_tagger import NEW, sentences


@pytest.fixture(scope="module")
def taggers(tmp_path_factory):
    """An exported tagger, the same under another name, and a classifier in one folder."""
    import shutil

    from cptuning import CPTuningClassifier, CPTuningTagger

    root = tmp_path_factory.mktemp("served")
    tagger = CPTuningTagger(preset="instant", depth=0.1, verbose=False).fit(*sentences())
    tagger.export(root / "trips")
    shutil.copytree(root / "trips", root / "more")
    films = CPTuningClassifier(preset="instant", verbose=False)
    films.fit(["a great film", "i loved it", "a dull film", "so boring"], [1, 1, 0, 0])
    films.save(root / "films")
    return root, tagger


@pytest.fixture(scope="module")
def server(start_session, taggers):
    return start_session(taggers[0] / "trips", "--max-texts", 3, "--max-characters", 200)


def test_spans_are_those_of_the_tagger(server, taggers):
    answer = server.post("/tag", {"texts": [NEW, "hello"], "explain": 2})
    assert answer.status == 200, answer.text
    assert answer.json["model"] == "trips"
    [expected, nothing] = taggers[1].explain([NEW, "hello"], k=2)
    found = answer.json["spans"][0]
    assert [(s["text"], s["label"], s["start"], s["end"]) for s in found] == [
        (s["text"], s["label"], s["start"], s["end"]) for s in expected
    ]
    for one, other in zip(found, expected, strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-3)
        assert [n["text"] for n in one["neighbours"]] == [n["text"] for n in other["nearest"]]
    assert len(answer.json["spans"][1]) == len(nothing)
    alone = server.post("/tag", {"texts": NEW}).json
    assert [s["text"] for s in alone["spans"][0]] == [s["text"] for s in found]
    assert alone["spans"][0][0]["neighbours"] is None


def test_the_list_of_models_has_it(server):
    listed = server.get("/models").json
    assert listed["models"] == []
    [tagger] = listed["taggers"]
    assert (tagger["name"], tagger["types"]) == ("trips", ["city", "day"])
    assert tagger["sentences"] == len(sentences()[0])


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "texts: field required"),
        ({"texts": []}, 422, "at least 1 item"),
        ({"texts": [3]}, 422, "valid string"),
        ({"texts": ["a"] * 4}, 422, "send at most 3 at once"),
        ({"texts": ["a" * 201]}, 422, "has 201 characters"),
        ({"texts": "a", "explain": -1}, 422, "greater than or equal to 0"),
        ({"texts": "a", "more": 1}, 422, "more"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(server, body, status, words):
    answer = server.post("/tag", body)
    assert answer.status == status
    assert words in answer.json["error"]


def test_a_server_of_a_tagger_alone_has_no_predict(server):
    assert server.post("/predict", {"texts": ["a"]}).status == 404
    assert server.get("/ready").status == 200


def test_taggers_and_classifiers_are_served_side_by_side(start_session, taggers):
    both = start_session(taggers[0])
    assert both.post("/predict", {"texts": ["a great movie"]}).status == 200
    assert both.post("/models/more/tag", {"texts": [NEW]}).json["model"] == "more"
    assert "several taggers" in both.post("/tag", {"texts": [NEW]}).json["error"]
    assert both.post("/models/films/tag", {"texts": [NEW]}).status == 404
    assert both.post("/models/more/predict", {"texts": [NEW]}).status == 404
