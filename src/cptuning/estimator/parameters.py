"""The parameters of the classifiers: constructors and documentation are made from one list."""

import inspect
from dataclasses import fields
from inspect import Parameter, Signature
from textwrap import wrap
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin

from cptuning.estimator.text_model import TextModel

C = TypeVar("C", bound=TextModel)

# What every method takes besides its settings: the type, the default and the meaning.
_SHARED: dict[str, tuple[str, Any, str]] = {
    "backbone": (
        "str or Backbone",
        "embedded",
        '"embedded" (shipped with the package), "small", "base", "multilingual" or "paper" '
        "(downloaded once), a folder, or an id on the hub, of a masked LM or, for cp-tuning and "
        "fine-tuning, of any encoder, including those of sentence-transformers; or the result of "
        "``load_backbone``, which ``fit`` trains in place.",
    ),
    "preset": (
        "str",
        "default",
        "The preset: {presets}. Settings below that are None take its values.",
    ),
    "random_state": (
        "int, numpy generator or None",
        0,
        "The seed. On a CPU, the same seed and number of threads give the same model, bit for "
        "bit. None draws a random seed; a numpy generator provides one.",
    ),
    "validation": (
        "{'cross-fit', 'none'}",
        "cross-fit",
        "How the weights are chosen and the probabilities calibrated if ``fit`` gets no dev set. "
        '"cross-fit" trains ``folds`` more models that each leave a part of the examples out; '
        '"none" trains once, for the preset\'s number of steps, and measures nothing. With '
        '``inference="lda"`` and ``steps=0``, either leaves out one example at a time, exactly and '
        "without training.",
    ),
    "folds": ("int", 2, "The number of folds in cross-fitting."),
    "device": ("str", "auto", 'The device to train and predict on: "auto", "cpu", "cuda", ...'),
    "precision": (
        "{'auto', 'float32', 'bfloat16'}",
        "auto",
        'The precision of the training; "auto" is bfloat16 on a GPU that supports it.',
    ),
    "verbose": (
        "bool",
        True,
        "Whether to show a progress bar and the held-out accuracy, in a terminal or a notebook.",
    ),
    "callbacks": (
        "list of cptuning.training.Callback or None",
        None,
        "Callbacks that follow the training: subclass ``Callback`` and override what you need, or "
        "use a tracker such as ``cptuning.training.TensorBoardTracker(folder)``.",
    ),
    "checkpoint_dir": (
        "str, Path or None",
        None,
        "A folder for checkpoints, from which an interrupted run continues. Saving the model "
        "removes the checkpoints, and nothing else, from it.",
    ),
    "checkpoint_seconds": ("float", 30.0, "The minimum time between two checkpoints, in seconds."),
}
_POSITIONAL = ("backbone", "preset", "random_state")

ATTRIBUTES = {
    "classes_": ("ndarray", "The classes, in the order of the columns of ``predict_proba``."),
    "n_features_in_": ("int", "The number of texts in an example: 1, or 2 for pairs."),
    "settings_": (
        "TrainingSettings",
        "The settings of the fit: those given, and otherwise the preset's.",
    ),
    "predictor_": ("Predictor", "The fitted model, without its training state."),
    "held_out_score_": (
        "float or None",
        "The accuracy on the dev set or, without one, on training examples that a model had not "
        "seen; None if nothing was held out.",
    ),
    "held_out_": (
        "HeldOut or None",
        "These answers, as class scores, in the order of the data. Only after ``fit``.",
    ),
    "held_out_rows_": (
        "ndarray or None",
        "The rows of the training examples that were held out: all but those that are alone in "
        "their class; of very many, a sample in cross-fitting. Only after ``fit``.",
    ),
    "history_": (
        "History",
        "The scores by step, and the step whose weights were kept. Only after ``fit``.",
    ),
    "training_": ("dict", "What the model card says about the fit: examples, best step, seed, ..."),
}


def takes_settings(cls: type[C]) -> type[C]:
    """A class decorator: every setting of the method is a parameter; None takes the preset's.

    The settings' own class is the one list of them; scikit-learn reads the signature made here.
    """
    settings = [field.name for field in fields(cls.settings_class)]
    defaults = {name: default for name, (_, default, _) in _SHARED.items()}
    defaults |= dict.fromkeys((*cls.own_parameters, *settings))
    signature = Signature(
        [
            Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
            *(_parameter(name, default) for name, default in defaults.items()),
        ]
    )

    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
        bound = signature.bind(self, *args, **given)
        bound.apply_defaults()
        for name in defaults:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[method-assign]
    return described(cls)


def described(cls: type[C]) -> type[C]:
    """A class decorator: every parameter and fitted attribute is described in the docstring."""
    about, title, examples = inspect.cleandoc(cls.__doc__ or "").partition("Examples\n--------")
    entries = _shared_entries(cls) | cls.own_parameters | _setting_entries(cls)
    lines = [about.rstrip(), "", "Parameters", "----------"]
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        kind, description = entries[parameter.name]
        lines += [f"{parameter.name} : {kind}, default={parameter.default!r}"]
        lines += _indented(description)
    lines += ["", "Attributes", "----------"]
    for name, (kind, description) in (cls.attributes or ATTRIBUTES).items():
        lines += [f"{name} : {kind}"]
        lines += _indented(description)
    cls.__doc__ = "\n".join([*lines, "", f"{title}{examples}", ""])
    return cls


def _indented(text: str) -> list[str]:
    indent = " " * 4
    return wrap(text, 92, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _shared_entries(cls: type[TextModel]) -> dict[str, tuple[str, str]]:
    presets = ", ".join(f'"{name}"' for name in cls.presets)
    return {
        name: (kind, description.format(presets=presets))
        for name, (kind, _, description) in _SHARED.items()
    }


def _setting_entries(cls: type[TextModel]) -> dict[str, tuple[str, str]]:
    return {
        field.name: (f"{_kind(field.type)} or None", field.metadata["description"])
        for field in fields(cls.settings_class)
    }


def _kind(annotation: Any) -> str:
    """A type as a docstring has it.

    >>> _kind(float), _kind(int | None), _kind(Literal["sum", "mean"])
    ('float', 'int', "{'sum', 'mean'}")
    """
    if get_origin(annotation) is Literal:
        return "{" + ", ".join(map(repr, get_args(annotation))) + "}"
    if isinstance(annotation, UnionType):
        return _kind(get_args(annotation)[0])
    return annotation.__name__ if get_origin(annotation) is None else str(annotation)


def _parameter(name: str, default: Any) -> Parameter:
    kind = Parameter.POSITIONAL_OR_KEYWORD if name in _POSITIONAL else Parameter.KEYWORD_ONLY
    return Parameter(name, kind, default=default)
