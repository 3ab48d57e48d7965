"""cptuning suggest: which unlabelled texts to label next."""

from typing import Annotated, Any

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, print_table, say
from cptuning.data import as_cell, check_kind, open_writer, read_table, separator_for
from cptuning.data.examples import one_line
from cptuning.inference.suggestion import Suggestion, suggestions
from cptuning.reporting.formatting import format_percent


def suggest(
    model: options.Model,
    pool: Annotated[
        str, typer.Argument(metavar="POOL", help="A file of texts to choose from; - is stdin.")
    ],
    n: Annotated[
        int, typer.Option("-n", metavar="N", min=1, help="How many texts to suggest.")
    ] = 20,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the rows, with an empty label column to fill in."),
    ] = None,
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    as_json: options.Json = False,
) -> None:
    """Suggest which texts to label next: uncertain ones that differ from each other.

    Texts that the model already has as examples are skipped. Fill in the labels in the file that
    --output writes, and add them with `cptuning add`.
    """
    from cptuning.storage import load_model

    loaded = load_model(model)
    predictor, cells = loaded.predictor, loaded.facts.label_cells
    table = read_table(pool, text=text, text_b=text_b)
    check_kind(table.examples, pairs=predictor.is_pair, path=pool)
    found = suggestions(predictor, table.examples, n)
    separator = None
    if loaded.facts.label_sets is not None:
        separator = separator_for(
            predictor.label_space.classes, None if cells is None else cells.separator
        )

    def guess(suggestion: Suggestion) -> Any:
        return as_cell(suggestion.guess, separator)

    if output is not None:
        # Empty cells to fill in, as the training file had them.
        empty: dict[str, Any] = {"label": ""}
        if cells is not None and cells.columns:
            empty = dict.fromkeys(cells.columns, "")
        with open_writer(output) as writer:
            writer.write([table.rows[s.row] | empty | {"guess": guess(s)} for s in found])
        say(f"{len(found)} of {len(table.examples)} texts written to {output}.")
    if as_json:
        print_json(
            [
                {"text": s.text, "guess": s.guess, "uncertainty": round(s.uncertainty, 6)}
                for s in found
            ]
        )
    elif output is None:
        rows = [
            (one_line(s.text, 120), str(guess(s)), format_percent(s.uncertainty)) for s in found
        ]
        print_table(rows, header=("label next", "guess", "uncertainty"), numbers=1)
