"""The visitor's texts with marked spans, and the tagger that learns from them."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any

from cptuning.app.background_job import BackgroundJob, TrainingProgressCallback
from cptuning.app.user_examples import quoted, without_folder
from cptuning.data.sentence_files import read_sentences
from cptuning.data.sentences import Sentence, TaggedSentences
from cptuning.data.tag_schemes import WordSpan, types_of
from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningTagger
from cptuning.inference.tag_predictor import FoundSpan

ON_A_PAGE = 20
_FOLDS = 2
_MOST_TEXTS = 5000
_MOST_UNDONE = 50
_LONGEST_TYPE = 60

SAMPLE = (
    ("a table for two in Rome on Friday", (("Rome", "city"), ("Friday", "day"))),
    ("fly me to Oslo on Monday", (("Oslo", "city"), ("Monday", "day"))),
    ("is it cold in Lima today", (("Lima", "city"), ("today", "day"))),
    ("we leave New York on Sunday morning", (("New York", "city"), ("Sunday morning", "day"))),
    ("thank you, that is all", ()),
    ("two nights in Cape Town from Tuesday", None),
    ("what is the weather like in Kyoto on Saturday", None),
    ("a window seat, please", None),
)
"""Texts with what is to be marked in them; None: for the visitor to mark."""


@dataclass(frozen=True)
class MarkedText:
    """A text with its marked spans; once the visitor has checked it, it is learned from."""

    sentence: Sentence
    spans: tuple[WordSpan, ...] = ()
    is_checked: bool = False


@dataclass(frozen=True)
class _TextsBefore:
    done: str
    texts: tuple[MarkedText, ...]
    types: tuple[str, ...]


class SpanWorkspace:
    """Texts to mark spans in, and what a tagger that learned from some finds in the others.

    A text counts as checked once something in it was marked, or its guesses were accepted. Spans
    that the tagger found in a text become the visitor's own as soon as one of them is changed.

    >>> work = SpanWorkspace()
    >>> work.add_lines("fly to New York")
    >>> work.choose_type("city")
    >>> work.mark(0, 3, 2)
    >>> work.texts[0].spans, work.types
    ((WordSpan(start=2, stop=4, label='city'),), ('city',))
    >>> work.undo()
    >>> work.texts[0].is_checked
    False
    """

    def __init__(self, backbone: str = "embedded") -> None:
        self.backbone = backbone
        self.lock = RLock()
        self.texts: tuple[MarkedText, ...] = ()
        self.types: tuple[str, ...] = ()
        """In the order in which they came: it decides about their colours."""
        self.type = ""
        """What is marked next."""
        self.page = 0
        self.tagger: CPTuningTagger | None = None
        self.is_trained = False
        self.job: BackgroundJob[bool] | None = None
        self._guesses: dict[Sentence, tuple[FoundSpan, ...]] = {}
        self._learned: TaggedSentences | None = None
        self._past: list[_TextsBefore] = []

    # The texts.

    def add_lines(self, content: str) -> None:
        """Add texts, one per line."""
        lines = [line.strip() for line in content.splitlines() if line.strip()]
        if not lines:
            raise CPTuningError("There is nothing to add: paste one text per line.")
        self._add([MarkedText(Sentence.of_text(line)) for line in lines])

    def add_file(self, path: str | Path) -> None:
        """Add the texts of a file, with the spans that are marked in it."""
        try:
            read = read_sentences(path)
        except CPTuningError as error:
            raise without_folder(error, path) from error
        if read.tagged is None:
            return self._add([MarkedText(sentence) for sentence in read.sentences])
        both = zip(read.tagged.sentences, read.tagged.spans, strict=True)
        return self._add([MarkedText(*one, is_checked=True) for one in both])

    def add_sample(self) -> None:
        """Add a few texts, most of them marked."""
        found = []
        for text, marked in SAMPLE:
            sentence = Sentence.of_text(text)
            places = [(text.index(t), text.index(t) + len(t), name) for t, name in marked or ()]
            spans, _ = sentence.word_spans(places, text)
            found.append(MarkedText(sentence, tuple(spans), is_checked=marked is not None))
        self._add(found)

    def _add(self, more: Sequence[MarkedText]) -> None:
        with self.lock:
            known = {one.sentence.text for one in self.texts}
            new = list({one.sentence.text: one for one in more}.values())
            new = [one for one in new if one.sentence.text not in known and len(one.sentence)]
            if not new:
                raise CPTuningError("These texts are in the list already, or have no words.")
            if len(self.texts) + len(new) > _MOST_TEXTS:
                raise CPTuningError(
                    f"That would be more than {_MOST_TEXTS:,} texts: use `cptuning tag fit`."
                )
            self._remember(f"{len(new)} text{'s' * (len(new) > 1)} added.")
            self.texts = (*self.texts, *new)
            self._know_types()
            self._guess(new)

    def delete(self, place: int) -> None:
        """Delete a text."""
        with self.lock:
            gone = self._at(place)
            self._remember(f"Deleted: {quoted(gone.sentence.text)}")
            self.texts = (*self.texts[:place], *self.texts[place + 1 :])
            self.page = min(self.page, self.last_page)

    # Marking.

    def choose_type(self, name: str) -> None:
        """What is marked from now on; it may be new."""
        label = " ".join(name.split())
        if not label:
            raise CPTuningError("Enter a name for the type, such as city.")
        if len(label) > _LONGEST_TYPE:
            raise CPTuningError(f"The name of a type has at most {_LONGEST_TYPE} characters.")
        with self.lock:
            self.type = label
            if label not in self.types:
                self.types = (*self.types, label)

    def mark(self, place: int, first: int, last: int) -> None:
        """Mark the words from one to another as of the chosen type, in place of what overlaps."""
        with self.lock:
            text = self._at(place)
            start, stop = min(first, last), max(first, last) + 1
            if not 0 <= start < stop <= len(text.sentence):
                raise CPTuningError("The texts have changed meanwhile: mark again.")
            if not self.type:
                raise CPTuningError("Name a type first, such as city: it is what you mark.")
            span = WordSpan(start, stop, self.type)
            kept = [s for s in self.shown(place) if s.stop <= start or s.start >= stop]
            words = quoted(text.sentence.marked(span)["text"])
            self._change(place, sorted([*kept, span]), f"Marked as {self.type}: {words}")

    def unmark(self, place: int, word: int) -> None:
        """Remove the mark on a word."""
        with self.lock:
            text, shown = self._at(place), self.shown(place)
            gone = [span for span in shown if span.start <= word < span.stop]
            if not gone:
                raise CPTuningError("There is no mark: the texts have changed meanwhile.")
            words = quoted(text.sentence.marked(gone[0])["text"])
            self._change(place, [s for s in shown if s not in gone], f"Not marked now: {words}")

    def accept(self, place: int) -> None:
        """What is marked and found in a text is right and complete, even if it is nothing."""
        with self.lock:
            text = quoted(self._at(place).sentence.text)
            self._change(place, self.shown(place), f"Checked: {text}")

    def shown(self, place: int) -> list[WordSpan]:
        """The spans of a text as it is shown: the visitor's, or else what the tagger found."""
        text = self._at(place)
        return list(text.spans) if text.is_checked else [s.span for s in self.guesses(place)]

    def guesses(self, place: int) -> tuple[FoundSpan, ...]:
        """What the tagger found in a text that was not checked."""
        text = self._at(place)
        return () if text.is_checked else self._guesses.get(text.sentence, ())

    def _change(self, place: int, spans: Sequence[WordSpan], done: str) -> None:
        self._remember(done)
        changed = replace(self.texts[place], spans=tuple(spans), is_checked=True)
        self.texts = (*self.texts[:place], changed, *self.texts[place + 1 :])
        self._know_types()

    def _know_types(self) -> None:
        new = types_of(text.spans for text in self.texts)
        self.types = (*self.types, *(label for label in new if label not in self.types))
        self.type = self.type or (self.types[0] if self.types else "")

    def _at(self, place: int) -> MarkedText:
        if not 0 <= place < len(self.texts):
            raise CPTuningError("The texts have changed meanwhile: try again.")
        return self.texts[place]

    # What was done, and how it is undone.

    @property
    def done(self) -> str:
        """What was done last, if it can be undone."""
        return self._past[-1].done if self._past else ""

    def undo(self) -> None:
        """Undo what was done last."""
        with self.lock:
            if self._past:
                before = self._past.pop()
                self.texts, self.types = before.texts, before.types
                self.type = self.type if self.type in self.types else (*self.types, "")[0]
                self.page = min(self.page, self.last_page)

    def _remember(self, done: str) -> None:
        self._past = [*self._past, _TextsBefore(done, self.texts, self.types)][-_MOST_UNDONE:]

    # The pages of the list.

    @property
    def last_page(self) -> int:
        """The number of the last page, from 0 on."""
        return max(0, len(self.texts) - 1) // ON_A_PAGE

    def turn_to(self, page: int) -> None:
        """Show another page of the list."""
        self.page = max(0, min(page, self.last_page))

    # The tagger.

    @property
    def checked(self) -> TaggedSentences:
        """What is learned from."""
        texts = [text for text in self.texts if text.is_checked]
        return TaggedSentences(
            tuple(text.sentence for text in texts), tuple(text.spans for text in texts)
        )

    @property
    def is_outdated(self) -> bool:
        """Whether texts were marked since the tagger learned."""
        return self.tagger is not None and self._learned != self.checked

    def learn(self, *, training: bool) -> BackgroundJob[bool]:
        """A job that fits a tagger, with or without training, and lets it read the other texts."""
        examples = self.checked
        if len(examples) < 2 or not any(examples.spans):
            raise CPTuningError(
                "Mark something first: it takes two checked texts, and a marked span."
            )

        def work(job: BackgroundJob[bool]) -> bool:
            job.report(0.0, "Reading the marked texts")
            watch = TrainingProgressCallback(job, trainings=_FOLDS + 1)
            tagger = CPTuningTagger(
                self.backbone,
                preset="default" if training else "instant",
                folds=_FOLDS,
                verbose=False,
                callbacks=[watch],
            ).fit_tagged(examples)
            tagger.callbacks = None
            job.report(1.0, "Reading the other texts")
            with self.lock:
                job.require_wanted()  # Ends here if the visitor has gone meanwhile.
                self.tagger, self._learned, self.is_trained = tagger, examples, training
                self._guesses = {}
            self._guess(self.texts)
            return True

        self.job = BackgroundJob(work)
        return self.job

    def cancel(self) -> None:
        """Cancel the running job, if there is one."""
        if self.job is not None:
            self.job.cancel()

    def _guess(self, texts: Sequence[MarkedText]) -> None:
        if self.tagger is not None:
            new = [text.sentence for text in texts if not text.is_checked]
            found = self.tagger.predictor_.found(new)
            self._guesses |= {s: tuple(spans) for s, spans in zip(new, found, strict=True)}

    def found(self, text: str) -> tuple[Sentence, list[dict[str, Any]]]:
        """The spans that the tagger finds in a new text, each with the nearest marked ones."""
        if not text.strip():
            raise CPTuningError("Type a text first.")
        sentence = Sentence.of_text(text.strip())
        return sentence, self._tagger().explain([sentence])[0]

    def spans_in(self, texts: Sequence[str]) -> list[list[dict[str, Any]]]:
        """The spans that the tagger finds in each of some new texts."""
        return self._tagger().predict_spans(list(texts))

    @property
    def found_types(self) -> list[str]:
        """The types of spans that the tagger finds."""
        return [str(label) for label in self._tagger().classes_]

    def _tagger(self) -> CPTuningTagger:
        if self.tagger is None:
            raise CPTuningError("Nothing is learned yet: mark some texts, and press Learn.")
        return self.tagger

    # Files to take away.

    def marked_file(self, target: Path) -> Path:
        """The checked texts as JSON lines, as `cptuning tag fit` reads them."""
        examples = self.checked
        if not len(examples):
            raise CPTuningError("No text is checked yet: mark something in one.")
        with target.open("w", encoding="utf-8") as file:
            for sentence, spans in zip(examples.sentences, examples.spans, strict=True):
                marked = [sentence.marked(span) for span in spans]
                row = {"text": sentence.text, "spans": marked}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        return target

    def model_file(self, folder: Path) -> Path:
        """The tagger's folder, zipped."""
        self._tagger().save(folder)
        archive = str(folder.with_name("cptuning-tagger"))
        return Path(shutil.make_archive(archive, "zip", folder.parent, folder.name))

    def close(self) -> None:
        """Cancel what runs and forget everything: the visitor has gone."""
        self.cancel()
        with self.lock:
            self.texts, self.tagger, self._learned = (), None, None
            self._guesses, self._past = {}, []
