"""Writes the models of format 2 that are not there yet: python -m tests.storage.format_2.make.

The folders beside this file were written by the code of their time, and are read for ever. None is
ever made anew: a later version must answer as they do. What a folder can newly hold gets a fixture
of its own here, and a new format a folder ``format_3``.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cptuning import CPTuningClassifier, CPTuningRanker, CPTuningTagger, make_classifier

HERE = Path(__file__).parent
ANSWERS = HERE / "answers.json"

GOOD = ("a great movie", "i loved it", "so good", "great food")
BAD = ("a dull film", "it was terrible", "so bad and boring", "cold food")
TEXTS = (*GOOD, *BAD)
LABELS = ("good",) * 4 + ("bad",) * 4
ASKED = ("a great film", "the book is dull", "the train", "was the food cold?", "")
PAIRS = [(text, "is it so good?") for text in TEXTS]
WORDS = {"good": "great", "bad": "dull"}
SENTENCES = [text.split() for text in ("the red train is late", "a train at noon", "it was great")]
TAGS = [["O", "B-colour", "B-thing", "O", "O"], ["O", "B-thing", "O", "O"], ["O", "O", "O"]]
DOCUMENTS = {"film": "a great movie", "food": "cold food", "train": "does the red train leave?"}
QUERIES = {"a": "a film that i loved", "b": "when does the train leave?", "c": "dull food"}
JUDGED = {"a": ["film"], "b": {"train": 2}, "c": {"food": 1, "film": 0}}

TRAINS = (
    "the red train leaves at ten",
    "red train",
    "the train",
    "a red train leaves",
    "train at noon",
    "does the red train leave ?",
)
BORES = (
    "it was terrible , boring and far too long !",
    "boring !",
    "too long !",
    "terrible !",
    "so boring , so long !",
    "was it boring ?",
)

QUICK = {"steps": 3, "batch_size": 4, "validation": "none", "verbose": False}
SEARCH = {
    "lm-bff-t": {"beam": 2, "n_templates": 2, "generator": "t5"},
    "lm-bff-l": {"n_mappings": 2},
    "lm-bff-tl": {"beam": 2, "n_templates": 2, "n_mappings": 2, "generator": "t5"},
}


def of_method(method: str) -> Any:
    """A classifier of a method on the tiny BERT."""
    words = {} if method in ("cp-tuning", "fine-tuning") else {"label_words": WORDS}
    own = SEARCH.get(method, {})
    return make_classifier(method, backbone="bert", **QUICK | words | own).fit(TEXTS, LABELS)


def instant(**parameters: Any) -> CPTuningClassifier:
    """A classifier that is not trained."""
    return CPTuningClassifier("bert", preset="instant", verbose=False, **parameters)


def described() -> CPTuningClassifier:
    """One with a class that has a description and no example."""
    told = {"good": "great and loved", "travel": "the train is late"}
    return instant().fit(TEXTS, LABELS, label_descriptions=told)


def ranker() -> CPTuningRanker:
    """One with both things that judgements teach; so few of them would teach neither."""
    from cptuning.inference.ranked_documents import PairView, TunedView, with_tuned

    fitted = CPTuningRanker("bert", steps=3, verbose=False).fit(QUERIES, DOCUMENTS, JUDGED)
    rng = np.random.default_rng(0)
    width = fitted.predictor_.support.embeddings.shape[1]
    tuned = TunedView(rng.normal(size=(width, width)).astype(np.float32), weight=0.5)
    pair = PairView(rng.normal(size=width + 1), 0.3)
    fitted.predictor_ = replace(with_tuned(fitted.predictor_, tuned), pair=pair, rerank=100)
    return fitted


def tagger(**parameters: Any) -> CPTuningTagger:
    """One that is not trained."""
    return CPTuningTagger("bert", preset="instant", verbose=False, **parameters).fit(
        SENTENCES, TAGS
    )


def sets() -> CPTuningClassifier:
    """One that gives several labels."""
    labels = [["good", "film"], ["good"], ["good"], ["good", "food"]]
    labels += [["bad", "film"], ["bad"], ["bad"], ["bad", "food"]]
    return instant().fit(TEXTS, labels)


def promised() -> CPTuningClassifier:
    """One that answers "unknown" where it may be wrong."""
    texts = [text + end for text in (*TRAINS, *BORES) for end in ("", " it is", " .", " and so")]
    labels = ["train"] * 24 + ["bore"] * 24
    parameters = {"preset": "instant", "unknown_threshold": "error<=0.6", "verbose": False}
    return CPTuningClassifier("sentences", **parameters).fit(texts, labels)


def saved(model: Any, folder: Path) -> None:
    """Write a folder as ``save`` does."""
    model.save(folder)


def exported(model: Any, folder: Path) -> None:
    """Write a folder as ``export`` does."""
    model.export(folder)


def in_8_bits(model: Any, folder: Path) -> None:
    """Write a folder as ``export --int8`` does."""
    model.export(folder, int8=True)


def with_added(model: Any, folder: Path) -> None:
    """Write a folder to which examples were added later, by ``cptuning add`` or the service."""
    from cptuning.data import AddedExamples, Examples, append_added

    model.save(folder)
    append_added(folder, AddedExamples(Examples(("the red train", "it is late")), ("travel",) * 2))


Fixture = tuple[Callable[[], Any], Callable[[Any, Path], None]]
METHODS = (
    "cp-tuning",
    "fine-tuning",
    "pet",
    "lm-bff-t",
    "lm-bff-l",
    "lm-bff-tl",
    "p-tuning",
    "warp",
)
FIXTURES: dict[str, Fixture] = {
    **{method: (lambda method=method: of_method(method), saved) for method in METHODS},
    "pairs": (
        lambda: CPTuningClassifier("bert", **QUICK).fit(PAIRS, LABELS),
        saved,
    ),
    "multi-label": (sets, saved),
    "descriptions": (described, saved),
    "instant": (lambda: instant().fit(TEXTS, LABELS), saved),
    "weights": (lambda: instant().fit(TEXTS, LABELS, sample_weight=[1, 2] * 4), saved),
    "promises": (promised, saved),
    "class-prior": (lambda: instant(class_prior=[0.2, 0.8]).fit(TEXTS, LABELS), saved),
    "order": (lambda: instant(ordinal=["bad", "good"]).fit(TEXTS, LABELS), saved),
    "sentence-encoder": (
        lambda: CPTuningClassifier("sentences", **QUICK).fit(TEXTS, LABELS),
        saved,
    ),
    "added": (lambda: instant().fit(TEXTS, LABELS), with_added),
    "tagger": (tagger, saved),
    "ranker": (ranker, saved),
    "onnx": (lambda: of_method("cp-tuning"), exported),
    "onnx-int8": (lambda: of_method("cp-tuning"), in_8_bits),
    "onnx-multi-label": (sets, exported),
    "onnx-tagger": (tagger, exported),
}


def answers_of(name: str, model: Any) -> dict[str, Any]:
    """What a model answers, as JSON has it."""
    if isinstance(model, CPTuningTagger):
        return {"spans": model.predict_spans(["the red train", "a great film at noon", ""])}
    if isinstance(model, CPTuningRanker):
        found = model.rank(list(QUERIES.values()), top_k=3)
        return {"ranked": [[(one.document, one.score) for one in best] for best in found]}
    asked = [(text, "is it so good?") for text in ASKED] if name == "pairs" else list(ASKED)
    answers = model.predict(asked)
    by_nearness = isinstance(model, CPTuningClassifier)
    more: dict[str, Any] = {"embeddings": model.transform(asked).tolist()} if by_nearness else {}
    if name == "promises":
        more["sets"] = [list(one) for one in model.predict_set(asked, coverage=0.7)]
    return more | {
        "classes": model.classes_.tolist(),
        "answers": [list(one) if isinstance(one, tuple | list) else str(one) for one in answers],
        "probabilities": model.predict_proba(asked).tolist(),
    }


def main() -> None:
    """Write each model that is missing, and what it answers."""
    from tests.tiny import save_sentence_encoder, save_t5, save_tiny

    import cptuning

    answers = json.loads(ANSWERS.read_text("utf-8")) if ANSWERS.exists() else {}
    with TemporaryDirectory() as place:
        os.chdir(place)  # No path of this machine is in a fixture.
        save_tiny("bert", Path("bert"))
        save_t5(Path("t5"))
        save_sentence_encoder(Path("sentences"))
        for name, (fitted, write) in FIXTURES.items():
            if (HERE / name).exists():
                continue
            write(fitted(), HERE / name)
            answers[name] = answers_of(name, cptuning.load(HERE / name))
            ANSWERS.write_text(json.dumps(answers, indent=1) + "\n", "utf-8")
            print(name)


if __name__ == "__main__":
    main()
