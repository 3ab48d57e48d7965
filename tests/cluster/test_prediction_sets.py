"""Sets of labels of a given coverage in a folder of Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cptuning import CPTuningClassifier
from cptuning.cluster.blocks import blocks_of
from cptuning.cluster.prediction import BlockPredictor, PredictionJob
from cptuning.errors import CPTuningError

TEXTS = ["a great film", "i loved it", "so good", "a dull film", "boring", "so bad"]


@pytest.mark.parametrize(
    ("labels", "kind"), [((1, 0), pa.int64()), (("good", "bad"), pa.string()), ((1, "bad"), None)]
)
def test_every_block_has_lists_of_the_labels_own_type(tmp_path, labels, kind):
    fitted = CPTuningClassifier(preset="instant", verbose=False)
    fitted.fit(TEXTS, [labels[0]] * 3 + [labels[1]] * 3).save(tmp_path / "model")
    (tmp_path / "texts").mkdir()
    asked = ["a wonderful film", "what a bore"]
    pq.write_table(pa.table({"text": asked}), tmp_path / "texts" / "a.parquet", row_group_size=1)
    job = PredictionJob(tmp_path / "model", tmp_path / "texts", tmp_path / "out", coverage=0.7)
    worker = BlockPredictor(job)
    for block in blocks_of(job.source):
        worker.finish(block)
    tables = [pq.read_table(path) for path in sorted(job.output.glob("*.parquet"))]
    found = [labels for table in tables for labels in table["prediction_set"].to_pylist()]
    wanted = fitted.predict_set(asked, 0.7)
    assert found == (wanted if kind else [[str(label) for label in one] for one in wanted])
    assert tables[0].schema == tables[1].schema
    assert tables[0].schema.field("prediction_set").type == pa.list_(kind or pa.string())


def test_a_coverage_that_cannot_be_is_an_error_of_the_user(tmp_path):
    fitted = CPTuningClassifier(preset="instant", verbose=False)
    fitted.fit(TEXTS, ["good"] * 3 + ["bad"] * 3).save(tmp_path / "model")
    (tmp_path / "texts").mkdir()
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "texts" / "a.parquet")
    job = PredictionJob(tmp_path / "model", tmp_path / "texts", tmp_path / "out", coverage=2)
    answered = BlockPredictor(job)({"path": ["a.parquet"], "group": [0]})
    assert "between 0 and 1" in answered["error"][0]
    with pytest.raises(CPTuningError, match="coverage is 2"):
        fitted.predict_set(TEXTS, 2)
