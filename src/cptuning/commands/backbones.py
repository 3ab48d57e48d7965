"""cptuning backbones: the language models that have a short name."""

import typer

from cptuning.backbone import CATALOGUE, cached_folder
from cptuning.commands import options
from cptuning.commands.console import print_json, print_table


def backbones(as_json: options.Json = False) -> None:
    """List the names for `--backbone`, and which of them are on this machine already.

    A folder or another id on the hub can be given as well.
    """
    rows = list(CATALOGUE.values())
    here = {row.name: not row.hub_id or cached_folder(row) is not None for row in rows}
    if as_json:
        print_json(
            [
                {
                    "name": row.name,
                    "hub_id": row.hub_id or None,
                    "revision": row.revision or None,
                    "megabytes": row.megabytes,
                    "here": here[row.name],
                    "languages": row.languages,
                    "licence": row.licence,
                    "use": row.use,
                }
                for row in rows
            ]
        )
        return
    print_table(
        (
            (
                row.name,
                row.hub_id or "in the package",
                f"{row.megabytes} MB",
                "yes" if here[row.name] else "no",
                row.licence,
            )
            for row in rows
        ),
        header=("name", "model", "size", "here", "licence"),
    )
    typer.echo()
    print_table(
        ((row.name, f"{row.use} ({row.languages})") for row in rows), header=("name", "for")
    )
