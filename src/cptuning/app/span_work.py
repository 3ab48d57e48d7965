"""Finding spans in texts: the marked texts of a visitor, and the tagger that learned from them."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from cptuning.app.background_job import BackgroundJob, TrainingProgressCallback
from cptuning.app.marked_texts import MarkedText, tagged
from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningTagger
from cptuning.inference.tag_predictor import TagPredictor
from cptuning.reporting.span_metrics import SpanScores

MOST_TEXTS = 1000
"""More marked texts than this are not read without being asked."""
_LEAST_MARKED = 2
_FOLDS = 2


@dataclass(frozen=True)
class SpanWork:
    """Marked texts and, if there is one, the tagger that knows exactly these.

    It is never changed: an action makes another one, so that undoing it brings this one back.
    """

    texts: tuple[MarkedText, ...] = ()
    tagger: CPTuningTagger | None = None
    is_trained: bool = False
    scores: SpanScores | None = None
    """Of what the tagger found in texts that it had not seen."""
    changes: int = 0
    """How many texts were added, changed or deleted since the last training."""

    @property
    def counts(self) -> dict[str, int]:
        """How many spans of each type are marked, by name.

        >>> SpanWork((MarkedText.parse("[Oslo](city) or [Rome](city)"),)).counts
        {'city': 2}
        """
        labels = [span.label for one in self.texts for span in one.spans]
        return {label: labels.count(label) for label in sorted(set(labels))}

    @property
    def needs_reading(self) -> bool:
        """Whether the texts allow a tagger without training that has not been made yet."""
        marked = sum(bool(one.spans) for one in self.texts)
        return self.tagger is None and marked >= _LEAST_MARKED and len(self.texts) <= MOST_TEXTS

    def with_texts(self, more: Sequence[MarkedText]) -> "SpanWork":
        """The same with more texts; one that is there already takes the new marks."""
        new = {one.text: one for one in more}
        kept = tuple(one for one in self.texts if one.text not in new)
        return self._changed((*kept, *new.values()), list(new.values()))

    def without(self, text: str) -> "SpanWork":
        """The same without a text."""
        return self._changed(tuple(one for one in self.texts if one.text != text), [])

    def _changed(self, texts: tuple[MarkedText, ...], new: Sequence[MarkedText]) -> "SpanWork":
        if self.tagger is None or not self.is_trained or not any(one.spans for one in texts):
            return SpanWork(texts)
        gone = [one for one in self.texts if one not in texts]
        tagger = copy(self.tagger)
        if gone:
            words = {sentence.words for sentence in tagged(gone).sentences}
            tagger.predictor_ = tagger.predictor_.without(words)
        if new:
            examples = tagged(new)
            tagger.predictor_ = tagger.predictor_.with_added(examples)
        return replace(self, texts=texts, tagger=tagger, changes=self.changes + 1)

    def read(self, backbone: Any) -> "SpanWork":
        """The same with a tagger that was not trained."""
        tagger = CPTuningTagger(backbone, preset="instant", verbose=False)
        return self._with_tagger(tagger.fit_tagged(tagged(self.texts)), is_trained=False)

    def trained(
        self, job: BackgroundJob[Any], backbone: Any, settings: Mapping[str, Any]
    ) -> "SpanWork":
        """The same with a tagger that was trained, with reports to a job."""
        watch = TrainingProgressCallback(job, trainings=_FOLDS + 1)
        tagger = CPTuningTagger(
            backbone, folds=_FOLDS, verbose=False, callbacks=[watch], **settings
        )
        job.report(0.0, "Reading the language model")
        tagger.fit_tagged(tagged(self.texts))
        tagger.callbacks = None
        return self._with_tagger(tagger, is_trained=True)

    def _with_tagger(self, tagger: CPTuningTagger, is_trained: bool) -> "SpanWork":
        held_out = tagger.held_out_
        scores = None if held_out is None else SpanScores(held_out.truth, held_out.found)
        return SpanWork(self.texts, tagger, is_trained, scores)

    def require_trainable(self) -> None:
        """Raise an error that says what is missing if nothing can be learned from the texts."""
        if sum(bool(one.spans) for one in self.texts) < _LEAST_MARKED:
            raise CPTuningError("Mark something in two texts at least: [Oslo](city).")

    def model(self) -> CPTuningTagger:
        """The tagger; raises an error if there is none yet."""
        if self.tagger is None:
            raise CPTuningError("There is no model yet: mark something in two texts at least.")
        return self.tagger

    def found(self, text: str, k: int = 2) -> list[dict[str, Any]]:
        """The spans of a text, each with the nearest marked ones."""
        if not text.strip():
            raise CPTuningError("Type a text first.")
        [spans] = self.model().explain([text], k)
        return spans


def work_of(tagger: CPTuningTagger) -> SpanWork:
    """What is known of a tagger that was saved: its texts, but not how good it is."""
    predictor: TagPredictor = tagger.predictor_
    texts = [
        MarkedText.of(sentence.text, [sentence.marked(span) for span in spans])
        for sentence, spans in zip(
            predictor.examples.sentences, predictor.examples.spans, strict=True
        )
    ]
    tagger.verbose = False
    return SpanWork(tuple(texts), tagger, is_trained=True)
