"""cptuning export: write a model that runs without torch."""

from pathlib import Path
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.errors import CPTuningError


def export(
    model: options.Model,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder for the exported model; without it, MODEL-onnx or MODEL-int8.",
        ),
    ] = None,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="The format: onnx.")] = "onnx",
    int8: Annotated[
        bool,
        typer.Option("--int8", help="8-bit products: faster; close calls are looked at again."),
    ] = False,
    no_second_look: Annotated[
        bool,
        typer.Option(
            "--no-second-look",
            help="With --int8: no exact model for close calls. A third of the size; now and then "
            "another label.",
        ),
    ] = False,
) -> None:
    """Export a model to ONNX: it predicts, explains and takes new examples without torch."""
    from cptuning.registry import load
    from cptuning.storage import check_place

    if to != "onnx":
        raise CPTuningError(f"There is no export to {to!r}: use --to onnx.")
    if no_second_look and not int8:
        raise CPTuningError("--no-second-look needs --int8: other exports have no second look.")
    classifier = load(model, device="cpu")
    if output is None:
        model = model.absolute()
        output = model.with_name(f"{model.name}-{'int8' if int8 else 'onnx'}")
    if output.absolute() == model.absolute():
        raise CPTuningError(
            "An export can't be trained further, so it does not take the model's place: "
            "choose another --output."
        )
    check_place(output)
    classifier.export(output, int8=int8, second_look=not no_second_look)
    typer.echo(f"The exported model is in {output}: use it like any other, without torch.")
