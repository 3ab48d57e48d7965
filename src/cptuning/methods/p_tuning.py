"""P-tuning: trainable tokens that come from a BiLSTM and an MLP, beside fixed words."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from cptuning.backbone import PromptedEncoder
from cptuning.data import LabelSpace
from cptuning.errors import CPTuningError
from cptuning.inference import HeadPredictor
from cptuning.methods.classification import ClassificationTask
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.rival_settings import PTuningSettings
from cptuning.methods.training import Split
from cptuning.methods.word_learner import WordLearner
from cptuning.prompting import Template
from cptuning.prompting.template import Prompts


class PromptReparameterization(nn.Module):
    """The prompt vectors as a function of other vectors: a 2-layer BiLSTM, then an MLP."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, num_layers=2, bidirectional=True, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, raw: Tensor) -> Tensor:
        """The vectors that the language model reads."""
        hidden, _ = self.lstm(raw.unsqueeze(0))
        return Tensor(self.mlp(hidden).squeeze(0))


class PTuning(WordLearner[PTuningSettings]):
    """The whole model is trained at one rate, and the reparameterization at another."""

    method = "p-tuning"
    takes_prompts = True

    def prepare(self, module: PromptedEncoder) -> None:
        """Compute the prompt vectors from vectors that start at random."""
        if not any(isinstance(p, Prompts) for p in Template.parse(self.settings.template).parts):
            raise CPTuningError(
                f"The template {self.settings.template!r} has no [PRO], "
                "which is what p-tuning trains: put some in, as in {a} [PRO*3] It was [MASK]."
            )
        nn.init.normal_(module.prompts)
        network = PromptReparameterization(module.prompts.shape[1]).to(module.prompts.device)
        parametrize.register_parametrization(module, "prompts", network)

    def parameter_groups(self, learning_rate: float) -> list[dict[str, object]]:
        """The language model, and the reparameterization with the vectors that go into it."""
        module = self.encoder.module
        prompts = cast(nn.ModuleDict, module.parametrizations)["prompts"].parameters()
        return [
            {"params": list(module.model.parameters()), "lr": learning_rate},
            {
                "params": list(prompts),
                "lr": self.settings.prompt_learning_rate,
                "weight_decay": 0.0,
            },
        ]

    def task(self, split: Split, log: EvaluationLog) -> "PTuningTask":
        """The task of learning some examples."""
        return PTuningTask(self, split, log)


class PTuningTask(ClassificationTask[PTuningSettings]):
    """After training only the vectors are kept, not the network that computed them."""

    def predictor(
        self, label_space: LabelSpace, temperature: float, unknown_threshold: float | None
    ) -> HeadPredictor:
        """The scorer with plain prompt vectors."""
        module = self.learner.encoder.module
        if parametrize.is_parametrized(module, "prompts"):
            with torch.no_grad():
                parametrize.remove_parametrizations(module, "prompts")
        return super().predictor(label_space, temperature, unknown_threshold)
