"""The scikit-learn face of CP-Tuning's rivals.

They take the parameters of :class:`~cptuning.CPTuningClassifier` that are not CP-Tuning's own
(``backbone``, ``preset``, ``random_state``, ``validation``, ``folds``, ``device``, ``precision``,
``verbose``, ``callbacks``, ``checkpoint_dir``, ``checkpoint_seconds``) and the settings of their
method, which ``cptuning.methods.rival_settings`` describes. Methods that ask for words also take
``template``, ``label_words`` (a word for each label) and ``task``, the name of one of the paper's
data sets, whose manual template and words are then used.
"""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cptuning.data import LabelSpace
from cptuning.errors import CPTuningError
from cptuning.estimator.base import TextClassifier, Training
from cptuning.estimator.parameters import takes_settings
from cptuning.methods import rival_settings as presets
from cptuning.methods.rival_settings import (
    LMBFFSettings,
    PETSettings,
    PTuningSettings,
    WARPSettings,
)
from cptuning.methods.training_settings import TrainingSettings
from cptuning.prompting import default_template, task_prompt

if TYPE_CHECKING:
    from cptuning.methods.fitting import FitResult, Fitter
    from cptuning.methods.task import Split

_log = logging.getLogger("cptuning")


@takes_settings()
class FineTuningClassifier(TextClassifier):
    """Standard fine-tuning: a new classifier on [CLS], cross-entropy.

    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = FineTuningClassifier(steps=2, validation="none", verbose=False)
    >>> clf.fit(texts, ["good", "good", "bad", "bad"]).predict_proba(["what a joy"]).shape
    (1, 2)
    """

    method = "fine-tuning"
    settings_class = TrainingSettings
    presets = presets.FINE_TUNING_PRESETS

    def _fitter(self, training: Training) -> "Fitter[Any]":
        from cptuning.methods.fine_tuning import FineTuning
        from cptuning.methods.fitting import Fitter

        return Fitter(FineTuning(*training.essentials), training.run)


class WordClassifier(TextClassifier):
    """What the methods have in common that ask the model for words."""

    task: str | None
    label_words: dict[Any, str] | None
    template_kind = "template"

    def _changes(self, pair: bool) -> dict[str, Any]:
        """The task's template, in place of the one that is for any text, and its words."""
        if self.task is None:
            return {}
        prompt = task_prompt(self.task, self.template_kind)
        changes: dict[str, Any] = {"label_words": prompt.label_words}
        preset = self.presets.get(self.preset, {})
        usual = default_template(pair=pair, kind=self.template_kind)
        if preset and preset["pair" if pair else "single"].template == usual:
            changes["template"] = prompt.template
        return changes

    def _training(self, label_space: LabelSpace, split: "Split", init_from: Any) -> Training:
        training = super()._training(label_space, split, init_from)
        words = _by_name(training.settings.label_words, label_space, self.task)
        return replace(training, settings=replace(training.settings, label_words=words))


@takes_settings("task")
class PETClassifier(WordClassifier):
    """PET: the words of a manual prompt decide.

    ``fit(..., unlabeled=texts)`` adds PET's masked-LM loss on them. With ``patterns``, more
    templates, a model is trained for each, and what they say of the unlabelled texts teaches a
    final classifier.

    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = PETClassifier(task="SST-2", steps=0, validation="none", verbose=False)
    >>> clf.fit(texts, ["positive"] * 2 + ["negative"] * 2).predict(["what a joy", "awful"])
    array(['positive', 'negative'], dtype='<U8')
    """

    method = "pet"
    settings_class = PETSettings
    presets = presets.PET_PRESETS
    uses_unlabeled = True

    def _fitter(self, training: Training) -> "Fitter[Any]":
        from cptuning.methods.fitting import Fitter
        from cptuning.methods.pet import PET

        return Fitter(PET(*training.essentials), training.run)

    def _train(self, training: Training) -> "FitResult[Any]":
        if not training.settings.patterns:
            return super()._train(training)
        from cptuning.methods.pet import fit_patterns

        return fit_patterns(training.split, training.folds, *training.essentials)

    def _estimate(self, training: Training) -> float:
        """The final classifier's steps cost about what a pattern's do."""
        one = super()._estimate(training)
        settings = training.settings
        if not settings.patterns:
            return one
        final = float(settings.distillation_steps / max(1, settings.steps))
        return one * (1 + len(settings.patterns) + final)


