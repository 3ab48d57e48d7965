"""Pre-training within a budget of seconds or steps; stopped at any point, it goes on from there.

    python -m pretraining.train TOKENS TOKENIZER OUTPUT --seconds 900 [--stop-after 560]
        [--targets TARGETS] [--pairs PAIRS.npz] [--cycle text:128 sentences:32 ...]

TOKENS and TOKENIZER are the folders that ``pretraining.tokens`` and ``pretraining.vocabulary``
wrote, TARGETS and PAIRS what ``pretraining.targets`` and ``pretraining.pairs`` did. OUTPUT gets
``checkpoint.safetensors`` and ``log.jsonl``; started again, the command continues from the
checkpoint. The learning rate follows the share of the budget that is spent, so
a run ends with a small one however fast the machine is.
"""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from pretraining.batches import IGNORED, Batch, Drawer
from pretraining.distillation import SentenceBatch, SentenceDrawer, distillation_loss
from pretraining.model import MaskedLM, Shape, from_transformers
from pretraining.optimizer import optimizers_for
from pretraining.pairs import LabelledPairs
from pretraining.targets import read_weights
from pretraining.tokens import Tokens
from pretraining.vocabulary import MASK

CHECKPOINT = "checkpoint.safetensors"
CHECKPOINT_EVERY = 1000
LOG_EVERY = 50
_LOGGED = ("masked", "relation", "pairs", "sentences")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what is learned."""

    seed: int = 0
    start: str = ""
    """A folder that ``pretraining.export`` wrote, whose weights are the start; else at random.
    So does a sentence head that the folder does not have."""
    seconds: float = 0.0
    """The budget; 0: it is ``steps``."""
    steps: int = 0
    optimizer: str = "muon"
    learning_rate: float = 2e-3
    warmup: float = 0.04
    decay: float = 0.02
    clip: float = 1.0
    masked: float = 0.2
    relation_weight: float = 0.5
    sentence_weight: float = 1.0
    reference: str = ""
    """A folder with a language model. The masks of prompts behind texts are to say the words that
    it says if the prompt lacks its full stop; and without targets it is the teacher as well."""
    reference_weight: float = 1.0
    tokens_a_step: int = 131_072
    cycle: tuple[str, ...] = (
        *("text:128", "relations", "text:128", "text:512"),
        *("text:128", "text:128", "relations", "text:128"),
    )
    """What the steps read in turn: "text:LENGTH", windows of running text with masked tokens;
    "relations", sentences and unlabelled pairs; "pairs", labelled ones; "sentences:LENGTH",
    texts with the teachers' vectors."""
    sentence_length: int = 96
    # The model.
    width: int = 384
    layers: int = 12
    heads: int = 6

    def shape(self, vocabulary: int) -> Shape:
        """The model's size."""
        return Shape(vocabulary, self.width, self.layers, self.heads, 4 * self.width)

    def rate_at(self, spent: float) -> float:
        """The learning rate when that share of the budget is spent: up, then down to nothing.

        >>> recipe = Recipe(learning_rate=1.0, warmup=0.5)
        >>> [recipe.rate_at(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        [0.0, 0.5, 1.0, 0.5, 0.0]
        """
        return self.learning_rate * max(
            0.0, min(spent / self.warmup, (1 - spent) / (1 - self.warmup))
        )


