"""LM-BFF: templates and label words that are searched for, tuned as candidates, chosen on dev."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from cptuning.backbone import Backbone, PromptedEncoder, TextEncoder, layout_for
from cptuning.errors import CPTuningError
from cptuning.methods.classification import ClassificationTask, require_masked_lm, snapshot
from cptuning.methods.demonstrations import Demonstrations
from cptuning.methods.fitting import Fitted, Fitter, Run
from cptuning.methods.label_search import search_words, some_words
from cptuning.methods.rival_settings import LMBFFSettings
from cptuning.methods.t5_templates import T5, write_templates
from cptuning.methods.task import Labelled, Split
from cptuning.methods.template_search import search_templates
from cptuning.methods.word_learner import WordLearner
from cptuning.methods.words import WordHead, tokens_of, words_for
from cptuning.prompting import Template


class LMBFF(WordLearner[LMBFFSettings]):
    """One template with its words, and demonstrations if they are asked for."""

    method = "lm-bff"

    def demonstrations(self, train: Labelled) -> Demonstrations | None:
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
) -> Fitted[ClassificationTask[LMBFFSettings]]:
    """Search, tune every candidate for a while, train the one that held-out examples like best.

    Where nothing is held out, the candidate that the search itself ranks first is trained.
    """
    require_masked_lm(backbone, "lm-bff")
    search = _Search(backbone, settings, run, split.train, classes)
    candidates = list(search.candidates())
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
    facts: dict[str, Any] = {
        "search": search.name,
        "candidates": len(candidates),
        "candidate_steps": _tuning(settings).steps,
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
    """How long the trainings take; the search before them is not counted."""
    require_masked_lm(backbone, "lm-bff")
    if settings.label_words is None:  # any will do to take the time
        words = some_words(_Search(backbone, settings, run, split.train, classes).encoder())
        settings = replace(settings, label_words=dict(zip(classes, words, strict=False)))
    candidates = max(1, settings.n_templates) * max(1, settings.n_mappings)
    seconds = Fitter(LMBFF(backbone, settings, run, classes), run).estimate_seconds(split, folds)
    if candidates > 1 and (split.dev is not None or folds > 1):
        share = _tuning(settings).steps / max(1, settings.steps)
        seconds *= 1 + candidates * share
    return seconds


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


class _Search:
    """The candidates that the untrained models offer."""

    def __init__(
        self,
        backbone: Backbone,
        settings: LMBFFSettings,
        run: Run,
        train: Labelled,
        classes: Sequence[str],
    ) -> None:
        self.backbone, self.settings, self.run = backbone, settings, run
        self.train, self.classes = train, classes
        none = np.zeros(0, dtype=np.int64)
        self.module = PromptedEncoder(backbone, none).to(run.processes.device)

    @property
    def name(self) -> str:
        """What was searched for, and with what."""
        writer = self.settings.generator or "MLM"
        parts = []
        if self.settings.n_templates:
            parts.append(f"Auto-T ({writer})")
        if self.settings.n_mappings:
            parts.append("Auto-L")
        return " + ".join(parts) or "none"

    def candidates(self) -> Iterator[LMBFFSettings]:
        """Settings with a template and words each, the most promising first."""
        for template in self._templates():
            for words in self._mappings(template):
                yield replace(self.settings, template=template, label_words=words)

    def _templates(self) -> list[str]:
        count = self.settings.n_templates
        if count == 0:
            return [self.settings.template]
        layout = self.encoder().layout
        unknown = self.backbone.tokenizer.unk_token_id
        words = words_for(self.classes, self.settings.label_words, layout, unknown)
        if self.settings.generator is None:
            tokens = tokens_of(words, layout, unknown)
            found = search_templates(
                self.encoder, self.train, tokens, beam=self.settings.beam, count=count
            )
        else:
            found = write_templates(
                T5.load(self.settings.generator, self.run.processes.device),
                self.train,
                list(words.values()),
                beam=self.settings.beam,
                longest=self.settings.template_tokens,
                count=count,
            )
        if not found:
            raise CPTuningError(
                "No template was found that can be used: raise beam, or give another generator."
            )
        return found

    def _mappings(self, template: str) -> list[dict[str, str] | None]:
        if self.settings.n_mappings == 0:
            return [self.settings.label_words]
        found = search_words(
            self.encoder(template),
            self.train,
            len(self.classes),
            words_a_class=self.settings.words_a_class,
            combinations=self.settings.combinations,
        )
        best = islice(found, self.settings.n_mappings)
        return [dict(zip(self.classes, words, strict=True)) for words in best]

    def encoder(self, template: str | None = None, masks: int = 1) -> TextEncoder:
        """The untrained model with a template, the given one if none is named."""
        layout = layout_for(
            self.backbone,
            Template.parse(template or self.settings.template),
            self.settings.max_length,
            trainable_words=False,
            masks=masks,
        )
        return TextEncoder(layout, self.module, self.backbone)
