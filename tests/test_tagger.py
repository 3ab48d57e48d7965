"""The tagger as an estimator: what is fitted, predicted, explained, added, saved and loaded."""

import json
import logging

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import cptuning
from cptuning import CPTuningTagger
from cptuning.data.tag_schemes import iob2_of, spans_of
from cptuning.errors import CPTuningError

TOKENS = [
    "a table for two in Rome please",
    "fly me to Oslo on Monday",
    "is it cold in Lima on Friday",
    "a train from Paris to Berlin on Sunday",
    "what time is it in Tokyo",
    "the meeting is on Tuesday",
    "hello how are you",
    "book a hotel in Madrid for Thursday",
]
CITIES = {"Rome", "Oslo", "Lima", "Paris", "Berlin", "Tokyo", "Madrid", "Vienna", "Athens"}
DAYS = {"Monday", "Friday", "Sunday", "Tuesday", "Thursday", "Saturday"}
NEW = "a bus from Athens to Vienna on Saturday"


def tags_of(words):
    return ["B-city" if w in CITIES else "B-day" if w in DAYS else "O" for w in words]


def sentences():
    tokens = [text.split() for text in TOKENS]
    return tokens, [tags_of(words) for words in tokens]


@pytest.fixture(scope="module")
def tagger():
    return CPTuningTagger(preset="instant", verbose=False).fit(*sentences())


def test_new_spans_are_found_without_training(tagger):
    assert tagger.classes_.tolist() == ["city", "day"]
    assert tagger.predict([NEW.split(), []]) == [tags_of(NEW.split()), []]
    [found] = tagger.predict_spans([NEW])
    assert [one["label"] for one in found] == ["city", "city", "day"]
    for one in found:
        assert NEW[one["start"] : one["end"]] == one["text"]
        assert 0 <= one["score"] <= 1
    assert tagger.score([NEW.split()], [tags_of(NEW.split())]) == 1.0
    assert 0 <= tagger.held_out_score_ <= 1
    assert tagger.training_["spans"] == {"city": 7, "day": 5}


def test_texts_with_spans_teach_the_same_as_words_with_tags(tagger):
    tokens, tags = sentences()
    spans = []
    for words, own in zip(tokens, tags, strict=True):
        starts = np.cumsum([0, *(len(word) + 1 for word in words)])
        found = spans_of(own)
        spans.append([(int(starts[s.start]), int(starts[s.stop]) - 1, s.label) for s in found])
    again = CPTuningTagger(preset="instant", verbose=False).fit(TOKENS, spans)
    assert again.predict_spans([NEW]) == tagger.predict_spans([NEW])
    bioes = [[tag.replace("B-", "S-") for tag in own] for own in tags]
    third = CPTuningTagger(preset="instant", verbose=False).fit(tokens, bioes)
    assert third.predict_spans([NEW]) == tagger.predict_spans([NEW])


def test_reasons_are_the_nearest_labelled_spans_of_the_type(tagger):
    [found] = tagger.explain([NEW], k=2)
    assert len(found) == 3
    for one in found:
        similar = [reason["similarity"] for reason in one["nearest"]]
        assert len(similar) == 2
        assert similar == sorted(similar, reverse=True)
        for reason in one["nearest"]:
            assert reason["label"] == one["label"]
            assert reason["sentence"] in TOKENS
            assert reason["text"] in reason["sentence"].split()
    with pytest.raises(CPTuningError, match="k is 0"):
        tagger.explain([NEW], k=0)


def test_words_have_unit_vectors(tagger):
    first, empty = tagger.transform([NEW, ""])
    assert first.shape == (len(NEW.split()), 384)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, atol=1e-5)
    assert len(empty) == 0


