"""What is kept of a run that may be cut off, and that nothing else in its folder is touched."""

import json
import signal

import pytest
import torch
from safetensors import safe_open
from torch import nn

from cptuning.training.checkpoint import (
    Checkpoint,
    Checkpointer,
    CheckpointFolder,
    Terminated,
)


def keeper_in(folder, fingerprint="mark", **more):
    return Checkpointer(CheckpointFolder(folder), "training", fingerprint, **more)


def trained_once():
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return dict(layer.named_parameters()), optimizer


def test_weights_moments_best_and_facts_come_back(tmp_path):
    trained, optimizer = trained_once()
    best = {name: torch.randn_like(p) for name, p in trained.items()}
    keeper = keeper_in(tmp_path / "deep" / "folder")
    keeper.save(Checkpoint.of(1, trained, optimizer, best, {"scores": {"0": [0.5, -1.0]}}))
    found = keeper.load()
    assert found.step == 1
    assert found.facts["scores"] == {"0": [0.5, -1.0]}
    fresh = nn.Linear(3, 2)
    parameters = dict(fresh.named_parameters())
    other = torch.optim.AdamW(fresh.parameters(), lr=0.1)
    found.restore(parameters, other)
    for name, parameter in trained.items():
        assert torch.equal(parameters[name], parameter)
        assert torch.equal(found.best[name], best[name])
        for moment in ("exp_avg", "exp_avg_sq"):
            assert torch.equal(
                other.state[parameters[name]][moment], optimizer.state[parameter][moment]
            )


def test_a_fused_optimiser_goes_on_as_if_nothing_had_happened(tmp_path):
    """What a GPU trains with; a CPU has one too."""

    def steps(layer, optimizer, n):
        for _ in range(n):
            layer(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    torch.manual_seed(0)
    layers = [nn.Linear(3, 2), nn.Linear(3, 2)]
    first, second = (torch.optim.AdamW(layer.parameters(), fused=True) for layer in layers)
    steps(layers[0], first, 3)
    keeper = keeper_in(tmp_path)
    keeper.save(Checkpoint.of(3, dict(layers[0].named_parameters()), first, None, {}))
    keeper.load().restore(dict(layers[1].named_parameters()), second)
    for layer, optimizer in zip(layers, (first, second), strict=True):
        steps(layer, optimizer, 2)
    assert torch.equal(layers[0].weight, layers[1].weight)


def test_nothing_is_left_of_the_temporary_file(tmp_path):
    trained, optimizer = trained_once()
    keeper_in(tmp_path).save(Checkpoint.of(1, trained, optimizer, None, {}))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {CheckpointFolder.marker, "training.cptuning-state"}


@pytest.mark.parametrize("content", [b"", b"not safetensors at all", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_checkpoint_means_starting_afresh(tmp_path, caplog, content):
    keeper = keeper_in(tmp_path)
    keeper.path.write_bytes(content)
    assert keeper.load() is None
    assert "starting afresh" in caplog.text


def test_a_disk_that_refuses_costs_the_checkpoint_but_not_the_run(tmp_path, caplog):
    keeper = keeper_in(tmp_path)
    # The target is a folder: the rename at the end fails as on a broken disk.
    keeper.path.mkdir()
    trained, optimizer = trained_once()
    keeper.save(Checkpoint.of(1, trained, optimizer, None, {}))
    assert "could not be written" in caplog.text
    assert {path.name for path in tmp_path.iterdir()} == {CheckpointFolder.marker, keeper.path.name}


def test_the_facts_stand_in_the_header_as_json(tmp_path):
    trained, optimizer = trained_once()
    keeper = keeper_in(tmp_path)
    keeper.save(Checkpoint.of(1, trained, optimizer, None, {"a": 1}))
    with safe_open(keeper.path, framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
    assert facts == {"step": 1, "fingerprint": "mark", "a": 1}


def test_saving_waits_for_its_time(tmp_path):
    assert keeper_in(tmp_path, seconds=0).is_due()
    assert not keeper_in(tmp_path, seconds=3600).is_due()


def test_ctrl_c_waits_for_the_state_and_a_second_one_does_not(tmp_path):
    keeper = keeper_in(tmp_path, seconds=3600)
    reached = []

    def interrupted_twice():
        with keeper.holding_signals():
            signal.raise_signal(signal.SIGINT)
            reached.append(keeper.is_due())
            signal.raise_signal(signal.SIGINT)
            reached.append("the second one was held back")

    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()
    assert reached == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_run_that_ends_anyway_is_not_forgotten(tmp_path):
    keeper = keeper_in(tmp_path)
    with pytest.raises(KeyboardInterrupt), keeper.holding_signals():
        signal.raise_signal(signal.SIGINT)


def test_sigterm_waits_for_the_state_and_ends_the_process_with_143(tmp_path):
    keeper = keeper_in(tmp_path, seconds=3600)
    reached = []

    def terminated():
        with keeper.holding_signals():
            signal.raise_signal(signal.SIGTERM)
            # A second one would end it at once.
            reached.append((keeper.is_due(), signal.getsignal(signal.SIGTERM)))

    with pytest.raises(Terminated) as ended:
        terminated()
    assert reached == [(True, signal.SIG_DFL)]
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_handler_of_ctrl_c_is_left_alone(tmp_path):
    heard = []
    usual = signal.signal(signal.SIGINT, lambda *_: heard.append("mine"))
    try:
        keeper = keeper_in(tmp_path)
        with keeper.holding_signals():
            signal.raise_signal(signal.SIGINT)
        assert heard == ["mine"]
        assert keeper.stopped_by is None
    finally:
        signal.signal(signal.SIGINT, usual)


@pytest.fixture
def folder(tmp_path):
    """A folder that holds a checkpoint, evaluations, what a killed writer left, and a model."""
    folder = CheckpointFolder(tmp_path / "run")
    trained, optimizer = trained_once()
    keeper_in(folder.path).save(Checkpoint.of(1, trained, optimizer, None, {}))
    with folder.writing(folder.evaluations_file("fold 1 of 2")) as place:
        place.touch()
    (folder.path / ".training.cptuning-state.12-ab.unfinished").mkdir()
    (folder.path / "model.safetensors").write_text("somebody's work of a month")
    return folder


def test_clearing_removes_what_a_run_wrote_and_nothing_else(folder):
    assert folder.holds_state
    folder.clear()
    assert not folder.holds_state
    assert [path.name for path in folder.path.iterdir()] == ["model.safetensors"]
    (folder.path / "model.safetensors").unlink()


def test_clearing_removes_the_folder_if_nothing_else_is_in_it(folder):
    (folder.path / "model.safetensors").unlink()
    folder.clear()
    assert not folder.path.exists()
    folder.clear()  # There is nothing to do, which is not an error.


def test_without_the_marker_nothing_is_removed_whatever_it_is_called(folder):
    (folder.path / CheckpointFolder.marker).unlink()
    before = sorted(folder.path.iterdir())
    folder.clear()
    assert sorted(folder.path.iterdir()) == before


def test_a_folder_lies_within_itself_and_its_parents(tmp_path):
    folder = CheckpointFolder(tmp_path / "model" / "backbone")
    assert folder.is_within(tmp_path / "model" / "backbone")
    assert folder.is_within(tmp_path / "model" / ".." / "model")
    assert not folder.is_within(tmp_path / "mod")
