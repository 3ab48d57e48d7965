"""cptuning app: the web page."""

from threading import Event
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import say, warn
from cptuning.extras import needed_for

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def app(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; 127.0.0.1: this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535)] = 7860,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the page in a browser.")
    ] = False,
    backbone: options.Backbone = "embedded",
    unknown_threshold: options.UnknownThreshold = "auto",
    settings: options.Settings = None,
) -> None:
    """Open a web page: examples in, a classifier out, without a line of code."""
    with needed_for("The page"):
        from cptuning.app.page import launch
    from cptuning.app.session import AppSettings

    page = launch(
        AppSettings(
            backbone,
            options.parse_settings(settings),
            **options.parse_threshold(unknown_threshold),
        ),
        host=host,
        port=port,
        browser=not no_browser,
    )
    say(f"The page is at {page.local_url} (Ctrl-C ends it).")
    if host not in _THIS_MACHINE:
        warn("Everybody who reaches this address can use the page, and it asks for no password.")
    try:
        Event().wait()
    finally:
        page.close(verbose=False)
