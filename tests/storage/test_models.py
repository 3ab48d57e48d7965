"""A model folder: what is in it, that it answers the same, and what becomes of broken ones."""

import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import transformers
from safetensors.numpy import load_file, save_file
from tests.test_estimator import LABELS, PAIR_LABELS, PAIRS, TEXTS
from tests.tiny import save_tiny

import cptuning
from cptuning import CPTuningClassifier
from cptuning.backbone import load_backbone
from cptuning.data import ADDED_FILE, AddedExamples, Examples, append_added
from cptuning.errors import CPTuningError
from cptuning.storage import FORMAT, check_place, read_facts


@pytest.fixture(scope="module", params=["bert", "roberta", "albert"])
def classifier(request, tmp_path_factory):
    folder = save_tiny(request.param, tmp_path_factory.mktemp("tiny") / request.param)
    return CPTuningClassifier(
        str(folder), steps=2, evaluate_every=1, batch_size=6, learning_rate=1e-3, verbose=False
    ).fit(TEXTS, LABELS)


@pytest.fixture
def model(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_loaded_model_answers_exactly_as_the_saved_one(classifier, model):
    loaded = cptuning.load(model)
    np.testing.assert_array_equal(loaded.transform(TEXTS), classifier.transform(TEXTS))
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), classifier.predict_proba(TEXTS))
    assert loaded.explain(TEXTS) == classifier.explain(TEXTS)
    assert loaded.classes_.tolist() == classifier.classes_.tolist()
    assert loaded.held_out_score_ == classifier.held_out_score_
    for name in ("backbone", "steps", "learning_rate", "random_state"):
        assert getattr(loaded, name) == getattr(classifier, name)


def test_pairs_and_typed_labels_survive(classifier, tmp_path):
    pairs = CPTuningClassifier(classifier.backbone, steps=1, validation="none", verbose=False)
    pairs.fit(PAIRS, PAIR_LABELS).save(tmp_path / "pairs")
    loaded = cptuning.load(tmp_path / "pairs")
    assert loaded.predict(PAIRS).tolist() == pairs.predict(PAIRS).tolist()
    assert loaded.classes_.tolist() == [0, 1]


def test_a_loaded_model_goes_on_learning_examples_and_can_be_saved_over_itself(model):
    loaded = cptuning.load(model).add_examples(["the red train"], ["travel"])
    loaded.save(model)
    again = cptuning.load(model)
    assert again.classes_.tolist() == ["bad", "good", "travel"]
    assert again.predict(["the red train"]).tolist() == ["travel"]
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_an_approximate_index_is_there_again_and_knows_what_was_added(classifier, tmp_path):
    indexed = CPTuningClassifier(
        classifier.backbone, index="approximate", steps=1, validation="none", verbose=False
    ).fit(TEXTS, LABELS)
    indexed.add_examples(["the red train"], ["travel"]).save(tmp_path / "indexed")
    loaded = cptuning.load(tmp_path / "indexed")
    assert len(loaded.predictor_.support.index) == len(TEXTS) + 1
    assert loaded.explain(TEXTS) == indexed.explain(TEXTS)
    assert loaded.explain(["the red train"], k=1)[0][0].label == "travel"
    assert len(loaded.predictor_.without_examples([0]).support.index) == len(TEXTS)


def test_a_model_that_was_saved_before_there_were_indexes_is_read(model):
    facts = json.loads((model / "cptuning.json").read_text())
    del facts["settings"]["index"]
    (model / "cptuning.json").write_text(json.dumps(facts))
    assert cptuning.load(model).settings_.index == "exact"


def test_the_folder_holds_only_open_formats_and_a_card(model):
    files = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()}
    assert {
        "cptuning.json",
        "tokenizer.json",
        "support.safetensors",
        "support.jsonl",
        "prompts.safetensors",
        "backbone/model.safetensors",
        "README.md",
    } <= files
    assert {name.rsplit(".", 1)[-1] for name in files} <= {
        "json",
        "jsonl",
        "safetensors",
        "md",
        "txt",
    }
    card = (model / "README.md").read_text()
    for piece in ("good: 6", "bad: 6", "Accuracy on held-out examples", "torch", "learning_rate"):
        assert piece in card


def test_the_card_names_a_folder_but_not_where_it_was(classifier, model):
    folder = Path(classifier.backbone)
    card = (model / "README.md").read_text()
    assert f"| Backbone | {folder.name} |" in card
    assert str(folder.parent) not in card