class LMBFFClassifier(WordClassifier):
    """LM-BFF: what is not given is searched for, and candidates are tuned and chosen on dev."""

    settings_class = LMBFFSettings

    def _fitter(self, training: Training) -> "Fitter[Any]":
        from cptuning.methods.fitting import Fitter
        from cptuning.methods.lm_bff import LMBFF

        return Fitter(LMBFF(*training.essentials), training.run)

    def _train(self, training: Training) -> "FitResult[Any]":
        from cptuning.methods.lm_bff import fit_candidates

        self._warn_of_unused(training.settings)
        return fit_candidates(training.split, training.folds, *training.essentials)

    def _warn_of_unused(self, settings: LMBFFSettings) -> None:
        """Say which of the given things is searched for instead."""
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

    def _estimate(self, training: Training) -> float:
        from cptuning.methods.lm_bff import estimate_seconds

        return estimate_seconds(training.split, training.folds, *training.essentials)


@takes_settings("task")
class LMBFFTemplateClassifier(LMBFFClassifier):
    """LM-BFF Auto-T: the template is searched for.

    >>> LMBFFTemplateClassifier(task="SST-2", n_templates=4).n_templates
    4
    """

    method = "lm-bff-t"
    presets = presets.LM_BFF_T_PRESETS


@takes_settings("task")
class LMBFFLabelClassifier(LMBFFClassifier):
    """LM-BFF Auto-L: the label words are searched for.

    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = LMBFFLabelClassifier(steps=0, validation="none", verbose=False)
    >>> clf.fit(texts, [1, 1, 0, 0]).training_["search"]
    'Auto-L'
    """

    method = "lm-bff-l"
    presets = presets.LM_BFF_L_PRESETS


@takes_settings("task")
class LMBFFTemplateLabelClassifier(LMBFFClassifier):
    """LM-BFF Auto-T+L: templates first, then words for each.

    >>> LMBFFTemplateLabelClassifier(task="SST-2").method
    'lm-bff-tl'
    """

    method = "lm-bff-tl"
    presets = presets.LM_BFF_TL_PRESETS


@takes_settings("task")
class PTuningClassifier(WordClassifier):
    """P-tuning: trainable tokens beside fixed words, made by a BiLSTM and an MLP in training.

    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = PTuningClassifier(task="SST-2", steps=1, validation="none", verbose=False)
    >>> clf.fit(texts, ["positive"] * 2 + ["negative"] * 2).classes_.tolist()
    ['negative', 'positive']
    """

    method = "p-tuning"
    settings_class = PTuningSettings
    presets = presets.P_TUNING_PRESETS
    template_kind = "p_tuning"

    def _fitter(self, training: Training) -> "Fitter[Any]":
        from cptuning.methods.fitting import Fitter
        from cptuning.methods.p_tuning import PTuning

        return Fitter(PTuning(*training.essentials), training.run)


@takes_settings("task")
class WARPClassifier(WordClassifier):
    """WARP: the language model stays as it is; prompt vectors and class vectors are learned.

    >>> texts = ["great film", "i loved it", "a dull mess", "i hated it"]
    >>> clf = WARPClassifier(task="SST-2", steps=1, validation="none", verbose=False)
    >>> clf.fit(texts, ["positive"] * 2 + ["negative"] * 2).predict(["what a joy"])
    array(['positive'], dtype='<U8')
    """

    method = "warp"
    settings_class = WARPSettings
    presets = presets.WARP_PRESETS

    def _fitter(self, training: Training) -> "Fitter[Any]":
        from cptuning.methods.fitting import Fitter
        from cptuning.methods.warp import WARP

        return Fitter(WARP(*training.essentials), training.run)


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
            raise CPTuningError(f"label_words names {name!r}, which is none of the labels.")
    return {name: by_name[name] for name in names}
