"""cptuning serve: serve models over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import say
from cptuning.serving.limits import Limits

_DEFAULTS = Limits()


def serve(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model folder, or a folder of model folders."),
    ],
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            help="The address to listen on; one that others can reach needs CPTUNING_API_KEYS.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="The port to listen on; 0 takes any free port."
        ),
    ] = 8000,
    default: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which of several models /predict uses."),
    ] = None,
    device: options.Device = "auto",
    batch_rows: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="The maximum number of texts per batch."),
    ] = _DEFAULTS.batch_rows,
    batch_wait: Annotated[
        float,
        typer.Option(
            metavar="MS",
            min=0,
            max=10_000,
            callback=options.finite,
            help="How long a request waits for others to batch with.",
        ),
    ] = 1000 * _DEFAULTS.batch_wait,
    queue: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="The maximum number of waiting texts; more get status 429."
        ),
    ] = _DEFAULTS.queue_rows,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0.1,
            max=86_400,
            callback=options.finite,
            help="The timeout of a request and of its answer.",
        ),
    ] = _DEFAULTS.seconds,
    max_texts: Annotated[
        int, typer.Option(metavar="N", min=1, help="The maximum number of texts per request.")
    ] = _DEFAULTS.texts,
    max_characters: Annotated[
        int, typer.Option(metavar="N", min=1, help="The maximum number of characters per text.")
    ] = _DEFAULTS.characters,
    max_body: Annotated[
        int, typer.Option(metavar="KIB", min=1, help="The maximum size of a request body.")
    ] = _DEFAULTS.body_bytes // 1024,
    connections: Annotated[
        int, typer.Option(metavar="N", min=1, help="The maximum number of open connections.")
    ] = _DEFAULTS.connections,
    client_connections: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="The maximum number of them from one address."),
    ] = _DEFAULTS.client_connections,
) -> None:
    """Serve models over HTTP: POST /predict, /embed and /examples; /docs describes the API.

    The environment variable CPTUNING_API_KEYS sets API keys, separated by commas.
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
        connections=connections,
        client_connections=client_connections,
    )
    serve_forever(
        model,
        host=host,
        port=port,
        limits=limits,
        device=device,
        default=default,
        announce=lambda what: say(f"Serving {what}; try it at /docs."),
    )
