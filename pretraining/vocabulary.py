"""The vocabulary: uncased word pieces, learned from the training text.

python -m pretraining.vocabulary CORPUS_FOLDER OUTPUT_FOLDER [--size 16384]
"""

import argparse
from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from transformers import BertTokenizer

from pretraining.corpus import read_documents

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN, CLS, SEP, MASK = range(len(SPECIAL))
LONGEST = 512


def learn_vocabulary(texts: Iterable[str], size: int) -> Tokenizer:
    """A WordPiece tokenizer like BERT's.

    >>> tokenizer = learn_vocabulary(["The cat sat on the mat."] * 9, size=60)
    >>> tokenizer.encode("the CAT").tokens
    ['[CLS]', 'the', 'cat', '[SEP]']
    """
    tokenizer = Tokenizer(WordPiece(unk_token=SPECIAL[UNKNOWN]))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    trainer = WordPieceTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        min_frequency=2,
        limit_alphabet=200,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    return tokenizer


def save_for_transformers(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the files from which ``AutoTokenizer`` loads it."""
    BertTokenizer(tokenizer_object=tokenizer, model_max_length=LONGEST).save_pretrained(folder)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--size", type=int, default=16_384)
    chosen = parser.parse_args()
    shards = sorted(chosen.corpus.glob("train-*.txt.xz"))
    # Every third document is enough to count pieces.
    texts = islice(chain.from_iterable(map(read_documents, shards)), 0, None, 3)
    tokenizer = learn_vocabulary(texts, chosen.size)
    chosen.output.mkdir(parents=True, exist_ok=True)
    save_for_transformers(tokenizer, chosen.output)
    print(f"{tokenizer.get_vocab_size()} pieces in {chosen.output}")


if __name__ == "__main__":
    main()
