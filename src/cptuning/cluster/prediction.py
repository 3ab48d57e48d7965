"""Predictions for a folder of Parquet files by the workers of a Ray cluster."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from cptuning.cluster.blocks import Block, begin, blocks_of
from cptuning.cluster.connection import connect_ray, gpu_share
from cptuning.data import check_kind, iter_tables
from cptuning.data.formats import files_package
from cptuning.errors import CPTuningError
from cptuning.files.atomic import clear_unfinished, write_whole
from cptuning.inference import UNKNOWN, MultiLabelPredictor, Predictor
from cptuning.reporting.prediction_columns import PredictionColumns
from cptuning.storage import load_predictor

_CHUNK = 1024


@dataclass(frozen=True)
class PredictionJob:
    """The model, the source and the output folder, all visible to every machine, and options."""

    model: Path
    source: Path
    output: Path
    probabilities: bool = False
    neighbours: int = 0
    text: str | None = None
    text_b: str | None = None
    coverage: float | None = None
    label_separator: str | None = None
    """What joins the labels of a text that has several; without it they are lists."""


@dataclass(frozen=True)
class Summary:
    """The result of a run."""

    predictions: Counter[str]
    """The number of rows of each label in this run; a row may have several."""
    rows: int
    blocks: int
    skipped: int
    """The number of blocks that an earlier run had finished."""


def predict_on_ray(job: PredictionJob, workers: int, advance: Callable[[int], None]) -> Summary:
    """Answer every block that has no output yet; ``advance`` is called with each number of rows.

    Only the names of blocks go through Ray Data, so memory stays flat: a worker reads a block and
    gets the next one when it has written its output. If a worker dies, Ray restarts it and retries
    its block. An output file gets its name only when it is complete, and each block has one name,
    so no row is lost or duplicated.
    """
    blocks = blocks_of(job.source)
    columns_of(load_predictor(job.model), job)  # Fails here before anything is written.
    begin(job.output, job.source, job.model, _options(job))
    left = [block for block in blocks if not (job.output / block.answers).is_file()]
    counts: Counter[str] = Counter()
    n_rows = 0
    if left:
        for done in _done_on_ray(job, left, min(workers, len(left))):
            if done["error"]:
                raise CPTuningError(done["error"])
            counts.update(dict(zip(done["labels"], done["counts"], strict=True)))
            n_rows += done["rows"]
            advance(done["rows"])
        # Delete what workers that died have left; no worker is writing any more.
        for folder in {(job.output / block.answers).parent for block in blocks}:
            clear_unfinished(folder)
    return Summary(counts, n_rows, len(blocks), skipped=len(blocks) - len(left))


def columns_of(predictor: Predictor, job: PredictionJob) -> PredictionColumns:
    """What is added to the rows, with a clear error if it can't be."""
    return PredictionColumns(
        predictor, job.probabilities, job.neighbours, job.coverage, job.label_separator
    )


def _options(job: PredictionJob) -> dict[str, Any]:
    """What the predictions depend on besides the model and the texts."""
    places = ("model", "source", "output")
    return {name: value for name, value in asdict(job).items() if name not in places}


def _done_on_ray(job: PredictionJob, blocks: Sequence[Block], workers: int) -> Any:
    """The results of the workers, one per block, in any order."""
    ray = connect_ray(workers)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    return (
        ray.data.from_items([asdict(block) for block in blocks], override_num_blocks=len(blocks))
        .map_batches(
            BlockPredictor,
            fn_constructor_args=(job,),
            batch_size=1,
            concurrency=workers,
            num_cpus=1,
            num_gpus=gpu_share(ray, workers),
        )
        .iter_rows()
    )


class BlockPredictor:
    """A worker: loads the model once, then answers block after block."""

    def __init__(self, job: PredictionJob) -> None:
        self.job = job
        self.predictor: Predictor = load_predictor(job.model)
        self.answers = columns_of(self.predictor, job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Answer one block; an error of the user's is returned, so that Ray does not retry it."""
        block = Block(str(batch["path"][0]), int(batch["group"][0]))
        error, counts, n_rows = "", Counter[str](), 0
        try:
            counts, n_rows = self.finish(block)
        except CPTuningError as mistake:
            error = str(mistake)
        return {
            "error": [error],
            "labels": [list(counts)],
            "counts": [list(counts.values())],
            "rows": [n_rows],
        }

    def finish(self, block: Block) -> tuple[Counter[str], int]:
        """Write the rows of a block with their predictions; count each label, and the rows."""
        path = str(self.job.source / block.path)
        added: list[dict[str, Any]] = []
        tables = iter_tables(
            path,
            chunk=_CHUNK,
            text=self.job.text,
            text_b=self.job.text_b,
            row_group=block.group,
        )
        for table in tables:
            check_kind(table.examples, pairs=self.predictor.is_pair, path=path)
            added += self.answers.added(table, path)
        self._write(block, added)
        labels = (label for answer in added for label in self.answers.counted(answer))
        return Counter(labels), len(added)

    def _write(self, block: Block, added: list[dict[str, Any]]) -> None:
        """Write the row group unchanged, including its column types, with the added columns."""
        arrow = files_package("pyarrow", self.job.source)
        parquet = files_package("pyarrow.parquet", self.job.source)
        with parquet.ParquetFile(self.job.source / block.path) as file:
            table = file.read_row_group(block.group)
        for name, kind in self._columns(arrow, added[0]).items():
            values = [answer[name] for answer in added]
            if kind == arrow.string():
                values = [None if value is None else str(value) for value in values]
            elif kind == arrow.list_(arrow.string()):
                values = [value and [str(label) for label in value] for value in values]
            table = table.append_column(name, arrow.array(values, kind))
        target = self.job.output / block.answers
        target.parent.mkdir(parents=True, exist_ok=True)
        content = BytesIO()
        parquet.write_table(table, content)
        write_whole(target, content.getvalue())

    def _columns(self, arrow: Any, answer: dict[str, Any]) -> dict[str, Any]:
        """The types of the added columns, which are the same in every block."""
        labels = list(self.predictor.label_space.classes)
        if self.predictor.answers_unknown:
            labels.append(UNKNOWN)
        kinds = {type(label) for label in labels}
        label_kind = arrow.array(labels).type if len(kinds) == 1 else arrow.string()
        if isinstance(self.predictor, MultiLabelPredictor):
            is_joined = self.job.label_separator is not None
            label_kind = arrow.string() if is_joined else arrow.list_(label_kind)

        def kind(name: str) -> Any:
            if name == "prediction_set":
                return arrow.list_(label_kind)
            if name == "prediction" or name.endswith("_label"):
                return label_kind
            is_number = name == "confidence" or name.startswith("p_") or "_similarity" in name
            return arrow.float64() if is_number else arrow.string()

        return {name: kind(name) for name in answer}
