"""Words of several tokens, PET's way: as many masks as tokens, the surest one filled in first."""

import numpy as np
import pytest
import torch

from cptuning.backbone import load_backbone
from cptuning.methods.words import WordHead
from tests.methods.toys import ARCHITECTURES, rival, task_of, toy

LONG = {"label0": "great movie", "label1": "no", "label2": "long train"}
SAME = {"label0": "great good", "label1": "no late"}


def log_probabilities(task, ids):
    module = task.objective.encoder
    logits = module.model(inputs_embeds=module.embed(torch.as_tensor(ids)[None])).logits
    return logits[0].log_softmax(-1)


@pytest.fixture(params=ARCHITECTURES)
def task(request, steady):
    return task_of("pet", load_backbone(steady[request.param]), n_classes=3, label_words=LONG)


def test_training_sees_as_many_masks_as_the_longest_word_has_tokens(task):
    mask = task.layout.special.mask
    longest = max((row >= 0).sum().item() for row in task.learner.head.tokens)
    assert longest > 1
    for encoding in task.encodings:
        masks = np.flatnonzero(encoding.ids == mask)
        assert masks.tolist() == list(range(encoding.output, encoding.output + longest))


def test_the_loss_is_pets_hinge_on_log_probabilities(task):
    inputs = task.inputs(0)
    total = []
    for row, label in enumerate(inputs["labels"].tolist()):
        length = int(inputs["attention_mask"][row].sum())
        said = log_probabilities(task, inputs["input_ids"][row, :length])
        first = int(inputs["columns"][row * task.layout.masks])
        scores = [
            sum(said[first + i, t] for i, t in enumerate(word.tolist()) if t >= 0)
            for word in task.learner.head.tokens
        ]
        wrong = [s for other, s in enumerate(scores) if other != label]
        total.append(sum(torch.relu(1 - scores[label] + s) for s in wrong))
    loss = task.objective.eval()(**inputs)["loss"]
    torch.testing.assert_close(loss, torch.stack(total).mean())


def test_an_answer_fills_in_the_surest_token_and_asks_again(task):
    found = task.scorer.score_encodings(task.encodings)
    for row, encoding in enumerate(task.encodings):
        for label, word in enumerate(task.learner.head.tokens):
            tokens = [t for t in word.tolist() if t >= 0]
            ids = encoding.ids.tolist()
            del ids[encoding.output + len(tokens) : encoding.output + task.layout.masks]
            left, total = dict(enumerate(tokens)), 0.0
            while left:
                said = log_probabilities(task, ids)
                place = max(left, key=lambda i: said[encoding.output + i, tokens[i]].item())
                total += said[encoding.output + place, tokens[place]].item()
                ids[encoding.output + place] = left.pop(place)
            assert found[row, label] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("method", ["pet", "p-tuning"])
def test_a_task_is_learned_with_words_of_several_tokens(steady, tmp_path, architecture, method):
    import cptuning

    texts, labels = toy(2, pair=False)
    classifier = rival(method, steady[architecture], label_words=SAME, steps=200)
    classifier.fit(texts, labels)
    assert classifier.score(texts, labels) == 1.0
    classifier.save(tmp_path / "model")
    loaded = cptuning.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(texts), classifier.predict_proba(texts))


def test_a_head_is_what_its_own_tensors_say():
    head = WordHead([(4, 5), (6,)])
    assert WordHead.from_state(head.state_dict()).tokens.tolist() == [[4, 5], [6, -1]]
