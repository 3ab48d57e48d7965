"""Each rival's loss against a slow computation: every row alone, through the plain model."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from cptuning.backbone import load_backbone
from cptuning.data import Examples
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.heads import ClsHead
from cptuning.methods.training import Split
from tests.methods.toys import ARCHITECTURES, LEARNERS, learner_of, split_of, task_of

MORE = Examples(("the red train", "yes or no ?", "how would i start to trace it"))


def alone(task, inputs, row):
    """Decoder inputs, logits and last hidden states of one row, unpadded, without any hook."""
    module = task.objective.encoder
    length = int(inputs["attention_mask"][row].sum())
    ids = inputs["input_ids"][row, :length][None]
    types = {"token_type_ids": inputs["token_type_ids"][row, :length][None]}
    captured = []
    decoder = module.model.get_output_embeddings()
    hook = decoder.register_forward_pre_hook(lambda _module, given: captured.append(given[0]))
    found = module.model(
        inputs_embeds=module.embed(ids),
        output_hidden_states=True,
        **(types if module.takes_types else {}),
    )
    hook.remove()
    return captured[0][0], found.logits[0], found.hidden_states[-1][0]


def slow_scores(task, method, inputs):
    """The class scores of the labelled rows, straight from each method's definition."""
    head = task.learner.head
    rows = []
    for row in range(len(inputs["labels"])):
        before, logits, hidden = alone(task, inputs, row)
        at = int(inputs["columns"][row])
        if method == "fine-tuning":
            assert at == 0
            first = torch.tanh(head.dense.weight @ hidden[0] + head.dense.bias)
            rows.append(head.classes.weight @ first + head.classes.bias)
        elif method == "warp":
            rows.append(torch.stack([(before[at] * vector).sum() for vector in head.vectors]))
        else:
            rows.append(torch.stack([logits[at, token] for token in head.tokens[:, 0]]))
    return torch.stack(rows)


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("method", LEARNERS)
def test_the_loss_is_the_cross_entropy_of_slowly_computed_scores(
    steady, method, architecture, pair
):
    task = task_of(method, load_backbone(steady[architecture]), pair, n_classes=6)
    inputs = task.inputs(0)
    assert len(inputs["labels"]) == 4
    loss = task.objective.eval()(**inputs)["loss"]
    expected = cross_entropy(slow_scores(task, method, inputs), inputs["labels"])
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pets_masked_lm_is_on_unlabelled_texts_alone_and_weighs_little(steady, architecture):
    backbone = load_backbone(steady[architecture])
    task = task_of("pet", backbone, unlabeled=MORE, mlm_rate=0.5)
    inputs = task.inputs(0)
    n = len(inputs["labels"])
    assert len(inputs["input_ids"]) == n + len(MORE)
    assert inputs["rows"][n:].min() >= n, "labelled texts are read as they are"
    losses = task.objective.eval()(**inputs)
    token_losses = []
    for i, target in enumerate(inputs["targets"]):
        _, logits, _ = alone(task, inputs, int(inputs["rows"][n + i]))
        token_losses.append(-logits[inputs["columns"][n + i]].log_softmax(-1)[target])
    expected = cross_entropy(slow_scores(task, "pet", inputs), inputs["labels"])
    mlm = torch.stack(token_losses).mean()
    torch.testing.assert_close(losses["mlm"], mlm)
    torch.testing.assert_close(losses["loss"], 0.9999 * expected + 1e-4 * mlm)


def test_scores_of_many_texts_are_those_of_each_alone(steady):
    learner = learner_of("pet", load_backbone(steady["roberta"]))
    task = learner.task(split_of(), EvaluationLog())
    together = task.scorer.score(split_of().train.examples)
    alone_each = [task.scorer.score(split_of().train.examples.take([i])) for i in range(6)]
    np.testing.assert_allclose(together, np.concatenate(alone_each), atol=1e-5)


def test_batches_are_a_pure_function_of_their_number(steady):
    backbone = load_backbone(steady["bert"])
    first, again = (task_of("pet", backbone, unlabeled=MORE) for _ in range(2))
    first.inputs(0)
    for name, value in first.inputs(5).items():
        assert torch.equal(value, again.inputs(5)[name])


def test_a_new_head_is_drawn_from_the_seed_and_draws_nothing_from_the_caller(steady):
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    heads = [
        learner_of("fine-tuning", load_backbone(steady["bert"]), seed=seed).head.dense.weight
        for seed in (7, 7, 8)
    ]
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_dropout_is_off_when_held_out_examples_are_answered(steady):
    learner = learner_of("fine-tuning", load_backbone(steady["bert"]))
    learner.head.dropout.p = 0.9
    split = split_of()
    task = learner.task(Split(split.train, dev=split.train), EvaluationLog())
    learner.module.train()
    first, again = (task.held_out(split.train).scores for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_head_is_what_its_own_tensors_say():
    head = ClsHead(4, 3)
    again = ClsHead.from_state(head.state_dict())
    features = torch.randn(5, 4)
    torch.testing.assert_close(
        head.eval()(None, features, features), again.eval()(None, features, features)
    )


def test_sizes_rounded_up_for_a_gpu_change_no_loss(steady):
    unlabeled = Examples(("the red train is late", "yes or no ?"))
    task = task_of("pet", load_backbone(steady["bert"]), unlabeled=unlabeled, mlm_rate=0.5)
    plain = task.inputs(0)
    task.rounds_sizes = True
    rounded = task.inputs(0)
    assert 0 < len(plain["targets"]) < len(rounded["targets"]) == 128
    objective = task.objective.eval()
    torch.testing.assert_close(objective(**rounded), objective(**plain))
