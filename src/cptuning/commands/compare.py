"""cptuning compare: two result directories side by side."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, print_table, warn


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A result directory of `reproduce`.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another result directory.")],
    as_json: options.Json = False,
) -> None:
    """Compare two result directories on the cells that both have."""
    from cptuning.experiments import comparison

    found = comparison.compare(first, second)
    for line in comparison.caveats(first, second):
        warn(line)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    rows = [
        (
            one.study,
            one.row,
            one.dataset,
            f"{one.first:.1f}",
            f"{one.second:.1f}",
            f"{one.test.difference:+.1f}",
            one.test.p_text,
            str(one.test.pairs),
        )
        for one in found
    ]
    header = ("study", "row", "data set", "A", "B", "B − A", "p (B better)", "pairs")
    print_table(rows, header, numbers=5)
    typer.echo("\nTest accuracy in %; single-tailed paired t-tests, where a pair is a split.")
