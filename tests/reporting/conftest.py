"""A model of words on a circle: what it answers can be worked out by hand, and needs no torch."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cptuning.data import Examples, LabelSpace
from cptuning.inference import EmbeddingPredictor, SupportSet

# A text's first word says where on the circle it lies, in degrees.
KNOWN = {"north": 90, "east": 0, "south": -90}


class CircleEncoder:
    """Places texts by the number in them."""

    layout = SimpleNamespace(windows=1)

    def embed(self, examples: Examples) -> np.ndarray:
        degrees = np.array([float(text.split()[0]) for text in examples.first])
        return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], 1).astype("f4")

    def save(self, folder: Path) -> None:
        raise NotImplementedError


def circle_predictor(
    classes: Sequence[str] = tuple(KNOWN), unknown_threshold: float | None = None
) -> EmbeddingPredictor:
    examples = Examples(tuple(f"{KNOWN.get(c, 45 * i)} is {c}" for i, c in enumerate(classes)))
    encoder = CircleEncoder()
    return EmbeddingPredictor(
        encoder,
        SupportSet(examples, encoder.embed(examples), np.arange(len(classes))),
        LabelSpace(tuple(classes)),
        inference="knn",
        k=1,
        temperature=0.5,
        unknown_threshold=unknown_threshold,
    )


@pytest.fixture
def predictor() -> EmbeddingPredictor:
    return circle_predictor()


@pytest.fixture
def facts() -> dict[str, object]:
    """What a model folder says of itself, as far as a report reads it."""
    return {
        "method": "cp-tuning",
        "classes": list(KNOWN),
        "parameters": {"backbone": "embedded"},
        "settings": {"steps": 2, "template": "{a} it is [MASK]"},
        "layout": {"template": "{a} it is [MASK]"},
        "temperature": 0.5,
        "unknown_threshold": None,
        "least_confidence": None,
        "training": {
            "examples": dict.fromkeys(KNOWN, 1),
            "validation": "none",
            "best_step": 2,
            "seed": 0,
        },
        "versions": {"cptuning": "0.1.0"},
    }
