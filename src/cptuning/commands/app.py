"""cptuning app: the web app."""

from threading import Event
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import say, warn
from cptuning.extras import needed_for

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def app(
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="The address to listen on; 127.0.0.1 is this machine only."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=1, max=65535, help="The port to listen on.")
    ] = 7860,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the page in a browser.")
    ] = False,
    backbone: options.Backbone = "embedded",
    unknown_threshold: options.UnknownThreshold = "auto",
    settings: options.Settings = None,
) -> None:
    """Open a web page to label, train, review and use a classifier without writing code."""
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
    say(f"The page is at {page.local_url} (press Ctrl-C to stop it).")
    if host not in _THIS_MACHINE:
        warn("Anyone who can reach this address can use the page: it does not ask for a password.")
    try:
        Event().wait()
    finally:
        page.close(verbose=False)
