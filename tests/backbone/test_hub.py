"""Backbones by short name and by id on the hub: found, downloaded once, checked."""

import re
import shutil
import socket
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file
from tests.hub_server import HubServer, served

from cptuning.backbone import CATALOGUE, cached_folder, describe, is_folder, load_backbone
from cptuning.backbone.hub import find_files, hub_is_known
from cptuning.errors import CPTuningError

ON_THE_HUB = [row for row in CATALOGUE.values() if row.hub_id]
MAIN = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache of the hub, in its own layout."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def repository(tiny, tmp_path):
    """A tiny model as it lies on the hub: also as a pickle, in ONNX, and with code."""
    folder = shutil.copytree(tiny("roberta"), tmp_path / "repository")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    for name in ("modeling.py", "README.md", "tf_model.h5", "training_args.bin"):
        (folder / name).write_text("not needed")
    (folder / "onnx").mkdir()
    for name in ("config.json", "tokenizer.json", "model.onnx"):
        (folder / "onnx" / name).write_text("not needed")
    return folder


@pytest.fixture
def paper(monkeypatch, repository):
    """The table's row of that name, with the hash of the tiny model."""
    digest = sha256((repository / "model.safetensors").read_bytes()).hexdigest()
    row = replace(CATALOGUE["paper"], sha256=digest)
    monkeypatch.setitem(CATALOGUE, "paper", row)
    return row


@pytest.fixture
def hub(monkeypatch, repository, paper, tmp_path):
    """The hub, with the tiny model in the place of the paper's, and once more as org/model."""
    hub = HubServer(tmp_path / "uploads")
    hub.add(paper.hub_id, repository, paper.revision)
    hub.add("org/model", repository, MAIN)
    with served(hub, monkeypatch):
        yield hub


def go_offline(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("the network was asked"))


def put_into_cache(cache, row, source, leave_out=()):
    """The files of a row where the hub's library keeps them."""
    snapshot = cache / f"models--{row.hub_id.replace('/', '--')}" / "snapshots" / row.revision
    for name in set(row.files) - set(leave_out):
        place = snapshot / name
        place.parent.mkdir(parents=True, exist_ok=True)
        found = source / name
        place.write_bytes(found.read_bytes() if found.is_file() else b"{}")
    return snapshot


# The table.


def test_the_names_are_those_of_the_documentation():
    assert list(CATALOGUE) == ["embedded", "small", "base", "multilingual", "paper"]
    page = (Path(__file__).parents[2] / "docs" / "backbones.md").read_text("utf-8")
    for row in CATALOGUE.values():
        for fact in (f"`{row.name}`", row.hub_id, row.licence, f"{row.megabytes:,} MB"):
            assert fact in page


@pytest.mark.parametrize("row", ON_THE_HUB, ids=lambda row: row.name)
def test_a_row_is_pinned_and_names_no_pickle(row):
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", row.hub_id)
    assert re.fullmatch("[0-9a-f]{40}", row.revision)
    assert re.fullmatch("[0-9a-f]{64}", row.sha256)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(row.files)
    assert {Path(file).suffix for file in row.files} == {".json", ".safetensors"}


# What a name stands for.


def test_a_name_of_the_table_wins_over_a_folder_which_a_path_names(
    monkeypatch, tiny, tmp_path, cache, paper, repository
):
    put_into_cache(cache, paper, repository)
    shutil.copytree(tiny("bert"), tmp_path / "paper")
    monkeypatch.chdir(tmp_path)
    assert not is_folder("paper")
    assert load_backbone("paper").name == "FacebookAI/roberta-large"
    for folder in ("./paper", Path("paper"), tmp_path / "paper"):
        assert is_folder(folder)
        assert type(load_backbone(folder).model).__name__ == "BertForMaskedLM"


def test_a_backbone_of_the_cache_needs_no_network_and_is_named_by_id_and_revision(
    monkeypatch, cache, paper, repository
):
    snapshot = put_into_cache(cache, paper, repository)
    go_offline(monkeypatch)
    backbone = load_backbone("paper")
    assert (backbone.name, backbone.revision) == (paper.hub_id, paper.revision)
    assert find_files("paper").folder == snapshot
    facts = describe(backbone)
    assert (facts["name"], facts["revision"]) == (paper.hub_id, paper.revision)


# The cache.


@pytest.mark.parametrize("row", ON_THE_HUB, ids=lambda row: row.name)
def test_only_a_complete_snapshot_of_the_revision_counts_as_cached(cache, tmp_path, row):
    assert cached_folder(row) is None
    snapshot = put_into_cache(cache, row, tmp_path)
    assert cached_folder(row) == snapshot
    assert cached_folder(replace(row, revision=MAIN)) is None
    for file in row.files:
        kept = (snapshot / file).read_bytes()
        (snapshot / file).unlink()
        assert cached_folder(row) is None, file
        (snapshot / file).write_bytes(kept)


