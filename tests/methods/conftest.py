import pytest

from cptuning.backbone import load_backbone
from cptuning.data import Examples
from cptuning.methods.training import LabelledExamples
from tests.methods.toys import ARCHITECTURES
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

    return LabelledExamples(Examples(GOOD + BAD), np.array([0] * len(GOOD) + [1] * len(BAD)))


# Wide enough to learn six classes by heart, and nothing random.
STEADY = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


@pytest.fixture(scope="session")
def steady(tmp_path_factory):
    """Folders of tiny models without dropout, by architecture."""
    root = tmp_path_factory.mktemp("steady")
    own = {"albert": {"embedding_size": 32}}
    return {
        name: save_tiny(name, root / name, **STEADY | own.get(name, {})) for name in ARCHITECTURES
    }
