"""What the tests of the rivals share: toy tasks, tiny models, a learner of each method."""

import numpy as np
import torch

from cptuning import make_classifier
from cptuning.data import Examples, LabelSpace
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.fine_tuning import FineTuning
from cptuning.methods.lm_bff import LMBFF
from cptuning.methods.p_tuning import PTuning
from cptuning.methods.pet import PET
from cptuning.methods.training import LabelledExamples, Split, Training
from cptuning.methods.warp import WARP
from cptuning.training import Processes

ARCHITECTURES = ("bert", "roberta", "albert")
LEARNERS = {
    "fine-tuning": FineTuning,
    "pet": PET,
    "lm-bff-l": LMBFF,
    "p-tuning": PTuning,
    "warp": WARP,
}
RIVALS = ("fine-tuning", "pet", "lm-bff-t", "lm-bff-l", "lm-bff-tl", "p-tuning", "warp")

# Words that every tiny tokenizer has as one token.
WORDS = ("great", "it", "good", "no", "the", "to")

SIX = (
    ("a great movie", "great movie !", "the great movie"),
    ("the red train", "a red train", "red train ?"),
    ("was it cold food", "cold food .", "the cold food"),
    ("how do i start", "how to start ?", "how would i start"),
    ("a few years later", "years later .", "a few years ?"),
    ("yes or no", "yes or no ?", "say yes or no"),
)
CPU = Processes(torch.device("cpu"))

# Enough for a tiny random model to learn a toy task by heart.
QUICK = {
    "steps": 100,
    "evaluate_every": 100,
    "batch_size": 18,
    "warmup": 0.0,
    "clip_norm": 0.0,
    "weight_decay": 0.0,
    "learning_rate": 3e-3,
    "validation": "none",
    "verbose": False,
}
OWN = {
    "warp": {"learning_rate": 5e-2},
    "lm-bff-t": {"beam": 2, "n_templates": 2},
    "lm-bff-l": {"n_mappings": 2},
    "lm-bff-tl": {"beam": 2, "n_templates": 2, "n_mappings": 2},
}


def toy(n_classes, pair):
    """Texts and labels; the second text of a pair says nothing."""
    texts = [text for group in SIX[:n_classes] for text in group]
    labels = [f"label{i}" for i in range(n_classes) for _ in range(3)]
    return [(text, "is it so ?") for text in texts] if pair else texts, labels


def label_words(n_classes):
    return {f"label{i}": WORDS[i] for i in range(n_classes)}


def rival(method, folder, n_classes=2, **changes):
    """A classifier of a method on a tiny model, with words if it wants them."""
    words = {} if method == "fine-tuning" else {"label_words": label_words(n_classes)}
    return make_classifier(
        method, backbone=str(folder), **QUICK | OWN.get(method, {}) | words | changes
    )


def settings_of(method, pair=False, n_classes=2, **changes):
    """The settings of a method as its classifier would make them."""
    chosen = rival(method, "", n_classes, **{"steps": 3, "batch_size": 4} | changes)
    examples = Examples(("a",), ("b",) if pair else None)
    return chosen.settings_for(examples, n_classes)


def training_of(backbone, settings, split, seed=3, **more):
    """A training on one CPU, of as many classes as there are labels, and at least two."""
    names = tuple(f"label{i}" for i in range(max(2, split.train.labels.max() + 1)))
    return Training(backbone, settings, LabelSpace(names), split, CPU, seed=seed, **more)


def learner_of(method, backbone, pair=False, n_classes=2, seed=3, split=None, **changes):
    settings = settings_of(method, pair, n_classes, **changes)
    split = split or split_of(n_classes, pair)
    return LEARNERS[method](training_of(backbone, settings, split, seed))


def split_of(n_classes=2, pair=False, **more):
    texts, labels = toy(n_classes, pair)
    first = tuple(t[0] if pair else t for t in texts)
    second = tuple(t[1] for t in texts) if pair else None
    numbers = np.array([int(label[-1]) for label in labels])
    return Split(LabelledExamples(Examples(first, second), numbers), **more)


def task_of(method, backbone, pair=False, n_classes=2, unlabeled=None, **changes):
    learner = learner_of(method, backbone, pair, n_classes, **changes)
    return learner.task(split_of(n_classes, pair, unlabeled=unlabeled), EvaluationLog())
