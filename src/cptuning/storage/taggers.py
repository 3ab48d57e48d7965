"""Taggers to folders and back."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from cptuning.backbone.encoder_files import EncoderFiles
from cptuning.data.sentences import Sentence, TaggedSentences
from cptuning.data.tag_schemes import WordSpan
from cptuning.extras import needed_for
from cptuning.files.tensors import save_tensors
from cptuning.inference.onnx_encoder import ONNX_FILE
from cptuning.inference.onnx_words import OnnxWordEncoder
from cptuning.inference.tag_predictor import TagPredictor, WordReader
from cptuning.inference.word_answers import WORD_INFERENCES, WordAnswer
from cptuning.methods.tagging_settings import TaggerSettings
from cptuning.prompting import Layout
from cptuning.storage.folders import damage_named, new_folder, stored_facts
from cptuning.storage.predictors import TOKENIZER, read_layout, unusable_named
from cptuning.storage.schema import (
    FACTS_FILE,
    FORMAT,
    TAGGER,
    JsonObject,
    LayoutFacts,
    as_json,
    field_names,
    parameters_from_json,
    settings_from_json,
    texts_from_json,
    versions,
)

SENTENCES_FILE = "sentences.jsonl"
_VECTORS = "words.safetensors"


@dataclass(frozen=True)
class TaggerFacts:
    """What the folder of a tagger says about it."""

    types: tuple[str, ...]
    parameters: dict[str, Any]
    settings: TaggerSettings
    layout: LayoutFacts
    answer: WordAnswer
    training: dict[str, Any]
    versions: dict[str, str]

    @classmethod
    def of(
        cls,
        predictor: TagPredictor,
        *,
        parameters: Mapping[str, Any],
        settings: TaggerSettings,
        training: dict[str, Any],
    ) -> "TaggerFacts":
        """The facts of a tagger that was fitted here."""
        return cls(
            predictor.types,
            {name: as_json(value) for name, value in parameters.items() if value is not None},
            settings,
            LayoutFacts.of(predictor.encoder.layout),
            predictor.answer,
            training,
            versions(),
        )

    @classmethod
    def from_json(cls, stored: Any) -> "TaggerFacts":
        """The inverse of :meth:`to_json`; ``CPTuningError`` if anything can't be."""
        facts = JsonObject("", stored, field_names(cls) | {"format", "method"})
        types = stored["types"]
        if not isinstance(types, list) or not types or len(set(map(str, types))) < len(types):
            raise ValueError("types is not a list of different texts")
        if not all(isinstance(label, str) and label.strip() for label in types):
            raise ValueError("types is not a list of different texts")
        answer = JsonObject("answer", stored["answer"], field_names(WordAnswer))
        if answer.text("inference") not in WORD_INFERENCES:
            raise ValueError(f"answer.inference is none of {', '.join(WORD_INFERENCES)}")
        settings = settings_from_json(
            TaggerSettings, field_names(TaggerSettings), facts.object("settings")
        )
        assert isinstance(settings, TaggerSettings)
        return cls(
            tuple(types),
            parameters_from_json(facts.object("parameters")),
            settings,
            LayoutFacts.from_json(facts.object("layout")),
            WordAnswer(
                inference=stored["answer"]["inference"],
                shrinkage=answer.number("shrinkage", 1e-6, 1),
                shape_weight=answer.number("shape_weight", 0, 100),
                temperature=answer.number("temperature", 1e-6, 1e6),
                transition_weight=answer.number("transition_weight", 0, 100),
                outside_bias=answer.number("outside_bias", -100, 100),
            ),
            facts.object("training"),
            texts_from_json("versions", facts.object("versions")),
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "format": FORMAT,
            "method": TAGGER,
            "types": list(self.types),
            "parameters": self.parameters,
            "settings": as_json(asdict(self.settings)),
            "layout": self.layout.to_json(),
            "answer": asdict(self.answer),
            "training": self.training,
            "versions": self.versions,
        }


def read_tagger_facts(folder: Path) -> TaggerFacts:
    """What the folder of a tagger says about it, without loading it."""
    stored = stored_facts(folder)
    with damage_named(folder):
        if stored.get("method") != TAGGER:
            raise ValueError(f"its method is not {TAGGER!r}")
        return TaggerFacts.from_json(stored)


def save_tagger(facts: TaggerFacts, predictor: TagPredictor, folder: Path) -> None:
    """Write a tagger that was fitted here."""
    with new_folder(folder) as place:
        write_tagger(facts, predictor, place)
        predictor.encoder.save(place)


