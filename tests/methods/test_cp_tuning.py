"""CP-Tuning's objective against a slow computation, and what it trains."""

import numpy as np
import pytest
import torch

from cptuning.backbone import load_backbone
from cptuning.data import Examples
from cptuning.losses import pccl, pccl_per_anchor
from cptuning.methods.cp_tuning import CPTuning
from cptuning.methods.cp_tuning_settings import settings_for
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.task import mean_by_sample
from cptuning.methods.training import Split
from tests.methods.toys import training_of


def make_task(backbone, data, unlabeled=None, dev=None, **changes):
    settings = settings_for("default", pair=False, **{"mlm_rate": 0.4, "batch_size": 8} | changes)
    split = Split(data, dev=dev, unlabeled=unlabeled)
    return CPTuning(training_of(backbone, settings, split)).task(split, EvaluationLog())


def slow_losses(task, inputs):
    """Every row on its own through the plain model: no gathering, no hooks, no padding."""
    module = task.encoder.module
    decoder = module.model.get_output_embeddings()
    n = len(inputs["rows"]) - len(inputs["targets"])
    features, token_losses = [], {}
    captured = []
    hook = decoder.register_forward_pre_hook(lambda _module, given: captured.append(given[0]))
    for row in range(len(inputs["input_ids"])):
        length = int(inputs["attention_mask"][row].sum())
        ids = inputs["input_ids"][row, :length][None]
        captured.clear()
        logits = module.model(
            inputs_embeds=module.embed(ids),
            token_type_ids=inputs["token_type_ids"][row, :length][None],
        ).logits[0]
        if row < n:
            output = captured[0][0, inputs["columns"][row]] - module.centre
            features.append(output / output.norm())
        for i in range(n, len(inputs["rows"])):
            if inputs["rows"][i] == row:
                column, target = inputs["columns"][i], inputs["targets"][i - n]
                loss = -logits[column].log_softmax(-1)[target]
                token_losses.setdefault(row, []).append(loss)
    hook.remove()
    by_sample = [
        torch.stack(token_losses[row]).mean() if row in token_losses else torch.zeros(())
        for row in range(len(inputs["input_ids"]))
    ]
    return torch.stack(features), torch.stack(by_sample)


