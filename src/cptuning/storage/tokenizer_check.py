"""Whether an untrusted tokenizer can be run: what it does to a text is bounded."""

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MOST_BYTES = 200_000_000
# No tokenizer that is in use makes a text longer by more than this.
_MOST_GROWTH = 100
_MOST_CHARACTERS_PER_WORD = 1000


def check_tokenizer(path: Path, vocabulary: int) -> None:
    """Refuse a ``tokenizer.json`` with ids past the vocabulary, or that blows texts up.

    ``ValueError`` says why.
    """
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError("its tokenizer is too large")
    tokenizer = json.loads(path.read_bytes())
    if not isinstance(tokenizer, dict) or not isinstance(tokenizer.get("model"), dict):
        raise ValueError("its tokenizer has no model")
    largest = max(_ids(tokenizer), default=0)
    if largest >= vocabulary:
        raise ValueError(
            f"its tokenizer has the id {largest}, and its vocabulary ends at {vocabulary}"
        )
    growth = 1.0
    for part in ("normalizer", "pre_tokenizer"):
        for step in _steps(tokenizer.get(part)):
            growth *= _growth(step)
    if growth > _MOST_GROWTH:
        raise ValueError("its tokenizer makes texts many times longer")
    longest = tokenizer["model"].get("max_input_chars_per_word", 0)
    if not isinstance(longest, int) or longest > _MOST_CHARACTERS_PER_WORD:
        raise ValueError("its tokenizer reads words of any length")


def _ids(tokenizer: dict[str, Any]) -> Iterator[int]:
    vocabulary = tokenizer["model"].get("vocab")
    if isinstance(vocabulary, dict):
        yield from (number for number in vocabulary.values() if isinstance(number, int))
    elif isinstance(vocabulary, list):
        yield len(vocabulary) - 1
    for token in tokenizer.get("added_tokens") or []:
        if isinstance(token, dict) and isinstance(token.get("id"), int):
            yield token["id"]


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """The steps of a normalizer or a pre-tokenizer, those of sequences one by one."""
    if not isinstance(part, dict):
        return
    inner = part.get("normalizers", part.get("pretokenizers"))
    if isinstance(inner, list):
        for step in inner:
            yield from _steps(step)
    else:
        yield part


def _growth(step: dict[str, Any]) -> float:
    """How many times longer a step can make a text."""
    kind = step.get("type")
    if kind == "Replace":
        pattern, content = step.get("pattern"), str(step.get("content"))
        found = pattern.get("String") if isinstance(pattern, dict) else None
        # A regular expression may match between any two characters.
        return max(1.0, len(content) / len(found)) if found else 1.0 + len(content)
    if kind == "Prepend":
        return 1.0 + len(str(step.get("prepend")))
    if kind == "Metaspace":
        return max(1.0, len(str(step.get("replacement", ""))))
    if kind == "Precompiled":
        return _longest_replacement(str(step.get("precompiled_charsmap")))
    return 1.0


def _longest_replacement(charsmap: str) -> float:
    """How many characters SentencePiece puts in the place of one at most.

    Its map is the size of a trie, the trie, and the replacements, each ended by a zero.
    """
    blob = b64decode(charsmap)
    trie = int.from_bytes(blob[:4], "little")
    replacements = blob[4 + trie :].decode("utf-8", "replace").split("\0")
    return max(1.0, *map(len, replacements))
