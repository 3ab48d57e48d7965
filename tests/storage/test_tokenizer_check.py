"""Tokenizers that are in use pass; those that would make much of a little do not."""

import base64
import json

import pytest
from tests.tiny import ARCHITECTURES

from cptuning.storage.tokenizer_check import check_tokenizer

# The longest replacement of Unicode's compatibility forms, and so of SentencePiece's maps.
LONGEST = "صلى الله عليه وسلم"


def charsmap(*replacements):
    strings = b"".join(text.encode() + b"\0" for text in replacements)
    blob = (8).to_bytes(4, "little") + bytes(8) + strings
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(blob).decode()}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


LIKE_DEBERTA = [{"type": "Strip"}, charsmap("a", LONGEST), replace({"Regex": " {2,}"}, " ")]
LIKE_ALBERT = [
    replace({"String": "``"}, '"'),
    replace({"String": "''"}, '"'),
    {"type": "NFKD"},
    charsmap("a", LONGEST),
]


@pytest.fixture
def tokenizer(tmp_path):
    def write(normalizers=(), **more):
        stored = {
            "model": {"type": "WordPiece", "vocab": {"a": 0, "b": 1}},
            "normalizer": {"type": "Sequence", "normalizers": list(normalizers)},
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"},
            **more,
        }
        (tmp_path / "tokenizer.json").write_text(json.dumps(stored))
        return tmp_path / "tokenizer.json"

    return write


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_tokenizers_of_every_architecture_pass(tiny, architecture):
    vocabulary = json.loads((tiny(architecture) / "config.json").read_text())["vocab_size"]
    check_tokenizer(tiny(architecture) / "tokenizer.json", vocabulary)


@pytest.mark.parametrize("normalizers", [LIKE_DEBERTA, LIKE_ALBERT], ids=["deberta", "albert"])
def test_normalizers_of_real_tokenizers_pass(tokenizer, normalizers):
    check_tokenizer(tokenizer(normalizers), 2)


@pytest.mark.parametrize(
    "normalizers",
    [
        [replace({"String": "a"}, "a" * 101)],
        [replace({"String": "ab"}, "ab" * 11)] * 2,
        [replace({"Regex": ""}, "a" * 10)] * 2,
        [{"type": "Prepend", "prepend": "a" * 101}],
        [charsmap("a" * 101)],
        [{"type": "Sequence", "normalizers": [charsmap(LONGEST)] * 2}],
    ],
)
def test_what_makes_texts_much_longer_is_refused(tokenizer, normalizers):
    with pytest.raises(ValueError, match="makes texts many times longer"):
        check_tokenizer(tokenizer(normalizers), 2)


def test_ids_end_with_the_vocabulary(tokenizer):
    with pytest.raises(ValueError, match="has the id 1, and its vocabulary ends at 1"):
        check_tokenizer(tokenizer(), 1)
    pieces = {"type": "Unigram", "vocab": [["a", 0.0], ["b", 0.0], ["c", 0.0]]}
    with pytest.raises(ValueError, match="has the id 2, and its vocabulary ends at 2"):
        check_tokenizer(tokenizer(model=pieces), 2)
    with pytest.raises(ValueError, match="has the id 9"):
        check_tokenizer(tokenizer(added_tokens=[{"id": 9, "content": "[MASK]"}]), 2)
