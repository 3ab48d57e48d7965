"""cptuning serve: models over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import say
from cptuning.serving.limits import Limits

_USUAL = Limits()


def serve(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model folder, or a folder of model folders."),
    ],
    host: Annotated[
        str,
        typer.Option(metavar="HOST", help="Beyond this machine only with CPTUNING_API_KEYS set."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="0 takes any free one.")
    ] = 8000,
    default: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of several models, the one that /predict asks."),
    ] = None,
    device: options.Device = "auto",
    batch_rows: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Read up to N texts of many requests at once."),
    ] = _USUAL.batch_rows,
    batch_wait: Annotated[
        float, typer.Option(metavar="MS", min=0, help="Wait so long for more of them.")
    ] = 1000 * _USUAL.batch_wait,
    queue: Annotated[
        int, typer.Option(metavar="N", min=1, help="Let up to N texts wait; refuse more with 429.")
    ] = _USUAL.queue_rows,
    timeout: Annotated[
        float, typer.Option(metavar="S", min=0.1, help="Wait so long for a request, or an answer.")
    ] = _USUAL.seconds,
    max_texts: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most texts of a request.")
    ] = _USUAL.texts,
    max_characters: Annotated[
        int, typer.Option(metavar="N", min=1, help="The longest text.")
    ] = _USUAL.characters,
    max_body: Annotated[
        int, typer.Option(metavar="KIB", min=1, help="The largest body of a request.")
    ] = _USUAL.body_bytes // 1024,
) -> None:
    """Answer over HTTP: POST /predict, /embed, /examples; the page /docs tells the rest.

    API keys come from the environment variable CPTUNING_API_KEYS, with commas between them.
    """
    from cptuning.serving.server import serve as serve_forever

    limits = Limits(
        body_bytes=1024 * max_body,
        texts=max_texts,
        characters=max_characters,
        batch_rows=batch_rows,
        batch_wait=batch_wait / 1000,
        queue_rows=queue,
        seconds=timeout,
    )
    serve_forever(
        model,
        host=host,
        port=port,
        limits=limits,
        device=device,
        default=default,
        announce=lambda what: say(f"Serving {what}, with a page to try it at /docs."),
    )
