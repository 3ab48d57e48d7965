"""cptuning add: more labelled examples for a model, also of new classes, without training."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, warn
from cptuning.commands.tables import Columns, labels_of
from cptuning.data import Examples, aligned, check_kind
from cptuning.inference import AnyPredictor


def add(
    model: options.Model,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A file with labelled examples; - is stdin.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="The folder for the new model; without it MODEL is replaced."
        ),
    ] = None,
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    label: options.LabelColumn = None,
    as_json: options.Json = False,
) -> None:
    """Teach a model more examples, or a new class, at once.

    Examples that it knows already are left out, so that adding a file twice changes nothing.
    """
    from cptuning.storage import check_place, load

    place = model if output is None else output
    table = Columns(text, text_b, label).read_labelled(file)
    classifier = load(model)
    check_place(place)
    before = classifier.predictor_
    check_kind(table.examples, pairs=before.is_pair, path=file)
    labels = aligned(labels_of(table), before.label_space.classes)
    rows = before.new_rows(table.examples, labels)
    _warn_of_contradictions(before, table.examples, labels)
    if rows:
        classifier.add_examples(table.examples.take(rows), [labels[row] for row in rows])
    if rows or place != model:
        classifier.save(place)

    after = classifier.predictor_
    n_known = len(after.support or ())
    result = {
        "model": str(place),
        "added": len(rows),
        "known_already": len(labels) - len(rows),
        "new_classes": [
            c for c in after.label_space.classes if c not in before.label_space.classes
        ],
        "classes": list(after.label_space.classes),
        "examples": n_known,
    }
    if as_json:
        print_json(result)
        return
    repeated = f", {result['known_already']} known already" if len(rows) < len(labels) else ""
    typer.echo(f"{len(rows)} new example{'' if len(rows) == 1 else 's'} added{repeated}.")
    new = ", ".join(map(str, after.label_space.classes[len(before.label_space) :]))
    news = f", of which new: {new}" if new else ""
    known = f"{n_known} examples of {len(after.label_space)} classes"
    typer.echo(f"{place} now knows {known}{news}.")


def _warn_of_contradictions(
    predictor: AnyPredictor, examples: Examples, labels: Sequence[Hashable]
) -> None:
    """Say where the model knows a text under another label, and under no other."""
    if predictor.support is None:
        return
    own: dict[str | tuple[str, str], set[Hashable]] = {}
    support_labels = predictor.label_space.decode(predictor.support.labels).tolist()
    for text, label in zip(predictor.support.examples, support_labels, strict=True):
        own.setdefault(text, set()).add(label)
    contradictions = sum(
        label not in own.get(text, {label}) for text, label in zip(examples, labels, strict=True)
    )
    if contradictions:
        warn(f"{contradictions} of the texts are known to the model under another label.")
