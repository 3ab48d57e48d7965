"""How much accuracy it costs to pack the embedded weights into 8-bit rows.

    CPTUNING_DATA=folder python -m benchmarks.packing_accuracy ORIGINAL [--workers 8]

ORIGINAL is the folder of a backbone that is not packed; it is compared with itself after packing
and unpacking. Prints the most likely words for some masked sentences, how often the most likely
word is the same in the few-shot examples with one word masked, and the 16-shot test accuracy of
both, untrained and trained, with the difference on the same splits and its standard error.
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch

from benchmarks.runs import Job, run_all
from cptuning import CPTuningClassifier
from cptuning.backbone import Backbone, load_backbone
from cptuning.backbone.packing import pack, unpack
from cptuning.data import PAIR_DATASETS, PAPER_DATASETS, SEEDS, load_dataset_split, load_few_shot

SENTENCES = (
    "this movie was [MASK], i loved it.",
    "the food was terrible and the service was [MASK].",
    "the capital of france is [MASK].",
    "she opened the door and [MASK] into the room.",
)
STATES = {"untrained": {"steps": 0}, "trained": {}}


@cache
def both(original: str) -> dict[str, Backbone]:
    """The backbone as it is, and after packing and unpacking."""
    backbones = {"original": load_backbone(original), "packed": load_backbone(original)}
    model = backbones["packed"].model
    weights = {name: value.detach().cpu() for name, value in model.named_parameters()}
    model.load_state_dict(unpack(pack(weights)), strict=False)
    return backbones


def top_words(backbone: Backbone, sentence: str, k: int = 5) -> list[str]:
    """The most likely words at the first mask of a sentence."""
    inputs = backbone.tokenizer(sentence, return_tensors="pt", truncation=True, max_length=128)
    with torch.no_grad():
        logits = backbone.model(**inputs.to(backbone.model.device)).logits[0]
    place = int((inputs["input_ids"][0] == backbone.tokenizer.mask_token_id).nonzero()[0])
    return backbone.tokenizer.convert_ids_to_tokens(logits[place].topk(k).indices.tolist())


def masked_texts() -> Iterator[str]:
    """The few-shot training sentences, each with a word in its middle masked."""
    for name in PAPER_DATASETS:
        if name not in PAIR_DATASETS:
            for text in load_few_shot(name, seed=SEEDS[0])[0].examples:
                words = str(text).split()[:60]
                if len(words) > 2:
                    words[len(words) // 2] = "[MASK]"
                    yield " ".join(words)


def one_run(job: Job) -> Job:
    """Train and test both on one split."""
    split = load_dataset_split(job["dataset"], seed=job["seed"])
    truth = np.array(split.test_labels)
    answers = {}
    for name, backbone in both(job["backbone"]).items():
        before = {k: v.detach().clone() for k, v in backbone.model.state_dict().items()}
        classifier = CPTuningClassifier(
            backbone, random_state=job["seed"], verbose=False, **STATES[job["state"]]
        )
        classifier.fit(split.train, split.train_labels, split.dev, split.dev_labels)
        answers[name] = classifier.predict(split.test)
        backbone.model.load_state_dict(before)
    return {name: round(float(np.mean(given == truth)), 5) for name, given in answers.items()} | {
        "same": round(float(np.mean(answers["original"] == answers["packed"])), 5)
    }


def table(records: Sequence[Job]) -> str:
    """One row per state: means over the splits, and the difference on the same splits."""
    lines = ["| | original | packed | difference | the same answer |", "|---|---|---|---|---|"]
    for state in STATES:
        mine = [r for r in records if r["state"] == state]
        before, after, same = (
            100 * np.array([r[name] for r in mine]) for name in ("original", "packed", "same")
        )
        gaps = after - before
        error = np.std(gaps, ddof=1) / len(gaps) ** 0.5 if len(gaps) > 1 else np.nan
        lines.append(
            f"| {state} | {before.mean():.2f} | {after.mean():.2f} | "
            f"{gaps.mean():+.2f} ± {error:.2f} | {same.mean():.1f} % |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("original")
    parser.add_argument("--datasets", nargs="*", default=list(PAPER_DATASETS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/packing.jsonl"))
    chosen = parser.parse_args()
    backbones = both(chosen.original)
    for sentence in SENTENCES:
        print(sentence)
        for title, backbone in backbones.items():
            print(f"  {title:9s}", ", ".join(top_words(backbone, sentence)))
    firsts = [
        [top_words(backbone, text, 1) for backbone in backbones.values()] for text in masked_texts()
    ]
    same = sum(first == second for first, second in firsts)
    print(f"The most likely word is the same in {same} of {len(firsts)} masked sentences.")
    jobs = [
        {"backbone": chosen.original, "state": state, "dataset": name, "seed": seed}
        for state in STATES
        for seed in chosen.seeds
        for name in chosen.datasets
    ]
    print(table(run_all(jobs, one_run, chosen.output, chosen.workers)))


if __name__ == "__main__":
    main()