def token_losses(model: MaskedLM, hidden: Tensor, targets: Tensor) -> Tensor:
    """The loss of each masked token; zero where there is none."""
    logits = model.decoded(hidden).flatten(0, 1).float()
    each = functional.cross_entropy(
        logits, targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return each.view_as(targets)


def losses(
    model: MaskedLM, batch: Batch, token_losses: Callable[..., Tensor] = token_losses
) -> tuple[Tensor, Tensor]:
    """The mean loss of the masked tokens, and of the words that tell how pairs are related."""
    hidden = model.hidden(batch.ids, batch.types, batch.attended, batch.columns)
    each = token_losses(model, hidden, batch.targets)
    counted = batch.targets != IGNORED
    if not batch.has_relations:
        return each.sum() / counted.sum(), each.new_zeros(())
    masked = each[:, :-1].sum() / counted[:, :-1].sum().clamp(min=1)
    return masked, each[:, -1].sum() / counted[:, -1].sum().clamp(min=1)


def sentence_loss(
    model: MaskedLM, batch: SentenceBatch, reference: MaskedLM | None = None, weight: float = 1.0
) -> Tensor:
    """How far the vectors of some texts are from the teacher's.

    With a reference, KL(reference ‖ model) of the words at the prompts' masks is added. Without
    it nothing asks for a word there, and these masks forget what they mean. The reference reads the
    prompts without their full stops: so a model can be its own reference after these masks have
    forgotten.
    """
    types = torch.zeros_like(batch.ids)
    hidden = model.encoded(batch.ids, types, batch.attended)
    vectors = model.sentence(hidden, batch.is_text)
    if reference is None:
        assert batch.targets is not None
        return distillation_loss(vectors, batch.targets)
    is_mask = batch.ids == MASK
    rows = torch.arange(len(types), device=types.device)
    columns = is_mask.float().argmax(1)
    found = model.decoded(hidden[rows, columns]).float().log_softmax(-1)
    with torch.no_grad():
        known = reference.encoded(*_inputs(batch.unstopped))
        wanted = reference.decoded(known[rows, columns]).float().log_softmax(-1)
        targets = batch.targets
        if targets is None:
            targets = reference.sentence(reference.encoded(*_inputs(batch.alone)), batch.is_text)
    loss = distillation_loss(vectors, targets)
    each = functional.kl_div(found, wanted, reduction="none", log_target=True).sum(-1)
    prompted = is_mask.any(1)
    return loss + weight * (each * prompted).sum() / prompted.sum().clamp(min=1)


def _inputs(rows: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Ids and attention of single texts as the model takes them."""
    ids, attended = rows
    return ids, torch.zeros_like(ids), attended


class Trainer:
    """A model in training: its optimisers, its place in the budget, its log."""

    def __init__(
        self,
        recipe: Recipe,
        drawer: Drawer,
        folder: Path,
        *,
        device: str,
        clock: Callable[[], float] = time.perf_counter,
        sentences: SentenceDrawer | None = None,
    ) -> None:
        self.recipe, self.drawer, self.folder, self.clock = recipe, drawer, folder, clock
        self.sentences = sentences
        torch.manual_seed(recipe.seed)
        self.model = MaskedLM(recipe.shape(drawer.vocabulary_size)).to(device)
        if recipe.start:
            weights = read_weights(Path(recipe.start))
            self.model.load_state_dict(from_transformers(weights, self.model), strict=False)
        self.reference: MaskedLM | None = None
        if recipe.reference:
            self.reference = MaskedLM(self.model.shape).to(device).requires_grad_(False)
            weights = read_weights(Path(recipe.reference))
            self.reference.load_state_dict(from_transformers(weights, self.reference), strict=False)
        self.on_gpu = device.startswith("cuda")
        self.optimizers = optimizers_for(
            self.model, recipe.optimizer, decay=recipe.decay, fused=self.on_gpu
        )
        self._token_losses: Callable[..., Tensor] = token_losses
        if self.on_gpu:
            # Layers are alike: compiled one by one, they share the result. One graph a length;
            # without dynamic=False the second length would make it a general, slower one.
            torch._dynamo.config.recompile_limit = 64
            known = list(self.reference.layers) if self.reference else []
            for layer in [*self.model.layers, *known]:
                layer.compile(dynamic=False)
            self._token_losses = torch.compile(token_losses, dynamic=False)
        self.step, self.spent_before = 0, 0.0
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / CHECKPOINT).is_file():
            self._load()

    def batch(self, step: int) -> Batch | SentenceBatch:
        """What a step reads."""
        kind, _, number = self.recipe.cycle[step % len(self.recipe.cycle)].partition(":")
        length = int(number or self.recipe.sentence_length)
        rows = max(1, self.recipe.tokens_a_step // length)
        if kind == "sentences":
            assert self.sentences is not None
            return self.sentences.draw(step, rows, length)
        if kind == "pairs":
            return self.drawer.labelled_pairs(step, rows)
        draw = self.drawer.windows if kind == "text" else self.drawer.sentences
        return draw(step, rows, length)

    def losses(self, step: int) -> tuple[Tensor, Tensor]:
        """What a step minimises, and a row for the log: masked, relation, pairs, sentences."""
        batch = self.batch(step)
        with self._autocast():
            if isinstance(batch, SentenceBatch):
                weight = self.recipe.reference_weight
                loss = sentence_loss(self.model, batch, self.reference, weight)
                return self.recipe.sentence_weight * loss, _log_row(sentences=loss)
            masked, relation = losses(self.model, batch, self._token_losses)
        if not batch.has_relations:
            return masked, _log_row(masked=masked)
        kind = (
            "pairs" if self.recipe.cycle[step % len(self.recipe.cycle)] == "pairs" else "relation"
        )
        row = _log_row(masked=masked, **{kind: relation})
        return masked + self.recipe.relation_weight * relation, row

    def run(self, stop_after: float = float("inf")) -> None:
        """Train until the budget, or this call's share of it, is spent; then write a checkpoint."""
        self._warm_up()
        recipe, begun = self.recipe, self.clock()
        sums = torch.zeros(len(_LOGGED), 3, device=self.drawer.device)
        while True:
            here = self.clock() - begun
            elapsed = self.spent_before + here
            spent = elapsed / recipe.seconds if recipe.seconds else self.step / recipe.steps
            if spent >= 1 or here >= stop_after:
                break
            rate = recipe.rate_at(spent)
            sums += self._step(rate)
            self.step += 1
            if self.step % LOG_EVERY == 0:
                self._log(elapsed, rate, sums)
                sums.zero_()
            if self.step % CHECKPOINT_EVERY == 0:
                self._save(elapsed)
        self._save(elapsed)

    def _autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast("cuda", torch.bfloat16) if self.on_gpu else nullcontext()

    def _step(self, rate: float) -> Tensor:
        """One move of the weights; a row for the log."""
        loss, row = self.losses(self.step)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        row[:, 2] = norm * row[:, 1]
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return row

    def _warm_up(self) -> None:
        """Compile what will run, before the clock does."""
        if not self.on_gpu:
            return
        for step in range(len(self.recipe.cycle)):
            loss, _ = self.losses(step)
            loss.backward()
        self.model.zero_grad(set_to_none=True)
        torch.cuda.synchronize()

    @torch.no_grad()
    def held_out_cosine(self, rows: int = 4096) -> float:
        """The mean cosine of student and teacher on texts that were held out."""
        assert self.sentences is not None
        batch = self.sentences.held_out_batch(rows)
        with self._autocast():
            hidden = self.model.encoded(batch.ids, torch.zeros_like(batch.ids), batch.attended)
            found = self.model.sentence(hidden, batch.is_text).float()
            wanted = batch.targets
            if wanted is None:
                assert self.reference is not None
                known = self.reference.encoded(*_inputs(batch.alone))
                wanted = self.reference.sentence(known, batch.is_text)
        return float(functional.cosine_similarity(found, wanted.float()).mean())

    def _log(self, elapsed: float, rate: float, sums: Tensor) -> None:
        means: dict[str, float | None] = {}
        norms: dict[str, float] = {}
        for name, (total, count, norm) in zip(_LOGGED, sums.tolist(), strict=True):
            means[name] = round(total / count, 4) if count else None
            if count:
                norms[name] = round(norm / count, 3)
        line = {
            "step": self.step,
            "seconds": round(elapsed, 1),
            "tokens": self.step * self.recipe.tokens_a_step,
            "rate": round(rate, 6),
            "loss": means.pop("masked"),
            **means,
            "gradients": norms,
        }
        if self.sentences is not None and self.step % (10 * LOG_EVERY) == 0:
            line["cosine"] = round(self.held_out_cosine(), 4)
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    def _save(self, elapsed: float) -> None:
        tensors = {f"model/{n}": t for n, t in self.model.state_dict().items()}
        for name, optimizer in self.optimizers.items():
            for number, state in optimizer.state_dict()["state"].items():
                tensors |= {f"{name}/{number}/{key}": value for key, value in state.items()}
        facts = {
            "recipe": json.dumps(asdict(self.recipe)),
            "step": str(self.step),
            "spent": repr(elapsed),
        }
        temporary = self.folder / "checkpoint.tmp"
        save_file({n: t.contiguous() for n, t in tensors.items()}, temporary, metadata=facts)
        temporary.replace(self.folder / CHECKPOINT)

    def _load(self) -> None:
        with safe_open(self.folder / CHECKPOINT, framework="pt") as file:
            facts = file.metadata()
            if json.loads(facts["recipe"]) != json.loads(json.dumps(asdict(self.recipe))):
                raise SystemExit(
                    f"{self.folder} has a run of another recipe: choose another folder."
                )
            self.model.load_state_dict(
                {n[6:]: file.get_tensor(n) for n in file.keys() if n.startswith("model/")}  # noqa: SIM118
            )
            for name, optimizer in self.optimizers.items():
                state: dict[int, dict[str, Tensor]] = {}
                for full in file.keys():  # noqa: SIM118
                    if full.startswith(f"{name}/"):
                        _, number, key = full.split("/")
                        state.setdefault(int(number), {})[key] = file.get_tensor(full)
                groups = optimizer.state_dict()["param_groups"]
                optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.step, self.spent_before = int(facts["step"]), float(facts["spent"])


def _log_row(**losses: Tensor) -> Tensor:
    """Losses, how many (0 or 1), and room for the gradient's norm, in the order of ``_LOGGED``."""
    [first, *_] = losses.values()
    rows = first.new_zeros(len(_LOGGED), 3, dtype=torch.float32)
    for name, loss in losses.items():
        rows[_LOGGED.index(name), 0] = loss.detach()
        rows[_LOGGED.index(name), 1] = 1
    return rows


def main() -> None:
    """Run from the command line; every field of the recipe is an option."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokens", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--stop-after", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for field in fields(Recipe):
        if field.name != "cycle":
            option = f"--{field.name.replace('_', '-')}"
            parser.add_argument(option, type=type(field.default), default=field.default)
    parser.add_argument("--cycle", nargs="+", default=Recipe.cycle)
    parser.add_argument("--targets", type=Path, help="texts, with teachers' vectors or without")
    parser.add_argument("--pairs", type=Path, help="labelled pairs")
    chosen = vars(parser.parse_args())
    chosen["cycle"] = tuple(chosen["cycle"])
    recipe = Recipe(**{field.name: chosen[field.name] for field in fields(Recipe)})
    if not recipe.seconds and not recipe.steps:
        parser.error("give a budget: --seconds or --steps")
    torch.set_float32_matmul_precision("high")
    vocabulary = Tokenizer.from_file(str(chosen["tokenizer"] / "tokenizer.json")).get_vocab()
    drawer = Drawer(
        Tokens.load(chosen["tokens"]),
        vocabulary,
        device=chosen["device"],
        seed=recipe.seed,
        rate=recipe.masked,
        pairs=LabelledPairs.load(chosen["pairs"]) if chosen["pairs"] else None,
    )
    lengths = {int(kind[10:]) for kind in recipe.cycle if kind.startswith("sentences:")}
    sentences = None
    if lengths:
        if not chosen["targets"]:
            parser.error("a cycle with sentences needs --targets")
        sentences = SentenceDrawer.load(
            chosen["targets"],
            vocabulary,
            tuple(lengths),
            device=chosen["device"],
            seed=recipe.seed,
        )
    trainer = Trainer(
        recipe, drawer, chosen["output"], device=chosen["device"], sentences=sentences
    )
    trainer.run(chosen["stop_after"])


if __name__ == "__main__":
    main()
