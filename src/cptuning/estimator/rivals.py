"""The scikit-learn face of CP-Tuning's rivals."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cptuning.data import Examples, LabelSpace
from cptuning.errors import CPTuningError
from cptuning.estimator.base import TextClassifier
from cptuning.estimator.parameters import takes_settings
from cptuning.methods import rival_settings as presets
from cptuning.methods.rival_settings import (
    LMBFFSettings,
    PETSettings,
    PTuningSettings,
    WARPSettings,
)
from cptuning.prompting import default_template, task_prompt
from cptuning.settings import TrainingSettings

if TYPE_CHECKING:
    from cptuning.methods.instant import InstantTraining
    from cptuning.methods.training import Training

_log = logging.getLogger("cptuning")


@takes_settings
class FineTuningClassifier(TextClassifier):
    """Standard fine-tuning: a new classifier on [CLS], cross-entropy.

    Examples
    --------
    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = FineTuningClassifier(steps=2, validation="none", verbose=False)
    >>> clf.fit(texts, ["good", "good", "bad", "bad"]).predict_proba(["what a joy"]).shape
    (1, 2)

    """

    method = "fine-tuning"
    learner = "cptuning.methods.fine_tuning:FineTuning"
    settings_class = TrainingSettings
    presets = presets.FINE_TUNING_PRESETS


class WordClassifier(TextClassifier):
    """What the methods that ask the model for words have in common."""

    task: str | None
    label_words: dict[Any, str] | None
    template_kind = "template"
    own_parameters: ClassVar[dict[str, tuple[str, str]]] = TextClassifier.own_parameters | {
        "task": (
            "str or None",
            "The name of one of the paper's data sets, whose manual template and label words are "
            "then used; None means none.",
        )
    }

    def _changes(self, pair: bool) -> dict[str, Any]:
        """The task's template, in place of the one that is for any text, and its words."""
        if self.task is None:
            return {}
        prompt = task_prompt(self.task, self.template_kind)
        changes: dict[str, Any] = {"label_words": prompt.label_words}
        preset = self.presets.get(self.preset, {}) if isinstance(self.preset, str) else {}
        usual = default_template(pair=pair, kind=self.template_kind)
        if preset and preset["pair" if pair else "single"].template == usual:
            changes["template"] = prompt.template
        return changes

    def _settings(self, examples: Examples, label_space: LabelSpace) -> Any:
        settings = super()._settings(examples, label_space)
        words = _by_name(settings.label_words, label_space, self.task)
        return replace(settings, label_words=words)


@takes_settings
class PETClassifier(WordClassifier):
    """PET: the words of a manual prompt decide.

    ``fit(..., unlabeled=texts)`` adds PET's masked-LM loss on them. With ``patterns``, more
    templates, a model is trained for each, and what they say about the unlabelled texts teaches a
    final classifier.

    Examples
    --------
    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = PETClassifier(task="SST-2", steps=0, validation="none", verbose=False)
    >>> clf.fit(texts, ["positive"] * 2 + ["negative"] * 2).predict(["what a joy", "awful"])
    array(['positive', 'negative'], dtype='<U8')

    """

    method = "pet"
    learner = "cptuning.methods.pet:PET"
    settings_class = PETSettings
    presets = presets.PET_PRESETS
    uses_unlabeled = True


class LMBFFClassifier(WordClassifier):
    """LM-BFF: what is not given is searched for, and candidates are tuned and chosen on dev."""

    learner = "cptuning.methods.lm_bff:LMBFF"
    settings_class = LMBFFSettings

    def fit_prepared(self, training: "Training[Any] | InstantTraining") -> Self:
        """Fit what ``prepare`` gave, and warn of parameters that the search replaces."""
        self._warn_of_unused(training.settings)
        return super().fit_prepared(training)

    def _warn_of_unused(self, settings: Any) -> None:
        """Say which of the given parameters is searched for instead."""
        if self.template is not None and settings.n_templates:
            _log.warning(
                "The template that was given is not used: %s searches for templates "
                "(n_templates=0 keeps it).",
                self.method,
            )
        # Templates are searched for with the given words in them.
        if self.label_words is not None and settings.n_mappings and not settings.n_templates:
            _log.warning(
                "The label words that were given are not used: %s searches for words "
                "(n_mappings=0 keeps them).",
                self.method,
            )


@takes_settings
class LMBFFTemplateClassifier(LMBFFClassifier):
    """LM-BFF Auto-T: the template is searched for.

    Examples
    --------
    >>> LMBFFTemplateClassifier(task="SST-2", n_templates=4).n_templates
    4

    """

    method = "lm-bff-t"
    presets = presets.LM_BFF_T_PRESETS


@takes_settings
class LMBFFLabelClassifier(LMBFFClassifier):
    """LM-BFF Auto-L: the label words are searched for.

    Examples
    --------
    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = LMBFFLabelClassifier(steps=0, validation="none", verbose=False)
    >>> clf.fit(texts, [1, 1, 0, 0]).training_["search"]
    'Auto-L'

    """

    method = "lm-bff-l"
    presets = presets.LM_BFF_L_PRESETS


@takes_settings
class LMBFFTemplateLabelClassifier(LMBFFClassifier):
    """LM-BFF Auto-T+L: templates first, then words for each.

    Examples
    --------
    >>> LMBFFTemplateLabelClassifier(task="SST-2").method
    'lm-bff-tl'

    """

    method = "lm-bff-tl"
    presets = presets.LM_BFF_TL_PRESETS


@takes_settings
class PTuningClassifier(WordClassifier):
    """P-tuning: trainable tokens beside fixed words, made by a BiLSTM and an MLP in training.

    Examples
    --------
    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = PTuningClassifier(task="SST-2", steps=1, validation="none", verbose=False)
    >>> clf.fit(texts, ["positive"] * 2 + ["negative"] * 2).classes_.tolist()
    ['negative', 'positive']

    """

    method = "p-tuning"
    learner = "cptuning.methods.p_tuning:PTuning"
    settings_class = PTuningSettings
    presets = presets.P_TUNING_PRESETS
    template_kind = "p_tuning"


@takes_settings
class WARPClassifier(WordClassifier):
    """WARP: the language model stays as it is; prompt vectors and class vectors are learned.

    Examples
    --------
    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = WARPClassifier(task="SST-2", steps=1, validation="none", verbose=False)
    >>> clf.fit(texts, ["positive"] * 2 + ["negative"] * 2).predict(["what a joy"])
    array(['positive'], dtype='<U8')

    """

    method = "warp"
    learner = "cptuning.methods.warp:WARP"
    settings_class = WARPSettings
    presets = presets.WARP_PRESETS


def _by_name(
    given: dict[Any, str] | None, label_space: LabelSpace, task: str | None
) -> dict[str, str] | None:
    """The label words by the labels' names, one for each."""
    if given is None:
        return None
    for label, word in given.items():
        if not isinstance(word, str):
            raise CPTuningError(
                f"label_words has {word!r} for the label {str(label)!r}: it must be a text."
            )
    by_name = {str(label): str(word) for label, word in given.items()}
    names = [str(label) for label in label_space.classes]
    where = f"The task {task} has" if task else "label_words has"
    for name in names:
        if name not in by_name:
            raise CPTuningError(
                f"{where} no word for the label {name!r}: give one for each of {', '.join(names)}."
            )
    for name in by_name:
        if name not in names and task is None:
            raise CPTuningError(f"label_words names {name!r}, which is not a label.")
    return {name: by_name[name] for name in names}
