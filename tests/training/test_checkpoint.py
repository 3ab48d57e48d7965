import json
import signal

import pytest
import torch
from safetensors import safe_open
from torch import nn

from cptuning.training.checkpoint import Checkpoint, Checkpointer


def trained_once():
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return dict(layer.named_parameters()), optimizer


def test_weights_moments_best_and_facts_come_back(tmp_path):
    trained, optimizer = trained_once()
    best = {name: torch.randn_like(p) for name, p in trained.items()}
    keeper = Checkpointer(tmp_path / "deep" / "state.safetensors", "mark")
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
    keeper = Checkpointer(tmp_path / "state.safetensors", "mark")
    keeper.save(Checkpoint.of(3, dict(layers[0].named_parameters()), first, None, {}))
    keeper.load().restore(dict(layers[1].named_parameters()), second)
    for layer, optimizer in zip(layers, (first, second), strict=True):
        steps(layer, optimizer, 2)
    assert torch.equal(layers[0].weight, layers[1].weight)


def test_nothing_is_left_of_the_temporary_file(tmp_path):
    trained, optimizer = trained_once()
    Checkpointer(tmp_path / "s.safetensors", "m").save(
        Checkpoint.of(1, trained, optimizer, None, {})
    )
    assert [path.name for path in tmp_path.iterdir()] == ["s.safetensors"]


@pytest.mark.parametrize("content", [b"", b"not safetensors at all", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_damaged_checkpoint_means_starting_afresh(tmp_path, caplog, content):
    path = tmp_path / "s.safetensors"
    path.write_bytes(content)
    assert Checkpointer(path, "m").load() is None
    assert "starting afresh" in caplog.text


def test_a_disk_that_refuses_costs_the_checkpoint_but_not_the_run(tmp_path, caplog):
    (tmp_path / "folder").mkdir()
    trained, optimizer = trained_once()
    # The target is a folder: the rename at the end fails as on a broken disk.
    Checkpointer(tmp_path / "folder", "m").save(Checkpoint.of(1, trained, optimizer, None, {}))
    assert "could not be written" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_facts_stand_in_the_header_as_json(tmp_path):
    trained, optimizer = trained_once()
    path = tmp_path / "s.safetensors"
    Checkpointer(path, "mark").save(Checkpoint.of(1, trained, optimizer, None, {"a": 1}))
    with safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
    assert facts == {"step": 1, "fingerprint": "mark", "a": 1}


def test_saving_waits_for_its_time(tmp_path):
    path = tmp_path / "s.safetensors"
    assert Checkpointer(path, "m", seconds=0).is_due()
    assert not Checkpointer(path, "m", seconds=3600).is_due()


def test_ctrl_c_waits_for_the_state_and_a_second_one_does_not(tmp_path):
    keeper = Checkpointer(tmp_path / "s.safetensors", "m", seconds=3600)
    reached = []

    def interrupted_twice():
        with keeper.holding_interrupts():
            signal.raise_signal(signal.SIGINT)
            reached.append(keeper.is_due())
            signal.raise_signal(signal.SIGINT)
            reached.append("the second one was held back")

    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()
    assert reached == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_run_that_ends_anyway_is_not_forgotten(tmp_path):
    keeper = Checkpointer(tmp_path / "s.safetensors", "m")
    with pytest.raises(KeyboardInterrupt), keeper.holding_interrupts():
        signal.raise_signal(signal.SIGINT)


def test_another_handler_of_ctrl_c_is_left_alone(tmp_path):
    heard = []
    usual = signal.signal(signal.SIGINT, lambda *_: heard.append("mine"))
    try:
        keeper = Checkpointer(tmp_path / "s.safetensors", "m")
        with keeper.holding_interrupts():
            signal.raise_signal(signal.SIGINT)
        assert heard == ["mine"]
        assert not keeper.interrupted
    finally:
        signal.signal(signal.SIGINT, usual)
