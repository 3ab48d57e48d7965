"""cptuning predict: a file of texts in, the same rows with their labels out."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from cptuning.commands import options
from cptuning.commands.console import print_json, rounded, say
from cptuning.commands.tables import check_kind
from cptuning.data import Table, iter_tables, open_writer
from cptuning.data.formats import STANDARD_STREAM, TEXT_FORMATS, file_name, table_format
from cptuning.errors import CPTuningError
from cptuning.inference import AnyPredictor
from cptuning.reporting.words import duration

# Enough to fill batches of one length; little enough to see answers come.
_CHUNK = 256


def predict(
    model: options.Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file with texts; - is stdin.")],
    output: Annotated[
        str, typer.Option(metavar="FILE", help="The file to write; - is stdout.")
    ] = STANDARD_STREAM,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="A column for each class's probability.")
    ] = False,
    neighbours: Annotated[
        int, typer.Option(metavar="K", min=0, help="Columns for the K nearest examples.")
    ] = 0,
    format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Of stdin and stdout: csv, tsv or jsonl.")
    ] = None,
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Label texts: adds the columns prediction and confidence.

    The rows are read, answered and written piece by piece, so a file may be of any size. The
    confidence is empty where the answer is "unknown". --json prints a summary, not the rows.
    """
    from cptuning.storage import load

    if as_json and output == STANDARD_STREAM:
        raise CPTuningError(
            "--json prints a summary where the rows go already: "
            "name a file with --output, or use --format jsonl for rows as JSON."
        )
    into, outof = _formats(file, output, format)
    began = time.monotonic()
    predictor = load(model).predictor_
    answers = _Answers(predictor, probabilities, neighbours)
    tables = iter_tables(file, chunk=_CHUNK, text=text, text_b=text_b, format=into)
    counts: Counter[str] = Counter()
    with open_writer(output, outof) as writer, _counter(quiet) as advance:
        for table in tables:
            check_kind(table.examples, pairs=predictor.is_pair, path=file)
            rows = answers.rows(table, file)
            writer.write(rows)
            counts.update(str(row["prediction"]) for row in rows)
            advance(len(rows))
    if as_json:
        print_json({"rows": counts.total(), "output": output, "predictions": dict(counts)})
    elif not quiet:
        where = "standard output" if output == STANDARD_STREAM else output
        say(f"{counts.total()} rows written to {where} in {duration(time.monotonic() - began)}.")


def _formats(file: str, output: str, format: str | None) -> tuple[str | None, str | None]:
    """The formats of what is read and of what is written, where the names don't tell."""
    streams = [path for path in (file, output) if path == STANDARD_STREAM]
    if format is not None and not streams:
        raise CPTuningError(
            "--format is for standard input and output: a file's kind is known by its ending."
        )
    into = format if file == STANDARD_STREAM else None
    if output != STANDARD_STREAM:
        return into, None
    # Out comes what went in, if it can pass through a pipe.
    kind = format or table_format(file, into)
    return into, kind if kind in TEXT_FORMATS else None


class _Answers:
    """Rows with the model's answers to them."""

    def __init__(self, predictor: AnyPredictor, probabilities: bool, neighbours: int) -> None:
        self.predictor = predictor
        self.neighbours = neighbours
        classes = predictor.label_space.classes
        self.class_columns = [f"p_{label}" for label in classes] if probabilities else []
        if len(set(self.class_columns)) < len(self.class_columns):
            raise CPTuningError(
                "Two classes of the model have the same name, so their columns would too: "
                "leave --probabilities out."
            )

    def rows(self, table: Table, path: str) -> list[dict[str, Any]]:
        """The rows of the table with the answers' columns behind their own."""
        answered = self.predictor.answer(table.examples)
        pairs = zip(answered.labels.tolist(), answered.probabilities, strict=True)
        added = [self._answer(*pair) for pair in pairs]
        if self.neighbours:
            nearest = self.predictor.evidence(answered.embeddings, self.neighbours)
            for answer, evidence in zip(added, nearest, strict=True):
                for number, example in enumerate(evidence, start=1):
                    answer.update(_neighbour(f"neighbour_{number}", example))
        taken = set().union(*table.rows) & added[0].keys()
        if taken:
            raise CPTuningError(
                f"{file_name(path)} has a column {min(taken)!r} already: rename or remove it."
            )
        return [row | answer for row, answer in zip(table.rows, added, strict=True)]

    def _answer(self, label: Any, probabilities: np.ndarray) -> dict[str, Any]:
        confidence = self.predictor.confidence(label, probabilities)
        answer = {"prediction": label, "confidence": rounded(confidence)}
        for column, probability in zip(self.class_columns, probabilities, strict=False):
            answer[column] = round(float(probability), 6)
        return answer


def _neighbour(name: str, example: Any) -> dict[str, Any]:
    if isinstance(example.text, str):
        texts = {name: example.text}
    else:
        texts = {f"{name}_a": example.text[0], f"{name}_b": example.text[1]}
    similarity = round(example.similarity, 6)
    return {**texts, f"{name}_label": example.label, f"{name}_similarity": similarity}


@contextmanager
def _counter(quiet: bool) -> Iterator[Any]:
    """Shows how many rows are done, on a terminal."""
    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.completed} rows"),
        TaskProgressColumn(show_speed=True),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=None)
        yield lambda n: progress.advance(task, n)
