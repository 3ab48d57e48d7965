"""cptuning push: upload a model to the Hugging Face hub."""

from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, warn
from cptuning.errors import CPTuningError


def push(
    model: options.Model,
    hub_id: Annotated[str, typer.Argument(metavar="NAME", help="Its name there, as in org/name.")],
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public.")] = False,
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Leave the training texts out of the upload.")
    ] = False,
    revision: Annotated[
        str, typer.Option(metavar="BRANCH", help="The branch to upload to.")
    ] = "main",
    message: Annotated[
        str, typer.Option(metavar="TEXT", help="The message of the commit.")
    ] = "Upload a CP-Tuning model",
    language: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="For the model card: such as en; can be repeated."),
    ] = None,
    license: Annotated[
        str | None, typer.Option(metavar="NAME", help="For the model card: such as mit.")
    ] = None,
    widget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="For the model card: a text to try the model on; can be repeated."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Upload a model to the Hugging Face hub, where others use it by its name.

    A new repository is private, since a model holds its training texts: they are the reasons for
    its answers. Log in first with `hf auth login`, or set HF_TOKEN.
    """
    from cptuning.estimator import TextClassifier
    from cptuning.registry import load

    classifier = load(model)
    if not isinstance(classifier, TextClassifier):
        raise CPTuningError(f"{model} is a tagger, and only classifiers can be pushed so far.")
    if public and not no_texts and classifier.predictor_.support is not None:
        warn(f"The training texts can be read by everybody who can read {hub_id}.")
    address = classifier.push_to_hub(
        hub_id,
        private=not public,
        include_texts=not no_texts,
        revision=revision,
        commit_message=message,
        language=language,
        license=license,
        widget=widget or (),
    )
    if as_json:
        print_json({"model": hub_id, "commit": address})
    else:
        typer.echo(f"The model is on the hub: {address}")
