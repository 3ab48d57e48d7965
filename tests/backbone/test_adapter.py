"""The adapter against plain forward passes of models that it never touched."""

from functools import cache

import numpy as np
import pytest
import torch
import transformers
from tests.tiny import ARCHITECTURES, PAIRS, SINGLES, tiny_model, tiny_tokenizer
from torch.testing import assert_close
from transformers import AutoModelForMaskedLM

from cptuning.backbone import Backbone, PromptedEncoder, layout_for, load_backbone, to_device
from cptuning.data import as_examples
from cptuning.errors import CPTuningError
from cptuning.prompting import Template, collate

WITH_TYPES = ("bert", "albert", "electra")
SHARING = ("bert", "roberta", "albert", "electra", "distilbert")
INPUTS = {
    "it is": ("{a} it is [MASK]", SINGLES),
    "around": ("It was [MASK] . {a}", SINGLES),
    "bare": ("{a} [MASK]", SINGLES),
    "pair": ("{a} ? [MASK] {b}", PAIRS),
    "bordered pair": ("{a} [SEP] {b} these are [MASK] .", PAIRS),
}
every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)
every_input = pytest.mark.parametrize("inputs", INPUTS)


def close(actual, expected):
    assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def untouched(tiny):
    """The same weights in a model that no adapter has seen."""

    @cache
    def model(architecture):
        return AutoModelForMaskedLM.from_pretrained(tiny(architecture), dtype=torch.float32).eval()

    return model


class Case:
    """A model behind the adapter, and a batch laid out for it."""

    def __init__(self, folder, inputs, features="head"):
        template, texts = INPUTS[inputs]
        self.backbone = load_backbone(folder)
        self.layout = layout_for(self.backbone, Template.parse(template), 64)
        self.encoder = PromptedEncoder(self.backbone, self.layout.prompt_ids, features).eval()
        self.encodings = self.layout.encode(as_examples(texts))
        self.batch = collate(self.encodings, self.layout.special.pad)
        self.tensors = to_device(self.batch, torch.device("cpu"))

    def vocabulary_ids(self):
        """The input with each prompt replaced by the token that it was copied from."""
        ids = self.batch.input_ids.copy()
        prompts = ids >= self.layout.vocabulary
        ids[prompts] = self.layout.prompt_ids[ids[prompts] - self.layout.vocabulary]
        return torch.from_numpy(ids)

    def wanted(self):
        """The [OMSK]s, then other positions: the last real token and the second of each row."""
        rows = np.arange(len(self.batch))
        last = self.batch.attention_mask.sum(axis=1) - 1
        columns = np.concatenate([self.batch.outputs, last, np.ones_like(last)])
        return torch.from_numpy(np.tile(rows, 3)), torch.from_numpy(columns)


@pytest.fixture
def case(tiny):
    return lambda architecture, inputs="it is", features="head": Case(
        tiny(architecture), inputs, features
    )


def plain_pass(model, case, architecture, **text):
    """Last hidden state, input of the decoder and logits of an ordinary forward pass."""
    caught = []
    hook = model.get_output_embeddings().register_forward_pre_hook(
        lambda _module, inputs: caught.append(inputs[0])
    )
    types = {"token_type_ids": case.tensors["token_type_ids"]} if architecture in WITH_TYPES else {}
    with torch.no_grad():
        output = model(
            **text,
            **types,
            attention_mask=case.tensors["attention_mask"],
            output_hidden_states=True,
        )
        hidden = model.base_model(
            **text, **types, attention_mask=case.tensors["attention_mask"]
        ).last_hidden_state
    hook.remove()
    return hidden, caught[0], output.logits


@every_input
@every_architecture
def test_head_features_are_the_decoders_inputs_of_a_full_pass(
    case, untouched, architecture, inputs
):
    it = case(architecture, inputs)
    rows, columns = it.wanted()
    with torch.no_grad():
        embeds = it.encoder.embed(it.tensors["input_ids"])
        features, decoder_inputs = it.encoder(**it.tensors, rows=rows, columns=columns)
        outputs = it.encoder.outputs(it.batch)
        logits = it.encoder.decode(decoder_inputs)
    model = untouched(architecture)
    for text in ({"inputs_embeds": embeds}, {"input_ids": it.vocabulary_ids()}):
        _, expected, expected_logits = plain_pass(model, it, architecture, **text)
        close(features, expected[rows, columns])
        close(decoder_inputs, expected[rows, columns])
        close(outputs, expected[torch.arange(len(it.batch)), it.batch.outputs])
        close(logits, expected_logits[rows, columns])