def test_a_new_type_is_added_without_training(tagger):
    grown = CPTuningTagger(preset="instant", verbose=False).fit(*sentences())
    before = grown.predict_spans([NEW])
    texts = ["I'd like some pizza", "soup for me", "a sandwich and a salad please"]
    spans = [[(14, 19, "dish")], [(0, 4, "dish")], [(2, 10, "dish"), (17, 22, "dish")]]
    grown.add_examples(texts, spans)
    assert grown.classes_.tolist() == ["city", "day", "dish"]
    [found] = grown.predict_spans(["some pasta and a salad please"])
    assert {one["label"] for one in found} == {"dish"}
    assert [one["label"] for one in before[0]] == ["city", "city", "day"]


def test_a_sentence_that_is_given_again_takes_the_place_of_the_old_one(tagger):
    grown = CPTuningTagger(preset="instant", verbose=False).fit(*sentences())
    n = len(grown.predictor_.examples)
    grown.add_examples([TOKENS[0].split()], [["O"] * 3 + ["B-people", "O", "B-city", "O"]])
    assert len(grown.predictor_.examples) == n
    assert grown.classes_.tolist() == ["city", "day", "people"]


def test_a_saved_tagger_gives_the_same_answers(tagger, tmp_path):
    tagger.save(tmp_path / "tagger")
    loaded = cptuning.load(tmp_path / "tagger")
    texts = [*TOKENS, NEW, ""]
    assert loaded.predict_spans(texts) == tagger.predict_spans(texts)
    assert loaded.explain([NEW]) == tagger.explain([NEW])
    assert loaded.get_params() == tagger.get_params() | {"verbose": True}
    assert loaded.training_ == tagger.training_
    assert loaded.settings_ == tagger.settings_
    loaded.save(tmp_path / "again")
    again = cptuning.load(tmp_path / "again")
    assert again.predict_spans(texts) == tagger.predict_spans(texts)
    card = (tmp_path / "tagger" / "README.md").read_text()
    assert "city, day" in card


def test_training_repeats_and_moves_words_of_a_type_together(tiny):
    def fitted():
        tagger = CPTuningTagger(
            tiny("bert"), steps=30, learning_rate=2e-3, validation="none", verbose=False
        )
        return tagger.fit(*sentences())

    first, second = fitted(), fitted()
    np.testing.assert_array_equal(first.predictor_.vectors, second.predictor_.vectors)
    frozen = CPTuningTagger(tiny("bert"), preset="instant", verbose=False).fit(*sentences())

    def gap(tagger):
        """How much nearer words of one type are than words of two."""
        vectors = tagger.predictor_.vectors
        labels = np.array([tag for tags in sentences()[1] for tag in tags])
        similar = vectors @ vectors.T
        inside = (labels[:, None] == labels) & ~np.eye(len(labels), dtype=bool)
        spans = (labels != "O")[:, None] & (labels != "O")
        return similar[inside & spans].mean() - similar[~inside & spans].mean()

    assert gap(first) > gap(frozen) + 0.1
    assert first.training_["kept"] == "trained"


def test_cross_fitting_tells_both_scores_and_keeps_one(tiny):
    tagger = CPTuningTagger(tiny("bert"), steps=2, verbose=False).fit(*sentences())
    facts = tagger.training_
    assert facts["kept"] in ("trained", "instant")
    assert 0 <= facts["instant_f1"] <= 1
    assert 0 <= facts["trained_f1"] <= 1
    assert tagger.held_out_score_ is not None


def test_one_sentence_is_enough(tiny):
    tagger = CPTuningTagger(tiny("bert"), preset="instant", verbose=False)
    tagger.fit([["to", "Rome"]], [["O", "B-city"]])
    assert tagger.held_out_score_ is None
    assert tagger.predict([["to", "Rome"]]) == [["O", "B-city"]]


def test_sentences_without_a_type_or_a_word_in_common_are_fitted(tiny):
    tagger = CPTuningTagger(tiny("bert"), preset="instant", verbose=False)
    tagger.fit([["Rome"], ["May"]], [["B-city"], ["B-month"]])
    assert tagger.classes_.tolist() == ["city", "month"]
    assert 0 <= tagger.held_out_score_ <= 1