def test_the_embedded_one_is_never_looked_up():
    assert cached_folder(CATALOGUE["embedded"]) is None


# Downloads.


def test_a_backbone_is_downloaded_once_and_without_what_is_not_needed(monkeypatch, hub, paper):
    first = load_backbone("paper")
    assert sorted(hub.asked) == sorted(paper.files)
    go_offline(monkeypatch)
    again = load_backbone("paper")
    assert sorted(hub.asked) == sorted(paper.files)
    state = again.model.state_dict()
    assert all(
        torch.equal(tensor, state[name]) for name, tensor in first.model.state_dict().items()
    )


def test_any_other_id_on_the_hub_is_downloaded_without_pickles_and_code(hub, repository):
    backbone = load_backbone("org/model")
    assert (backbone.name, backbone.revision) == ("org/model", MAIN)
    assert set(hub.asked) <= {path.name for path in repository.iterdir()}
    assert {Path(file).suffix for file in hub.asked} <= {".json", ".safetensors", ".txt"}


def test_another_id_that_was_downloaded_before_needs_no_network(monkeypatch, hub):
    load_backbone("org/model")
    go_offline(monkeypatch)
    assert load_backbone("org/model").revision == MAIN


def test_an_interrupted_download_leaves_no_half_model_and_goes_on(monkeypatch, hub, paper):
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _seconds: None)
    hub.cut_after = 1000
    with pytest.raises(CPTuningError, match="could not be downloaded: check the network"):
        load_backbone("paper")
    assert cached_folder(paper) is None
    hub.cut_after = None
    hub.asked.clear()
    assert load_backbone("paper").has_head
    assert "model.safetensors" in hub.asked


def test_weights_with_another_hash_are_refused(monkeypatch, hub, paper, cache):
    monkeypatch.setitem(CATALOGUE, "paper", replace(paper, sha256="0" * 64))
    with pytest.raises(CPTuningError) as caught:
        load_backbone("paper")
    folder = cache / "models--FacebookAI--roberta-large"
    assert f"delete {folder} and try again" in str(caught.value)
    # They are not used the next time either.
    with pytest.raises(CPTuningError, match="are damaged or not the ones"):
        load_backbone("paper")
    monkeypatch.setitem(CATALOGUE, "paper", paper)
    shutil.rmtree(folder)
    assert load_backbone("paper").has_head


def test_a_repository_that_lacks_a_file(hub, repository):
    (repository / "tokenizer.json").unlink()
    with pytest.raises(CPTuningError, match="lacks files on this hub"):
        load_backbone("paper")


def test_a_repository_that_is_not_a_masked_language_model(hub, repository):
    (repository / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}')
    with pytest.raises(CPTuningError, match="The model org/model could not be loaded"):
        load_backbone("org/model")


@pytest.mark.parametrize("progress", [True, False])
def test_bars_are_shown_only_if_wanted(monkeypatch, hub, capsys, progress):
    monkeypatch.setenv("TQDM_POSITION", "-1")  # The hub's library then takes this for a terminal.
    load_backbone("paper", progress=progress)
    assert ("%" in capsys.readouterr().err) == progress


# Without a network.


@pytest.mark.parametrize("row", ON_THE_HUB, ids=lambda row: row.name)
def test_offline_the_sentence_says_what_is_missing_and_what_to_do(monkeypatch, row):
    go_offline(monkeypatch)
    with pytest.raises(CPTuningError) as caught:
        load_backbone(row.name)
    assert str(caught.value) == (
        f"The backbone {row.name!r} ({row.hub_id}, {row.megabytes} MB) is not in the cache and "
        "could not be downloaded: check the network and try again (files that are complete are "
        "kept), give the folder of a copy, or use backbone='embedded', which needs no network."
    )


@pytest.mark.parametrize(
    ("offline", "proxies", "found", "known"),
    [
        (False, {}, True, True),
        (False, {}, False, False),
        (False, {"https": "http://proxy"}, False, True),
        (True, {}, True, False),
    ],
)
def test_a_hub_that_cannot_be_looked_up_is_not_asked(monkeypatch, offline, proxies, found, known):
    def look_up(*_):
        if not found:
            raise socket.gaierror("Name or service not known")
        return ["an address"]

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr("cptuning.backbone.hub.getproxies", lambda: proxies)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert hub_is_known() == known
    asked = []

    def download(*_, local_files_only, **__):
        asked.append(not local_files_only)
        raise OSError("nothing here")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(CPTuningError, match="needs no network"):
        load_backbone("some/model")
    assert asked == [known]