@every_input
@every_architecture
def test_hidden_features_are_the_last_hidden_state_of_a_full_pass(
    case, untouched, architecture, inputs
):
    it = case(architecture, inputs, "hidden")
    rows, columns = it.wanted()
    with torch.no_grad():
        features, decoder_inputs = it.encoder(**it.tensors, rows=rows, columns=columns)
        logits = it.encoder.decode(decoder_inputs)
    hidden, _, expected_logits = plain_pass(
        untouched(architecture), it, architecture, input_ids=it.vocabulary_ids()
    )
    close(features, hidden[rows, columns])
    close(logits, expected_logits[rows, columns])


@every_architecture
@every_input
def test_training_reads_texts_that_share_rows_as_if_each_stood_alone(case, architecture, inputs):
    """With dropout off, features and gradients of a training pass are those of a padded one."""
    it = case(architecture, inputs)
    assert it.encoder._can_share_rows == (architecture in SHARING)
    rows, columns = it.wanted()
    seen = {}
    for training in (False, True):
        it.encoder.zero_grad()
        it.encoder.training = training  # the adapter alone: what is inside draws no dropout
        features, decoder_inputs = it.encoder(**it.tensors, rows=rows, columns=columns)
        (features.square().mean() + decoder_inputs.sin().mean()).backward()
        gradients = [p.grad for p in it.encoder.parameters() if p.grad is not None]
        seen[training] = [features, decoder_inputs, *gradients]
    close(seen[True], seen[False])


@every_architecture
def test_features_tell_texts_and_places_apart(case, architecture):
    """Or else the comparisons above would prove little."""
    it = case(architecture)
    with torch.no_grad():
        outputs = it.encoder.outputs(it.batch)
    assert torch.pdist(outputs).min() > 0.05


@every_architecture
def test_token_types_matter_where_the_model_has_them(case, architecture):
    it = case(architecture, "pair")
    with torch.no_grad():
        before = it.encoder.outputs(it.batch)
        it.batch.token_type_ids[:] = 1 - it.batch.token_type_ids
        after = it.encoder.outputs(it.batch)
    assert ((after - before).abs().max() > 1e-3) == (architecture in WITH_TYPES)


@every_architecture
def test_the_model_is_whole_again_after_use(case, untouched, architecture):
    it = case(architecture)
    model = it.backbone.model
    names, parameters = list(untouched(architecture).state_dict()), dict(model.named_parameters())
    it.encoder.outputs(it.batch).sum().backward()
    with pytest.raises(IndexError):
        it.encoder(
            **it.tensors, rows=torch.zeros(1, dtype=torch.long), columns=torch.tensor([9999])
        )

    assert list(model.state_dict()) == names
    for name, tensor in untouched(architecture).state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)
    assert all(parameters[name] is after for name, after in model.named_parameters())
    tied = untouched(architecture).get_output_embeddings().weight is (
        untouched(architecture).get_input_embeddings().weight
    )
    assert tied == (model.get_output_embeddings().weight is model.get_input_embeddings().weight)
    with torch.no_grad():
        logits = model(input_ids=it.vocabulary_ids()).logits
    assert logits.shape[-1] == len(it.backbone.tokenizer)
    close(logits, untouched(architecture)(input_ids=it.vocabulary_ids()).logits.detach())


@every_architecture
def test_prompts_start_as_copies_and_learn_alone(case, architecture):
    it = case(architecture, "around")
    table = it.backbone.model.get_input_embeddings()
    before = table.weight.detach().clone()
    assert torch.equal(it.encoder.prompts, before[it.layout.prompt_ids])

    text = it.layout.encode(as_examples(["great"]))
    first = it.encoder.outputs(collate(text, it.layout.special.pad))
    (first**3).sum().backward()
    assert (it.encoder.prompts.grad.abs().sum(dim=1) > 0).all()
    # The rows they were copied from are not part of this input, and so not of its graph.
    assert (table.weight.grad[it.layout.prompt_ids] == 0).all()

    torch.optim.SGD([it.encoder.prompts], lr=0.5).step()
    assert torch.equal(table.weight, before)
    with torch.no_grad():
        after = it.encoder.outputs(collate(text, it.layout.special.pad))
    assert (after - first).abs().max() > 1e-3