def test_any_text_gets_valid_tags(tagger):
    texts = ["", "   ", "\u200b", "🙂 !!", "ROME rome RoMe", "a" * 3000, "Rome " * 300]
    for text, tags in zip(texts, tagger.predict(texts), strict=True):
        assert iob2_of(spans_of(tags), len(tags)) == tags, text[:20]
    for text, spans in zip(texts, tagger.predict_spans(texts), strict=True):
        assert all(text[s["start"] : s["end"]] == s["text"] for s in spans)


def test_it_is_a_scikit_learn_estimator(tagger):
    copy = clone(tagger)
    assert copy.get_params() == tagger.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(["to Rome"])
    assert "Parameters\n----------" in CPTuningTagger.__doc__
    assert "outside_ratio : float or None" in CPTuningTagger.__doc__


@pytest.mark.parametrize(
    ("parameters", "X", "y", "message"),
    [
        ({}, [], [], "There are no sentences"),
        ({}, [["to", "Rome"]], [["O", "O"]], "None of the 1 sentences has a marked span"),
        ({"preset": "paper"}, [["Rome"]], [["B-city"]], "There is no preset 'paper'"),
        ({"inference": "knn"}, [["Rome"]], [["B-city"]], "inference is 'knn': choose one of"),
        ({"validation": "dev"}, [["Rome"]], [["B-city"]], "validation is 'dev'"),
        ({"outside_ratio": -1}, [["Rome"]], [["B-city"]], "outside_ratio is -1"),
        ({"random_state": -1}, [["Rome"]], [["B-city"]], "random_state is -1"),
    ],
)
def test_what_can_not_be_fitted_is_refused_in_a_sentence(parameters, X, y, message):
    with pytest.raises(CPTuningError, match=message):
        CPTuningTagger(verbose=False, **parameters).fit(X, y)


def damaged(folder, change):
    path = folder / "cptuning.json"
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(types=[]), "types is not a list"),
        (lambda s: s.update(types=["city", "city"]), "types is not a list"),
        (lambda s: s["answer"].update(inference="x"), "answer.inference is none of"),
        (lambda s: s["answer"].update(temperature=-1), "answer.temperature is -1"),
        (lambda s: s.pop("answer"), "answer is missing"),
        (lambda s: s.update(types=["city", "hour"]), "spans that can't be"),
        (lambda s: s["settings"].update(margin="x"), "its settings can't be"),
        (lambda s: s["parameters"].update(colour="x"), "colour"),
        (lambda s: s.update(format=99), "newer cptuning"),
    ],
)
def test_a_damaged_folder_is_named_in_a_sentence(tagger, tmp_path, change, message):
    folder = tmp_path / "tagger"
    tagger.save(folder)
    damaged(folder, change)
    with pytest.raises(CPTuningError, match=message) as caught:
        cptuning.load(folder)
    assert str(folder) in str(caught.value)


def test_vectors_that_do_not_fit_are_refused(tagger, tmp_path):
    folder = tmp_path / "tagger"
    tagger.save(folder)
    path = folder / "words.safetensors"
    vectors = load_file(path)["vectors"]
    for wrong in (vectors[:-1], vectors[:, :-1].copy(), vectors * np.nan):
        save_file({"vectors": np.ascontiguousarray(wrong, np.float32)}, path)
        with pytest.raises(CPTuningError, match=r"tagger"):
            cptuning.load(folder)


def test_commands_for_classifiers_name_the_right_command(tagger, tmp_path):
    from cptuning.storage import load_predictor

    tagger.save(tmp_path / "tagger")
    with pytest.raises(CPTuningError, match="is a tagger, which finds spans: use `cptuning tag`"):
        load_predictor(tmp_path / "tagger")


def test_widened_spans_are_told(caplog):
    with caplog.at_level(logging.WARNING, "cptuning"):
        CPTuningTagger(preset="instant", verbose=False).fit(
            ["to Rome5 now", "in Oslo"], [[(3, 7, "city")], [(3, 7, "city")]]
        )
    assert "1 of the spans" in caplog.text
