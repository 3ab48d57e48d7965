"""Small models in folders, and servers for them."""

import shutil
from itertools import count

import pytest
from tests.serving.client import Server
from tests.tiny import save_sentence_encoder

TEXTS = ["a great movie", "i loved it", "so good", "a dull film", "boring", "bad food"]
LABELS = ["good"] * 3 + ["bad"] * 3
PAIRS = [("is it red?", "yes"), ("is it long?", "it is long"), ("is it red?", "no")]


@pytest.fixture(scope="session")
def folders(tiny, tmp_path_factory):
    """Models in one folder: of films, exported too, of pairs, of a rival, of a sentence encoder."""
    from cptuning import CPTuningClassifier, make_classifier
    from cptuning.export import export_onnx

    root = tmp_path_factory.mktemp("models")
    common = {"backbone": str(tiny("bert")), "steps": 1, "validation": "none", "verbose": False}
    films = CPTuningClassifier(**common).fit(TEXTS, LABELS)
    films.save(root / "trained")
    export_onnx(films, root / "films")
    export_onnx(CPTuningClassifier(**common).fit(PAIRS, [1, 1, 0]), root / "pairs")
    make_classifier("fine-tuning", **common).fit(TEXTS, LABELS).save(root / "rival")
    encoder = save_sentence_encoder(tmp_path_factory.mktemp("encoder"), dense=[(8, "Tanh")])
    pooled = CPTuningClassifier(**common | {"backbone": str(encoder)}).fit(TEXTS, LABELS)
    export_onnx(pooled, root / "sentences")
    return root


@pytest.fixture
def films(folders, tmp_path):
    """A copy of the exported model of films that a test may change."""
    return shutil.copytree(folders / "films", tmp_path / "films")


@pytest.fixture(scope="session")
def start_session(tmp_path_factory):
    """Starts servers that are stopped when the tests are over."""
    logs = tmp_path_factory.mktemp("logs")
    servers, numbers = [], count()

    def begin(folder, *options, **how):
        servers.append(Server(folder, *options, log=logs / f"{next(numbers)}.log", **how))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture
def start(start_session):
    """Starts servers that are stopped with the test."""
    servers = []

    def begin(*arguments, **how):
        servers.append(start_session(*arguments, **how))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture
def gate(tmp_path):
    return tmp_path / "gate"