@pytest.mark.parametrize("weight", [0.25, 0.5])
@pytest.mark.parametrize("with_unlabeled", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_the_loss_is_the_weighted_sum_of_pccl_and_masked_lm(
    backbone, data, weight, with_unlabeled, centred
):
    more = (
        Examples(("the red train", "yes or no ?", "how would i start")) if with_unlabeled else None
    )
    task = make_task(backbone, data, more, contrastive_weight=weight, centred=centred)
    inputs = task.inputs(0)
    losses = task.objective.eval()(**inputs)
    z, by_sample = slow_losses(task, inputs)
    s = task.settings
    expected = pccl(z, inputs["labels"], margin=s.margin, tau_n=s.tau_n, xi=s.xi, reduction="mean")
    torch.testing.assert_close(losses["contrastive"], expected)
    torch.testing.assert_close(losses["mlm"], by_sample.mean())
    torch.testing.assert_close(losses["loss"], weight * expected + (1 - weight) * by_sample.mean())
    assert len(inputs["input_ids"]) == (11 if with_unlabeled else 8)
    assert len(inputs["labels"]) == 8


def test_the_paper_sums_over_positives_and_over_the_batch(backbone, data):
    task = make_task(backbone, data, reduction="sum")
    inputs = task.inputs(0)
    losses = task.objective.eval()(**inputs)
    z, by_sample = slow_losses(task, inputs)
    s = task.settings
    each = pccl_per_anchor(z, inputs["labels"], margin=s.margin, tau_n=s.tau_n, xi=s.xi)
    torch.testing.assert_close(losses["contrastive"], each.sum())
    torch.testing.assert_close(losses["mlm"], by_sample.sum())


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_sizes_rounded_up_for_a_gpu_change_neither_loss_nor_gradient(backbone, data, reduction):
    task = make_task(backbone, data, Examples(("the red train", "yes ?")), reduction=reduction)
    assert not task.rounds_sizes  # this is a CPU
    found = []
    for rounds in (False, True):
        task.rounds_sizes = rounds
        inputs = task.inputs(0)
        losses = task.objective.eval()(**inputs)
        losses["loss"].backward()
        found.append((losses, {n: p.grad for n, p in task.objective.named_parameters()}))
        task.objective.zero_grad(set_to_none=True)
    assert inputs["input_ids"].shape[1] == 64
    assert len(inputs["targets"]) == 128
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_a_sample_without_masked_tokens_counts_zero():
    both = torch.tensor([True, True])
    found = mean_by_sample(torch.tensor([4.0, 2.0]), torch.tensor([1, 1]), n=3, counted=both)
    assert found.tolist() == [0.0, 3.0, 0.0]


def test_without_the_masked_lm_nothing_is_masked(backbone, data):
    inputs = make_task(backbone, data, contrastive_weight=1.0).inputs(0)
    assert len(inputs["targets"]) == 0


def test_only_text_tokens_are_ever_masked(backbone, data):
    task = make_task(backbone, data, mlm_rate=1.0)
    inputs = task.inputs(0)
    n = len(inputs["labels"])
    chosen = set(zip(inputs["rows"][n:].tolist(), inputs["columns"][n:].tolist(), strict=True))
    prompt = (inputs["input_ids"] >= task.encoder.layout.vocabulary).nonzero().tolist()
    assert prompt
    assert not chosen & {(row, column) for row, column in prompt}
    assert not chosen & set(enumerate(inputs["columns"][:n].tolist()))


def test_gradients_reach_the_prompt_vectors_and_every_layer(backbone, data):
    task = make_task(backbone, data, frozen_share=0.0)
    losses = task.objective.train()(**task.inputs(0))
    losses["loss"].backward()
    module = task.encoder.module
    assert module.prompts.grad.abs().sum(dim=1).min() > 0
    for name, parameter in module.model.named_parameters():
        assert parameter.grad is not None, name


def test_prompts_have_their_own_learning_rate_and_no_decay(backbone, data):
    model, prompts = make_task(backbone, data, prompt_learning_rate=0.5).parameter_groups(1e-3)
    assert (model["lr"], prompts["lr"]) == (1e-3, 0.5)
    assert prompts["weight_decay"] == 0.0
    assert len(prompts["params"]) == 1
    _, prompts = make_task(backbone, data).parameter_groups(1e-3)
    assert prompts["lr"] == 1e-3


def test_frozen_layers_and_the_embedding_table_get_no_gradient(backbone, data):
    task = make_task(backbone, data, frozen_share=0.5)
    task.objective(**task.inputs(0))["loss"].backward()
    layers = backbone.model.bert.encoder.layer
    assert all(p.grad is None for p in layers[0].parameters())
    assert all(p.grad is not None for p in layers[1].parameters())
    assert backbone.model.get_input_embeddings().weight.grad is None
    assert task.encoder.module.prompts.grad is not None


def test_layers_that_share_their_weights_are_not_frozen(tiny, data):
    albert = load_backbone(tiny("albert"))
    task = make_task(albert, data, frozen_share=0.5)
    task.objective(**task.inputs(0))["loss"].backward()
    assert albert.model.get_input_embeddings().weight.grad is None
    assert all(p.grad is not None for p in albert.model.albert.encoder.parameters())


def test_centred_embeddings_have_their_mean_at_the_origin(backbone, data):
    task = make_task(backbone, data, centred=True)
    features = task.encoder._features(task.encodings)
    assert features.mean(dim=0).abs().max() < 1e-5
    plain = make_task(backbone, data, centred=False)
    assert plain.encoder.module.centre.abs().max() == 0


def test_batches_are_a_pure_function_of_their_number(backbone, data):
    first, again = make_task(backbone, data), make_task(backbone, data)
    first.inputs(0)
    for name, value in first.inputs(5).items():
        assert torch.equal(value, again.inputs(5)[name])
    assert not torch.equal(first.inputs(5)["input_ids"], first.inputs(6)["input_ids"])


@pytest.mark.parametrize("loss", ["pccl", "sampled-pccl", "supcon", "triplet", "n-pair", "circle"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_every_loss_can_be_trained_with(backbone, data, loss, reduction):
    task = make_task(backbone, data, loss=loss, reduction=reduction)
    losses = task.objective(**task.inputs(0))
    losses["loss"].backward()
    assert torch.isfinite(losses["loss"])
    assert losses["contrastive"] > 0
    assert torch.isfinite(task.encoder.module.prompts.grad).all()


def test_evaluation_keeps_what_was_answered(backbone, data):
    task = make_task(backbone, data, dev=data)
    score = task.evaluate(5)
    held_out = task.log.by_step[5]
    assert held_out.scores.shape == (12, 2)
    assert score.accuracy == np.mean(held_out.scores.argmax(1) == data.labels)
    # Each of them is in the support set itself.
    assert held_out.familiarity == pytest.approx(np.ones(12), abs=1e-5)
