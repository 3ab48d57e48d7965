"""Labelled pairs of texts as token ids: entailment, paraphrase, answers to questions.

    python -m pretraining.pairs FOLDER TOKENIZER OUTPUT

FOLDER holds ``NAME.jsonl.gz`` files with ``text_a``, ``text_b`` and ``label``. Only the sets named
here are read: their terms are stated, and none holds texts of RTE, MRPC, QQP or QNLI.
"""

import argparse
import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from pretraining.vocabulary import PAD

LONGEST = 43
"""The most tokens of either text; the rest is cut off."""

# A label, and the words that stand for it in "A [SEP] B these are [MASK] ." and "A ? [MASK] , B".
WORDS = {
    "entailment": ("consistent", "yes"),
    "neutral": ("separate", "maybe"),
    "contradiction": ("opposite", "no"),
    "paraphrase": ("same", "yes"),
    "not paraphrase": ("different", "no"),
    "answers": ("answered", "yes"),
    "does not answer": ("unrelated", "no"),
}
# What the sets call these labels.
_ALSO = {
    "supports": "entailment",
    "support": "entailment",
    "refutes": "contradiction",
    "undermine": "contradiction",
    "same meaning": "paraphrase",
    "not same": "not paraphrase",
}
SETS = (
    "cb_ni",
    "circa_meaning_ni",
    "conjnli",
    "counterfactual_snli",
    "faq_dstc9_knowledge",
    "fever_symmetric",
    "grailqa_para_ni",
    "help_monotonicity_part",
    "med_monotonicity",
    "mnli_ni",
    "paws_ni",
    "perspectrum_ni",
    "scitail_ni",
    "snli_dev_test_tokenised",
    "snli_ni",
    "taxinli_mnli",
)


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of texts as token ids, padded, and the number of each pair's label in ``WORDS``."""

    a: NDArray[np.int16]
    b: NDArray[np.int16]
    labels: NDArray[np.int64]

    @classmethod
    def load(cls, path: Path) -> "LabelledPairs":
        """Read what the command wrote."""
        with np.load(path) as stored:
            return cls(stored["a"], stored["b"], stored["labels"])


def read_pairs(folder: Path) -> list[tuple[str, str, str]]:
    """The pairs of all sets; questions also beside the answer to another one."""
    pairs = []
    for name in SETS:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        found = [(r["text_a"], r["text_b"], _ALSO.get(r["label"], r["label"])) for r in rows]
        pairs += found
        if name == "faq_dstc9_knowledge":
            shuffled = np.random.default_rng(0).permutation(len(found))
            pairs += [
                (a, found[other][1], "does not answer")
                for (a, b, _), other in zip(found, shuffled, strict=True)
                if found[other][1] != b
            ]
    return pairs


def tokenize_pairs(pairs: list[tuple[str, str, str]], tokenizer: Tokenizer) -> LabelledPairs:
    """The pairs as token ids."""
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding(length=LONGEST, pad_id=PAD)
    numbers = {label: number for number, label in enumerate(WORDS)}

    def ids(side: int) -> NDArray[np.int16]:
        texts = [pair[side] for pair in pairs]
        found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return np.array([encoding.ids for encoding in found], dtype=np.int16)

    return LabelledPairs(ids(0), ids(1), np.array([numbers[label] for _, _, label in pairs]))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("output", type=Path)
    chosen = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(chosen.tokenizer / "tokenizer.json"))
    pairs = tokenize_pairs(read_pairs(chosen.folder), tokenizer)
    np.savez_compressed(chosen.output, a=pairs.a, b=pairs.b, labels=pairs.labels)
    print(f"{len(pairs.labels):,} pairs in {chosen.output}")


if __name__ == "__main__":
    main()
