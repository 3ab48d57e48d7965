"""The options that several commands share, each with one name and one help text."""

import json
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from cptuning.backbone.catalogue import NAMES
from cptuning.errors import CPTuningError
from cptuning.inference.rejection import error_target
from cptuning.settings import LARGEST_SEED

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="The folder of a fitted model, or its id on the hub: org/name, or org/name@revision.",
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option("--text", metavar="COLUMN", help="The column of the (first) text."),
]
SecondTextColumn = Annotated[
    str | None,
    typer.Option("--text-b", metavar="COLUMN", help="The column of the second text of pairs."),
]
LabelColumn = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The column of the label.")
]
LabelSeparator = Annotated[
    str | None,
    typer.Option(
        "--label-separator",
        metavar="TEXT",
        help='For texts with several labels: what joins them in the label column, such as ";".',
    ),
]
LabelColumns = Annotated[
    str | None,
    typer.Option(
        "--label-columns",
        metavar="NAMES",
        help="For texts with several labels: their columns, such as late,rude, which hold 1 or 0.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")]
Method = Annotated[
    str, typer.Option(metavar="NAME", help="The method to train: see `cptuning methods`.")
]
Backbone = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"The language model: {NAMES} (see `cptuning backbones`), a folder, or a hub id.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Use the template and label words of one of the paper's data sets."
    ),
]
Template = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help='The prompt, such as "{a} It was [MASK]."'),
]
LabelWords = Annotated[
    str | None,
    typer.Option(metavar="WORDS", help="One word per label, such as good=great,bad=terrible."),
]
Preset = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The settings to start from: default, paper, or released (cp-tuning only).",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        max=LARGEST_SEED,
        help="The random seed; on a CPU, the same seed gives the same model.",
    ),
]
UnknownThreshold = Annotated[
    str | None,
    typer.Option(
        metavar="auto|NUMBER|TARGET",
        help='Answer "unknown" if the similarity to every example is below this; auto chooses it. '
        "A target such as 'error<=0.05' answers as many texts as it can with at most 5 % errors.",
    ),
]
ClassPrior = Annotated[
    str | None,
    typer.Option(
        metavar="SHARES",
        help="The share of each class among the texts to come, such as spam=0.02,ham=0.98: the "
        "probabilities are corrected for it.",
    ),
]
Hierarchy = Annotated[
    str | None,
    typer.Option(
        "--hierarchy",
        metavar="SIGN",
        help='Labels have levels, divided by this sign, such as " > " in "billing > refund".',
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="With --hierarchy, the lowest acceptable probability: the deepest level that "
        "reaches it is the answer (0.5).",
    ),
]
Ordinal = Annotated[
    str | None,
    typer.Option(
        metavar="numbers|LABELS",
        help="The labels have an order: numbers, or the labels from the least to the greatest, "
        "such as bad,fair,good. Answers are then as near as can be expected.",
    ),
]
Device = Annotated[
    str, typer.Option(metavar="NAME", help="The device: auto, cpu, cuda, cuda:1 and so on.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of the method, such as steps=60 or loss=circle; can be repeated.",
    ),
]

# Parameters of the classifier that have an option of their own, or make no sense in a command.
_NOT_SET = (
    "task",
    "backbone",
    "preset",
    "random_state",
    "validation",
    "folds",
    "unknown_threshold",
    "device",
    "verbose",
    "callbacks",
    "checkpoint_dir",
    "class_weight",
    "class_prior",
    "ordinal",
)


def finite(number: float) -> float:
    """Refuse NaN, which is within all bounds that Typer checks."""
    if not isfinite(number):
        raise typer.BadParameter(f"{number} is not a finite number.")
    return number


def parse_settings(given: list[str] | None, method: str = "cp-tuning") -> dict[str, Any]:
    """The settings in ``name=value`` arguments; a value is JSON, or else a string.

    >>> parse_settings(["steps=60", "loss=circle", "relaxation=false"])
    {'steps': 60, 'loss': 'circle', 'relaxation': False}
    >>> parse_settings(["stepps=60"])
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There is no setting 'stepps': did you mean steps?
    """
    from cptuning.registry import classifier_class

    return parse_settings_of(classifier_class(method), given)


def parse_settings_of(kind: Any, given: list[str] | None) -> dict[str, Any]:
    """The same for a class of models, whose parameters say what can be set."""
    names = kind.parameter_names()
    known = [name for name in names if name not in _NOT_SET]
    settings: dict[str, Any] = {}
    for word in given or []:
        name, equals, value = word.partition("=")
        if not equals:
            raise CPTuningError(f"--set {word}: write NAME=VALUE, such as --set steps=60.")
        if name not in known:
            raise CPTuningError(_no_such_setting(name, known))
        settings[name] = _value(value)
    return settings


