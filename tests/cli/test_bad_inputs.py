"""What can be wrong: one sentence that says what, where and what to do; nothing half-written."""

import re
import runpy
import shlex
import shutil

import pytest
from tests.cli.bad_inputs import SECTIONS
from tests.standstill import ROOT

from cptuning.errors import CPTuningError

CASES = {f"{section}: {case.when}": case for section, cases in SECTIONS.items() for case in cases}
COMMANDS = {name: case for name, case in CASES.items() if case.command}
EXPRESSIONS = {name: case for name, case in CASES.items() if case.python}
REQUESTS = {name: case for name, case in CASES.items() if case.request}

FILMS = (
    ["a great film", "i loved it", "a dull film", "i hated it"],
    ["good", "good", "bad", "bad"],
)


@pytest.fixture(scope="module")
def places(tmp_path_factory, films, pairs, pair_model, tiny):
    """What the table calls @films, @model and so on."""
    from cptuning import CPTuningClassifier, make_classifier

    root = tmp_path_factory.mktemp("places")
    foreign = root / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("years of work")
    single = CPTuningClassifier(preset="instant").fit(*FILMS)
    single.save(root / "model")
    single.export(root / "onnx")
    quick = {"backbone": str(tiny("bert")), "steps": 0, "validation": "none", "verbose": False}
    make_classifier("fine-tuning", **quick).fit(*FILMS).save(root / "rival")
    made = {name: root / name for name in ("model", "onnx", "rival", "foreign")}
    return made | {"films": films, "pairs": pairs, "pair-model": pair_model}


def tree(*folders):
    """All that is in some folders, and when it was changed."""
    return {
        path: path.lstat().st_mtime_ns for folder in folders for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(autouse=True)
def harmless(tmp_path, places, monkeypatch):
    """Nothing half made is left behind, and nobody's files are touched."""
    monkeypatch.chdir(tmp_path)
    yield
    kept = tree(*(place for place in places.values() if place.is_dir()))
    assert kept == _kept(places, kept)


_first = {}


def _kept(places, now):
    return _first.setdefault(id(places), now)


def prepared(case, tmp_path, places, monkeypatch):
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value)
    for name, content in case.files.items():
        if callable(content):
            content(tmp_path / name)
        elif content is not None:
            data = content.encode() if isinstance(content, str) else content
            (tmp_path / name).write_bytes(data)
    if case.change is not None:
        case.change(shutil.copytree(places["pair-model"], tmp_path / "model"))


def filled(word, tmp_path, places):
    if word.startswith("@/"):
        return str(tmp_path / word[2:])
    if word.startswith("@"):
        name, slash, rest = word[1:].partition("/")
        return f"{places[name]}{slash}{rest}"
    return word


def one_sentence(stderr):
    """The error in what was printed; Typer prints those of its own in a box."""
    lines = [line for line in stderr.splitlines() if not line.startswith("warning: ")]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if errors:
        [sentence] = errors
        return sentence
    box = stderr[stderr.index("╭─ Error") :]
    return " ".join(re.sub(r"[╭─╮│╰╯]+( Error )?", " ", box).split())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(run, name, tmp_path, places, monkeypatch):
    case = COMMANDS[name]
    prepared(case, tmp_path, places, monkeypatch)
    before = tree(tmp_path)
    words = [filled(word, tmp_path, places) for word in shlex.split(case.command)]
    result = run(*words, stdin=case.stdin)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert case.says in one_sentence(result.stderr)
    assert len(result.stderr) < 2000
    assert result.stdout == ""
    assert tree(tmp_path) == before


@pytest.fixture(scope="module")
def names(places, tiny):
    """What the expressions of the table know."""
    import numpy as np

    import cptuning
    from cptuning import CPTuningClassifier, make_classifier
    from cptuning.backbone import load_backbone
    from cptuning.data import read_table

    return {
        "np": np,
        "cptuning": cptuning,
        "CPTuningClassifier": CPTuningClassifier,
        "make_classifier": make_classifier,
        "load_backbone": load_backbone,
        "read_table": read_table,
        "model": str(places["model"]),
        "tiny": str(tiny("bert")),
        "texts": ["a", "b"],
        "labels": ["x", "y"],
    }


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression(name, names, tmp_path):
    from cptuning import CPTuningClassifier

    case = EXPRESSIONS[name]
    own = {"clf": CPTuningClassifier(preset="instant"), "new": tmp_path / "new"}
    if "fitted" in case.python:
        own["fitted"] = CPTuningClassifier(preset="instant").fit(["a", "b"], ["x", "y"])
    with pytest.raises((CPTuningError, ValueError)) as error:
        eval(case.python, names | own)
    sentence = str(error.value)
    # Unfitted estimators have an exception of scikit-learn's.
    assert isinstance(error.value, CPTuningError) or "not fitted" in sentence
    assert case.says in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def client(places):
    """A client of the service of the model of pairs, in this process."""
    from starlette.testclient import TestClient

    from cptuning.serving.api_keys import ApiKeys
    from cptuning.serving.application import create_app
    from cptuning.serving.limits import Limits
    from cptuning.serving.model_registry import ModelRegistry
    from cptuning.serving.prometheus import Metrics

    limits, metrics = Limits(), Metrics()
    registry = ModelRegistry(places["pair-model"], limits, metrics)
    with TestClient(
        create_app(registry, limits, metrics, ApiKeys([])), base_url="http://localhost"
    ) as client:
        yield client


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request(name, client):
    import json

    case = REQUESTS[name]
    path, body = case.request
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post(path, content=data, headers={"Content-Type": "application/json"})
    assert answer.status_code == case.status
    assert list(answer.json()) == ["error"]
    assert case.says in answer.json()["error"]
    assert answer.json()["error"].endswith(".")
    assert client.get("/models").json()["models"][0]["examples"] == 4


def test_there_are_at_least_150_kinds():
    assert len(CASES) == sum(map(len, SECTIONS.values())) >= 150


def test_the_page_of_the_documentation_is_up_to_date():
    made = runpy.run_path(str(ROOT / "docs" / "make_errors_page.py"))
    assert (ROOT / "docs" / "errors.md").read_text("utf-8") == made["page"](), (
        "run python docs/make_errors_page.py"
    )
