"""A folder of Parquet files on a small Ray cluster: every row is answered once, come what may."""

import json
import os
import shutil
import signal
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset
from tests.ray_cluster import workers
from tests.standstill import start_python
from tests.test_estimator import LABELS, TEXTS
from tests.tiny import save_sentence_encoder
from typer.testing import CliRunner

import cptuning
from cptuning import CPTuningClassifier
from cptuning.cluster.blocks import Block
from cptuning.cluster.prediction import BlockPredictor, PredictionJob

ROWS, GROUP = 600, 100

LAST_MOMENT = """
import os, signal, sys
from pathlib import Path
from cptuning.files.atomic import whole_file

with whole_file(Path(sys.argv[1])) as place:
    Path(sys.argv[1]).rename(place)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def model(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    classifier = CPTuningClassifier(
        str(tiny("bert")), steps=1, validation="none", verbose=False, device="cpu"
    )
    classifier.fit(TEXTS, LABELS).save(folder)
    return folder


@pytest.fixture
def source(tmp_path):
    """Two files, one in a folder within, of three row groups each."""
    folder = tmp_path / "texts"
    for number, name in enumerate(("a.parquet", "b/c.parquet")):
        ids = np.arange(ROWS // 2) + number * ROWS // 2
        table = {
            "id": pa.array(ids, pa.int32()),
            "text": [f"{TEXTS[i % len(TEXTS)]} number {i}" for i in ids],
            "day": pa.array(ids.astype("datetime64[D]"), pa.date32()),
        }
        path = folder / name
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(table), path, row_group_size=GROUP)
    return folder


def predict(*words):
    from cptuning.cli import app

    return CliRunner().invoke(app, ["predict", *map(str, words)])


def answers_in(folder):
    """All rows of the files of answers, in the order of their names."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(folder.rglob("[!_.]*.parquet")))


