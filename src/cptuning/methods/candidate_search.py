"""What LM-BFF searches for before it trains: templates, label words, or both."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from time import perf_counter

import numpy as np

from cptuning.backbone import PromptedEncoder, TextEncoder, layout_for
from cptuning.errors import CPTuningError
from cptuning.methods import t5_templates, template_search
from cptuning.methods.label_search import mask_log_probabilities, search_words
from cptuning.methods.rival_settings import LMBFFSettings
from cptuning.methods.t5_templates import T5
from cptuning.methods.training import Training
from cptuning.methods.words import tokens_of, words_for
from cptuning.prompting import Template
from cptuning.training import Callback


class CandidateSearch:
    """The candidates that the untrained models offer."""

    def __init__(self, training: Training[LMBFFSettings]) -> None:
        self.training = training
        self.backbone, self.settings = training.backbone, training.settings
        self.train, self.classes = training.split.train, training.classes
        none = np.zeros(0, dtype=np.int64)
        self.module = PromptedEncoder(self.backbone, none).to(training.processes.device)

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

    def candidates(self) -> list[LMBFFSettings]:
        """Settings with a template and words each, the most promising first."""
        readings = self._template_readings() + self._mapping_readings()
        watchers = self.training.watchers if readings else ()
        with _watched(watchers, f"search: {self.name}", readings) as has_read:
            return [
                replace(self.settings, template=template, label_words=words)
                for template in self._templates(has_read)
                for words in self._mappings(template, has_read)
            ]

    def estimate_seconds(self) -> float:
        """How long the search takes at most, from one reading of the training examples."""
        began = perf_counter()
        mask_log_probabilities(self.encoder(), self.train)
        per_reading = perf_counter() - began
        seconds = per_reading * self._mapping_readings()
        if self.settings.n_templates and self.settings.generator is not None:
            words = list(self._words().values())
            t5 = T5.load(self.settings.generator, self.training.processes.device)
            per_reading = t5_templates.seconds_to_read(
                t5, self.train, words, self.settings.template_tokens
            )
        return seconds + per_reading * self._template_readings()

    def _template_readings(self) -> int:
        settings, pair = self.settings, self.train.examples.is_pair
        if settings.n_templates == 0:
            return 0
        if settings.generator is None:
            return template_search.readings(pair=pair, beam=settings.beam)
        longest = settings.template_tokens
        return t5_templates.readings(pair=pair, beam=settings.beam, longest=longest)

    def _mapping_readings(self) -> int:
        return max(1, self.settings.n_templates) if self.settings.n_mappings else 0

    def _words(self) -> dict[str, str]:
        layout, unknown = self.encoder().layout, self.backbone.tokenizer.unk_token_id
        return words_for(self.classes, self.settings.label_words, layout, unknown)

    def _templates(self, has_read: Callable[[], None]) -> list[str]:
        count = self.settings.n_templates
        if count == 0:
            return [self.settings.template]
        words = self._words()
        if self.settings.generator is None:
            unknown = self.backbone.tokenizer.unk_token_id
            found = template_search.search_templates(
                self.encoder,
                self.train,
                tokens_of(words, self.encoder().layout, unknown),
                beam=self.settings.beam,
                count=count,
                has_read=has_read,
            )
        else:
            found = t5_templates.write_templates(
                T5.load(self.settings.generator, self.training.processes.device),
                self.train,
                list(words.values()),
                beam=self.settings.beam,
                longest=self.settings.template_tokens,
                count=count,
                has_read=has_read,
            )
        if not found:
            raise CPTuningError(
                "No template was found that can be used: raise beam, or give another generator."
            )
        return found

    def _mappings(self, template: str, has_read: Callable[[], None]) -> list[dict[str, str] | None]:
        if self.settings.n_mappings == 0:
            return [self.settings.label_words]
        found = search_words(
            self.encoder(template),
            self.train,
            len(self.classes),
            words_per_class=self.settings.words_per_class,
            combinations=self.settings.combinations,
        )
        has_read()
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


@contextmanager
def _watched(watchers: Sequence[Callback], what: str, last: int) -> Iterator[Callable[[], None]]:
    """A function that tells callbacks that one more of ``last`` readings is done."""
    done = 0

    def has_read() -> None:
        nonlocal done
        done += 1
        tell()

    def tell() -> None:
        for watcher in watchers:
            watcher.on_search(what, done, last)

    tell()
    try:
        yield has_read
    finally:
        for watcher in watchers:
            watcher.on_end(done)
