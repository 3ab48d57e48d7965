import pytest

from cptuning.data.dataset_sources import JSONLFolder
from cptuning.data.examples import Examples
from cptuning.data.writing import open_writer
from cptuning.errors import CPTuningError


def put(path, *labels):
    path.parent.mkdir(exist_ok=True)
    with open_writer(path) as writer:
        writer.write([{"text_a": f"{path.parent.name} {x}", "label": x} for x in labels])


def test_ready_made_splits_are_read_from_their_folder(tmp_path):
    put(tmp_path / "16-13" / "train.jsonl.gz", "a", "b")
    put(tmp_path / "16-13" / "dev.jsonl.gz", "b")
    train, dev = JSONLFolder(tmp_path).k_shot(16, 13)
    assert train == (Examples(("16-13 a", "16-13 b")), ["a", "b"])
    assert dev.labels == ["b"]
    assert JSONLFolder(tmp_path).k_shot(8, 13) is None


def test_the_pool_is_the_training_file(tmp_path):
    put(tmp_path / "train.jsonl.gz", "a", "b", "a")
    assert JSONLFolder(tmp_path).pool().labels == ["a", "b", "a"]


def test_rows_held_out_stand_in_for_a_test_file(tmp_path):
    with pytest.raises(CPTuningError, match=r"has no test\.jsonl\.gz"):
        JSONLFolder(tmp_path).test()
    put(tmp_path / "heldout_from_train.jsonl.gz", "a")
    assert JSONLFolder(tmp_path).test().labels == ["a"]
    put(tmp_path / "test.jsonl.gz", "b")
    assert JSONLFolder(tmp_path).test().labels == ["b"]