def parse_prompt(task: str | None, template: str | None, label_words: str | None) -> dict[str, Any]:
    """The parameters of the prompt that are given.

    >>> parse_prompt(None, "{a} It was [MASK].", "good=great,bad=terrible")
    {'template': '{a} It was [MASK].', 'label_words': {'good': 'great', 'bad': 'terrible'}}
    """
    words = None
    if label_words is not None:
        pairs = [word.partition("=") for word in label_words.split(",")]
        if not all(label.strip() and word.strip() for label, _, word in pairs):
            raise CPTuningError(
                f"--label-words is {label_words!r}: write LABEL=WORD for each label, "
                "such as good=great,bad=terrible."
            )
        words = {label.strip(): word.strip() for label, _, word in pairs}
    given = {"task": task, "template": template, "label_words": words}
    return {name: value for name, value in given.items() if value is not None}


def parse_by_label(option: str, given: str | None) -> dict[str, float] | None:
    """The numbers by label in ``label=number,…``; a label may contain "=", but no comma.

    >>> parse_by_label("--class-prior", "spam=0.1,ham=0.9")
    {'spam': 0.1, 'ham': 0.9}
    """
    if given is None:
        return None
    numbers = {}
    for word in given.split(","):
        label, _, number = word.rpartition("=")
        try:
            numbers[label.strip()] = float(number)
        except ValueError:
            label = ""
        if not label.strip():
            raise CPTuningError(
                f"{option} is {given!r}: write LABEL=NUMBER for each label, such as a=0.2,b=0.8."
            )
    return numbers


def parse_weights(class_weight: str | None, class_prior: str | None) -> dict[str, Any]:
    """The parameters ``class_weight`` and ``class_prior``, if they are given.

    >>> parse_weights("balanced", None)
    {'class_weight': 'balanced'}
    """
    if class_weight == "balanced":
        weight: Any = class_weight
    else:
        weight = parse_by_label("--class-weight", class_weight)
    found = {"class_weight": weight, "class_prior": parse_by_label("--class-prior", class_prior)}
    return {name: value for name, value in found.items() if value is not None}


def parse_min_confidence(given: float | None, hierarchy: str | None) -> float:
    """The least probability of an answer, which is for a hierarchy alone.

    >>> parse_min_confidence(None, " > "), parse_min_confidence(0.8, " > ")
    (0.5, 0.8)
    """
    if given is not None and hierarchy is None:
        raise CPTuningError("--min-confidence is for labels with levels: give --hierarchy, too.")
    if given is not None and not 0 <= given <= 1:
        raise CPTuningError(f"--min-confidence is {given:g}: give a probability between 0 and 1.")
    return 0.5 if given is None else given


def parse_ordinal(given: str | None) -> dict[str, Any]:
    """The parameter ``ordinal``, if it is given.

    >>> parse_ordinal("numbers"), parse_ordinal("bad, good")
    ({'ordinal': True}, {'ordinal': ['bad', 'good']})
    """
    if given is None:
        return {}
    if given == "numbers":
        return {"ordinal": True}
    return {"ordinal": [label.strip() for label in given.split(",")]}


def parse_threshold(given: str | None) -> dict[str, Any]:
    """The parameter ``unknown_threshold``, if it is given: "auto", a similarity or a target.

    >>> parse_threshold("auto"), parse_threshold("0.4"), parse_threshold(None)
    ({'unknown_threshold': 'auto'}, {'unknown_threshold': 0.4}, {})
    >>> parse_threshold("error<=0.05")
    {'unknown_threshold': 'error<=0.05'}
    """
    if given is None:
        return {}
    if given == "auto" or error_target(given) is not None:
        return {"unknown_threshold": given}
    try:
        threshold = float(given)
    except ValueError:
        threshold = float("nan")
    if not -1 <= threshold <= 1:
        raise CPTuningError(
            f"--unknown-threshold is {given!r}: give auto, a similarity between -1 and 1, or a "
            "target such as 'error<=0.05'."
        )
    return {"unknown_threshold": threshold}


def _no_such_setting(name: str, known: list[str]) -> str:
    if name in _NOT_SET:
        return f"{name} can't be set with --set: see the other options with --help."
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}."
    return f"There is no setting {name!r}: {hint}"


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word
