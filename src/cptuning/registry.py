"""The methods by name; every one is an estimator with the same interface."""

from pathlib import Path
from typing import Any

from cptuning import estimator
from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningRanker, CPTuningTagger, TextClassifier
from cptuning.inference.ranked_documents import RankingPredictor
from cptuning.storage import LoadedModel, find_model, load_model
from cptuning.storage.folders import is_tagger
from cptuning.storage.taggers import load_tagger

_LINES: dict[type[TextClassifier], str] = {
    estimator.CPTuningClassifier: "trainable prompt, contrastive loss; similar examples decide",
    estimator.FineTuningClassifier: "a new classifier on [CLS], every weight trained",
    estimator.PETClassifier: "words of a manual prompt decide; also an ensemble of prompts",
    estimator.LMBFFTemplateClassifier: "PET with a template that is searched for (Auto-T)",
    estimator.LMBFFLabelClassifier: "PET with label words that are searched for (Auto-L)",
    estimator.LMBFFTemplateLabelClassifier: "PET with both searched for (Auto-T+L)",
    estimator.PTuningClassifier: "PET with trainable tokens in the prompt, made by a BiLSTM",
    estimator.WARPClassifier: "frozen language model, trainable prompt and class vectors",
}
_METHODS = {kind.method: kind for kind in _LINES}


def list_methods() -> dict[str, str]:
    """The names of the methods, with a one-line description of each.

    >>> list(list_methods())
    ['cp-tuning', 'fine-tuning', 'pet', 'lm-bff-t', 'lm-bff-l', 'lm-bff-tl', 'p-tuning', 'warp']
    """
    return {kind.method: line for kind, line in _LINES.items()}


def classifier_class(method: str) -> type[TextClassifier]:
    """The estimator of a method.

    >>> classifier_class("cp-tuning").__name__
    'CPTuningClassifier'
    """
    if method not in _METHODS:
        raise CPTuningError(f"There is no method {method!r}: use one of {', '.join(_METHODS)}.")
    return _METHODS[method]


def make_classifier(method: str, **parameters: Any) -> TextClassifier:
    """An unfitted classifier of a method, with its parameters.

    >>> make_classifier("cp-tuning", random_state=7).random_state
    7
    """
    try:
        return classifier_class(method)(**parameters)
    except TypeError as error:
        raise CPTuningError(f"{method} does not take this parameter: {error}.") from error


def load(folder: str | Path, device: str = "auto", *, revision: str | None = None) -> Any:
    """The classifier, tagger or ranker that was saved or exported to a folder, or is on the hub.

    ``load("org/name")`` downloads that model from the hub, unless there is a folder ``org/name``
    here; ``revision`` is a branch, a tag or, to pin exactly one model, a commit.

    >>> load("no-such-folder")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There is no model folder 'no-such-folder': ...
    """
    place = find_model(folder, revision)
    if is_tagger(place):
        return _tagger(place, device)
    model = load_model(place, device, trainable=True)
    if model.facts.method == CPTuningRanker.method:
        return _ranker(model, folder)
    return classifier_class(model.facts.method).of_loaded(model, folder)


def _ranker(model: LoadedModel, folder: str | Path) -> CPTuningRanker:
    try:
        ranker = CPTuningRanker(**model.facts.parameters)
    except TypeError as error:
        raise CPTuningError(
            f"The model folder {folder} is damaged ({error}): save or copy it again."
        ) from error
    ranker.settings_ = model.facts.settings
    ranker.training_ = model.facts.training
    ranker.held_out_score_ = model.facts.training.get("held_out_kept_ndcg")
    assert isinstance(model.predictor, RankingPredictor)
    ranker.predictor_ = model.predictor
    return ranker


def _tagger(folder: Path, device: str) -> CPTuningTagger:
    facts, predictor = load_tagger(folder, device)
    try:
        tagger = CPTuningTagger(**facts.parameters)
    except TypeError as error:
        raise CPTuningError(
            f"The model folder {folder} is damaged ({error}): save or copy it again."
        ) from error
    tagger.settings_ = facts.settings
    tagger.training_ = facts.training
    tagger.held_out_score_ = facts.training.get("held_out_f1")
    tagger.predictor_ = predictor
    return tagger
