"""Backbones side by side: masked-token loss by length and by source, and fill-mask answers.

    python -m pretraining.evaluate HELDOUT.jsonl BACKBONE [BACKBONE ...]

HELDOUT.jsonl is the file that ``pretraining.corpus`` keeps out of training; a BACKBONE is a folder
or "embedded". Vocabularies differ, so the loss is told in nats a character of the masked tokens.
The same documents are read at every length, the first 510 tokens of those that have as many: a
model that can use its positions does better the longer the rows. 16-shot accuracy has a command of
its own, ``benchmarks/few_shot.py --backbones``.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cptuning.backbone import Backbone, load_backbone

LENGTHS = (64, 128, 256, 512)
MASKED = 0.15
SENTENCES = (
    "this movie was [MASK], i loved it.",
    "the food was terrible and the service was [MASK].",
    "the capital of france is [MASK].",
    "she opened the door and [MASK] into the room.",
    "where can i [MASK] a cheap phone?",
    "the company said its profit [MASK] by ten percent last year.",
)


@dataclass
class Total:
    """The loss on masked tokens in nats, and how many characters they have."""

    nats: float = 0.0
    characters: int = 0

    @property
    def a_character(self) -> float:
        """The loss."""
        return self.nats / max(1, self.characters)


def long_documents(path: Path, backbone: Backbone) -> list[tuple[str, list[int]]]:
    """The source and the first tokens of every document that fills the longest row."""
    room = max(LENGTHS) - 2
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    # The first characters are enough: tokens rarely have more than six on average.
    tokenizer = backbone.fast_tokenizer
    tokenizer.no_truncation()
    found = tokenizer.encode_batch([r["text"][: 12 * room] for r in rows], add_special_tokens=False)
    pairs = zip(rows, found, strict=True)
    return [(r["source"], e.ids[:room]) for r, e in pairs if len(e.ids) >= room]


@torch.inference_mode()
def loss_at(
    length: int, documents: Sequence[tuple[str, list[int]]], backbone: Backbone, device: str
) -> dict[str, Total]:
    """The loss on these documents, cut to rows of one length, by source and overall."""
    tokenizer, model = backbone.tokenizer, backbone.model.eval()
    model.to(torch.device(device))
    pieces = _piece_lengths(backbone)
    totals: dict[str, Total] = defaultdict(Total)
    rng = np.random.default_rng(0)
    rows, sources = [], []
    for source, ids in documents:
        for start in range(0, len(ids) - (length - 2) + 1, length - 2):
            middle = ids[start : start + length - 2]
            rows.append([tokenizer.cls_token_id, *middle, tokenizer.sep_token_id])
            sources.append(source)
    size = max(1, 16_384 // length)
    for start in range(0, len(rows), size):
        some = np.array(rows[start : start + size])
        chosen: NDArray[np.bool_] = np.less(rng.random(some.shape), MASKED)
        chosen[:, [0, -1]] = False
        inputs = torch.from_numpy(np.where(chosen, tokenizer.mask_token_id, some)).to(device)
        logits = model(input_ids=inputs).logits[torch.from_numpy(chosen).to(device)].float()
        targets = torch.from_numpy(some[chosen]).to(device)
        nats = torch.nn.functional.cross_entropy(logits, targets, reduction="none").cpu().numpy()
        for row, token, lost in zip(chosen.nonzero()[0], some[chosen], nats, strict=True):
            for name in ("all", sources[start + row]):
                totals[name].nats += float(lost)
                totals[name].characters += int(pieces[token])
    return dict(totals)


def characters_a_token(documents: Sequence[tuple[str, list[int]]], backbone: Backbone) -> float:
    """Characters per token: of two models of one shape, the one with more is faster."""
    lengths = _piece_lengths(backbone)
    return float(np.concatenate([lengths[ids] for _, ids in documents]).mean())


def _piece_lengths(backbone: Backbone) -> NDArray[np.int64]:
    pieces = backbone.tokenizer.convert_ids_to_tokens(list(range(backbone.vocabulary)))
    return np.array([len(piece.removeprefix("##")) for piece in pieces])


@torch.inference_mode()
def top_words(backbone: Backbone, sentence: str, k: int = 5) -> list[str]:
    """The most likely words at the mask."""
    inputs = backbone.tokenizer(sentence, return_tensors="pt")
    place = int((inputs["input_ids"][0] == backbone.tokenizer.mask_token_id).nonzero()[0])
    logits = backbone.model.cpu()(**inputs).logits[0, place]
    return list(backbone.tokenizer.convert_ids_to_tokens(logits.topk(k).indices.tolist()))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heldout", type=Path)
    parser.add_argument("backbones", nargs="+")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--documents", type=int, default=None, help="read only so many")
    chosen = parser.parse_args()
    for name in chosen.backbones:
        backbone = load_backbone(name)
        documents = long_documents(chosen.heldout, backbone)[: chosen.documents]
        room = characters_a_token(documents, backbone)
        print(
            f"{name}: {backbone.model.num_parameters():,} parameters, {room:.2f} characters a token"
        )
        print(f"  nats a character, {len(documents)} documents", flush=True)
        for length in LENGTHS:
            totals = loss_at(length, documents, backbone, chosen.device)
            told = "  ".join(f"{s} {t.a_character:.4f}" for s, t in sorted(totals.items()))
            print(f"  length {length:3}: {told}", flush=True)
        for sentence in SENTENCES:
            print(f"  {sentence} {', '.join(top_words(backbone, sentence))}")


if __name__ == "__main__":
    main()
