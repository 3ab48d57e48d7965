"""The tuned view of a ranker as a task for the training loop: PCCL on vectors that are known."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from cptuning import losses
from cptuning.data import UniformBatches
from cptuning.inference.support import FloatArray
from cptuning.methods.ranking import JudgedVectors
from cptuning.methods.ranking_settings import RankingSettings
from cptuning.training import Score


class MappedContrast(nn.Module):
    """PCCL on the vectors that a matrix makes, which is the identity at first."""

    def __init__(self, width: int, settings: RankingSettings) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(width))
        self.settings = settings

    def forward(self, vectors: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The mean loss of the anchors that have a positive."""
        settings = self.settings
        mapped = normalize(vectors @ self.matrix, dim=-1)
        loss = losses.pccl(
            mapped,
            labels,
            margin=settings.margin,
            tau_n=settings.tau_n,
            xi=settings.xi,
            reduction="mean",
        )
        return {"loss": loss}


class TunedViewTask:
    """Judged queries with what answers them, and hard negatives; a batch is some of the queries."""

    replayable = False

    def __init__(
        self, vectors: JudgedVectors, queries: Sequence[int], settings: RankingSettings, seed: int
    ) -> None:
        self.seed = seed
        self.objective = MappedContrast(vectors.queries.shape[1], settings)
        self._vectors, self._queries, self._settings = vectors, queries, settings
        self._batches = UniformBatches(len(queries), settings.batch_size, seed)
        self._whole = self._inputs(list(queries)) if len(queries) <= settings.batch_size else None

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The matrix."""
        return [{"params": [self.objective.matrix], "lr": learning_rate}]

    def inputs(self, batch: int) -> dict[str, Tensor]:
        """Vectors and label sets of a batch's queries."""
        if self._whole is not None:
            return self._whole
        return self._inputs([self._queries[i] for i in self._batches(batch)])

    def evaluate(self, step: int) -> Score | None:
        """Nothing: whether it pays is for other queries to say."""
        return None

    def matrix(self) -> FloatArray:
        """The map."""
        return np.ascontiguousarray(self.objective.matrix.detach().numpy())

    def _inputs(self, queries: list[int]) -> dict[str, Tensor]:
        vectors, labels = self._vectors.contrasted(queries, self._settings.negatives)
        return {"vectors": torch.as_tensor(vectors), "labels": torch.as_tensor(labels)}
