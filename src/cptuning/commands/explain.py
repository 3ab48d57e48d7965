"""cptuning explain: a prediction with the labelled examples that explain it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from cptuning.commands import options
from cptuning.commands.console import output_console, print_json, rounded
from cptuning.data import Examples, check_kind, iter_tables
from cptuning.data.examples import one_line
from cptuning.errors import CPTuningError
from cptuning.inference import (
    Evidence,
    Explanations,
    LabelExplanations,
    MultiLabelPredictor,
    Predictor,
    Reasons,
)


def explain(
    model: options.Model,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The text.")] = None,
    second: Annotated[
        str | None,
        typer.Option(
            "--text-b",
            metavar="TEXT",
            help="The second text of a pair; with --file, its column.",
        ),
    ] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of texts; - is stdin.")
    ] = None,
    column: Annotated[
        str | None,
        typer.Option("--text", metavar="COLUMN", help="With --file, the column of the text."),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", metavar="K", min=1, help="How many examples to show.")
    ] = 3,
    as_json: options.Json = False,
) -> None:
    """Classify a text, or the texts of a file, and show the nearest examples of that class.

    An example of another class that is even nearer is shown as well.
    With --json, prints one object per line.
    """
    from cptuning.storage import load_predictor

    if (text is None) == (file is None):
        raise CPTuningError('Give either a text, as in cptuning explain MODEL "a text", or --file.')
    predictor = load_predictor(model)
    pairs = predictor.is_pair
    is_first = True
    for examples in _examples(text, second, file, column, model, pairs):
        if as_json:
            for answer in as_objects(predictor, examples, k):
                print_json(answer)
            continue
        if not is_first:
            typer.echo()
        is_first = False
        print_explanations(predictor.explain(examples, k))


def _examples(
    text: str | None,
    second: str | None,
    file: str | None,
    column: str | None,
    model: Path,
    pairs: bool,
) -> Iterator[Examples]:
    if file is not None:
        for table in iter_tables(file, chunk=256, text=column, text_b=second):
            check_kind(table.examples, pairs=pairs, path=file)
            yield table.examples
    elif pairs and second is None:
        raise CPTuningError(f"The model {model} takes pairs: give the second text with --text-b.")
    elif not pairs and second is not None:
        raise CPTuningError(f"The model {model} takes single texts: omit --text-b.")
    else:
        yield Examples((str(text),), None if second is None else (second,))


def as_objects(predictor: Predictor, examples: Examples, k: int) -> Iterator[dict[str, Any]]:
    """Predictions as JSON objects, each with its explanation."""
    answered = predictor.answer(examples)
    if isinstance(predictor, MultiLabelPredictor):
        yield from _label_objects(predictor.explained_by_label(examples, answered, k))
        return
    explained = predictor.explained(examples, answered, k)
    for text, label, confidence, shares, reasons in zip(
        explained.texts,
        explained.labels,
        explained.confidences,
        answered.probabilities,
        explained,
        strict=True,
    ):
        yield {
            "text": text,
            "prediction": label,
            "confidence": rounded(confidence),
            "probabilities": {
                str(label): round(float(share), 6)
                for label, share in zip(predictor.label_space.classes, shares, strict=True)
            },
            **_reasons(reasons),
        }


def _label_objects(explained: LabelExplanations) -> Iterator[dict[str, Any]]:
    """Label sets as JSON objects, with an explanation for each label."""
    for text, confidences, reasons in zip(
        explained.texts, explained.confidences, explained, strict=True
    ):
        yield {
            "text": text,
            "prediction": list(reasons),
            "confidences": {str(label): rounded(p) for label, p in confidences.items()},
            "reasons": {str(label): _reasons(because) for label, because in reasons.items()},
        }


def _reasons(reasons: Reasons) -> dict[str, Any]:
    return {
        "neighbours": [_example(example) for example in reasons],
        "against": None if reasons.against is None else _example(reasons.against),
        **({} if reasons.passage is None else {"passage": reasons.passage}),
    }


def _example(example: Evidence) -> dict[str, Any]:
    similarity = round(example.similarity, 6)
    mark = {"is_description": True} if example.is_description else {}
    return {"text": example.text, "label": example.label, "similarity": similarity, **mark}


def print_explanations(explained: Explanations | LabelExplanations) -> None:
    """Print predictions for people: each text, its label, and the explanation."""
    console = output_console()
    for number, text in enumerate(explained.texts):
        if number:
            console.print()
        console.print(one_line(text), style="bold")
        for line in explained.because(number):
            console.print(line, soft_wrap=True)
