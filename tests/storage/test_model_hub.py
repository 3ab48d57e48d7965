"""Models on the hub: pushed, fetched, pinned, without texts; the hub is a stand-in."""

import json
import pickle
import re
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
from huggingface_hub import ModelCard, constants
from tests.cli.conftest import BAD, GOOD, PAIRS, run  # noqa: F401 (a fixture)
from tests.hub_server import HubServer, served
from tests.methods.toys import rival, toy

import cptuning
from cptuning import CPTuningClassifier, make_classifier
from cptuning.errors import CPTuningError
from cptuning.inference.onnx_encoder import ONNX_FILE

TEXTS = [*GOOD, *BAD]
LABELS = ["good"] * 4 + ["bad"] * 4
NEW = ["what a dull film", "i loved the acting"]
FIRST, SECOND = "1" * 40, "2" * 40


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """An empty cache of the hub, nobody logged in, and an empty working directory."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = HubServer(tmp_path / "uploads")
    with served(hub, monkeypatch):
        yield hub


@pytest.fixture
def owner(monkeypatch, hub):
    """Logged in."""
    monkeypatch.setenv("HF_TOKEN", hub.token)
    return hub


def instant(tiny):
    """On a tiny random backbone: it knows nothing, but quickly."""
    return CPTuningClassifier(backbone=tiny("bert"), preset="instant", verbose=False)


@pytest.fixture(scope="module")
def fitted(tiny):
    return instant(tiny).fit(TEXTS, LABELS)


@pytest.fixture
def model(fitted, tmp_path):
    folder = tmp_path / "model"
    fitted.save_pretrained(folder)
    return folder


def go_offline(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("the network was asked"))


# There and back.


def test_a_model_that_was_pushed_answers_the_same_wherever_it_is_loaded(owner, fitted):
    address = fitted.push_to_hub("org/films", commit_message="The first films")
    assert re.fullmatch(r"http://.*/org/films/commit/[0-9a-f]{40}", address)
    assert owner.messages == ["The first films"]
    assert owner.repositories["org/films"].private
    for loaded in (
        cptuning.load("org/films"),
        CPTuningClassifier.from_pretrained("org/films"),
        cptuning.load("org/films", revision=address[-40:]),
        cptuning.load(f"org/films@{address[-40:]}"),
    ):
        np.testing.assert_allclose(loaded.predict_proba(NEW), fitted.predict_proba(NEW))
        assert loaded.explain(NEW)[0][0].text == fitted.explain(NEW)[0][0].text
        assert loaded.get_params()["preset"] == "instant"
        assert loaded.held_out_score_ == fitted.held_out_score_
    assert set(owner.asked) <= {
        path.relative_to(owner.folder("org/films")).as_posix()
        for path in owner.folder("org/films").rglob("*")
    }


def test_pushing_again_replaces_the_model_and_nothing_else(owner, fitted, tiny):
    fitted.push_to_hub("org/films", private=False)
    assert not owner.repositories["org/films"].private
    kept, gone = ("picture.png", "model.onnx")
    for name in (kept, gone):
        (owner.folder("org/films") / name).write_text("of somebody")
    before = cptuning.load("org/films")
    more = instant(tiny).fit([*TEXTS, "no idea"], [*LABELS, "other"])
    more.push_to_hub("org/films")
    folder = owner.folder("org/films")
    assert (folder / kept).is_file()
    assert not (folder / gone).exists()
    assert cptuning.load("org/films").classes_.tolist() == ["bad", "good", "other"]
    assert before.classes_.tolist() == ["bad", "good"]


def test_a_branch_of_its_own(owner, fitted, tiny):
    fitted.push_to_hub("org/films")
    more = instant(tiny).fit([*TEXTS, "no idea"], [*LABELS, "other"])
    more.push_to_hub("org/films", revision="wider")
    assert len(cptuning.load("org/films").classes_) == 2
    assert len(cptuning.load("org/films", revision="wider").classes_) == 3


def test_a_revision_pins_the_model_of_that_time(hub, tiny, model, tmp_path):
    other = tmp_path / "other"
    instant(tiny).fit(TEXTS, [f"very {x}" for x in LABELS]).save(other)
    hub.add("org/films", model, FIRST, ref="v1")
    hub.add("org/films", other, SECOND)
    assert cptuning.load("org/films").classes_.tolist() == ["very bad", "very good"]
    for revision in ("v1", FIRST):
        assert cptuning.load("org/films", revision=revision).classes_.tolist() == ["bad", "good"]
    with pytest.raises(CPTuningError, match=r"org/films at v7 could not .* has no such revision"):
        cptuning.load("org/films", revision="v7")


@pytest.mark.parametrize("method", ["warp", "fine-tuning"])
def test_models_of_other_methods(owner, tiny, tmp_path, method):
    rival = make_classifier(method, backbone=tiny("bert"), epochs=1, validation="none")
    rival.set_params(verbose=False).fit(TEXTS, LABELS).push_to_hub("org/rival")
    loaded = cptuning.load("org/rival")
    assert loaded.method == method
    np.testing.assert_array_equal(loaded.predict(NEW), rival.predict(NEW))
    with pytest.raises(CPTuningError, match=f"org/rival is of the method {method}, not cp-tuning"):
        CPTuningClassifier.from_pretrained("org/rival")
    assert str(tmp_path) not in whole_text(owner.folder("org/rival"))


def test_exported_models(owner, fitted, tmp_path):
    fitted.export(tmp_path / "onnx")
    cptuning.load(tmp_path / "onnx").push_to_hub("org/onnx")
    assert (owner.folder("org/onnx") / ONNX_FILE).is_file()
    found = cptuning.load("org/onnx").predict_proba(NEW)
    np.testing.assert_allclose(found, fitted.predict_proba(NEW), atol=1e-3)


# What a folder that is shared holds.


def whole_text(folder):
    return "\n".join(
        path.read_text("utf-8", "replace")
        for path in folder.rglob("*")
        if path.suffix in (".json", ".jsonl", ".md")
    )


def test_a_folder_for_the_hub_holds_no_path_of_this_machine(tiny, tmp_path):
    classifier = CPTuningClassifier(
        backbone=tiny("bert"), preset="instant", checkpoint_dir=tmp_path / "state"
    )
    classifier.fit(TEXTS, LABELS).save_pretrained(tmp_path / "model")
    told = whole_text(tmp_path / "model")
    assert str(tmp_path) not in told
    assert str(tiny("bert")) not in told
    assert cptuning.load(tmp_path / "model").backbone == tiny("bert").name
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config == {"library_name": "cptuning", "format": 2, "method": "cp-tuning"}


def test_the_card_has_the_metadata_of_the_hub(tmp_path):
    fitted = CPTuningClassifier(preset="instant").fit(TEXTS, LABELS)
    fitted.save_pretrained(tmp_path / "model")
    loaded = ModelCard.load(tmp_path / "model" / "README.md")
    data = loaded.data.to_dict()
    assert data["library_name"] == "cptuning"
    assert data["language"] == "en"
    assert data["license"] == "other"
    assert data["license_link"].endswith("embedded/README.md")
    assert data["metrics"] == ["accuracy"]
    assert data["pipeline_tag"] == "text-classification"
    assert {"cptuning", "cp-tuning", "few-shot"} <= set(data["tags"])
    assert data["widget"] == [{"text": BAD[0]}, {"text": GOOD[0]}]
    [result] = loaded.data.eval_results
    assert result.metric_type == "accuracy"
    assert result.metric_value == pytest.approx(fitted.held_out_score_, abs=1e-6)
    assert "leave-one-out" in result.dataset_name
    assert "**Warning: this folder holds the training texts themselves**" in loaded.text


def test_the_owner_says_what_the_model_cannot_know(fitted, tmp_path):
    fitted.save_pretrained(
        tmp_path / "model",
        language=["en", "de"],
        license="mit",
        widget=['"quoted": \u2028 #new 😀'],
        hub_id="org/films",
    )
    card = ModelCard.load(tmp_path / "model" / "README.md")
    assert card.data.language == ["en", "de"]
    assert card.data.license == "mit"
    assert "license_link" not in card.data.to_dict()
    assert card.data.to_dict()["widget"] == [{"text": '"quoted": \u2028 #new 😀'}]
    assert card.data.model_name == "org/films"
    assert 'cptuning.load("org/films")' in card.text


# Without the training texts.


def test_without_texts_only_the_texts_are_missing(fitted, tmp_path):
    folder = tmp_path / "model"
    fitted.save_pretrained(folder, include_texts=False)
    told = whole_text(folder)
    assert not [text for text in TEXTS if text in told]
    assert "left out of this folder" in told
    assert "Warning" not in told
    loaded = cptuning.load(folder)
    np.testing.assert_allclose(loaded.predict_proba(NEW), fitted.predict_proba(NEW))
    np.testing.assert_allclose(loaded.transform(NEW), fitted.transform(NEW), atol=1e-6)
    [reasons], [known] = loaded.explain(NEW[:1]), fitted.explain(NEW[:1])
    assert [r.text for r in reasons] == ["(text left out)"] * 3
    assert [(r.label, repr(r.similarity)[:6]) for r in reasons] == [
        (r.label, repr(r.similarity)[:6]) for r in known
    ]
    assert "(text left out)" in repr(loaded.explain(NEW[:1]))


def test_a_model_without_texts_takes_examples_and_is_saved_and_exported(fitted, tmp_path):
    folder, again, onnx = (tmp_path / name for name in ("model", "again", "onnx"))
    fitted.save_pretrained(folder, include_texts=False)
    loaded = cptuning.load(folder).add_examples(["where is my parcel?"], ["delivery"])
    loaded.save(again)
    lines = (again / "support.jsonl").read_text("utf-8").splitlines()
    assert lines == ["null"] * 8 + ['"where is my parcel?"']
    back = cptuning.load(again)
    assert back.predict(["where is my parcel?"]).tolist() == ["delivery"]
    # int8 needs texts to find its ranges by: it takes others.
    cptuning.load(folder).export(onnx, int8=True)
    assert cptuning.load(onnx).predict(NEW).tolist() == fitted.predict(NEW).tolist()


def test_pairs_without_texts(tiny, tmp_path):
    texts, labels = [pair[:2] for pair in PAIRS], [pair[2] for pair in PAIRS]
    classifier = instant(tiny).fit(texts, labels)
    classifier.save_pretrained(tmp_path / "model", include_texts=False)
    loaded = cptuning.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(texts), classifier.predict_proba(texts))
    assert loaded.explain(texts)[0][0].text == ("(text left out)", "(text left out)")


def test_label_sets_without_texts(tiny, tmp_path):
    sets = [["good", "film"], ["good"], ["good"], ["good"], ["bad"], ["bad"], ["bad", "film"], []]
    classifier = instant(tiny).fit(TEXTS, sets)
    classifier.save_pretrained(tmp_path / "model", include_texts=False)
    loaded = cptuning.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(NEW), classifier.predict_proba(NEW))


def test_a_model_that_reads_training_texts_along_cannot_do_without_them(tiny, tmp_path):
    texts, labels = toy(2, pair=False)
    demonstrating = rival("lm-bff-l", tiny("bert"), demonstrations=2, epochs=1)
    demonstrating.fit(texts, labels)
    with pytest.raises(CPTuningError, match="can't be shared without them"):
        demonstrating.save_pretrained(tmp_path / "model", include_texts=False)
    assert not (tmp_path / "model").exists()


# Folders, the cache, the network.


def test_a_local_folder_of_that_name_wins(hub, model, tiny):
    hub.add("org/films", model, FIRST)
    instant(tiny).fit(TEXTS, [f"my {x}" for x in LABELS]).save("org/films")
    assert cptuning.load("org/films").classes_.tolist() == ["my bad", "my good"]
    assert hub.asked == []
    with pytest.raises(CPTuningError, match="org/films is a folder here, and revision='v1'"):
        cptuning.load("org/films", revision="v1")


def test_what_was_fetched_once_needs_no_network(monkeypatch, hub, model, fitted):
    hub.add("org/films", model, FIRST, ref="v1")
    hub.add("org/films", model, FIRST)
    cptuning.load("org/films", revision="v1")
    files = len(hub.asked)
    cptuning.load("org/films")
    assert len(hub.asked) == files  # The same commit is not fetched twice.
    go_offline(monkeypatch)
    for revision in (None, "v1", FIRST):
        found = cptuning.load("org/films", revision=revision).predict_proba(NEW)
        np.testing.assert_array_equal(found, fitted.predict_proba(NEW))


def test_offline_the_sentence_says_what_is_missing(monkeypatch):
    go_offline(monkeypatch)
    with pytest.raises(CPTuningError) as caught:
        cptuning.load("org/films")
    assert str(caught.value) == (
        "There is no folder org/films here, and the model org/films could not be fetched from the "
        "hub (it is not in the cache, and the hub can't be reached): check its name and the "
        "network, or give a folder."
    )


def test_an_interrupted_download_goes_on(monkeypatch, hub, model, fitted):
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _seconds: None)
    hub.add("org/films", model, FIRST)
    hub.cut_after = 1000
    with pytest.raises(CPTuningError, match="could not be fetched from the hub"):
        cptuning.load("org/films")
    hub.cut_after = None
    loaded = cptuning.load("org/films")
    np.testing.assert_allclose(loaded.predict_proba(NEW), fitted.predict_proba(NEW))


def test_a_private_model_is_for_its_owner(monkeypatch, hub, model):
    hub.add("org/films", model, FIRST)
    hub.repositories["org/films"].private = True
    with pytest.raises(CPTuningError, match="there is no such model, or it is private"):
        cptuning.load("org/films")
    monkeypatch.setenv("HF_TOKEN", hub.token)
    assert cptuning.load("org/films").classes_.tolist() == ["bad", "good"]


def test_who_is_not_logged_in_uploads_nothing(hub, fitted):
    with pytest.raises(CPTuningError, match=r"org/films \(you are not allowed to\): .*`hf auth"):
        fitted.push_to_hub("org/films")
    assert hub.repositories == {}


@pytest.mark.parametrize("name", ["films", "a/b/c", "../films", "org/films/", "org/fi lms", ""])
def test_what_is_no_name_of_the_hub_is_not_asked_for(hub, fitted, name):
    with pytest.raises(CPTuningError, match="is not a name on the hub: use one such as org/name"):
        fitted.push_to_hub(name)
    if name not in ("", "org/films/"):  # As a path, the last is the same as without the slash.
        with pytest.raises(CPTuningError, match="There is no model folder"):
            cptuning.load(name)
    assert hub.asked == []


# Models from strangers.


def test_another_kind_of_model_is_refused_before_it_is_downloaded(hub, tiny):
    hub.add("org/bert", tiny("bert"), FIRST)
    with pytest.raises(CPTuningError, match=r"org/bert on the hub is not a CP-Tuning model"):
        cptuning.load("org/bert")
    assert hub.asked == []


class Malicious:
    def __reduce__(self):
        return (open, ("was-run", "w"))


def test_pickles_and_code_are_not_even_downloaded(hub, model, fitted, home):
    for name in ("pytorch_model.bin", "backbone/pytorch_model.bin", "support.pkl", "model.pt"):
        (model / name).write_bytes(pickle.dumps(Malicious()))
    (model / "modeling.py").write_text("open('was-run', 'w')")
    hub.add("org/films", model, FIRST)
    assert cptuning.load("org/films").predict(NEW).tolist() == fitted.predict(NEW).tolist()
    assert not (home / "home" / "was-run").exists()
    assert {name.rpartition(".")[2] for name in hub.asked} <= {"json", "jsonl", "safetensors", "md"}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda facts: facts | {"temperature": -1}, "temperature is -1"),
        (lambda facts: facts | {"format": 99}, "newer cptuning"),
        (lambda facts: facts | {"parameters": {"device": "cuda"}}, "sets the parameter device"),
        (lambda facts: facts | {"parameters": {"no_such": 1}}, "does not take this parameter"),
    ],
)
def test_a_downloaded_folder_is_checked_like_any(hub, model, change, match):
    path = model / "cptuning.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    hub.add("org/films", model, FIRST)
    with pytest.raises(CPTuningError, match=match):
        cptuning.load("org/films")


def test_only_the_links_of_the_cache_are_followed(hub, model, tmp_path, monkeypatch):
    hub.add("org/films", model, FIRST)
    cptuning.load("org/films")
    go_offline(monkeypatch)
    [snapshot] = (tmp_path / "hub").glob("models--*/snapshots/*")
    linked = snapshot / "support.jsonl"
    assert linked.is_symlink()
    secret = tmp_path / "secret.jsonl"
    shutil.copy(linked, secret)
    linked.unlink()
    linked.symlink_to(secret)
    with pytest.raises(CPTuningError, match=r"holds 'support.jsonl', which is neither a file"):
        cptuning.load("org/films")


# The command.


def test_push_and_use_by_name(owner, model, fitted, run, tmp_path):  # noqa: F811
    pushed = run("push", model, "org/films", "--no-texts", "--public", "--license", "mit", "--json")
    assert pushed.exit_code == 0, pushed.output
    assert json.loads(pushed.stdout)["model"] == "org/films"
    assert not owner.repositories["org/films"].private
    assert (owner.folder("org/films") / "support.jsonl").read_text() == "null\n" * 8
    new = tmp_path / "new.csv"
    new.write_text("text,label\n" + "\n".join(f"{t},good" for t in NEW) + "\n")
    commit = owner.repositories["org/films"].refs["main"]
    for name in ("org/films", f"org/films@{commit}"):
        answered = run("predict", name, new, "--neighbours", "1")
        assert answered.exit_code == 0, answered.output
        found = [line.split(",")[2] for line in answered.stdout.splitlines()[1:]]
        assert found == fitted.predict(NEW).tolist()
        assert "(text left out)" in answered.stdout
    result = run("evaluate", "org/films", new, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["accuracy"] == fitted.score(NEW, ["good", "good"])
    assert "(text left out)" in run("explain", "org/films", NEW[0]).stdout
    assert json.loads(run("info", "org/films", "--json").stdout)["classes"] == ["bad", "good"]
    assert run("suggest", "org/films", new).exit_code == 0


def test_a_public_model_with_its_texts_is_warned_of(owner, model, run):  # noqa: F811
    result = run("push", model, "org/films", "--public")
    assert "warning: The training texts can be read by everybody" in result.stderr
    assert "The model is on the hub: http://" in result.stdout


def test_what_goes_wrong_is_one_sentence(hub, model, run, tmp_path):  # noqa: F811
    new = tmp_path / "new.csv"
    new.write_text("text\nhello\n")
    for words, said in [
        (("predict", "org/films", new), "there is no such model, or it is private"),
        (("push", model, "films"), "is not a name on the hub"),
        (("push", model, "org/films"), "hf auth login"),
        (("add", "org/films", new), "There is no model folder"),
    ]:
        result = run(*words)
        assert result.exit_code == 2, result.output
        assert said in result.stderr
        assert "Traceback" not in result.output


# The base install.


def test_without_the_hubs_library_folders_still_work(tmp_path):
    code = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "import cptuning\n"
        f"c = cptuning.CPTuningClassifier(preset='instant').fit({TEXTS!r}, {LABELS!r})\n"
        f"c.save_pretrained({str(tmp_path / 'model')!r})\n"
        f"c = cptuning.load({str(tmp_path / 'model')!r}); print(c.predict({NEW!r}).tolist())\n"
        "try: cptuning.load('org/films')\n"
        "except cptuning.errors.CPTuningError as error: print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    answers, sentence = found.stdout.splitlines()
    assert answers == "['bad', 'good']"
    assert sentence.startswith("A model on the hub needs huggingface_hub: pip install")
