"""cptuning reproduce: every table and figure of the paper, for any backbone."""

from pathlib import Path
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import say
from cptuning.errors import CPTuningError

_COMMAS = "with commas between them"


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="main, ablation, parameters, batch-size, unbalanced, prompts, tsne, inference; "
            "or all.",
        ),
    ],
    output: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The result directory; runs in it are kept.")
    ] = Path("results"),
    backbone: options.Backbone = "embedded",
    datasets: Annotated[
        str, typer.Option(metavar="NAMES", help=f"In place of the study's own, {_COMMAS}.")
    ] = "",
    seeds: Annotated[
        str, typer.Option(metavar="NUMBERS", help=f"Seeds of the splits, {_COMMAS}.")
    ] = "13,21,42,87,100",
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help=f"In place of the study's own, {_COMMAS}.")
    ] = "",
    steps: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="In place of the presets' own.")
    ] = None,
    device: options.Device = "auto",
    precision: Annotated[
        str,
        typer.Option(metavar="KIND", help="auto (bfloat16 on a GPU), float32 or bfloat16."),
    ] = "auto",
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Processes that share the runs.")
    ] = 1,
    runner: Annotated[
        str, typer.Option(metavar="NAME", help="local; ray: a cluster, or this machine.")
    ] = "local",
    publish: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write the records, packed, and the report here."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The data sets; else $CPTUNING_DATA, else the hub."),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose m, τn, ξ, λ and k on dev too (optuna).")
    ] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="A small version: two seeds, two grid points.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how many runs there are and how long.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train nothing; report what is finished.")
    ] = False,
) -> None:
    """Re-run a table or figure of the paper, and show it beside the paper's own numbers.

    A killed or stopped command goes on where it was when it is started again; several can share
    a folder.
    """
    from cptuning.experiments.plan import Request
    from cptuning.experiments.reproduce import reproduce as run

    request = Request(
        what,
        output,
        backbone,
        datasets=_names(datasets),
        seeds=_numbers(seeds),
        methods=_names(methods),
        steps=steps,
        device=device,
        precision=precision,
        workers=workers,
        runner=runner,
        publish=publish,
        data=data,
        tune=tune,
        fast=fast,
        dry_run=dry_run,
        report_only=report_only,
    )
    files = run(request, say)
    for path in files:
        if path.suffix == ".md":
            typer.echo(path.read_text("utf-8"))
    if files:
        say(f"The report is in {', '.join(map(str, files))}.")


def _names(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _numbers(words: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in _names(words))
    except ValueError:
        raise CPTuningError(f"--seeds is {words!r}: give whole numbers, such as 13,21.") from None
