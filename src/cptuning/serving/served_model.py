"""A loaded model folder that predicts, and that stores added examples on disk."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cptuning.data import AddedExamples, Examples, aligned, append_added, read_added
from cptuning.files.locks import changing, stamp_of
from cptuning.inference import Predictor
from cptuning.inference.predictor import Answered
from cptuning.serving.api_errors import ApiError
from cptuning.storage import FACTS_FILE, load_model

# How many seconds to wait for another process that changes the folder; requests wait as long.
_LOCK_TIMEOUT = 1.0


@dataclass(frozen=True)
class AddResult:
    """The result of adding examples to a model."""

    added: int
    known_already: int
    new_classes: list[Hashable]
    classes: list[Hashable]
    examples: int


class ServedModel:
    """A loaded model.

    Only one thread, that of its worker, predicts and adds examples. The ``predictor`` is never
    changed, only replaced, so any thread may read it.
    """

    def __init__(self, folder: Path, device: str, most_examples: int) -> None:
        self.folder = folder
        self._stamp = stamp_of(folder / FACTS_FILE)
        model = load_model(folder, device)
        self.method = model.facts.method
        self.predictor: Predictor = model.predictor
        self._most_examples = most_examples

    @property
    def n_examples(self) -> int | None:
        """How many labelled examples it compares texts with; None if its method uses none."""
        support = self.predictor.support
        return None if support is None else support.n_examples

    def require_examples(self) -> None:
        """Reject a request that needs a model that compares texts with examples."""
        if self.predictor.support is None:
            raise ApiError(
                409,
                f"This model uses the method {self.method}, which does not compare texts with "
                "examples: embeddings, neighbours and new examples need a cp-tuning model.",
            )

    def predict(self, examples: Examples) -> Answered:
        """The labels, probabilities and embeddings of some texts."""
        return self.predictor.answer(examples)

    def add_examples(self, examples: Examples, labels: Sequence[Hashable]) -> AddResult:
        """Add examples, which are on disk before they are used; known ones are skipped."""
        before = self.predictor
        named = aligned(labels, before.label_space.classes)
        rows = before.new_rows(examples, named)
        if rows:
            batch = AddedExamples(examples.take(rows), [named[row] for row in rows])
            self._require_room(len(rows))
            after = before.with_examples(batch.examples, batch.labels)
            self._keep(batch)
            self.predictor = after
        classes = list(self.predictor.label_space.classes)
        return AddResult(
            added=len(rows),
            known_already=len(named) - len(rows),
            new_classes=classes[len(before.label_space) :],
            classes=classes,
            examples=self.n_examples or 0,
        )

    def catch_up(self) -> None:
        """Add the examples that were stored in the folder since it was loaded."""
        for batch in read_added(self.folder):
            rows = self.predictor.new_rows(batch.examples, batch.labels)
            if rows:
                labels = [batch.labels[row] for row in rows]
                self.predictor = self.predictor.with_examples(batch.examples.take(rows), labels)

    def _require_room(self, n_more: int) -> None:
        if (self.n_examples or 0) + n_more > self._most_examples:
            raise ApiError(
                409,
                f"The model would have more than {self._most_examples} examples: fit a new one.",
            )

    def _keep(self, batch: AddedExamples) -> None:
        replaced = ApiError(
            409, "The model's folder was replaced after it was loaded: reload the model first."
        )
        try:
            # `cptuning add` must not replace the folder between the check and the write.
            with changing(self.folder / FACTS_FILE, patience=_LOCK_TIMEOUT) as stamp:
                if stamp != self._stamp:  # The folder holds another model now.
                    raise replaced
                append_added(self.folder, batch)
        except TimeoutError as error:
            raise ApiError(
                503,
                "The examples were not added because another process is changing the model: retry.",
            ) from error
        except FileNotFoundError:
            raise replaced from None
        except OSError as error:
            raise ApiError(
                503, f"The examples were not added: they can't be written ({error.strerror})."
            ) from error
