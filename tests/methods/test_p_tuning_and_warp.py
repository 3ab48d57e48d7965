"""P-tuning's prompt encoder and its end; where WARP's vectors start."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from cptuning.backbone import load_backbone
from cptuning.methods.scorer import TextScorer
from tests.methods.toys import ARCHITECTURES, WORDS, learner_of, rival, split_of, toy


@pytest.fixture
def backbone(steady):
    return load_backbone(steady["bert"])


def test_prompt_vectors_come_from_a_two_layer_bilstm_and_an_mlp(backbone):
    module = learner_of("p-tuning", backbone).encoder.module
    encoder = module.parametrizations.prompts[0]
    assert (encoder.lstm.num_layers, encoder.lstm.bidirectional) == (2, True)
    raw = module.parametrizations.prompts.original
    hidden, _ = encoder.lstm(raw[None])
    first, _, second = encoder.mlp
    expected = second(torch.relu(first(hidden[0])))
    torch.testing.assert_close(module.prompts, expected)
    assert module.prompts.shape == (3, 32)


def test_the_model_and_the_prompts_have_a_rate_each(backbone):
    model, prompts = learner_of("p-tuning", backbone).parameter_groups(1e-5)
    assert model["lr"] == 1e-5
    assert prompts["lr"] == 1e-3
    assert len(prompts["params"]) == 21  # 16 of the LSTM, 4 of the MLP, the vectors


def test_the_words_of_the_prompt_stay_words(backbone):
    learner = learner_of("p-tuning", backbone)
    fixed = [i for i in learner.encoder.layout.word_ids if i < learner.encoder.layout.vocabulary]
    assert fixed == learner.encoder.layout.token_ids("It was .")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_training_throws_the_encoder_away_and_keeps_its_vectors(steady, tmp_path, architecture):
    texts, labels = toy(2, pair=False)
    classifier = rival("p-tuning", steady[architecture], steps=3).fit(texts, labels)
    module = classifier.predictor_.encoder.module
    assert not hasattr(module, "parametrizations")
    assert {n for n, _ in module.named_parameters() if not n.startswith("model.")} == {"prompts"}
    classifier.save(tmp_path / "model")
    assert load_file(tmp_path / "model" / "prompts.safetensors")["prompts"].shape[0] == 3
    saved = {p.name for p in (tmp_path / "model").rglob("*.safetensors")}
    assert saved == {"prompts.safetensors", "head.safetensors", "model.safetensors"}


def test_warps_class_vectors_start_from_the_words_rows_or_at_random(backbone):
    rows = backbone.model.get_output_embeddings().weight
    learner = learner_of("warp", backbone)
    ids = [learner.encoder.layout.token_ids(word)[0] for word in WORDS[:2]]
    torch.testing.assert_close(learner.head.vectors, rows[ids])
    first, again = (learner_of("warp", backbone, class_vectors="random").head for _ in range(2))
    assert torch.equal(first.vectors, again.vectors)
    assert not torch.isclose(first.vectors, rows[ids]).any()
    assert 0.5 < first.vectors.std() / rows.std() < 2


def test_class_vectors_at_random_need_no_words(steady):
    texts, labels = toy(2, pair=False)
    classifier = rival("warp", steady["bert"], class_vectors="random", label_words=None)
    assert classifier.fit(texts, labels).score(texts, labels) == 1.0


def test_a_word_of_several_tokens_starts_warps_vector_from_their_mean(backbone):
    learner = learner_of("warp", backbone, label_words={"label0": "great movie", "label1": "no"})
    rows = backbone.model.get_output_embeddings().weight
    ids = learner.encoder.layout.token_ids("great movie")
    torch.testing.assert_close(learner.head.vectors[0], rows[ids].mean(dim=0))
    assert learner.encoder.layout.masks == 1


def test_untrained_warp_answers_as_the_words_do(backbone):
    """Up to the decoder's bias, which WARP's class vectors don't have."""
    backbone.model.get_output_embeddings().bias.data.zero_()
    examples = split_of().train.examples
    learners = [learner_of(method, backbone) for method in ("warp", "pet")]
    scores = [TextScorer(one.encoder, one.head).score(examples) for one in learners]
    np.testing.assert_allclose(*scores, atol=1e-4)


def test_warps_prompts_may_stand_anywhere(steady):
    texts, labels = toy(2, pair=False)
    template = "[PRO*2] {a} [PRO] so [MASK] [PRO*3]"
    classifier = rival("warp", steady["bert"], template=template).fit(texts, labels)
    assert classifier.score(texts, labels) == 1.0
    module = classifier.predictor_.encoder.module
    assert len(module.prompts) == 7
    mask = module.model.get_input_embeddings().weight[
        classifier.predictor_.encoder.layout.special.mask
    ]
    assert not torch.isclose(module.prompts[0], mask).all()
    start = learner_of("warp", load_backbone(steady["bert"]), template=template).encoder.module
    torch.testing.assert_close(start.prompts[[0, 1, 2, 4, 5, 6]], mask.expand(6, -1))