@every_architecture
def test_padding_does_not_change_a_row(case, architecture):
    it = case(architecture)
    pad = it.layout.special.pad
    with torch.no_grad():
        together = it.encoder.outputs(it.batch)
        alone = torch.cat([it.encoder.outputs(collate([one], pad)) for one in it.encodings])
    assert len({len(one) for one in it.encodings}) > 2
    close(together, alone)


@pytest.mark.parametrize("features", ["head", "hidden"])
def test_the_centre_is_taken_off_the_features_and_not_off_the_decoders_inputs(case, features):
    it = case("albert", features=features)
    with torch.no_grad():
        before, inputs_before = it.encoder.outputs(it.batch), it.encoder.at_outputs(it.batch)[1]
        it.encoder.centre.copy_(torch.arange(before.shape[1]))
        after, inputs_after = it.encoder.outputs(it.batch), it.encoder.at_outputs(it.batch)[1]
    close(before - after, torch.arange(before.shape[1]).float().expand_as(before))
    assert torch.equal(inputs_before, inputs_after)


def test_making_an_adapter_draws_no_random_numbers_and_keeps_the_mode(tiny):
    backbone = load_backbone(tiny("bert"))
    backbone.model.train()
    state = torch.get_rng_state()
    PromptedEncoder(backbone, np.array([5]))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(module.training for module in backbone.model.modules())


# Models that can't be read, or only in part.


def mobile_bert(tokenizer):
    config = transformers.MobileBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        embedding_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        intra_bottleneck_size=8,
    )
    return transformers.MobileBertForMaskedLM(config)


def deberta_with_the_other_head(tokenizer):
    """Its decoder is the embedding table; what it names as its decoder is another layer."""
    return tiny_model("deberta-v2", tokenizer, legacy=False)


class Capped(transformers.BertForMaskedLM):
    """It does something more to what comes out of its decoder."""

    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.logits = torch.tanh(output.logits)
        return output


def capped_bert(tokenizer):
    return Capped(tiny_model("bert", tokenizer).config)


@pytest.mark.parametrize("make", [mobile_bert, deberta_with_the_other_head, capped_bert])
def test_a_head_that_does_not_end_in_its_decoder_is_refused(make):
    tokenizer = tiny_tokenizer("bert")
    backbone = Backbone("it", make(tokenizer), tokenizer, has_head=True)
    name = type(backbone.model).__name__
    with pytest.raises(CPTuningError, match=f"The head of {name} can't be taken apart"):
        PromptedEncoder(backbone, np.array([5]))


@pytest.mark.parametrize("features", ["head", "hidden"])
def test_without_a_head_the_last_hidden_state_is_taken(headless, features):
    it = Case(headless, "pair", features)
    assert not it.encoder.has_head
    model = transformers.AutoModel.from_pretrained(headless, dtype=torch.float32).eval()
    with torch.no_grad():
        outputs = it.encoder.outputs(it.batch)
        expected = model(
            input_ids=it.vocabulary_ids(),
            attention_mask=it.tensors["attention_mask"],
            token_type_ids=it.tensors["token_type_ids"],
        ).last_hidden_state
    close(outputs, expected[torch.arange(len(it.batch)), it.batch.outputs])


def test_threads_do_not_change_the_prompts_gradient(tiny):
    """Each adds up its part of a large batch, in one order."""
    encoder = PromptedEncoder(load_backbone(str(tiny("bert"))), np.array([5, 6]))
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(encoder.vocabulary + 2, (256, 256), generator=generator)
    ids[:, ::4] = encoder.vocabulary
    weights = torch.randn(256, 256, encoder.prompts.shape[1], generator=generator)
    threads = torch.get_num_threads()
    torch.set_num_threads(max(2, threads))
    try:
        found = []
        for _ in range(20):
            (encoder.embed(ids) * weights).sum().backward()
            found.append(encoder.prompts.grad.clone())
            encoder.zero_grad(set_to_none=True)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, found[0]) for one in found)
