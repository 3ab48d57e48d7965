"""Training on one backbone, which is loaded once and restored before every training."""

import platform
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cptuning.data import LabelledData, load_test
from cptuning.errors import CPTuningError
from cptuning.experiments.cells import Candidate, Cell, PlannedCell
from cptuning.experiments.planning import data_hash, load_split, source_data
from cptuning.experiments.request import Request
from cptuning.experiments.run_keys import key_of
from cptuning.registry import classifier_class, make_classifier
from cptuning.reporting.metrics import ConfusionMatrix
from cptuning.reporting.projection import subsample
from cptuning.storage import versions

if TYPE_CHECKING:
    from cptuning.backbone import Backbone
    from cptuning.estimator import TextClassifier

# The data sets for which F1 is usual: that of the class that says "the same".
POSITIVE = {"MRPC": "equivalent", "QQP": "duplicate"}
MOST_PICTURED = 1000
# The settings that make LM-BFF search.
_SEARCHES = {"n_templates", "n_mappings"}


@dataclass
class TrainedCandidate:
    """A trained candidate and its record."""

    record: dict[str, Any]
    classifier: "TextClassifier"
    restore: Callable[[], None] = lambda: None
    """Put its weights back into the backbone; not needed until something else is trained."""


class CandidateTrainer:
    """Trains candidates one after another on a backbone that it loads once."""

    def __init__(
        self,
        backbone: str,
        device: str = "auto",
        data: Path | None = None,
        precision: str = "auto",
    ) -> None:
        self.name, self.device, self.data, self.precision = backbone, device, data, precision
        self._tests: dict[str, LabelledData] = {}
        self._searches: dict[str, dict[str, Any]] = {}
        self._last_source: tuple[Any, TextClassifier] | None = None

    @classmethod
    def of(cls, request: Request) -> "CandidateTrainer":
        """The trainer that a request asks for."""
        return cls(request.backbone, request.device, request.data, request.precision)

    @cached_property
    def _backbone(self) -> "Backbone":
        from cptuning.backbone import load_backbone
        from cptuning.training import Processes

        backbone = load_backbone(self.name)
        backbone.model.to(Processes.find(self.device).device)  # type: ignore[arg-type]
        return backbone

    @cached_property
    def _untrained(self) -> Callable[[], None]:
        from cptuning.methods.classification import snapshot

        return snapshot(self._backbone)

    @cached_property
    def backbone_facts(self) -> dict[str, Any]:
        """What records say about the backbone, with the weights' hash.

        It is ``"pooled"`` if it is read without a prompt.
        """
        from cptuning.backbone import describe

        self._untrained()
        backbone, weights = self._backbone, sha256()
        for name, value in sorted(backbone.state_dict().items()):
            weights.update(name.encode("utf-8"))
            weights.update(value.detach().cpu().contiguous().numpy().tobytes())
        if backbone.own_pooling is not None:
            weights.update(repr(backbone.own_pooling).encode("utf-8"))
        facts = describe(backbone) | {"weights": weights.hexdigest()}
        reads_mask, _ = backbone.views("auto")
        return facts if reads_mask else facts | {"pooled": True}

    def classifier(self, cell: Cell, candidate: Candidate) -> "TextClassifier":
        """The candidate's classifier on the untrained backbone."""
        self._untrained()
        return make_classifier(
            cell.method,
            backbone=self._backbone,
            random_state=cell.seed,
            device=self.device,
            precision=self.precision,
            verbose=False,
            **candidate.parameters | self._found_before(candidate),
        )

    def _found_before(self, candidate: Candidate) -> dict[str, Any]:
        """What a search found for another point of the grid; a new one would find the same."""
        search = self._searches.get(_search_key(candidate))
        if search is None:
            return {}
        found = {name: search[name] for name in ("template", "label_words")}
        return found | dict.fromkeys(_SEARCHES, 0)

    def fit(self, cell: Cell, candidate: Candidate) -> TrainedCandidate:
        """Train on the cell's training examples and score on dev; the test set is not read."""
        train, dev = load_split(cell.dataset, cell.seed, cell.counts, self.data, cell.shots)
        memory = _PeakMemory(self._backbone)
        started = time.perf_counter()
        classifier = self.classifier(cell, candidate)
        record: dict[str, Any] = {
            "key": candidate.key,
            "configuration": candidate.configuration,
            "versions": versions(),
            "hardware": hardware(self._backbone) | {"precision": self.precision},
        }
        try:
            classifier.fit(
                *(train.examples, train.labels, dev.examples, dev.labels),
                init_from=self._source(cell, candidate),
            )
            best = classifier.history_.best
            assert best is not None  # There is a dev set.
            record["dev"] = {"accuracy": best.accuracy, "log_loss": -best.negative_log_loss}
            record["best_step"] = classifier.history_.best_step
            record["search"] = self._searches.get(_search_key(candidate)) or _searched(classifier)
            if record["search"]:
                self._searches[_search_key(candidate)] = record["search"]
        except CPTuningError as error:  # Other candidates may still work.
            record["failed"] = str(error)
        record["seconds"] = round(time.perf_counter() - started, 3)
        record["ended"] = round(time.time(), 3)
        record["peak_memory_mb"] = memory.read()
        return TrainedCandidate(record, classifier)

    def _source(self, cell: Cell, candidate: Candidate) -> "TextClassifier | None":
        """The model that a cell starts from: trained on other data sets, with the same parameters.

        The last one is kept, for other numbers of examples of the same data set and split.
        """
        if not cell.sources:
            return None
        asked = cell.sources, cell.seed, repr(candidate.parameters)
        if self._last_source is None or self._last_source[0] != asked:
            data = source_data(cell.sources, cell.seed, self.data)
            source = self.classifier(cell, candidate)
            backbone = replace(
                self._backbone,
                model=deepcopy(self._backbone.model),
                own_pooling=deepcopy(self._backbone.own_pooling),
            )
            source.set_params(backbone=backbone, validation="none")
            self._last_source = asked, source.fit(data.examples, data.labels)
        return self._last_source[1]

    def hold(self, trained: TrainedCandidate) -> None:
        """Keep the weights of what was just trained in memory while others are trained."""
        from cptuning.methods.classification import snapshot

        trained.restore = snapshot(self._backbone)

    def test(self, cell: Cell, trained: TrainedCandidate) -> tuple[dict[str, Any], list[str]]:
        """The test score of the chosen candidate, and its answers."""
        trained.restore()
        data = self._test_data(cell.dataset)
        started = time.perf_counter()
        answers = [str(answer) for answer in trained.classifier.predict(data.examples)]
        seconds = time.perf_counter() - started
        confusion = ConfusionMatrix.of(data.labels, answers)
        score = {
            "key": trained.record["key"],
            "accuracy": confusion.accuracy,
            "macro_f1": confusion.macro_f1,
            "majority": confusion.majority,
            "rows": confusion.n,
            "sha256": data_hash(data),
            "seconds": round(seconds, 3),
        }
        if cell.dataset in POSITIVE:
            by_class = {one.label: one.f1 for one in confusion.by_class()}
            score["f1"] = by_class.get(POSITIVE[cell.dataset], 0.0)
        return score, answers

    def embeddings(self, cell: Cell, trained: TrainedCandidate) -> dict[str, Any]:
        """Embeddings and labels of the training examples and of some test examples."""
        trained.restore()
        train, _ = load_split(cell.dataset, cell.seed, cell.counts, self.data, cell.shots)
        test = self._test_data(cell.dataset)
        rows = subsample(len(test.labels), MOST_PICTURED)
        both = [train, LabelledData(test.examples.take(rows), [test.labels[i] for i in rows])]
        vectors = [trained.classifier.transform(part.examples) for part in both]
        return {
            "embeddings": np.concatenate(vectors).astype(np.float16),
            "labels": np.array([label for part in both for label in part.labels]),
            "is_train": np.arange(len(train.labels) + len(rows)) < len(train.labels),
        }

    def estimate_seconds(self, planned: PlannedCell) -> float:
        """How long a run of a cell takes on average, measured on two steps."""
        cell, first = planned.cell, planned.candidates[0]
        train, dev = load_split(cell.dataset, cell.seed, cell.counts, self.data, cell.shots)

        def seconds(parameters: dict[str, Any]) -> float:
            classifier = self.classifier(cell, replace(first, parameters=parameters))
            return classifier.estimate_seconds(
                train.examples, train.labels, dev.examples, dev.labels
            )

        with_search = seconds(first.parameters)
        if not set(classifier_class(cell.method).parameter_names()) >= _SEARCHES:
            return with_search
        others = len(planned.candidates) - 1
        without = seconds(first.parameters | dict.fromkeys(_SEARCHES, 0))
        return (with_search + others * without) / len(planned.candidates)

    def _test_data(self, dataset: str) -> LabelledData:
        if dataset not in self._tests:
            self._tests[dataset] = load_test(dataset, self.data)
        return self._tests[dataset]


