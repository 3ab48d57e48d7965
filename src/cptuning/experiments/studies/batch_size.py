"""The paper's table of batch sizes."""

from cptuning.experiments.studies.study import Row, Study


def _rows(_dataset: str) -> list[Row]:
    return [Row(f"batch size {n}", "cp-tuning", {"batch_size": n}) for n in (4, 8, 16, 32)]


BATCH_SIZE = Study(
    "batch-size",
    "Batch size",
    "Does contrastive learning need large batches here?",
    _rows,
    rates_only=True,
)
