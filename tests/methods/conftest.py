import pytest

from cptuning.backbone import load_backbone
from cptuning.data import Examples
from cptuning.methods.task import Labelled
from tests.tiny import save_tiny

GOOD = ("great movie", "i loved it", "so good", "a great film", "great food", "it was good")
BAD = ("dull movie", "terrible and boring", "so bad", "a cold film", "bad food", "it was dull")


@pytest.fixture(scope="session")
def tiny_bert_folder(tmp_path_factory):
    """A BERT without dropout, so that only the data decide a gradient."""
    folder = tmp_path_factory.mktemp("tiny") / "bert"
    return save_tiny("bert", folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


@pytest.fixture
def backbone(tiny_bert_folder):
    return load_backbone(tiny_bert_folder)


@pytest.fixture
def data():
    import numpy as np

    return Labelled(Examples(GOOD + BAD), np.array([0] * len(GOOD) + [1] * len(BAD)))
