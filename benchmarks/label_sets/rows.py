"""The rows of the benchmark of label sets: what is fitted, and what it costs.

Seconds are CPU seconds of this process on one thread.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.everyday.encoders import CachedEncoder, weights_hash
from benchmarks.everyday.one_run import processor
from benchmarks.everyday.rows import (
    EMBEDDED,
    Places,
    embedded_folder,
    logistic_regression,
    timed,
)
from benchmarks.label_sets.data import SplitData, load_split
from benchmarks.runs import Job
from cptuning import CPTuningClassifier
from cptuning.inference.label_calibration import best_threshold
from cptuning.reporting.label_metrics import LabelScores

ENCODER = "gte-small"
SETFIT_SECONDS = 240
_FOLDS = 5


@dataclass(frozen=True)
class Sets:
    """Which labels the test texts are given, how likely each is, and what it cost."""

    given: np.ndarray
    """A 0/1 matrix with the columns of ``SplitData.labels``."""
    shares: np.ndarray
    fit_seconds: float
    predict_seconds: float
    facts: dict[str, Any]


@dataclass(frozen=True)
class SetsRow:
    """A method, with the encoder that it needs."""

    kind: str
    encoder: str | None = None

    @property
    def title(self) -> str:
        """The row's name in tables."""
        return TITLES[self.kind].format(self.encoder)

    def obstacle(self, places: Places) -> str | None:
        """Why the row can't be run, if it can't."""
        if self.kind == "setfit" and find_spec("setfit") is None:
            return 'it needs setfit: pip install "cptuning[bench]"'
        if self.encoder in (None, EMBEDDED) or self.encoder in places.encoders:
            return None
        return f"name its folder with --encoder {self.encoder}=FOLDER"

    def key(self, places: Places) -> dict[str, Any]:
        """What a run is known by, on any machine, besides its split."""
        weights = None
        if self.encoder is not None:
            weights = _weights(self._folder(places))
        return {"row": self.kind, "encoder": self.encoder, "weights": weights}

    def run(self, data: SplitData, places: Places, seed: int) -> Sets:
        """Fit, and answer the test texts."""
        if self.kind == "constant":
            return constant(data)
        if self.kind == "tfidf":
            return tfidf(data)
        folder = self._folder(places)
        if self.kind == "frozen":
            return frozen(data, CachedEncoder(folder, places.cache))
        if self.kind == "setfit":
            return setfit(data, folder, seed)
        return ours(data, self.kind, EMBEDDED if self.encoder == EMBEDDED else str(folder), seed)

    def _folder(self, places: Places) -> Path:
        return embedded_folder() if self.encoder == EMBEDDED else places.encoders[str(self.encoder)]


TITLES = {
    "constant": "the most frequent labels for all",
    "tfidf": "TF-IDF + LR, one-vs-rest",
    "frozen": "{}, frozen + LR, one-vs-rest",
    "setfit": "SetFit on {}, one-vs-rest",
    "instant": "**ours**, instant, {}",
    "default": "**ours**, default, {}",
}
ROWS = (
    SetsRow("constant"),
    SetsRow("tfidf"),
    SetsRow("frozen", ENCODER),
    SetsRow("setfit", ENCODER),
    *(SetsRow(preset, e) for preset in ("instant", "default") for e in (EMBEDDED, ENCODER)),
)


def one_run(job: Job, places: Places) -> Job:
    """Fit one row on one split, and score it."""
    from sklearn.metrics import average_precision_score
    from threadpoolctl import threadpool_limits

    data = load_split(job["split"])
    with threadpool_limits(1):
        found = SetsRow(job["row"], job["encoder"]).run(data, places, job["split"])
    names = np.array(data.labels)
    answers = [tuple(names[row == 1].tolist()) for row in found.given]
    scores = LabelScores.of(data.test.labels, answers, data.labels)
    truth = _matrix(data.test.labels, data.labels)
    occurs = truth.any(axis=0)
    precision = average_precision_score(truth[:, occurs], found.shares[:, occurs], average="macro")
    return {
        "micro_f1": round(scores.micro_f1, 5),
        "macro_f1": round(scores.macro_f1, 5),
        "sample_f1": round(scores.sample_f1, 5),
        "subset_accuracy": round(scores.subset_accuracy, 5),
        "average_precision": round(float(precision), 5),
        "labels_per_text": round(float(found.given.sum(axis=1).mean()), 3),
        "fit_seconds": round(found.fit_seconds, 3),
        "seconds_per_1000": round(1000 * found.predict_seconds / len(truth), 3),
        "train_texts": len(data.train.labels),
        "test_texts": len(truth),
        "machine": processor(),
        **found.facts,
    }


def constant(data: SplitData) -> Sets:
    """The same labels for every text, chosen on the test texts: what can be had without reading."""
    truth = _matrix(data.test.labels, data.labels)
    order = np.argsort(-truth.sum(axis=0), kind="stable")
    best, score = np.zeros_like(truth), -1.0
    for k in range(1, len(order) + 1):
        given = np.zeros_like(truth)
        given[:, order[:k]] = 1
        f1 = 2 * (truth & given).sum() / (truth.sum() + given.sum())
        if f1 > score:
            best, score = given, f1
    return Sets(best, np.tile(truth.mean(axis=0), (len(truth), 1)), 0.0, 0.0, {})


