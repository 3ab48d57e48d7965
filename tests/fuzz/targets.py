"""What is fuzzed: whatever comes in is read, or refused with the one exception that says why."""

import gzip
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cptuning.errors import CPTuningError
from tests.fuzz.mutation import VALUES, mutated, mutated_json

STORED = Path(__file__).parents[1] / "storage" / "format_1"
MODELS = ("cp-tuning", "lm-bff-l")

TABLES = {
    "csv": (
        b'text,label\n"a ""quoted"" text, with commas",x\nb,y\n',
        b"text_a;text_b;label\na;b;x\nc;d;y\n",
        b"hello,greeting\nbye,parting\nhi,greeting\n",
        "Text,Team\nGrüße,Lager\n".encode("cp1252"),
        "text,label\na,x\n".encode("utf-16"),
    ),
    "tsv": (b"text\tlabel\na\tx\nb\ty\n", b"id\tmessage\tcategory\n1\ta\tx\n2\tb\ty\n"),
    "jsonl": (
        b'{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n',
        b'{"text_a": "a", "text_b": "b", "label": 1}\n{"text_a": "c", "text_b": "d", "label": 2}\n',
        b'{"tokens": ["a", "b"], "tags": ["O", "B-X"]}\n',
    ),
}


def _table(suffix: str) -> Any:
    @given(mutated(*TABLES[suffix]), st.booleans(), st.booleans(), st.booleans())
    def read(content: bytes, need_label: bool, compressed: bool, broken: bool) -> None:
        from cptuning.data import read_table
        from cptuning.data.files import preview_table

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"t.{suffix}")
            if compressed:
                path = path.with_name(f"{path.name}.gz")
                content = gzip.compress(content, mtime=0)
                content = content[: len(content) // 2] if broken else content
            path.write_bytes(content)
            try:
                table = read_table(path, need_label=need_label)
            except CPTuningError as error:
                check_sentence(error)
            else:
                assert len(table.examples) == len(table.rows) == len(table.where) > 0
                for text in (*table.examples.first, *(table.examples.second or ())):
                    text.encode()
                if need_label:
                    assert len(table.labels or []) == len(table.rows)
            try:
                preview_table(path)
            except CPTuningError as error:
                check_sentence(error)

    return read


def check_sentence(error: CPTuningError) -> None:
    """The error is one sentence that a terminal can show."""
    sentence = str(error)
    assert sentence.strip()
    assert len(sentence) < 2000, sentence
    assert "Traceback" not in sentence


SEED_TEMPLATES = (
    b"{a} It was [MASK].",
    b"[CLS] {a}",
    b"{a:chopped} ? [MASK] , {b:lowered}",
    b"[PRO*5] {a} [MASK] [SEP] {b}",
    b"{a} [PRO] [MASK] [JOIN] {b}",
)


@given(mutated(*SEED_TEMPLATES))
def templates(source: bytes) -> None:
    """A template is parsed, and then lays out texts, or is refused."""
    from cptuning.prompting import Template

    try:
        template = Template.parse(source.decode("utf-8", "surrogateescape"), needs_output=False)
    except CPTuningError as error:
        check_sentence(error)
    else:
        assert Template.parse(template.source, needs_output=False) == template


@cache
def _model_files(model: str) -> list[str]:
    files = [path for path in (STORED / model).rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(STORED / model)) for path in files)


@given(st.sampled_from(MODELS), st.data())
def model_folders(model: str, data: st.DataObject) -> None:
    """A damaged model folder is refused, or answers with probabilities."""
    from cptuning.storage import load_predictor

    name = data.draw(st.sampled_from([*_model_files(model), "added.jsonl"]))
    whole = STORED / model / name
    content = whole.read_bytes() if whole.exists() else b'{"texts": ["a"], "labels": ["good"]}\n'
    if name.endswith(".json") and data.draw(st.integers(0, 4)):
        changed = json.dumps(data.draw(mutated_json(json.loads(content)))).encode()
    else:
        changed = data.draw(mutated(content))
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(shutil.copytree(STORED / model, Path(parent, "model")))
        (folder / name).write_bytes(changed)
        try:
            predictor = load_predictor(folder, "cpu")
            text: Any = ("a great film", "it was") if predictor.is_pair else "a great film"
            answered = predictor.answer([text])
        except CPTuningError as error:
            check_sentence(error)
        else:
            check_probabilities(answered.probabilities)


def check_probabilities(probabilities: Any) -> None:
    """Finite, between 0 and 1, and 1 together."""
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-4)


@given(st.binary(max_size=200) | mutated(b"\x08\x07\x12\x03abc:\x04\x0a\x02\x08\x01B\x02\x10\x0d"))
def graphs(content: bytes) -> None:
    """Bytes in the place of an ONNX graph are looked through without being run."""
    from cptuning.inference.onnx_file import check_graph

    try:
        check_graph(content, "graph")
    except CPTuningError as error:
        check_sentence(error)


@cache
def _client() -> Any:
    from starlette.testclient import TestClient

    from cptuning.serving.api_keys import ApiKeys
    from cptuning.serving.application import create_app
    from cptuning.serving.limits import Limits
    from cptuning.serving.model_registry import ModelRegistry
    from cptuning.serving.prometheus import Metrics

    folder = Path(shutil.copytree(STORED / "cp-tuning", Path(tempfile.mkdtemp(), "model")))
    limits, metrics = Limits(body_bytes=100_000), Metrics()
    registry = ModelRegistry(folder, limits, metrics)
    app = create_app(registry, limits, metrics, ApiKeys([]))
    client = TestClient(app, base_url="http://localhost", raise_server_exceptions=True)
    client.__enter__()
    return client


BODIES = (
    {"texts": ["a", "b"], "explain": 3},
    {"texts": "a"},
    {"texts": ["a", "b"], "labels": ["good", "new"]},
    {"texts": [["a", "b"]], "labels": 3},
)


@given(
    st.sampled_from(["/predict", "/embed", "/examples", "/models/model/predict"]),
    st.sampled_from(BODIES).flatmap(mutated_json)
    | st.dictionaries(st.sampled_from(["texts", "labels", "explain"]), VALUES, max_size=3)
    | mutated(*(json.dumps(body).encode() for body in BODIES)),
)
def requests(path: str, body: Any) -> None:
    """Every body gets an answer in JSON, and none is the server's fault."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = _client().post(path, content=data, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
    answered = answer.json()
    if answer.status_code != 200:
        assert list(answered) == ["error"]
    for prediction in answered.get("predictions", []):
        check_probabilities(np.array([list(prediction["probabilities"].values())]))


TARGETS = {
    "CSV files": _table("csv"),
    "TSV files": _table("tsv"),
    "JSONL files": _table("jsonl"),
    "templates": templates,
    "model folders": model_folders,
    "graphs": graphs,
    "requests": requests,
}