def _search_key(candidate: Candidate) -> str:
    """What the result of a search depends on: all but how the chosen candidate is trained."""
    settings = candidate.configuration["settings"].copy()
    for name in ("learning_rate", "batch_size", "steps", "evaluate_every"):
        settings.pop(name)
    return key_of(candidate.configuration | {"settings": settings})


def _searched(classifier: "TextClassifier") -> dict[str, Any]:
    """What a method that searches has tried and found."""
    names = ("search", "candidates", "candidate_steps")
    found = {name: classifier.training_[name] for name in names if name in classifier.training_}
    if found:
        settings = classifier.settings_
        found |= {"template": settings.template, "label_words": settings.label_words}
    return found


def hardware(backbone: "Backbone") -> dict[str, Any]:
    """The hardware of a run, without anything that identifies the machine."""
    import torch

    device = backbone.model.device
    if device.type == "cuda":
        # Whether float32 products may be rounded to TF32 ("high") or not ("highest").
        products = torch.get_float32_matmul_precision()
        return {"device": torch.cuda.get_device_name(device), "float32_products": products}
    return {
        "device": device.type,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


class _PeakMemory:
    """Peak memory: on a GPU since this object was made, on a CPU since the process started."""

    def __init__(self, backbone: "Backbone") -> None:
        import torch

        self._device = backbone.model.device
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)

    def read(self) -> int:
        """In megabytes."""
        import resource

        import torch

        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device) / 1e6)
        unit = 1 if sys.platform == "darwin" else 1024
        return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6)
