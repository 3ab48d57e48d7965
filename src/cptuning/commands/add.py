"""cptuning add: add labelled examples to a model, without training."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, warn
from cptuning.commands.tables import ColumnOptions, check_label_sets, labels_of
from cptuning.data import (
    Examples,
    Table,
    aligned,
    check_kind,
    is_multi_label,
    read_descriptions,
)
from cptuning.errors import CPTuningError
from cptuning.files.locks import changing
from cptuning.inference import MultiLabelPredictor, Predictor


def add(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a fitted model.")],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A file of labelled examples; - is stdin.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="The folder for the new model; without it, MODEL is replaced."
        ),
    ] = None,
    label_descriptions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Descriptions of labels, such as those of new classes: see `cptuning fit`.",
        ),
    ] = None,
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    label_columns: options.LabelColumns = None,
    as_json: options.Json = False,
) -> None:
    """Add labelled examples, also of new classes, to a model without training.

    Examples that the model already has are skipped, so adding a file twice changes nothing.
    """
    from cptuning.storage import FACTS_FILE, read_facts

    columns = ColumnOptions.of(text, text_b, label, label_separator, label_columns)
    facts = read_facts(model)  # It refuses anything that is not a model folder.
    table = columns.remembering(facts.label_cells).read_labelled(file)
    check_label_sets(table, facts.label_sets is not None, file, "the model")
    described = None if label_descriptions is None else read_descriptions(label_descriptions)
    # A server of the folder, or another such command, must not add anything in between.
    with changing(model / FACTS_FILE):
        result = _added(model, table, file, model if output is None else output, described)
    if as_json:
        print_json(result)
        return
    added, known_already = result["added"], result["known_already"]
    repeated = f", {known_already} known already" if known_already else ""
    typer.echo(f"{added} new example{'' if added == 1 else 's'} added{repeated}.")
    new = ", ".join(map(str, result["new_classes"]))
    news = f", of which new: {new}" if new else ""
    classes = "labels" if result["label_sets"] else "classes"
    known = f"{result['examples']} examples of {len(result['classes'])} {classes}"
    typer.echo(f"{result['model']} now knows {known}{news}.")


def _added(
    model: Path, table: Table, file: str, place: Path, described: Any = None
) -> dict[str, Any]:
    """Write the model with the examples of a table; the result says what became of them."""
    from cptuning.estimator import TextClassifier
    from cptuning.registry import load
    from cptuning.storage import check_place

    classifier = load(model)
    if not isinstance(classifier, TextClassifier):
        raise CPTuningError(
            f"The model {model} is not a classifier, so it "
            "takes no labelled examples: fit it again."
        )
    check_place(place)
    before = classifier.predictor_
    check_kind(table.examples, pairs=before.is_pair, path=file)
    labels = aligned(labels_of(table), before.label_space.classes)
    rows = before.new_rows(table.examples, labels)
    _warn_of_contradictions(before, table.examples, labels)
    if rows:
        classifier.add_examples(table.examples.take(rows), [labels[row] for row in rows])
    if described is not None:
        classifier.add_examples([], [], label_descriptions=described)
    if rows or described is not None or place != model:
        classifier.save(place)
    after = classifier.predictor_
    return {
        "model": str(place),
        "added": len(rows),
        "known_already": len(labels) - len(rows),
        "new_classes": list(after.label_space.classes[len(before.label_space) :]),
        "classes": list(after.label_space.classes),
        "examples": 0 if after.support is None else after.support.n_examples,
        "label_sets": isinstance(after, MultiLabelPredictor),
    }


def _warn_of_contradictions(
    predictor: Predictor, examples: Examples, labels: Sequence[Hashable]
) -> None:
    """Warn if the model knows some of the texts, but only under other labels."""
    if predictor.support is None:
        return
    own: dict[str | tuple[str, str], set[Hashable]] = {}
    support_labels = predictor.label_space.decode(predictor.support.labels).tolist()
    for text, label in zip(predictor.support.examples, support_labels, strict=True):
        own.setdefault(text, set()).add(label)
    given = predictor.label_space.as_labels(labels)
    contradictions = sum(
        label not in own.get(text, {label}) for text, label in zip(examples, given, strict=True)
    )
    if contradictions:
        others = "other labels" if is_multi_label(given) else "another label"
        warn(f"{contradictions} of the texts are known to the model under {others}.")
