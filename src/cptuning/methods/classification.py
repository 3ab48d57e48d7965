"""What the rivals share: cross-entropy on class scores, and the learner around a head."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Generic

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cptuning.backbone import Backbone, PromptedEncoder, TextEncoder
from cptuning.data import LabelSpace
from cptuning.errors import CPTuningError
from cptuning.inference import HeadPredictor
from cptuning.inference.support import IntArray
from cptuning.methods.demonstrations import Demonstrations
from cptuning.methods.evaluation_log import EvaluationLog, HeldOut
from cptuning.methods.heads import Head
from cptuning.methods.learner import Learner
from cptuning.methods.scorer import TextScorer
from cptuning.methods.task import NO_TARGET, BatchedTask
from cptuning.methods.training import LabelledExamples, Split, Training
from cptuning.prompting import Encoding, Layout
from cptuning.settings import S


class Classification(nn.Module):
    """The head's loss on labelled texts and, with a weight, the masked LM's on unlabelled ones."""

    def __init__(self, encoder: PromptedEncoder, head: Head, mlm_weight: float = 0.0) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.mlm_weight = mlm_weight

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        rows: Tensor,
        columns: Tensor,
        labels: Tensor,
        targets: Tensor,
        weights: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The losses of a batch; the first positions are output masks, the rest are [TMSK]s."""
        n = len(rows) - len(targets)
        features, decoder_inputs = self.encoder(
            input_ids, attention_mask, token_type_ids, rows, columns
        )
        scores = self.head(self.encoder, features[:n], decoder_inputs[:n])
        classification = self.classification_loss(scores, labels, weights)
        if len(targets) == 0:
            return {"loss": classification, "classification": classification}
        logits = self.encoder.decode(decoder_inputs[n:]).float()
        mlm = cross_entropy(logits, targets, ignore_index=NO_TARGET)
        loss = (1 - self.mlm_weight) * classification + self.mlm_weight * mlm
        return {"loss": loss, "classification": classification, "mlm": mlm}

    def classification_loss(
        self, scores: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """The head's own."""
        return self.head.loss(scores, labels, weights)


class ClassificationTask(BatchedTask[S]):
    """A head trained on some examples."""

    def __init__(self, learner: "HeadLearner[S]", split: Split, log: EvaluationLog) -> None:
        super().__init__(learner, split, log)
        self.learner = learner
        self.objective = learner.module
        # The masked LM is for unlabelled texts: labelled ones are read as they are.
        self.encodings = [replace(e, is_text=np.zeros_like(e.is_text)) for e in self.encodings]
        self.scorer = TextScorer(learner.encoder, learner.head, learner.demonstrations(split.train))

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The learner's."""
        return self.learner.parameter_groups(learning_rate)

    def mask_rate(self) -> float:
        """That of the unlabelled texts, if the method has a masked-LM loss."""
        return self.learner.mlm_rate

    def labelled_encodings(self, rows: IntArray, batch: int) -> list[Encoding]:
        """The examples of a batch, with others as demonstrations if the method has them."""
        encodings = super().labelled_encodings(rows, batch)
        if self.scorer.demonstrations is None:
            return encodings
        return self.scorer.demonstrations.for_training(encodings, rows, [self.seed, batch])

    def read(self, encodings: Sequence[Encoding]) -> object:
        """Their class scores."""
        return self.scorer.score_encodings(encodings)

    def held_out(self, dev: LabelledExamples) -> HeldOut:
        """The class scores; these methods have no similarity to examples."""
        scores = self.scorer.score_encodings(self.dev_encodings)
        familiarity = np.zeros(len(scores), dtype=np.float32)
        return HeldOut(scores, familiarity, dev.labels, dev.weights)

    def predictor(
        self, label_space: LabelSpace, temperature: float, unknown_threshold: float | None
    ) -> HeadPredictor:
        """The scorer as it is now."""
        return HeadPredictor(self.scorer, label_space, temperature)


class HeadLearner(Learner[S, ClassificationTask[S]], Generic[S]):
    """A backbone with a head; each rival is one of these.

    A subclass makes the layout and the head, and says what is frozen.
    """

    mlm_weight = 0.0
    mlm_rate = 0.0

    def __init__(self, training: Training[S]) -> None:
        super().__init__(training)
        self.backbone = training.backbone
        device, classes = training.processes.device, training.classes
        layout = self.layout(classes)
        with seeded(training.seed, device):
            self.head = self.make_head(classes, layout)
            module = PromptedEncoder(self.backbone, layout.prompt_ids, self.head.features)
            module.prompts.requires_grad_(len(module.prompts) > 0)
            self.prepare(module)
        self.encoder = TextEncoder(layout, module.to(device), self.backbone)
        self.module = self.objective(module, self.head.to(device))

    def layout(self, classes: Sequence[str]) -> Layout:
        """How texts are laid out."""
        raise NotImplementedError

    def make_head(self, classes: Sequence[str], layout: Layout) -> Head:
        """What scores the classes."""
        raise NotImplementedError

    def prepare(self, module: PromptedEncoder) -> None:
        """Freeze what the method does not train, or replace a part of the module."""

    def objective(self, module: PromptedEncoder, head: Head) -> Classification:
        """What is trained."""
        return Classification(module, head, self.mlm_weight)

    def demonstrations(self, train: LabelledExamples) -> Demonstrations | None:
        """Examples that are read along with a text."""
        return None

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """All that is not frozen, at one rate."""
        trained = [p for p in self.module.parameters() if p.requires_grad]
        return [{"params": trained, "lr": learning_rate}]

    def task(self, split: Split, log: EvaluationLog) -> ClassificationTask[S]:
        """The task of learning some examples; texts that no loss would read are left out."""
        if self.mlm_weight == 0:
            split = replace(split, unlabeled=None)
        return ClassificationTask(self, split, log)


def require_masked_lm(backbone: Backbone, method: str) -> None:
    """Refuse a backbone without a masked-LM head for methods that ask it for words."""
    if not backbone.has_head:
        raise CPTuningError(
            f"{method} asks the model for words, and {backbone.name} has no masked-LM head: "
            "use another backbone, or the methods cp-tuning or fine-tuning."
        )


def snapshot(backbone: Backbone) -> Callable[[], None]:
    """A way to put the backbone's weights back as they are now, for another training."""
    kept = {name: value.detach().clone() for name, value in backbone.state_dict().items()}

    def put_back() -> None:
        for name, value in backbone.state_dict().items():
            value.copy_(kept[name])

    return put_back


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Inside, torch draws from this seed; outside, its state is as before."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