def write_tagger(facts: TaggerFacts, predictor: TagPredictor, place: Path) -> None:
    """Write all of a tagger but its encoder."""
    stored = json.dumps(facts.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
    (place / FACTS_FILE).write_text(stored + "\n", "utf-8")
    predictor.encoder.layout.save_tokenizer(place / TOKENIZER)
    save_tensors(place / _VECTORS, {"vectors": predictor.vectors})
    examples = predictor.examples
    with (place / SENTENCES_FILE).open("w", encoding="utf-8") as file:
        for sentence, spans in zip(examples.sentences, examples.spans, strict=True):
            row = {
                "text": sentence.text,
                "words": sentence.places,
                "spans": [(span.start, span.stop, span.label) for span in spans],
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    (place / "README.md").write_text(_card(facts, predictor), "utf-8")


def load_tagger(folder: Path, device: str = "auto") -> tuple[TaggerFacts, TagPredictor]:
    """A tagger that was saved to, or exported to, a folder, and what the folder says about it."""
    facts = read_tagger_facts(folder)
    with unusable_named(folder):
        layout = read_layout(folder, facts.layout)
        examples = _read_examples(folder / SENTENCES_FILE, facts.types)
        vectors = load_file(folder / _VECTORS)["vectors"]
        if vectors.dtype != np.float32 or vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise ValueError("its words have no vectors to compare with")
        encoder = _encoder(folder, layout, facts.settings, device)
        predictor = TagPredictor(encoder, examples, vectors, facts.types, facts.answer)
        [probe] = encoder.embed([Sentence.of_text("a")])
        if probe.shape[1:] != vectors.shape[1:]:
            raise ValueError("its words have vectors of another length than the encoder gives")
        return facts, predictor


def _encoder(folder: Path, layout: Layout, settings: TaggerSettings, device: str) -> WordReader:
    if (folder / ONNX_FILE).exists():
        return OnnxWordEncoder.load(layout, folder / ONNX_FILE, settings.pieces)
    with needed_for(f"The tagger {folder}, which was not exported,"):
        from cptuning.backbone import TextEncoder
        from cptuning.backbone.word_encoder import WordEncoder
        from cptuning.training import Processes
    there = Processes.find(device).device
    encoder = TextEncoder.load(EncoderFiles.of(folder), layout, "hidden", there, "mask")
    return WordEncoder(encoder, settings.pieces)


def _read_examples(path: Path, types: tuple[str, ...]) -> TaggedSentences:
    sentences, spans = [], []
    for row in map(json.loads, _lines(path)):
        places = tuple((int(start), int(end)) for start, end in row["words"])
        sentences.append(Sentence(str(row["text"]), places))
        found = tuple(WordSpan(int(a), int(b), str(label)) for a, b, label in row["spans"])
        stops = [0, *(span.stop for span in found)]
        for before, span in zip(stops, found, strict=False):
            if not before <= span.start < span.stop <= len(places) or span.label not in types:
                raise ValueError("its sentences have spans that can't be")
        spans.append(found)
    return TaggedSentences(tuple(sentences), tuple(spans))


def n_sentences(folder: Path) -> int:
    """How many labelled sentences are in the folder of a tagger."""
    with unusable_named(folder):
        return len(_lines(folder / SENTENCES_FILE))


def _lines(path: Path) -> list[str]:
    # Not splitlines(): texts may hold the line separators of Unicode.
    return [line for line in path.read_text("utf-8").split("\n") if line]


def tagger_rows(facts: TaggerFacts, sentences: int) -> list[tuple[str, str]]:
    """What distinguishes a tagger, with so many labelled sentences."""
    training = facts.training
    held_out = training.get("held_out_f1")
    score = "not measured" if held_out is None else f"{100 * held_out:.1f} %"
    return [
        ("Types", ", ".join(facts.types)),
        ("Labelled sentences", str(sentences)),
        ("Span F1 in training sentences that were left out", score),
        ("Words are compared by", facts.answer.inference),
        ("Backbone", str(training.get("backbone", {}).get("name", ""))),
        ("Seed", str(training.get("seed", ""))),
        ("Versions", ", ".join(f"{p} {v}" for p, v in facts.versions.items())),
    ]


def _card(facts: TaggerFacts, predictor: TagPredictor) -> str:
    rows = tagger_rows(facts, len(predictor.examples))
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return f"""# A tagger made with cptuning

| | |
|---|---|
{table}

It finds spans by comparing words with those of labelled sentences, and can show them: the folder
holds the sentences themselves (`{SENTENCES_FILE}`), share it only with those who may read them.
It was fitted to few examples: check it on texts of your own before you rely on it.

```python
import cptuning

tagger = cptuning.load("this folder")
tagger.predict_spans(["a new text"])
```
"""
