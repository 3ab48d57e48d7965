"""Whether it matters that the embedded weights are packed into 8-bit rows.

    CPTUNING_DATA=folder python benchmarks/packing.py ORIGINAL

ORIGINAL is the folder of the backbone before packing. Prints the most likely words for some
masked sentences and the 16-shot test accuracy of both, trained for ``--steps`` (0: untrained).
"""

import argparse

import numpy as np
import torch

from cptuning import CPTuningClassifier
from cptuning.backbone import Backbone, load_backbone
from cptuning.data import SEEDS, load_dataset_split

SENTENCES = (
    "this movie was [MASK], i loved it.",
    "the food was terrible and the service was [MASK].",
    "the capital of france is [MASK].",
    "she opened the door and [MASK] into the room.",
)


def top_words(backbone: Backbone, sentence: str, k: int = 5) -> list[str]:
    inputs = backbone.tokenizer(sentence, return_tensors="pt")
    with torch.no_grad():
        logits = backbone.model(**inputs).logits[0]
    place = int((inputs["input_ids"][0] == backbone.tokenizer.mask_token_id).nonzero()[0])
    return backbone.tokenizer.convert_ids_to_tokens(logits[place].topk(k).indices.tolist())


def accuracy(backbone: str, dataset: str, seed: int, **settings: object) -> float:
    split = load_dataset_split(dataset, seed=seed)
    classifier = CPTuningClassifier(backbone, random_state=seed, **settings)
    classifier.fit(split.train, split.train_labels, split.dev, split.dev_labels)
    return 100 * float(np.mean(classifier.predict(split.test) == np.array(split.test_labels)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("original")
    parser.add_argument("--datasets", nargs="*", default=["SST-2"])
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--steps", type=int, default=0)
    chosen = parser.parse_args()
    names = {"original": chosen.original, "packed": "embedded"}
    backbones = {title: load_backbone(name) for title, name in names.items()}
    for sentence in SENTENCES:
        print(sentence)
        for title, backbone in backbones.items():
            print(f"  {title:9s}", ", ".join(top_words(backbone, sentence)))
    for dataset in chosen.datasets:
        for title, name in names.items():
            scores = [accuracy(name, dataset, s, steps=chosen.steps) for s in chosen.seeds]
            shown = ", ".join(f"{score:.2f}" for score in scores)
            print(f"{dataset}, {chosen.steps} steps, {title}: {shown}", flush=True)


if __name__ == "__main__":
    main()
