"""The rows of the everyday benchmark: what is fitted, and what it costs.

Seconds are CPU seconds of this process on one thread. Other work on the machine changes them less
than wall-clock time, but it does: times to be compared come from a quiet machine.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.everyday.data import SPLITS, Task, TaskData
from benchmarks.everyday.encoders import CachedEncoder, weights_hash
from benchmarks.out_of_scope import familiarity_of
from cptuning import CPTuningClassifier
from cptuning.experiments.run_keys import key_of

T = TypeVar("T")

# Only 20Newsgroups has many texts that are longer: benchmarks/long_texts.py reads them in windows.
READING: dict[str, Any] = {"long_texts": "truncate"}

ENCODERS = ("minilm", "gte-small")
EMBEDDED = "embedded"

# SetFit takes minutes: these tasks only, and steps for four minutes at most.
SETFIT_SETS = ("TREC", "HWU64", "StackOverflow20", "tweeteval_emotion", "SST5", "Clickbait")
SETFIT_SPLITS = SPLITS[:3]
SETFIT_SECONDS = 240

C = 10.0
"""Of :func:`logistic_regression`, which says how it was chosen."""


@dataclass(frozen=True)
class Places:
    """Where things are on this machine: the folders of encoders by name, and the cache."""

    encoders: Mapping[str, Path]
    cache: Path


def encoder_folder(argument: str) -> tuple[str, Path]:
    """``NAME=FOLDER``, apart."""
    name, equals, folder = argument.partition("=")
    if not equals or name not in ENCODERS or not Path(folder).is_dir():
        raise argparse.ArgumentTypeError(
            f"{argument!r} is not NAME=FOLDER with one of {', '.join(ENCODERS)} and a folder"
        )
    return name, Path(folder)


@dataclass(frozen=True)
class Outcome:
    """Answers to the test texts, and what they cost."""

    answers: Sequence[str]
    fit_seconds: float
    predict_seconds: float
    inside: np.ndarray | None = None
    """For test texts: the higher, the surer that they belong to a class."""
    outside: np.ndarray | None = None
    """The same for texts of no class."""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A method, with the encoder that it needs."""

    kind: str
    encoder: str | None = None

    @property
    def title(self) -> str:
        """The row's name in tables."""
        return TITLES[self.kind].format(self.encoder)

    def covers(self, task: Task) -> bool:
        """Whether the row is run on a task."""
        if self.kind != "setfit":
            return True
        return task.name in SETFIT_SETS and task.shots == 8 and task.split in SETFIT_SPLITS

    def obstacle(self, places: Places) -> str | None:
        """Why the row can't be run, if it can't."""
        if self.kind in ("instant", "default") and self.kind not in CPTuningClassifier.presets:
            return f"there is no preset {self.kind!r} yet"
        if self.kind == "setfit" and find_spec("setfit") is None:
            return 'it needs setfit: pip install "cptuning[bench]"'
        if self.encoder in (None, EMBEDDED):
            return None
        if self.encoder not in places.encoders:
            return f"name its folder with --encoder {self.encoder}=FOLDER"
        if self.kind in ("instant", "default") and "pooling" not in _parameters():
            return "sentence encoders are not backbones yet"
        return None

    def key(self, data: TaskData, places: Places) -> dict[str, Any]:
        """What a run is known by, on any machine, besides its task."""
        weights = None
        if self.encoder == EMBEDDED:
            weights = _weights(embedded_folder())
        elif self.encoder is not None:
            weights = _weights(places.encoders[self.encoder])
        return {
            "row": self.kind,
            "encoder": self.encoder,
            "weights": weights,
            "settings": self._settings(data),
        }

    def _settings(self, data: TaskData) -> Any:
        if self.kind in ("instant", "default"):
            return _settings_key(self.kind, data, pooled=self.encoder != EMBEDDED)
        return {
            "majority": None,
            "tfidf": {"sublinear": True, "C": C},
            "frozen": {"precision": "bfloat16", "C": C},
            "setfit": {"most_seconds": SETFIT_SECONDS},
        }[self.kind]

    def run(self, task: Task, data: TaskData, places: Places) -> Outcome:
        """Fit, and answer the test texts."""
        if self.kind == "majority":
            return majority(data)
        if self.kind == "tfidf":
            return tfidf(data)
        if self.encoder is None:
            raise ValueError(f"A row of kind {self.kind} needs an encoder.")
        if self.kind == "frozen":
            return frozen(data, _cached_encoder(places.encoders[self.encoder], places.cache))
        folder = None if self.encoder == EMBEDDED else places.encoders[self.encoder]
        if self.kind == "setfit":
            return setfit(data, folder, task.seed)
        return ours(data, self.kind, str(folder or EMBEDDED), task.seed)


TITLES = {
    "majority": "majority",
    "tfidf": "TF-IDF + LR",
    "frozen": "{}, frozen + LR",
    "setfit": "SetFit on {}",
    "instant": "**ours**, instant, {}",
    "default": "**ours**, default, {}",
}
ROWS = (
    Row("majority"),
    Row("tfidf"),
    *(Row("frozen", encoder) for encoder in ENCODERS),
    *(Row("setfit", encoder) for encoder in ENCODERS),
    *(Row(preset, e) for preset in ("instant", "default") for e in (EMBEDDED, *ENCODERS)),
)
# Seconds of a run, for the estimate, as long as there is no record of the row.
GUESSES = {"majority": 0.1, "tfidf": 5, "frozen": 30, "setfit": 600, "instant": 10, "default": 120}


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result, and the CPU seconds that it took."""
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def majority(data: TaskData) -> Outcome:
    """The commonest class of the test texts: what can be had without reading any."""
    commonest = Counter(data.test.labels).most_common(1)[0][0]
    return Outcome([commonest] * len(data.test.labels), 0.0, 0.0)


def tfidf(data: TaskData) -> Outcome:
    """Words, with logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(sublinear_tf=True)
    model = make_pipeline(words, logistic_regression())
    _, fit_seconds = timed(lambda: model.fit(data.train.examples.first, data.train.labels))
    sure, seconds = timed(lambda: model.predict_proba(data.test.examples.first))
    outside = model.predict_proba(data.outside.first).max(1) if len(data.outside) else None
    return Outcome(
        model.classes_[sure.argmax(1)].tolist(), fit_seconds, seconds, sure.max(1), outside
    )


