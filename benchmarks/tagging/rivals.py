"""What the tagger stands beside: a conditional random field, and fine-tuning of its backbone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cptuning.backbone import Backbone
from cptuning.backbone.word_encoder import WordEncoder, mean_by_word, word_inputs
from cptuning.data import UniformBatches
from cptuning.data.sentence_files import iob2_tags
from cptuning.data.sentences import Sentence, TaggedSentences
from cptuning.data.tag_schemes import WordSpan, spans_of, types_of
from cptuning.methods.tagging import word_encoder
from cptuning.methods.tagging_settings import TAGGER_PRESETS
from cptuning.training import Processes, Score, train

Found = list[list[WordSpan]]


def crf(train_sentences: TaggedSentences, test: Sequence[Sentence]) -> Found:
    """A CRF with the usual features, as in the tutorial of sklearn-crfsuite."""
    import sklearn_crfsuite  # Only this rival needs it.

    model = sklearn_crfsuite.CRF(
        algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True
    )
    inputs = [features(sentence.words) for sentence in train_sentences.sentences]
    model.fit(inputs, iob2_tags(train_sentences))
    answers = model.predict([features(sentence.words) for sentence in test])
    return [spans_of(list(tags)) for tags in answers]


def features(words: Sequence[str]) -> list[dict[str, str | bool]]:
    """The word, its end and its writing, and those of its neighbours.

    >>> features(["In", "Rome"])[1]["word[-3:]"], features(["In"])[0]["EOS"]
    ('ome', True)
    """
    rows = []
    for place, word in enumerate(words):
        row: dict[str, str | bool] = {
            "word.lower()": word.lower(),
            "word[-3:]": word[-3:],
            "word[-2:]": word[-2:],
            "word.isupper()": word.isupper(),
            "word.istitle()": word.istitle(),
            "word.isdigit()": word.isdigit(),
        }
        for step, name in ((-1, "BOS"), (1, "EOS")):
            if not 0 <= place + step < len(words):
                row[name] = True
                continue
            near = words[place + step]
            row[f"{step:+d}:word.lower()"] = near.lower()
            row[f"{step:+d}:word.istitle()"] = near.istitle()
            row[f"{step:+d}:word.isupper()"] = near.isupper()
        rows.append(row)
    return rows


class _Head(nn.Module):
    """The encoder with a linear layer on its words, and the cross-entropy of their tags."""

    def __init__(self, encoder: WordEncoder, n_tags: int) -> None:
        super().__init__()
        self.encoder = encoder.encoder.module
        self.dropout = nn.Dropout(0.1)
        self.linear = nn.Linear(len(self.encoder.centre), n_tags)

    def logits(self, owner: Tensor, **inputs: Tensor) -> Tensor:
        features, _ = self.encoder(**inputs)
        found: Tensor = self.linear(self.dropout(mean_by_word(features, owner)))
        return found

    def forward(self, labels: Tensor, owner: Tensor, **inputs: Tensor) -> dict[str, Tensor]:
        return {"loss": cross_entropy(self.logits(owner, **inputs), labels)}


class _FineTuning:
    """Token classification as the training loop takes it."""

    replayable = False

    def __init__(self, encoder: WordEncoder, examples: TaggedSentences, seed: int) -> None:
        self.seed = seed
        self.encoder = encoder
        self.settings = replace(
            TAGGER_PRESETS["default"]["single"], learning_rate=1e-4, steps=150, epochs=0
        )
        types = types_of(examples.spans)
        self.tags = ["O", *(f"{part}-{label}" for label in types for part in "BI")]
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        self.labels = [np.array([numbers[t] for t in tags]) for tags in iob2_tags(examples)]
        self.windows = encoder.windows(examples.sentences)
        self.batches = UniformBatches(len(self.windows), self.settings.batch_size, seed)
        torch.manual_seed(seed)
        self.objective = _Head(encoder, len(self.tags))
        encoder.encoder.module.prompts.requires_grad_(False)

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        model, head = self.encoder.encoder.module.model, self.objective.linear
        # A new layer starts from nothing: it learns at the usual higher rate.
        return [
            {"params": list(model.parameters()), "lr": learning_rate},
            {"params": list(head.parameters()), "lr": 10 * learning_rate},
        ]

    def inputs(self, batch: int) -> dict[str, Tensor]:
        windows = [self.windows[row] for row in self.batches(batch)]
        pad = self.encoder.layout.special.pad
        inputs = word_inputs(self.encoder.encoder.module, windows, pad)
        labels = [self.labels[w.sentence][np.unique(w.words)] for w in windows]
        return inputs | {"labels": torch.as_tensor(np.concatenate(labels))}

    def evaluate(self, step: int) -> Score | None:
        return None


def fine_tuning(
    backbone: Backbone, examples: TaggedSentences, test: Sequence[Sentence], seed: int
) -> Found:
    """Token classification: a linear layer on the words, everything trained by cross-entropy.

    A new layer has to be learnt, so it is given about five times the tagger's steps and twice its
    rate: with those of the tagger's default preset it finds nothing.
    """
    encoder = word_encoder(backbone, TAGGER_PRESETS["default"]["single"])
    task = _FineTuning(encoder, examples, seed)
    train(task, task.settings, Processes.find("cpu"))
    task.objective.eval()
    found: Found = []
    with torch.no_grad():
        for sentence in test:
            tags = [""] * len(sentence)
            for window in encoder.windows([sentence]):
                inputs = word_inputs(encoder.encoder.module, [window], encoder.layout.special.pad)
                answers = task.objective.logits(**inputs).argmax(dim=1).tolist()
                for word, answer in zip(np.unique(window.words), answers, strict=True):
                    tags[word] = task.tags[answer]
            found.append(spans_of(tags))
    return found