def tfidf(data: SplitData) -> Sets:
    """Words, with one logistic regression per label."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    def fitted(texts: np.ndarray, truth: np.ndarray) -> Any:
        words = TfidfVectorizer(sublinear_tf=True)
        return make_pipeline(words, _one_vs_rest()).fit(texts, truth)

    texts = [np.array(part.examples.first, dtype=object) for part in (data.train, data.test)]
    return _thresholded(data, fitted, *texts)


def frozen(data: SplitData, encoder: CachedEncoder) -> Sets:
    """A frozen encoder's embeddings, centred and of unit length, with the same."""
    encoder.embed([*data.train.examples.first, *data.test.examples.first])  # now in the cache
    train, test = (encoder.embed(part.examples.first) for part in (data.train, data.test))
    centre = train.vectors.mean(0)
    rows = [_unit(part.vectors - centre) for part in (train, test)]
    found = _thresholded(data, lambda x, y: _one_vs_rest().fit(x, y), *rows)
    return Sets(
        found.given,
        found.shares,
        train.seconds + found.fit_seconds,
        test.seconds + found.predict_seconds,
        found.facts,
    )


def _thresholded(
    data: SplitData,
    fitted: Callable[[np.ndarray, np.ndarray], Any],
    train: np.ndarray,
    test: np.ndarray,
) -> Sets:
    """Fit, and give labels from the probability on that has the best micro-F1 in five folds.

    At the usual 0.5, one-vs-rest classifiers of so few texts give next to no labels: the rivals
    get a threshold by the rule that ours has.
    """
    truth = _matrix(data.train.labels, data.labels)

    def fit() -> tuple[Any, float]:
        fold_of = np.random.default_rng(0).permutation(len(truth)) % _FOLDS
        shares = np.zeros(truth.shape)
        for fold in range(_FOLDS):
            away, rest = fold_of == fold, fold_of != fold
            some = truth[rest].any(axis=0) & ~truth[rest].all(axis=0)
            model = fitted(train[rest], truth[rest][:, some])
            shares[np.ix_(away, some)] = model.predict_proba(train[away])
        return fitted(train, truth), best_threshold(shares, truth)

    (model, threshold), fit_seconds = timed(fit)
    shares, seconds = timed(lambda: model.predict_proba(test))
    given = (shares >= threshold).astype(int)
    return Sets(given, shares, fit_seconds, seconds, {"threshold": round(threshold, 4)})


def _one_vs_rest() -> Any:
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(logistic_regression())


def setfit(data: SplitData, folder: Path, seed: int) -> Sets:
    """SetFit's one-vs-rest strategy, with as many steps as fit in four minutes on this machine."""
    from benchmarks.setfit_side import setfit_sets_on, train_setfit_sets

    texts, truth = list(data.train.examples.first), _matrix(data.train.labels, data.labels)
    with tempfile.TemporaryDirectory() as name:
        output = Path(name)

        def run(steps: int) -> tuple[Any, float]:
            model = setfit_sets_on(folder)
            args = (model, texts, truth.tolist(), seed, output, steps)
            return model, timed(lambda: train_setfit_sets(*args))[1]

        _, seconds = run(4)
        steps = max(4, int(4 * SETFIT_SECONDS / seconds))
        model, fit_seconds = run(steps)
    new = list(data.test.examples.first)
    shares, seconds = timed(lambda: np.asarray(model.predict_proba(new, as_numpy=True)))
    if shares.ndim == 3:  # scikit-learn's MultiOutputClassifier: both classes of each label.
        shares = shares[:, :, 1].T
    return Sets((shares >= 0.5).astype(int), shares, fit_seconds, seconds, {"steps": steps})


def ours(data: SplitData, preset: str, backbone: str, seed: int) -> Sets:
    """CPTuningClassifier with a preset, and otherwise as it comes."""
    classifier = CPTuningClassifier(backbone, preset=preset, random_state=seed, verbose=False)
    if preset != "instant" or backbone != EMBEDDED:  # Importing is not a part of the seconds.
        CPTuningClassifier.learner_class()
    _, fit_seconds = timed(lambda: classifier.fit(data.train.examples, data.train.labels))
    answered, seconds = timed(lambda: classifier.predictor_.answer(data.test.examples))
    given = _matrix(answered.labels.tolist(), data.labels)
    facts = {"steps": classifier.training_["best_step"]}
    if "kept" in classifier.training_:
        facts["kept"] = classifier.training_["kept"]
    return Sets(given, answered.probabilities, fit_seconds, seconds, facts)


def _matrix(sets: Any, labels: list[str]) -> np.ndarray:
    return np.array([[int(label in own) for label in labels] for own in sets])


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


_weights = lru_cache(weights_hash)
