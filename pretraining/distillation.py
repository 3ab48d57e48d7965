"""What a sentence encoder teaches: batches of texts with its vectors, and the loss.

The student reads a text alone or followed by a prompt with a mask, as it will when it classifies;
only the tokens of the text itself are pooled.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pretraining.targets import Rows
from pretraining.vocabulary import CLS, PAD, SEP

# Of those that end in a full stop the reference reads the rest; it reads the last one as it is.
PROMPTS = (
    "it is [MASK] .",
    "it was [MASK] .",
    ". it is so [MASK] .",
    "this is about [MASK] .",
    "topic : [MASK] .",
    "[MASK] .",
    "this is [MASK] .",
    "that was [MASK] .",
    "all in all , it was [MASK] .",
    "in summary , it is [MASK] .",
    "all in all , [MASK] !",
)
LONGEST_PROMPT = 8
# Texts that stand near each other are often alike: what tells them apart is worth learning.
NEIGHBOURS = 64
HELD_OUT_ONE_IN = 251


@dataclass(frozen=True)
class SentenceBatch:
    """Texts, perhaps with a prompt, and the teacher's vectors."""

    ids: Tensor
    attended: Tensor
    is_text: Tensor
    targets: Tensor | None
    """None if a reference model is the teacher."""
    unstopped: tuple[Tensor, Tensor]
    """Ids and attention of the same texts, the prompts without their full stops."""
    alone: tuple[Tensor, Tensor]
    """The same without prompts."""


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 0.05) -> Tensor:
    """1 − cos of each vector to its target, plus how differently a batch's texts compare.

    The second part is the mean over the texts i of KL(p_i ‖ q_i), where p_i and q_i are the
    softmax of the teacher's and of the student's similarities of text i to all the others,
    divided by the temperature.

    >>> vectors = functional.normalize(torch.randn(6, 4), dim=1)
    >>> bool(distillation_loss(3 * vectors, vectors).abs() < 1e-4)
    True
    """
    student = functional.normalize(student.float(), dim=1)
    teacher = functional.normalize(teacher.float(), dim=1)
    apart = (1 - (student * teacher).sum(1)).mean()
    itself = torch.eye(len(student), dtype=torch.bool, device=student.device)
    wanted, found = (
        functional.log_softmax((v @ v.T / temperature).masked_fill(itself, -1e4), dim=1)
        for v in (teacher, student)
    )
    return apart + functional.kl_div(found, wanted, reduction="batchmean", log_target=True)


class SentenceDrawer:
    """Draws texts of about one length with their targets; everything stays on the device."""

    def __init__(
        self,
        rows: Rows,
        targets: np.ndarray | None,
        vocabulary: dict[str, int],
        lengths: tuple[int, ...],
        *,
        device: torch.device | str,
        seed: int,
    ) -> None:
        self.device, self.seed = device, seed
        self.ids = torch.from_numpy(rows.ids.astype(np.int32)).to(device)
        self.starts = torch.from_numpy(rows.starts).to(device)
        self.lengths = torch.from_numpy(rows.lengths.astype(np.int64)).to(device)
        self.targets = None if targets is None else torch.from_numpy(targets).to(device)
        prompts = [[vocabulary[word] for word in prompt.split()] for prompt in PROMPTS]
        width = LONGEST_PROMPT
        padded = [p + [PAD] * (width - len(p)) for p in [[], *prompts]]
        self.prompts = torch.tensor(padded, device=device)
        self.prompt_lengths = torch.tensor([0, *map(len, prompts)], device=device)
        stops = [prompt.endswith(".") for prompt in PROMPTS]
        self.stops = torch.tensor([0, *map(int, stops)], device=device)
        numbers = torch.arange(len(self.lengths), device=device)
        held_out = numbers % HELD_OUT_ONE_IN == 0
        self.held_out = numbers[held_out & (self.lengths <= 54)]
        self.by_length: dict[int, Tensor] = {}
        shortest = 0
        for length in sorted(lengths):
            most = length - 2 - LONGEST_PROMPT
            fits = (self.lengths > shortest) & (self.lengths <= most) & ~held_out
            self.by_length[length] = numbers[fits]
            shortest = most
        self._generator = torch.Generator(device)

    @classmethod
    def load(cls, folder: Path, *args: object, **kwargs: object) -> "SentenceDrawer":
        """From the files that ``pretraining.targets`` wrote."""
        rows = Rows(np.load(folder / "ids.npy"), np.load(folder / "lengths.npy"))
        path = folder / "targets.npy"
        targets = np.load(path) if path.is_file() else None
        return cls(rows, targets, *args, **kwargs)  # type: ignore[arg-type]

    def draw(self, step: int, rows: int, length: int) -> SentenceBatch:
        """Blocks of texts that stand near each other in the corpus, half of them with a prompt."""
        self._generator.manual_seed(self.seed * 1_000_003 + step)
        some = self.by_length[length]
        blocks = max(1, rows // NEIGHBOURS)
        size = min(NEIGHBOURS, rows)
        first = self._below(max(1, len(some) - size), blocks)
        places = first[:, None] + torch.arange(size, device=self.device)
        chosen = some[places.clamp(max=len(some) - 1).flatten()]
        which = self._below(len(self.prompts) - 1, len(chosen)) + 1
        prompted = self._below(2, len(chosen)) == 0
        return self._laid_out(chosen, torch.where(prompted, which, 0), length)

    def held_out_batch(self, rows: int, length: int = 64) -> SentenceBatch:
        """Texts that no training batch has, without a prompt."""
        chosen = self.held_out[:rows]
        return self._laid_out(chosen, torch.zeros_like(chosen), length)

    def _below(self, n: int, size: int) -> Tensor:
        return torch.randint(n, (size,), generator=self._generator, device=self.device)

    def _laid_out(self, chosen: Tensor, prompt: Tensor, length: int) -> SentenceBatch:
        n, m = self.lengths[chosen][:, None], self.prompt_lengths[prompt][:, None]
        ids, attended = self._rows(chosen, prompt, n + m, length)
        column = torch.arange(length, device=self.device)
        return SentenceBatch(
            ids,
            attended,
            (column >= 1) & (column <= n),
            None if self.targets is None else self.targets[chosen],
            self._rows(chosen, prompt, n + m - self.stops[prompt][:, None], length),
            self._rows(chosen, prompt, n, length),
        )

    def _rows(
        self, chosen: Tensor, prompt: Tensor, end: Tensor, length: int
    ) -> tuple[Tensor, Tensor]:
        """[CLS] text prompt [SEP], then padding; ``end`` is the last token before [SEP]."""
        column = torch.arange(length, device=self.device)
        n = self.lengths[chosen][:, None]
        places = (self.starts[chosen][:, None] + column - 1).clamp(0, len(self.ids) - 1)
        words = self.prompts[prompt].gather(1, (column - 1 - n).clamp(0, LONGEST_PROMPT - 1))
        ids = torch.full_like(places, PAD)
        ids[:, 0] = CLS
        ids = torch.where((column >= 1) & (column <= n), self.ids[places].long(), ids)
        ids = torch.where((column > n) & (column <= end), words, ids)
        ids = torch.where(column == end + 1, SEP, ids)
        return ids, column <= end + 1
