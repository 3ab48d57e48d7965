"""CPTuningRanker as its user meets it: what it takes, what it refuses, its folder."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import cptuning
from cptuning import CPTuningRanker
from cptuning.errors import CPTuningError
from cptuning.inference.ranked_documents import PairView, TunedView, with_tuned

DOCUMENTS = {
    "tea": "how to brew green tea",
    "tyre": "change a flat tyre on your car",
    "cat": "what to feed a young cat",
    "dog": "train a puppy to sit",
    "sun": "protect your skin from sunburn",
    "tax": "pay your income tax on time",
}
QUERIES = {"a": "a hot drink", "b": "wheel puncture", "c": "kitten food", "d": "tax payment"}
RELEVANCE = {"a": {"tea": 1}, "b": {"tyre": 2, "dog": 0}, "c": ["cat"], "d": {"tax": 1}}


@pytest.fixture(scope="module")
def fitted():
    return CPTuningRanker(verbose=False, steps=3).fit(QUERIES, DOCUMENTS, RELEVANCE)


def ids(found):
    return [one.document for one in found]


def test_with_nothing_judged_it_ranks_by_the_sentence_view():
    ranker = CPTuningRanker().fit([], DOCUMENTS, {})
    assert ids(ranker.rank("my car has a flat tyre", top_k=1)) == ["tyre"]
    found = ranker.rank(["green tea", "income tax"], top_k=2)
    assert [ids(one)[0] for one in found] == ["tea", "tax"]
    assert [len(one) for one in found] == [2, 2]
    assert ranker.training_["kept"] == []
    assert ranker.held_out_score_ is None


def test_without_a_fit_it_ranks_the_documents_that_it_is_given():
    ranker = CPTuningRanker()
    [best] = ranker.rank("food for a kitten", list(DOCUMENTS.values()), top_k=1)
    assert (best.document, best.text) == (2, DOCUMENTS["cat"])
    assert ids(ranker.rank("food for a kitten", pd.Series(DOCUMENTS).to_dict(), 1)) == ["cat"]
    with pytest.raises(NotFittedError):
        ranker.rank("food for a kitten")


def test_a_fitted_one_also_ranks_other_documents(fitted):
    other = ["a cold bed", "warm milk for a cat"]
    assert ids(fitted.rank("kitten food", other, top_k=2)) == [1, 0]
    assert ids(fitted.rank("kitten food", top_k=1)) == ["cat"]


def test_judgements_may_be_triples_and_places():
    by_place = CPTuningRanker(verbose=False, steps=3).fit(
        list(QUERIES.values()),
        list(DOCUMENTS.values()),
        [(0, 0, 1), (1, 1, 2), (1, 3, 0), (2, 2, 1), (3, 5, 1)],
    )
    by_name = CPTuningRanker(verbose=False, steps=3).fit(QUERIES, DOCUMENTS, RELEVANCE)
    assert by_place.training_["held_out_ndcg"] == by_name.training_["held_out_ndcg"]
    assert by_place.training_["examples"] == {"documents": 6, "judgements": 5}


def test_what_is_saved_ranks_alike(fitted, tmp_path):
    rng = np.random.default_rng(0)
    tuned = TunedView(rng.normal(size=(384, 384)).astype(np.float32), weight=0.5)
    predictor = with_tuned(fitted.predictor_, tuned)
    ranker = clone(fitted)
    vars(ranker).update(vars(fitted))
    from dataclasses import replace

    ranker.predictor_ = replace(predictor, pair=PairView(rng.normal(size=385), 0.3), rerank=100)
    ranker.save(tmp_path / "model")
    again = cptuning.load(tmp_path / "model")
    assert again.rank("kitten food", top_k=6) == ranker.rank("kitten food", top_k=6)
    assert again.rank("kitten food", top_k=6) != fitted.rank("kitten food", top_k=6)
    assert again.get_params()["steps"] == 3
    assert again.held_out_score_ == fitted.held_out_score_
    card = (tmp_path / "model" / "README.md").read_text()
    assert "A ranker of documents" in card
    assert "| Documents | 6 |" in card


def test_a_damaged_folder_is_refused_in_one_sentence(fitted, tmp_path):
    from safetensors.numpy import save_file

    fitted.save(tmp_path / "model")
    for tensors in (
        {"tuned": np.zeros((3, 3), np.float32)},
        {"pair": np.zeros(7)},
        {"tuned": np.full((384, 384), np.nan, np.float32)},
    ):
        save_file(tensors, tmp_path / "model" / "ranking.safetensors")
        with pytest.raises(CPTuningError, match=r"ranking\.safetensors"):
            cptuning.load(tmp_path / "model")


def test_documents_are_added_without_training(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    ranker = cptuning.load(tmp_path / "model")
    ranker.add_documents({"ski": "where to rent skis"})
    assert ids(ranker.rank("renting skis", top_k=1)) == ["ski"]
    with pytest.raises(CPTuningError, match="There is a document 'ski' already"):
        ranker.add_documents({"ski": "again"})
    by_place = CPTuningRanker().fit([], ["green tea"], {}).add_documents(["income tax"])
    assert ids(by_place.rank("tax", top_k=1)) == [1]


def test_an_exported_one_ranks_alike(fitted, tmp_path):
    fitted.export(tmp_path / "exported")
    exported = cptuning.load(tmp_path / "exported")
    for one, two in zip(exported.rank("kitten food"), fitted.rank("kitten food"), strict=True):
        assert one.document == two.document
        assert one.score == pytest.approx(two.score, abs=1e-4)
    with pytest.raises(CPTuningError, match="can't be rounded to 8 bits"):
        fitted.export(tmp_path / "rounded", int8=True)


@pytest.mark.parametrize("architecture", ["bert", "sentence"])
def test_it_reads_documents_with_any_backbone(tiny, headless, architecture, tmp_path):
    folder = tiny("bert") if architecture == "bert" else headless
    ranker = CPTuningRanker(str(folder), verbose=False, steps=2)
    ranker.fit(QUERIES, DOCUMENTS, RELEVANCE).save(tmp_path / "model")
    found = ranker.rank("is it red?", top_k=6)
    assert {one.document for one in found} == set(DOCUMENTS)
    again = cptuning.load(tmp_path / "model").rank("is it red?", top_k=6)
    assert ids(again) == ids(found)


WRONG = [
    (({}, {}, {}), "There are no documents"),
    (({}, "a text", {}), "The documents are a single text"),
    (("a query", DOCUMENTS, {}), "The queries are a single text"),
    (({}, {1.5: "x"}, {}), "The id 1.5 among the documents is of type float"),
    (({}, [("a", "b")], {}), "The documents are pairs of texts"),
    ((QUERIES, DOCUMENTS, {"x": {"tea": 1}}), "The judged query 'x' is not among the queries"),
    ((QUERIES, DOCUMENTS, {"a": {"x": 1}}), "The document 'x', judged for the query 'a'"),
    ((QUERIES, DOCUMENTS, {"a": {"tea": "yes"}}), "is 'yes': give a number"),
    ((QUERIES, DOCUMENTS, {"a": {"tea": float("nan")}}), "is nan: give a number"),
    ((QUERIES, DOCUMENTS, {"a": 3}), "The judgements of the query 'a' are of type int"),
    ((QUERIES, DOCUMENTS, [("a", "tea")]), r"row 1 is \('a', 'tea'\): give \(query, document"),
    ((QUERIES, DOCUMENTS, [("a", "tea", 1), ("a", "tea", 2)]), "has two grades"),
    ((QUERIES, DOCUMENTS, 7), "relevance is of type int"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG, ids=[s[:40] for _, s in WRONG])
def test_what_it_cannot_use_is_refused_in_one_sentence(given, sentence):
    with pytest.raises(CPTuningError, match=sentence):
        CPTuningRanker(verbose=False).fit(*given)


@pytest.mark.parametrize(
    ("name", "value"),
    [("negatives", 0), ("tuned_weight", 0), ("rerank", 0), ("folds", 1), ("pooling", "mask")],
)
def test_settings_that_cannot_work_are_refused(name, value):
    with pytest.raises(CPTuningError, match=f"{name} is"):
        CPTuningRanker(**{name: value}).fit([], DOCUMENTS, {})


def test_the_instant_preset_needs_no_torch(tmp_path):
    code = (
        "import sys, json\n"
        "from tests.export.base_install import ABSENT, Absent\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import cptuning\n"
        "documents, queries, relevance = json.load(open(sys.argv[1]))\n"
        "ranker = cptuning.CPTuningRanker(preset='instant').fit(queries, documents, relevance)\n"
        "ranker.save(sys.argv[2])\n"
        "print(cptuning.load(sys.argv[2]).rank('kitten food', top_k=1)[0].document)\n"
        "try:\n"
        "    cptuning.CPTuningRanker().fit(queries, documents, relevance)\n"
        "except cptuning.errors.CPTuningError as error:\n"
        "    print(error)\n"
    )
    (tmp_path / "task.json").write_text(json.dumps([DOCUMENTS, QUERIES, RELEVANCE]))
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "task.json", tmp_path / "model"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
    best, refusal = done.stdout.splitlines()
    assert best == "cat"
    assert 'pip install "cptuning[train]"' in refusal
    assert "instant" in refusal
