"""LM-BFF: templates and label words that are searched for, tuned as candidates, chosen on dev."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cptuning.backbone import Backbone
from cptuning.errors import CPTuningError
from cptuning.methods.candidate_search import CandidateSearch
from cptuning.methods.classification import ClassificationTask, require_masked_lm, snapshot
from cptuning.methods.demonstrations import Demonstrations
from cptuning.methods.fitting import FitResult, Fitter, Run
from cptuning.methods.label_search import some_words
from cptuning.methods.rival_settings import LMBFFSettings
from cptuning.methods.task import LabelledExamples, Split
from cptuning.methods.word_learner import WordLearner
from cptuning.methods.words import WordHead

_log = logging.getLogger("cptuning")


class LMBFF(WordLearner[LMBFFSettings]):
    """One template with its words, and demonstrations if they are asked for."""

    method = "lm-bff"

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


def fit_candidates(
    split: Split,
    folds: int,
    backbone: Backbone,
    settings: LMBFFSettings,
    run: Run,
    classes: Sequence[str],
) -> FitResult[ClassificationTask[LMBFFSettings]]:
    """Search, tune every candidate for a while, train the one that held-out examples like best.

    Where nothing is held out, the candidate that the search itself ranks first is trained.
    """
    require_masked_lm(backbone, "lm-bff")
    search = CandidateSearch(backbone, settings, run, split.train, classes)
    candidates = search.candidates()
    chosen, tried = candidates[0], []
    if len(candidates) > 1 and (split.dev is not None or folds > 1):
        put_back = snapshot(backbone)
        scores = []
        for number, candidate in enumerate(candidates, start=1):
            learner = LMBFF(backbone, _tuning(candidate), run, classes)
            scores.append(Fitter(learner, run, f"candidate {number}").best_score(split, folds))
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
    fitted = Fitter(LMBFF(backbone, chosen, run, classes), run).fit(split, folds)
    shown = fitted.task.scorer.demonstrations
    if shown is not None and shown.longest > backbone.max_length and run.processes.is_main:
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


def estimate_seconds(
    split: Split,
    folds: int,
    backbone: Backbone,
    settings: LMBFFSettings,
    run: Run,
    classes: Sequence[str],
) -> float:
    """How long the search and the trainings take at most."""
    require_masked_lm(backbone, "lm-bff")
    search = CandidateSearch(backbone, settings, run, split.train, classes)
    if settings.label_words is None:  # any will do to take the time
        words = zip(classes, some_words(search.encoder()), strict=False)
        settings = search.settings = replace(settings, label_words=dict(words))
    candidates = max(1, settings.n_templates) * max(1, settings.n_mappings)
    seconds = Fitter(LMBFF(backbone, settings, run, classes), run).estimate_seconds(split, folds)
    if candidates > 1 and (split.dev is not None or folds > 1):
        share = _tuning(settings).steps / max(1, settings.steps)
        seconds *= 1 + candidates * share
    return seconds + search.estimate_seconds()


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