def names_in(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_every_row_is_answered_once_though_a_worker_is_killed(ray_cluster, model, source, tmp_path):
    output, killed, over = tmp_path / "answers", [], Event()

    def kill_one():
        while not killed and not over.wait(0.01):
            busy = workers("BlockPredictor")
            if busy and any(output.rglob("*-0000*.parquet")):
                os.kill(busy[0], signal.SIGKILL)
                killed.append(busy[0])

    killer = Thread(target=kill_one)
    killer.start()
    words = ("--output", output, "--runner", "ray", "--workers", 2, "--json")
    result = predict(model, source, *words)
    over.set()
    killer.join()
    assert result.exit_code == 0, result.stderr
    assert killed
    summary = json.loads(result.stdout)
    assert (summary["rows"], summary["blocks"], summary["skipped"]) == (ROWS, 6, 0)

    assert len(names_in(output)) == 6 + 1  # and nothing half-written
    found = answers_in(output)
    assert found["id"].to_pylist() == list(range(ROWS))
    texts = found["text"].to_pylist()
    assert found["prediction"].to_pylist() == cptuning.load(model).predict(texts).tolist()
    assert found.schema.field("id").type == pa.int32()
    assert found.schema.field("day").type == pa.date32()

    # What is finished stays as it is; only what is missing is done again.
    kept, gone = output / "a-00000.parquet", output / "b" / "c-00001.parquet"
    stamp = kept.stat().st_mtime_ns
    killed_at_the_end = start_python(LAST_MOMENT, gone)
    assert killed_at_the_end.wait() == -signal.SIGKILL
    assert not gone.exists()
    assert dataset(output).count_rows() == ROWS - GROUP  # A reader of the folder passes over it.
    again = predict(model, source, *words)
    summary = json.loads(again.stdout)
    assert (summary["rows"], summary["skipped"]) == (GROUP, 5)
    assert kept.stat().st_mtime_ns == stamp
    assert answers_in(output).equals(found)
    assert len(names_in(output)) == 6 + 1


def test_an_exported_model_answers_on_the_cluster_too(ray_cluster, model, source, tmp_path):
    from cptuning.export import export_onnx

    exported = tmp_path / "exported"
    export_onnx(cptuning.load(model), exported)
    check_answers_on_the_cluster(exported, source, tmp_path / "answers")


def test_a_sentence_encoder_answers_on_the_cluster_too(ray_cluster, source, tmp_path):
    encoder = save_sentence_encoder(tmp_path / "encoder")
    classifier = CPTuningClassifier(
        str(encoder), steps=1, validation="none", verbose=False, device="cpu"
    )
    classifier.fit(TEXTS, LABELS).save(tmp_path / "model")
    check_answers_on_the_cluster(tmp_path / "model", source, tmp_path / "answers")


def check_answers_on_the_cluster(model, source, output):
    result = predict(model, source, "--output", output, "--runner", "ray", "--quiet")
    assert result.exit_code == 0, result.stderr
    found = answers_in(output)
    assert found["id"].to_pylist() == list(range(ROWS))
    wanted = cptuning.load(model).predict(found["text"].to_pylist())
    assert found["prediction"].to_pylist() == wanted.tolist()


@pytest.fixture
def worker(model, source, tmp_path):
    """A worker without a cluster."""

    def make(**changes):
        return BlockPredictor(PredictionJob(model, source, tmp_path / "answers", **changes))

    return make


def test_the_columns_have_the_same_types_in_every_block(worker, tmp_path):
    it = worker(probabilities=True, neighbours=2)
    it.finish(Block("a.parquet", 0))
    it.finish(Block("b/c.parquet", 2))
    first, second = (
        pq.read_table(tmp_path / "answers" / name)
        for name in ("a-00000.parquet", "b/c-00002.parquet")
    )
    assert first.schema == second.schema
    kinds = {field.name: str(field.type) for field in first.schema}
    assert kinds["prediction"] == kinds["neighbour_1"] == kinds["neighbour_2_label"] == "string"
    assert kinds["confidence"] == kinds["p_good"] == kinds["neighbour_1_similarity"] == "double"
    assert second["id"].to_pylist() == list(range(500, 600))


def test_a_block_that_dies_half_way_leaves_no_answers(worker, tmp_path, monkeypatch):
    it = worker()
    monkeypatch.setattr("cptuning.cluster.prediction._CHUNK", 10)
    calls = []

    def dying(table, path):
        calls.append(path)
        if len(calls) == 5:
            raise MemoryError
        return [{"prediction": "good", "confidence": 1.0}] * len(table.rows)

    monkeypatch.setattr(it.answers, "added", dying)
    with pytest.raises(MemoryError):
        it.finish(Block("a.parquet", 0))
    assert not (tmp_path / "answers").exists()


def test_a_bad_row_is_named_and_ends_the_run(worker, model, source, tmp_path, monkeypatch):
    bad = pa.table({"text": ["fine", "fine too", None]})
    pq.write_table(bad, source / "z.parquet", row_group_size=2)
    said = worker()({"path": ["z.parquet"], "group": [1]})
    # What the worker says, as Ray Data hands it on: row by row.
    [row] = [{name: values[0] for name, values in said.items()}]
    monkeypatch.setattr("cptuning.cluster.prediction._done_on_ray", lambda *_: [row])
    result = predict(model, source, "--output", tmp_path / "answers", "--runner", "ray")
    assert result.exit_code == 2
    assert "z.parquet, row 3: the text in column 'text'" in result.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere"], "is not a folder"),
        (["-"], "reads a folder of Parquet files and writes another"),
        ([".", "--format", "csv"], "reads a folder of Parquet files and writes another"),
    ],
)
def test_what_is_no_folder_of_parquet_files_is_refused(model, tmp_path, words, complaint):
    result = predict(model, *words, "--output", tmp_path / "out", "--runner", "ray")
    assert result.exit_code == 2
    assert complaint in result.stderr


def test_a_runner_that_there_is_not_is_refused(model, source, tmp_path):
    result = predict(model, source, "--output", tmp_path / "out", "--runner", "spark")
    assert result.exit_code == 2
    assert "--runner must be local or ray" in result.stderr


def test_a_folder_of_other_answers_or_of_other_texts_is_not_mixed_with_these(
    model, source, tmp_path, monkeypatch
):
    # Nothing is left to do in these: no cluster is asked for.
    monkeypatch.setattr("cptuning.cluster.prediction._done_on_ray", lambda *_: [])
    output = tmp_path / "answers"

    def complaint(*more):
        result = predict(model, source, "--output", output, "--runner", "ray", *more)
        return result.stderr if result.exit_code == 2 else ""

    assert complaint() == ""
    assert complaint() == ""
    assert "with other options" in complaint("--probabilities")
    new = source / "new.parquet"
    pq.write_table(pa.table({"text": ["one more"]}), new, compression="none")
    assert complaint() == ""
    before = new.stat().st_size
    pq.write_table(pa.table({"text": ["one less"]}), new, compression="none")
    assert new.stat().st_size == before
    assert "new.parquet has changed" in complaint()
    output = tmp_path / "texts"
    assert "is not the output of an earlier run" in complaint()
    (source / "broken.parquet").write_bytes(b"no")
    assert "not a valid Parquet file" in complaint()


def test_a_model_that_cannot_be_loaded_is_told_of_before_anything_is_written(
    model, source, tmp_path
):
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    for weights in broken.rglob("*.safetensors"):
        weights.write_bytes(b"no")
    result = predict(broken, source, "--output", tmp_path / "answers", "--runner", "ray")
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "answers").exists()