def test_the_card_names_the_id_and_the_commit_of_a_backbone_from_the_hub(classifier, tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    backbone = replace(load_backbone(classifier.backbone), name="org/model", revision=commit)
    CPTuningClassifier(backbone, steps=1, validation="none", verbose=False).fit(TEXTS, LABELS).save(
        tmp_path / "first"
    )
    # So does a model that was trained further from there.
    CPTuningClassifier(steps=1, validation="none", verbose=False).fit(
        TEXTS, LABELS, init_from=tmp_path / "first"
    ).save(tmp_path / "second")
    for name in ("first", "second"):
        card = (tmp_path / name / "README.md").read_text()
        assert f"| Backbone | org/model, revision {commit} |" in card
        assert str(tmp_path) not in card


@pytest.mark.parametrize("backbone", ["org/model", {}, {"name": 3}, {"name": "a", "revision": 1}])
def test_a_backbone_that_cannot_be_is_refused(model, backbone):
    facts = json.loads((model / "cptuning.json").read_text())
    facts["training"]["backbone"] = backbone
    (model / "cptuning.json").write_text(json.dumps(facts))
    with pytest.raises(CPTuningError, match=r"training\.backbone"):
        cptuning.load(model)


def test_a_model_that_was_saved_before_backbones_were_noted_is_read(classifier, model):
    facts = json.loads((model / "cptuning.json").read_text())
    del facts["training"]["backbone"]
    (model / "cptuning.json").write_text(json.dumps(facts))
    assert read_facts(model).backbone == classifier.backbone


def test_whoever_may_read_other_new_files_may_read_a_model(classifier, tmp_path):
    """It is often served by another user than the one who trained it."""
    before = os.umask(0o027)
    try:
        classifier.save(tmp_path / "shared")
    finally:
        os.umask(before)
    for path in [tmp_path / "shared", *(tmp_path / "shared").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o750 if path.is_dir() else 0o640), path


def test_facts_are_strict_json(model):
    def refuse(constant):
        raise AssertionError(constant)

    json.loads((model / "cptuning.json").read_text(), parse_constant=refuse)


def _facts(model):
    return json.loads((model / "cptuning.json").read_text())


def _change_facts(model, **changes):
    (model / "cptuning.json").write_text(json.dumps(_facts(model) | changes))


def _change_tensors(path, change):
    tensors = {name: np.ascontiguousarray(change(name, t)) for name, t in load_file(path).items()}
    save_file({n: t.astype(load_file(path)[n].dtype) for n, t in tensors.items()}, path)


@pytest.mark.parametrize("name", ["training", "settings", "versions"])
def test_missing_facts_are_named(model, name):
    facts = _facts(model)
    del facts[name]
    (model / "cptuning.json").write_text(json.dumps(facts))
    with pytest.raises(CPTuningError, match=name):
        read_facts(model)


@pytest.mark.parametrize(
    "random_state", [np.int64(3), np.random.RandomState(1), np.random.default_rng(1)]
)
def test_parameters_of_numpys_types_are_saved(classifier, tmp_path, random_state):
    numpys = CPTuningClassifier(
        classifier.backbone,
        steps=np.int64(1),
        k=np.int32(2),
        margin=np.float32(0.25),
        random_state=random_state,
        validation="none",
        verbose=False,
    ).fit(TEXTS, LABELS)
    numpys.save(tmp_path / "model")
    loaded = cptuning.load(tmp_path / "model")
    assert (loaded.k, loaded.margin, loaded.settings_.steps) == (2, 0.25, 1)
    assert loaded.training_["seed"] == numpys.training_["seed"]
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), numpys.predict_proba(TEXTS))


