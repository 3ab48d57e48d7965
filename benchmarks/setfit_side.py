"""SetFit on the embedded backbone: the other side of every comparison of speed.

It uses mean pooling, as SetFit's own models do, and SetFit's default arguments.
"""

import os
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

# Read when the hub's library is imported: SetFit's model card looks for models there.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from cptuning.backbone import Backbone, load_backbone
from cptuning.backbone.loading import quiet_transformers


class OtherWorkError(Exception):
    """The two sides did not do the same work, so their times can't be compared."""


def require_same(what: str, ours: Any, theirs: Any) -> None:
    """Stop the benchmark where the two sides differ.

    >>> require_same("threads", 2, 1)
    Traceback (most recent call last):
    ...
    benchmarks.setfit_side.OtherWorkError: The sides differ in threads: ours 2, theirs 1.
    """
    if ours != theirs:
        raise OtherWorkError(f"The sides differ in {what}: ours {ours}, theirs {theirs}.")


def saved_backbone(folder: Path, backbone: Backbone | None = None) -> Path:
    """The folder with the embedded backbone (or another one) as transformers writes it."""
    backbone = backbone or load_backbone("embedded")
    with quiet_transformers():
        backbone.model.save_pretrained(folder)
        backbone.tokenizer.save_pretrained(folder)
    return folder


def setfit_model(folder: Path, max_length: int, device: str = "cpu") -> Any:
    """An untrained SetFit model on that backbone."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from setfit import SetFitModel
    from sklearn.linear_model import LogisticRegression

    with quiet_transformers():
        words = Transformer(str(folder), max_seq_length=max_length)
        pooling = Pooling(words.get_embedding_dimension(), pooling_mode="mean")
        body = SentenceTransformer(modules=[words, pooling], device=device)
    return SetFitModel(model_body=body, model_head=LogisticRegression())


def setfit_on(folder: Path) -> Any:
    """An untrained SetFit model on a folder of sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from setfit import SetFitModel
    from sklearn.linear_model import LogisticRegression

    with quiet_transformers():
        body = SentenceTransformer(str(folder), device="cpu")
    return SetFitModel(model_body=body, model_head=LogisticRegression())


def setfit_sets_on(folder: Path) -> Any:
    """The same for label sets, with a logistic regression per label."""
    from setfit import SetFitModel

    with quiet_transformers():
        return SetFitModel.from_pretrained(
            str(folder), multi_target_strategy="one-vs-rest", device="cpu"
        )


def train_setfit_sets(
    model: Any,
    texts: list[str],
    labels: list[list[int]],
    seed: int,
    folder: Path,
    max_steps: int = -1,
) -> None:
    """SetFit's default recipe on 0/1 rows of labels."""
    from datasets import Dataset
    from setfit import Trainer

    data = Dataset.from_dict({"text": texts, "label": labels})
    Trainer(model, args=_arguments(seed, folder, max_steps), train_dataset=data).train()


def train_setfit(
    model: Any,
    texts: list[str],
    labels: list[str],
    seed: int,
    folder: Path,
    max_steps: int = -1,
) -> tuple[list[tuple[str, str]], int]:
    """SetFit's default recipe: one epoch of all unique pairs, oversampled, in batches of 16.

    It ends after ``max_steps`` if that is not -1. Gives the labelled texts that its trainer had,
    and the number of its steps.
    """
    from datasets import Dataset
    from setfit import Trainer

    codes = {label: code for code, label in enumerate(sorted(set(labels)))}
    data = Dataset.from_dict({"text": texts, "label": [codes[label] for label in labels]})
    model.labels = sorted(codes)
    trainer = Trainer(model, args=_arguments(seed, folder, max_steps), train_dataset=data)
    trainer.train()
    had = trainer.train_dataset
    names = [model.labels[code] for code in had["label"]]
    return list(zip(had["text"], names, strict=True)), trainer.st_trainer.state.global_step


def _arguments(seed: int, folder: Path, max_steps: int) -> Any:
    from setfit import TrainingArguments

    return TrainingArguments(
        seed=seed,
        max_steps=max_steps,
        output_dir=str(folder),
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        show_progress_bar=False,
    )


def steps_of_all_pairs(labels: list[str], batch_size: int = 16) -> int:
    """How many batches SetFit's pairs make; the rarer of like and unlike pairs are repeated.

    >>> steps_of_all_pairs(["a"] * 16 + ["b"] * 16)
    34
    """
    counts = Counter(labels)
    alike = sum(n * (n + 1) // 2 for n in counts.values())
    unlike = (len(labels) ** 2 - sum(n * n for n in counts.values())) // 2
    return -(-2 * max(alike, unlike) // batch_size)


def encoder_hash(encoder: torch.nn.Module, names: set[str] | None = None) -> str:
    """A fingerprint of an encoder's weights, or of those that are named."""
    state = encoder.state_dict()
    digest = sha256()
    for name in sorted(names or state):
        digest.update(name.encode())
        digest.update(state[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
