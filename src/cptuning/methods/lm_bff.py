"""LM-BFF: templates and label words that are searched for, tuned as candidates, chosen on dev."""

import logging
from dataclasses import replace
from typing import Any

from cptuning.errors import CPTuningError
from cptuning.methods.candidate_search import CandidateSearch
from cptuning.methods.classification import require_masked_lm, snapshot
from cptuning.methods.demonstrations import Demonstrations
from cptuning.methods.fit_result import FitResult
from cptuning.methods.label_search import some_words
from cptuning.methods.rival_settings import LMBFFSettings
from cptuning.methods.training import LabelledExamples, Training
from cptuning.methods.word_learner import WordLearner
from cptuning.methods.words import WordHead

_log = logging.getLogger("cptuning")


class LMBFF(WordLearner[LMBFFSettings]):
    """One template with its words, and demonstrations if they are asked for."""

    method = "lm-bff"

    @classmethod
    def fit_result(cls, training: Training[LMBFFSettings]) -> FitResult[Any]:
        """Search, and fit what was found."""
        return fit_candidates(training)

    @classmethod
    def fit_seconds(cls, training: Training[LMBFFSettings]) -> float:
        """The search, its candidates and the chosen one."""
        return estimate_seconds(training)

    def demonstrations(self, train: LabelledExamples) -> Demonstrations | None:
        """An example of each class behind every text."""
        if self.settings.demonstrations == 0:
            return None
        assert isinstance(self.head, WordHead)
        if self.head.masks > 1:
            raise CPTuningError(
                "Demonstrations show one token for each label, and a label word here has several: "
                "choose shorter words, or leave demonstrations out."
            )
        return Demonstrations(
            self.encoder,
            self.head,
            train.examples,
            train.labels,
            self.settings.demonstrations,
            self.settings.similar_share,
        )


def fit_candidates(training: Training[LMBFFSettings]) -> FitResult[Any]:
    """Search, tune every candidate for a while, train the one that does best on held-out examples.

    If nothing is held out, the candidate that the search itself ranks first is trained.
    """
    backbone, settings = training.backbone, training.settings
    require_masked_lm(backbone, "lm-bff")
    search = CandidateSearch(training)
    candidates = search.candidates()
    chosen, tried = candidates[0], []
    if len(candidates) > 1 and (training.split.dev is not None or training.folds > 1):
        put_back = snapshot(backbone)
        scores = []
        for number, candidate in enumerate(candidates, start=1):
            tuning = replace(training, settings=_tuning(candidate), title=f"candidate {number}")
            learner = LMBFF(tuning)
            scores.append(learner.best_score())
            put_back()
            tried.append(
                {
                    "template": candidate.template,
                    "label_words": learner.settings.label_words,
                    "held_out_accuracy": scores[-1].accuracy,
                }
            )
        # Of equally good ones the first, which the search ranked higher.
        chosen = candidates[max(range(len(scores)), key=lambda i: (scores[i], -i))]
    fitted = LMBFF(replace(training, settings=chosen)).fit()
    shown = fitted.task.scorer.demonstrations
    if shown is not None and shown.longest > backbone.max_length and training.processes.is_main:
        _log.warning(
            "A text with its demonstrations may have %d tokens, and the model reads %d: the last "
            "demonstrations are cut off then. A smaller max_length leaves room for them.",
            shown.longest,
            backbone.max_length,
        )
    facts: dict[str, Any] = {
        "search": search.name,
        "candidates": len(candidates),
        "candidate_steps": _tuning(settings).steps if tried else 0,
        "tried": tried,
    }
    return replace(fitted, facts=facts)


def estimate_seconds(training: Training[LMBFFSettings]) -> float:
    """How long the search and the trainings take at most."""
    require_masked_lm(training.backbone, "lm-bff")
    if training.settings.label_words is None:  # Any will do to measure the time.
        words = zip(training.classes, some_words(CandidateSearch(training).encoder()), strict=False)
        own = replace(training.settings, label_words=dict(words))
        training = replace(training, settings=own)
    settings = training.settings
    candidates = max(1, settings.n_templates) * max(1, settings.n_mappings)
    seconds = LMBFF(training).estimate_seconds()
    if candidates > 1 and (training.split.dev is not None or training.folds > 1):
        share = _tuning(settings).steps / max(1, settings.steps)
        seconds *= 1 + candidates * share
    return seconds + CandidateSearch(training).estimate_seconds()


def _tuning(settings: LMBFFSettings) -> LMBFFSettings:
    """The settings of a candidate's tuning."""
    settings = replace(
        settings,
        learning_rate=settings.candidate_learning_rate,
        batch_size=settings.candidate_batch_size,
    )
    if settings.candidate_steps is None:
        return settings
    steps = min(settings.candidate_steps, settings.steps)
    return replace(settings, steps=steps, evaluate_every=max(1, steps // 4))