def frozen(data: TaskData, encoder: CachedEncoder) -> Outcome:
    """A frozen encoder's embeddings, centred and of unit length, with logistic regression."""
    # All at once, so that batches hold texts of a length; then each part, from the cache.
    parts = (data.train.examples, data.test.examples, data.outside)
    encoder.embed([text for part in parts for text in part.first])
    train, test = (encoder.embed(part.first) for part in parts[:2])
    centre = train.vectors.mean(0)
    model = logistic_regression()
    _, fit_seconds = timed(lambda: model.fit(_unit(train.vectors - centre), data.train.labels))
    sure, seconds = timed(lambda: model.predict_proba(_unit(test.vectors - centre)))
    outside = None
    if len(data.outside):
        vectors = encoder.embed(data.outside.first).vectors
        outside = model.predict_proba(_unit(vectors - centre)).max(1)
    return Outcome(
        model.classes_[sure.argmax(1)].tolist(),
        train.seconds + fit_seconds,
        test.seconds + seconds,
        sure.max(1),
        outside,
    )


def logistic_regression() -> Any:
    """scikit-learn's, with one C for all sets, words and encoders.

    C = 10 was chosen among 1, 10 and 100 on held-out training examples: the mean accuracy over the
    twelve sets, 8 examples per class to fit and up to 8 others (300 in all) to score, drawn with
    seed 0, which is none of the splits. It was 70.0, 71.0 and 70.6 % (mean of TF-IDF, minilm and
    gte-small). Single words, in place of words and pairs of them, were chosen there after C: 62.7
    and 62.6 %, which is no difference.
    """
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=1000)


def setfit(data: TaskData, folder: Path | None, seed: int) -> Outcome:
    """SetFit's default recipe, with as many steps as fit in four minutes on this machine."""
    from benchmarks.setfit_side import setfit_on, steps_of_all_pairs, train_setfit

    texts, labels = list(data.train.examples.first), data.train.labels
    wanted = steps_of_all_pairs(labels)
    with tempfile.TemporaryDirectory() as name:
        output = Path(name)
        _, seconds = timed(lambda: train_setfit(setfit_on(folder), texts, labels, seed, output, 4))
        # Loading and the head are in these seconds, too: rather fewer steps than more.
        most = max(4, int(4 * SETFIT_SECONDS / seconds))
        steps = min(wanted, most)
        model = setfit_on(folder)
        _, fit_seconds = timed(lambda: train_setfit(model, texts, labels, seed, output, steps))
    names = np.array(model.labels)

    def probabilities(examples: Sequence[str]) -> np.ndarray:
        return np.asarray(model.predict_proba(list(examples), as_numpy=True))

    sure, predict_seconds = timed(lambda: probabilities(data.test.examples.first))
    outside = probabilities(data.outside.first).max(1) if len(data.outside) else None
    return Outcome(
        names[sure.argmax(1)].tolist(),
        fit_seconds,
        predict_seconds,
        sure.max(1),
        outside,
        {"steps": steps, "all_steps": wanted},
    )


def ours(data: TaskData, preset: str, backbone: str, seed: int) -> Outcome:
    """CPTuningClassifier with a preset, which reads the beginning of a long text."""
    _import_for(backbone)
    classifier = CPTuningClassifier(
        backbone, preset=preset, random_state=seed, verbose=False, **READING
    )
    _, fit_seconds = timed(lambda: classifier.fit(data.train.examples, data.train.labels))
    answers, seconds = timed(lambda: classifier.predict(data.test.examples))
    inside = outside = None
    if len(data.outside):
        inside = familiarity_of(classifier, data.test.examples)
        outside = familiarity_of(classifier, data.outside)
    facts = {"on_gpu": True} if _uses_gpu(classifier.predictor_.encoder) else {}
    return Outcome(answers.tolist(), fit_seconds, seconds, inside, outside, facts)


def _uses_gpu(encoder: Any) -> bool:
    module = getattr(encoder, "module", None)
    return module is not None and next(module.parameters()).is_cuda


def embedded_folder() -> Path:
    """Where the package keeps the embedded backbone."""
    import cptuning.backbone

    return Path(cptuning.backbone.__file__).parent / EMBEDDED


@lru_cache
def _import_for(backbone: str) -> None:
    """Import all that a fit needs, which is not a part of its seconds."""
    from cptuning.backbone import load_backbone

    CPTuningClassifier.learner_class()
    load_backbone(backbone)


_weights = lru_cache(weights_hash)
_cached_encoder = lru_cache(CachedEncoder)


def _parameters() -> tuple[str, ...]:
    return CPTuningClassifier.parameter_names()


def _settings_key(preset: str, data: TaskData, *, pooled: bool) -> str:
    """The preset and a hash of its settings: other ones later make another run."""
    classifier = CPTuningClassifier(preset=preset, **READING)
    classes = len(set(data.train.labels))
    settings = classifier.settings_for(data.train.examples, classes, pooled=pooled)
    how = {"validation": classifier.validation, "folds": classifier.folds}
    return f"{preset} {key_of({'settings': asdict(settings), **how})[:16]}"


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
