"""cptuning reproduce: every table and figure of the paper, for any backbone."""

from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from cptuning.commands.console import say
from cptuning.experiments.request import OPTIONS, SUMMARY, Option, parse_request


def reproduce(**given: Any) -> None:
    """Do what the command line asks for, and print the report."""
    from cptuning.experiments.reproduce import reproduce as run

    files = run(parse_request(given), say)
    for path in files:
        if path.suffix == ".md":
            typer.echo(path.read_text("utf-8"))
        elif path.suffix == ".html" and path.name != "index.html":
            say(f"The web page of the report: {path}. Its folder has everything else.")


def _parameter(option: Option) -> Parameter:
    """The option as a parameter from which typer makes the command line."""
    metavar, text = option.help
    described: Any
    if option.is_argument:
        described = Annotated[str, typer.Argument(metavar=metavar, help=text)]
        return Parameter(option.name, Parameter.KEYWORD_ONLY, annotation=described)
    if isinstance(option.default, bool):
        described = Annotated[bool, typer.Option(option.flag, help=text)]
    else:
        described = Annotated[str | None, typer.Option(option.flag, metavar=metavar, help=text)]
    return Parameter(
        option.name, Parameter.KEYWORD_ONLY, annotation=described, default=option.default
    )


reproduce.__doc__ = SUMMARY
reproduce.__signature__ = Signature([_parameter(option) for option in OPTIONS])  # type: ignore[attr-defined]
