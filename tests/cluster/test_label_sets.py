"""Label sets in a folder of Parquet files: lists of one type in every block, or joined texts."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.methods.test_multi_label import LABELS, NEW, TEXTS

import cptuning
from cptuning import CPTuningClassifier
from cptuning.cluster.blocks import Block, blocks_of
from cptuning.cluster.prediction import BlockPredictor, PredictionJob, predict_on_ray
from cptuning.errors import CPTuningError

ASKED = [NEW[0], NEW[1], "tomorrow"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "sets"
    CPTuningClassifier(preset="instant", verbose=False).fit(TEXTS, LABELS).save(folder)
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three blocks; the texts of the last are given no label."""
    folder = tmp_path_factory.mktemp("texts")
    table = pa.table({"text": ASKED})
    pq.write_table(table, folder / "a.parquet", row_group_size=1)
    return folder


def test_each_block_has_lists_of_the_same_type(model, source, tmp_path):
    worker = BlockPredictor(PredictionJob(model, source, tmp_path, neighbours=1))
    counts, rows = zip(*[worker.finish(block) for block in blocks_of(source)], strict=True)
    tables = [pq.read_table(path) for path in sorted(tmp_path.glob("*.parquet"))]
    answers = cptuning.load(model).predict(ASKED)
    assert [table["prediction"].to_pylist()[0] for table in tables] == answers
    assert answers[2] == []
    assert pa.types.is_list(tables[0].schema.field("prediction").type)
    assert tables[0].schema == tables[1].schema == tables[2].schema
    assert sum(rows) == 3
    assert [dict(count) for count in counts] == [dict.fromkeys(own, 1) for own in answers]


def test_labels_are_joined_if_asked_for(model, source, tmp_path):
    job = PredictionJob(model, source, tmp_path, label_separator="|")
    counts, _ = BlockPredictor(job).finish(Block("a.parquet", 0))
    [answer] = pq.read_table(tmp_path / "a-00000.parquet")["prediction"].to_pylist()
    assert answer == "complaint|music"
    assert dict(counts) == {"complaint": 1, "music": 1}


def test_a_separator_that_a_label_contains_is_refused_before_anything_is_written(
    model, source, tmp_path
):
    job = PredictionJob(model, source, tmp_path / "out", label_separator="s")
    with pytest.raises(CPTuningError, match="The label 'music' contains 's'"):
        predict_on_ray(job, 1, print)
    assert not (tmp_path / "out").exists()