def test_a_newer_format_is_named(model):
    facts = json.loads((model / "cptuning.json").read_text())
    (model / "cptuning.json").write_text(json.dumps(facts | {"format": FORMAT + 1}))
    with pytest.raises(CPTuningError, match="newer cptuning"):
        cptuning.load(model)


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: (m / "cptuning.json").write_text("{"),
        lambda m: (m / "cptuning.json").write_text("[]"),
        lambda m: (m / "support.safetensors").write_bytes(b"junk"),
        lambda m: (m / "support.jsonl").write_text(""),
        lambda m: (m / "support.jsonl").unlink(),
        lambda m: (m / "tokenizer.json").write_text("{}"),
        lambda m: (m / "prompts.safetensors").unlink(),
        lambda m: (m / "backbone" / "model.safetensors").write_bytes(b"junk"),
        lambda m: shutil.rmtree(m / "backbone"),
        lambda m: _change_tensors(
            m / "prompts.safetensors", lambda n, t: t[:, :3] if n == "prompts" else t
        ),
        lambda m: _change_tensors(m / "prompts.safetensors", lambda _, t: t[:1]),
        lambda m: _change_tensors(
            m / "support.safetensors", lambda n, t: t + 9 if n == "labels" else t
        ),
        lambda m: _change_tensors(
            m / "support.safetensors", lambda n, t: t * np.nan if n == "embeddings" else t
        ),
        lambda m: _change_facts(m, temperature=0),
        lambda m: _change_facts(m, temperature="warm"),
        lambda m: _change_facts(m, unknown_threshold="far"),
        lambda m: _change_facts(m, classes=_facts(m)["classes"][:1]),
    ],
)
def test_a_damaged_folder_gets_one_sentence_that_names_it(model, damage):
    damage(model)
    with pytest.raises(CPTuningError) as caught:
        cptuning.load(model)
    assert str(model) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_of_something_else_is_no_model_and_is_never_overwritten(classifier, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.txt").write_text("meow")
    with pytest.raises(CPTuningError, match="does not hold a CP-Tuning model"):
        cptuning.load(tmp_path / "photos")
    with pytest.raises(CPTuningError, match="choose another place"):
        classifier.save(tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.txt").read_text() == "meow"


def test_a_failed_save_leaves_the_old_model_and_nothing_else(classifier, model, monkeypatch):
    before = (model / "cptuning.json").read_text()

    def full_disk(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cptuning.storage.predictors.card", full_disk)
    with pytest.raises(CPTuningError, match="No space left on device"):
        classifier.save(model)
    assert (model / "cptuning.json").read_text() == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("damage", ["a byte", "the head"])
def test_a_save_that_wrote_something_else_is_noticed(classifier, model, monkeypatch, damage):
    backbone = classifier.predictor_.encoder.module.model
    kind, before = type(backbone), (model / "backbone" / "model.safetensors").read_bytes()

    def write(self, folder):
        save = transformers.PreTrainedModel.save_pretrained
        save(self.base_model if damage == "the head" else self, folder)
        if damage == "a byte":
            content = bytearray((folder / "model.safetensors").read_bytes())
            content[-1] ^= 1
            (folder / "model.safetensors").write_bytes(content)

    monkeypatch.setattr(kind, "save_pretrained", write)
    with pytest.raises(CPTuningError, match="does not hold what was written to it"):
        classifier.save(model)
    assert (model / "backbone" / "model.safetensors").read_bytes() == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_a_predictor_is_loaded_without_estimators(model):
    code = (
        "import sys; from cptuning.storage import load_predictor; "
        f"print(load_predictor({str(model)!r}).predict(['a great film']).tolist()); "
        "assert 'cptuning.estimator' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{cptuning.load(model).predict(['a great film']).tolist()}\n"


def test_a_foreign_save_place_that_cannot_be_made(classifier, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CPTuningError, match="can't be written"):
        classifier.save(tmp_path / "file" / "model")


def test_a_place_is_checked_without_leaving_anything_there(tmp_path, model):
    check_place(tmp_path / "new")
    check_place(model)
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path, tmp_path / "file" / "model"):
        with pytest.raises(CPTuningError, match=r"exists and is not|can't be written"):
            check_place(place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "model"]


def test_what_was_added_to_the_folder_is_known_and_is_saved_with_the_rest(model):
    taught = cptuning.load(model).add_examples(["the red train", "so so"], ["travel", "fair"])
    append_added(model, AddedExamples(Examples(("the red train", "so so")), ["travel", "fair"]))
    loaded = cptuning.load(model)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), taught.predict_proba(TEXTS))
    assert loaded.classes_.tolist() == ["bad", "good", "fair", "travel"]
    loaded.save(model)
    assert not (model / ADDED_FILE).exists()
    again = cptuning.load(model)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), taught.predict_proba(TEXTS))


def test_damage_in_what_was_added_is_named(model):
    (model / ADDED_FILE).write_text("junk\n")
    with pytest.raises(CPTuningError, match=r"added\.jsonl, line 1 is damaged"):
        cptuning.load(model)
